package suite

import (
	"reflect"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// proposal is the answer of a preview.
type proposal struct {
	ScraperDTO Scraper
	SampleData []map[string]any
}

// testTrials makes a preview, saves its proposal, takes a sample of that, and runs it. All three
// read the same page, each is paid, and only the run is visible.
func testTrials(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Hosts: 3, PagesPerHost: 3, ItemsPerPage: 8, ChainPages: 3,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 1}}})
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	ctx := Within(t, Patience)
	group := Must(s.PutGroup(ctx, "shelves"))(t)
	var start string
	for url := range web.URLs(1) {
		start = url
	}
	began := time.Now()
	var proposals []proposal
	body := map[string]any{"name": "shelf", "groupId": group, "url": start}
	if err := s.Call(ctx, "POST", "/api/scraper-simple/url-based", nil, body,
		&proposals); err != nil {
		t.Fatal(err)
	}
	t.Logf("a preview took %v", time.Since(began))
	if len(proposals) == 0 || proposals[0].ScraperDTO.Type != model.MultipleProducts ||
		len(proposals[0].SampleData) == 0 {
		t.Fatalf("proposed is %+v", proposals)
	}
	best := proposals[0]
	for _, row := range best.SampleData {
		for _, name := range []string{"title", "price", "url"} {
			if row[name] == nil {
				t.Errorf("%s is missing in %v", name, row)
			}
		}
	}
	best.ScraperDTO.SourceConfig.Pagination = nil
	id := Must(s.PutScraper(ctx, Scraper{GroupRef: group, Scraper: best.ScraperDTO.Scraper}))(t)
	var sample []map[string]any
	if err := s.Call(ctx, "GET", "/api/scraper/"+id+"/get-sample-data", nil, nil,
		&sample); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sample, best.SampleData) {
		t.Errorf("the sample is %v, the preview showed %v", sample, best.SampleData)
	}
	if jobs := Must(s.Jobs(ctx, ""))(t); len(jobs) > 0 {
		t.Errorf("the history shows %+v", jobs)
	}
	run := Must(s.RunScraper(ctx, id))(t)
	Must(s.Follow(ctx, run.JobID, nil))(t)
	Sealed(t, s.Client, run.JobID)
	if rows := Must(s.Rows(ctx, run.JobID))(t); len(rows) != len(sample) {
		t.Errorf("%d rows of the run, %d of the sample", len(rows), len(sample))
	}
	var sources []string
	for _, entry := range Must(s.Ledger(ctx))(t) {
		if entry.Type == "CHARGE" {
			sources = append(sources, entry.Source)
			if entry.FreeRequestsDelta != -1 || entry.Status != "SETTLED" {
				t.Errorf("entry %+v", entry)
			}
		}
	}
	if !reflect.DeepEqual(sources, []string{"RUN", "SAMPLE", "PREVIEW_URL"}) {
		t.Errorf("charged were %v", sources)
	}
	if _, differ, err := s.Admin().RecountOfProduct(ctx); err != nil || differ > 0 {
		t.Errorf("%d runs are recounted otherwise: %v", differ, err)
	}
	body["url"] = "http://nowhere.invalid/"
	if err := s.Call(ctx, "POST", "/api/scraper-simple/url-based", nil, body,
		&proposals); CodeOf(err) != "source_unreachable" {
		t.Errorf("a host that is not there: %v", err)
	}
}

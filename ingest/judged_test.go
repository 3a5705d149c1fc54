package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// A run of kept bodies is compared with the runs before it. With a selector that finds little it is
// held back.
func TestOddReExtractIsHeld(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		const links, found = 40, 4
		var pages []crawledPage
		for seq := range links {
			body := "<b>old</b>"
			if seq < found {
				body += "<i>old</i>"
			}
			pages = append(pages, crawledPage{unit: model.Unit{Seq: uint32(seq)}, body: body,
				kept: true, outcome: model.Delivered})
		}
		c := newCrawled(t, start, pages...)
		group := c.client.View().Group(c.group)
		c.client.Must(t, client.PutGroup{ID: group.ID, Customer: "ann", Name: group.Name,
			DataTable: group.DataTable, StartType: "MANUAL", Quarantine: true})
		for range 2 {
			c.crawlOnce(slices.Repeat([]string{`{"a":"old"}`}, links)...)
		}
		wrong := selectors
		wrong.Fields = []model.Field{{Name: "a", Selector: "i", Kind: model.Text}}
		odd := c.begin(wrong)
		c.step(odd)
		if held := c.client.View().HeldRun(odd); held == nil ||
			!strings.HasPrefix(held.Why, "4 rows, where the last runs had 40") {
			t.Errorf("held: %+v", held)
		}
		sound := c.begin(selectors)
		c.step(sound)
		view := c.client.View()
		if held := view.HeldRun(sound); held != nil || view.Job(sound).Items != links {
			t.Errorf("%+v is held: %+v", view.Job(sound), held)
		}
		// Pages of a rerun, or of a stopped run, are not all that the scraper reads.
		for name, spoil := range map[string]func(*client.Job){
			"rerun":   func(job *client.Job) { job.Rest = true },
			"stopped": func(job *client.Job) { job.State = model.Stopped },
		} {
			c.client.Spoil(t, func(tx *clienttest.Tx) {
				part := *tx.Job(c.run)
				part.Rest, part.State = false, model.Completed
				spoil(&part)
				tx.PutJob(&part)
			})
			part := c.begin(wrong)
			c.step(part)
			if held := c.client.View().HeldRun(part); held != nil {
				t.Errorf("of a run that is %s, %+v is held", name, held)
			}
		}
	})
}

// BenchmarkStoredSums measures how long a judgement reads the sums of a page with a row of ten
// fields, from SQLite.
func BenchmarkStoredSums(b *testing.B) {
	const pages = 20_000
	store, err := sqlite.Open(sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	}()
	source := ids.Random{Now: time.Now}
	job := rowstore.Job{ID: source.New(), Customer: "ann", Group: source.New(),
		Scraper: source.New(), Started: 1}
	var sums profile.Sums
	var writes []rowstore.PageWrite
	for at := range pages {
		row := `{"x":1`
		for field := range 9 {
			row += fmt.Sprintf(`,"field%d":"text %d of page %d"`, field, field, at)
		}
		page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: uint32(at)}, Fetch: source.New(),
			Outcome: model.Delivered, At: 1, Last: true, URL: fmt.Sprint("https://shop.test/", at),
			Rows: [][]byte{[]byte(row + "}")}}
		sumRows(page, &sums)
		completeRows(page, job)
		if writes = append(writes, rowstore.PageWrite{Job: job, Page: page}); len(writes) < 1_000 {
			continue
		}
		if _, err := store.PutPages(b.Context(), writes); err != nil {
			b.Fatal(err)
		}
		writes = writes[:0]
	}
	for b.Loop() {
		read, err := client.StoredSums(b.Context(), store, job.ID)
		if err != nil || read == nil || read.Rows != pages {
			b.Fatal(read, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/pages, "µs/page")
}

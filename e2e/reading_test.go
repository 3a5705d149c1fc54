package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestPoisonedPage: a page whose reading panics is an error of one link, uncharged, and kept for
// inspection. Everything beside it is read, and a sample and a preview of it get an answer.
func TestPoisonedPage(t *testing.T) {
	web := newWeb(t, synthweb.Config{Hosts: 5, PagesPerHost: 8,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 1}}})
	urls := slices.Collect(web.URLs(40))
	poisoned := urls[7]
	s := &service{single: newSingle(t, append(suite.Fast(), "--no-rate-limits"), web)}
	s.env = []string{crash.Poison + "=" + poisoned}
	s.Service = &suite.Service{T: t, Product: s.single, Web: web}
	s.start()
	s.Fill(s.Client, suite.Plenty)

	o := suite.ProductOrder(s.Client, urls)
	run := o.Launch(t)
	reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	expected := s.Expected(o)
	expected.Shared = true // a sample and a preview also request pages
	expected.Truth = func(address string) (synthweb.Truth, error) {
		truth, err := web.Truth(address)
		if address == poisoned && err == nil {
			page := &truth.Pages[0]
			page.Outcome, page.Rows = model.Errored, nil
			page.Codes, page.Status = []fault.Code{fault.PageUnparsable}, http.StatusOK
		}
		return truth, err
	}
	s.sampleAndPreview(poisoned, false)
	s.sampleAndPreview(urls[8], true)
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	if kept, err := filepath.Glob(filepath.Join(s.data, "unreadable", "*.page")); err != nil ||
		len(kept) < 3 {
		t.Errorf("kept for a look are %v: %v", kept, err)
	}
	t.Log(suite.Check(t, expected, s.WithRecords(reported)))
}

// sampleAndPreview requests both for a page, readable or not.
func (s *service) sampleAndPreview(page string, readable bool) {
	s.T.Helper()
	ctx := suite.Within(s.T, suite.Patience)
	name := "page " + page
	group := suite.Must(s.PutGroup(ctx, name))(s.T)
	scraper := model.Scraper{Name: name, Type: model.SingleProduct,
		ItemsConfig:  synthweb.ProductFields(),
		SourceConfig: model.SourceConfig{URL: page}}
	id := suite.Must(s.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: scraper}))(s.T)
	var rows, proposals []any
	for what, err := range map[string]error{
		"sample": s.Call(ctx, "GET", "/api/scraper/"+id+"/get-sample-data", nil, nil, &rows),
		"preview": s.Call(ctx, "POST", "/api/scraper-simple/url-based", nil,
			map[string]any{"name": "new", "groupId": group, "url": page}, &proposals),
	} {
		if (err == nil) != readable ||
			!readable && (suite.CodeOf(err) != "source_unreachable" ||
				!strings.Contains(err.Error(), "cannot be parsed")) {
			s.T.Errorf("a %s of %s: %v", what, page, err)
		}
	}
	if readable && (len(rows) != 1 || len(proposals) == 0) {
		s.T.Errorf("%d rows and %d proposals of %s", len(rows), len(proposals), page)
	}
}

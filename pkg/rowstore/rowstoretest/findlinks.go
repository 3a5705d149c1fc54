package rowstoretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// passing returns the links that pass a filter.
func passing(links []rowstore.SiteLink, f filter.Node) (some []rowstore.SiteLink) {
	budget := filter.NewBudget(context.Background())
	for _, l := range links {
		if filter.Match(budget, f, map[string]any{"url": l.URL, "title": l.Title, "curl": l.Curl,
			"state": l.State.String()}) {
			some = append(some, l)
		}
	}
	return some
}

// found returns the links that the store finds, and its total.
func (s *suite) found(q rowstore.SiteQuery, f filter.Node) (links []rowstore.SiteLink,
	total int64) {
	s.Helper()
	links, total, err := s.store.FindSiteLinks(s.ctx, q, f)
	s.ok(err)
	return links, total
}

func (s *suite) filter(text string) filter.Node {
	s.Helper()
	f, err := filter.Parse([]byte(text))
	s.ok(err)
	return f
}

// testFindLinks: pages of the links that pass a filter come in every order; a page beyond the last
// is the last. A version that cannot be read is unknown.
func testFindLinks(s *suite) {
	count := 12_345
	if testing.Short() { // each of 40 pages reads all links
		count = 1_845
	}
	version := s.site(count)
	thirds := passing(siteLinks(0, count), s.filter(`{"curl":"0"}`))
	last := len(thirds) / 100 * 100 // where the last page begins
	for by, text := range map[rowstore.LinkOrder]func(rowstore.SiteLink) string{
		rowstore.BySeq:   func(l rowstore.SiteLink) string { return fmt.Sprintf("%09d", l.Seq) },
		rowstore.ByURL:   func(l rowstore.SiteLink) string { return l.URL },
		rowstore.ByTitle: func(l rowstore.SiteLink) string { return l.Title },
		rowstore.ByCurl:  func(l rowstore.SiteLink) string { return l.Curl },
	} {
		sorted := slices.Clone(thirds)
		slices.SortStableFunc(sorted, func(a, b rowstore.SiteLink) int {
			return strings.Compare(text(a), text(b))
		})
		for _, descending := range []bool{false, true} {
			if descending {
				slices.Reverse(sorted)
			}
			for offset, page := range map[int][]rowstore.SiteLink{0: sorted[:100],
				last - 100: sorted[last-100 : last], last: sorted[last:],
				last + 100: sorted[last:], 1 << 60: sorted[last:]} {
				links, total := s.found(rowstore.SiteQuery{Version: version, By: by,
					Descending: descending, Offset: offset, Limit: 100}, s.filter(`{"curl":"0"}`))
				s.equal("how many there are", int64(len(sorted)), total)
				s.equal(fmt.Sprintf("page at %d by %d", offset, by), page, links)
			}
		}
	}
	links, total := s.found(rowstore.SiteQuery{Version: version, Offset: 5, Limit: 10},
		s.filter(`{"curl":"3"}`))
	s.equal("links that there are not", 0, len(links)+int(total))
	for _, limit := range []int{0, rowstore.MaxSitePart + 1} {
		if _, _, err := s.store.FindSiteLinks(s.ctx, rowstore.SiteQuery{Version: version,
			Limit: limit}, nil); err == nil {
			s.Errorf("a page of %d links is read", limit)
		}
	}
	s.ok(s.store.DropSite(s.ctx, version))
	_, _, err := s.store.FindSiteLinks(s.ctx, rowstore.SiteQuery{Version: version, Limit: 10}, nil)
	if !errors.Is(err, rowstore.ErrListUnknown) {
		s.Fatalf("links of a version that was dropped: %v", err)
	}
}

// oddSite stores links in all states, with all texts of the corpus as titles and commands.
func (s *suite) oddSite() (version, site ids.ID, links []rowstore.SiteLink) {
	s.Helper()
	var texts []string
	for _, value := range append(slices.Clone(values), `"1e-400"`, `"-0"`, `"1.5e+3"`,
		`"0.30000000000000004"`, `"0.3"`, `"1\n"`, `"PENDING"`) {
		if text := ""; strings.HasPrefix(value, `"`) {
			s.ok(json.Unmarshal([]byte(value), &text))
			texts = append(texts, text)
		}
	}
	site, version = s.ids.New(), s.ids.New()
	var outcomes, older []rowstore.LinkOutcome
	for i, text := range texts {
		url := fmt.Sprintf("https://a.test/%d", i)
		l := rowstore.SiteLink{Seq: uint32(i), Hash: rowstore.LinkHash(url), URL: url, Title: text,
			Curl: texts[(i*7+3)%len(texts)], State: rowstore.LinkState(i % 3)}
		links = append(links, l)
		if l.State != rowstore.LinkPending {
			outcomes = append(outcomes, rowstore.LinkOutcome{Hash: l.Hash, State: l.State})
			older = append(older, rowstore.LinkOutcome{Hash: l.Hash, State: 3 - l.State})
		}
	}
	s.ok(s.store.PutSiteLinks(s.ctx, version, links))
	s.ok(s.store.FinishSite(s.ctx, version, uint32(len(links))))
	s.ok(s.store.PutLinkStates(s.ctx, site, 2, outcomes))
	s.ok(s.store.PutLinkStates(s.ctx, site, 1, older))
	s.ok(s.store.PutLinkStates(s.ctx, s.ids.New(), 3, older))
	return version, site, links
}

// testLinkFilters: links are found as filter.Match says, for any values and operands.
func testLinkFilters(s *suite) {
	version, site, links := s.oddSite()
	agree := func(t failer, text string) {
		f, err := filter.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, total := s.found(rowstore.SiteQuery{Version: version, Site: site, Limit: 1_000}, f)
		want := passing(links, f)
		if !slices.Equal(got, want) || total != int64(len(want)) {
			t.Fatalf("%s: %d links %v, want %v", text, total, got, want)
		}
	}
	agree(s, `{}`)
	for _, comparison := range comparisons() {
		agree(s, `{"title":`+comparison+`}`)
	}
	states := []string{`"PENDING"`, `{"ne":"PENDING"}`, `"VISITED"`, `{"in":["PENDING","ERRORED"]}`,
		`{"nin":["VISITED","ERRORED"]}`, `{"in":["PENDING","VISITED","ERRORED"]}`, `{"in":[]}`,
		`{"gt":"ERRORED"}`, `{"contains":"ed"}`, `{"exists":true}`, `{"exists":false}`,
		`{"eq":null}`}
	for _, state := range states {
		agree(s, `{"state":`+state+`}`)
		agree(s, `{"$nor":[{"state":`+state+`},{"title":{"contains":"a"}}]}`)
	}
	for _, other := range []string{`{"exists":false}`, `{"exists":true}`, `{"eq":null}`, `""`, `0`,
		`{"gte":0}`, `{"lte":""}`, `{"contains":""}`} {
		agree(s, `{"no such":`+other+`}`)
	}
	all := comparisons()
	rapid.Check(s.T, func(t *rapid.T) {
		one := func(name string) string {
			field := rapid.SampledFrom([]string{"title", "curl"}).Draw(t, name+" field")
			return `{"` + field + `":` + rapid.SampledFrom(all).Draw(t, name) + `}`
		}
		join := rapid.SampledFrom([]string{"$and", "$or", "$nor"}).Draw(t, "join")
		agree(t, `{"`+join+`":[`+one("first")+`,`+one("second")+`,{"state":`+
			rapid.SampledFrom(states).Draw(t, "state")+`}]}`)
	})
}

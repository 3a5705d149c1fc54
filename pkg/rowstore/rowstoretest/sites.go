package rowstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// siteLinks makes links of a version, from a number on. Their titles run in reverse.
func siteLinks(from, count int) []rowstore.SiteLink {
	links := make([]rowstore.SiteLink, count)
	for i := range links {
		n := from + i
		url := fmt.Sprintf("https://shop.test/%06d", n*7919%1_000_003)
		links[i] = rowstore.SiteLink{Seq: uint32(n), Hash: rowstore.LinkHash(url), URL: url,
			Title: fmt.Sprintf("title %06d", 1_000_000-n), Curl: fmt.Sprint(n % 3)}
	}
	return links
}

// site stores a version of count links.
func (s *suite) site(count int) ids.ID {
	s.Helper()
	version := s.ids.New()
	for from := 0; from < count; from += rowstore.MaxSitePart {
		part := siteLinks(from, min(rowstore.MaxSitePart, count-from))
		s.ok(s.store.PutSiteLinks(s.ctx, version, part))
	}
	s.ok(s.store.FinishSite(s.ctx, version, uint32(count)))
	return version
}

func (s *suite) linksOf(q rowstore.SiteQuery) []rowstore.SiteLink {
	s.Helper()
	links, err := s.store.SiteLinks(s.ctx, q)
	s.ok(err)
	return links
}

// allLinks reads all links of a version, page by page.
func (s *suite) allLinks(version, site ids.ID) (links []rowstore.SiteLink) {
	s.Helper()
	q := rowstore.SiteQuery{Version: version, Site: site, Limit: rowstore.MaxSitePart}
	for {
		part := s.linksOf(q)
		if links = append(links, part...); len(part) < q.Limit {
			return links
		}
		q.From = part[len(part)-1].Seq + 1
	}
}

// testSites: once it is finished, a version is read as it was given, in every order and in parts. A
// part that comes twice is stored once.
func testSites(s *suite) {
	const count = 12_345
	version := s.ids.New()
	unknown := func(version ids.ID) {
		s.Helper()
		_, err := s.store.SiteLinks(s.ctx, rowstore.SiteQuery{Version: version, Limit: 1})
		if !errors.Is(err, rowstore.ErrListUnknown) {
			s.Fatalf("links of a version that cannot be read: %v", err)
		}
	}
	unknown(version)
	for from := 0; from < count; from += rowstore.MaxSitePart {
		part := siteLinks(from, min(rowstore.MaxSitePart, count-from))
		for range 2 {
			s.ok(s.store.PutSiteLinks(s.ctx, version, part))
		}
	}
	unknown(version)
	for range 2 {
		s.ok(s.store.FinishSite(s.ctx, version, count))
	}
	want := siteLinks(0, count)
	s.equal("links", want, s.allLinks(version, ids.ID{}))
	s.equal("links from one on", want[12_000:12_010],
		s.linksOf(rowstore.SiteQuery{Version: version, From: 12_000, Limit: 10}))
	for by, text := range map[rowstore.LinkOrder]func(rowstore.SiteLink) string{
		rowstore.ByURL:   func(l rowstore.SiteLink) string { return l.URL },
		rowstore.ByTitle: func(l rowstore.SiteLink) string { return l.Title },
		rowstore.ByCurl:  func(l rowstore.SiteLink) string { return l.Curl },
	} {
		sorted := slices.Clone(want)
		slices.SortStableFunc(sorted, func(a, b rowstore.SiteLink) int {
			return bytes.Compare([]byte(text(a)), []byte(text(b)))
		})
		q := rowstore.SiteQuery{Version: version, By: by, Offset: 5_000, Limit: 100}
		s.equal("a page", sorted[5_000:5_100], s.linksOf(q))
		slices.Reverse(sorted)
		q.Descending = true
		s.equal("a page from the end", sorted[5_000:5_100], s.linksOf(q))
	}
	s.equal("links of the end backwards", []rowstore.SiteLink{want[count-2], want[count-3]},
		s.linksOf(rowstore.SiteQuery{Version: version, Descending: true, Offset: 1, Limit: 2}))
	s.equal("behind the end", 0,
		len(s.linksOf(rowstore.SiteQuery{Version: version, Offset: count, Limit: 10})))
	for _, limit := range []int{0, rowstore.MaxSitePart + 1} {
		if _, err := s.store.SiteLinks(s.ctx, rowstore.SiteQuery{Version: version,
			Limit: limit}); err == nil {
			s.Errorf("a page of %d links is read", limit)
		}
	}
	empty := s.site(0)
	s.equal("links of an empty version", 0, len(s.allLinks(empty, ids.ID{})))
	odd := []rowstore.SiteLink{{URL: "https://a.test/'\\\"", Title: "ä\x00\n", Curl: "curl 'x'",
		Hash: 1<<64 - 1}}
	version = s.ids.New()
	s.ok(s.store.PutSiteLinks(s.ctx, version, odd))
	s.ok(s.store.FinishSite(s.ctx, version, 1))
	s.equal("odd text", odd, s.allLinks(version, ids.ID{}))
}

// testDropSites: a dropped version is gone, and nothing else. An unfinished version is listed.
func testDropSites(s *suite) {
	kept, dropped, begun := s.site(5), s.site(rowstore.MaxSitePart+1), s.ids.New()
	s.ok(s.store.PutSiteLinks(s.ctx, begun, siteLinks(0, 3)))
	all := func() map[ids.ID]rowstore.ListInfo {
		found, err := s.store.AllSites(s.ctx)
		s.ok(err)
		known := map[ids.ID]rowstore.ListInfo{}
		for _, info := range found {
			known[info.ID] = info
		}
		return known
	}
	s.equal("versions", map[ids.ID]rowstore.ListInfo{
		kept:    {ID: kept, Count: 5, Finished: true},
		dropped: {ID: dropped, Count: rowstore.MaxSitePart + 1, Finished: true},
		begun:   {ID: begun}}, all())
	for range 2 {
		s.ok(s.store.DropSite(s.ctx, dropped))
		s.ok(s.store.DropSite(s.ctx, begun))
	}
	s.ok(s.store.DropSite(s.ctx, s.ids.New()))
	s.equal("versions that are left", map[ids.ID]rowstore.ListInfo{
		kept: {ID: kept, Count: 5, Finished: true}}, all())
	s.equal("links that are left", 5, len(s.allLinks(kept, ids.ID{})))
	_, err := s.store.SiteLinks(s.ctx, rowstore.SiteQuery{Version: dropped, Limit: 1})
	if !errors.Is(err, rowstore.ErrListUnknown) {
		s.Fatalf("links of a version that was dropped: %v", err)
	}
}

// testLinkStates: for each link, the run that started last counts, in whatever order runs report.
// States belong to the site, whatever its version.
func testLinkStates(s *suite) {
	site, other := s.ids.New(), s.ids.New()
	first, second := s.site(4), s.site(6)
	links := siteLinks(0, 6)
	tell := func(site ids.ID, started int64, states ...rowstore.LinkState) {
		s.Helper()
		var outcomes []rowstore.LinkOutcome
		for i, state := range states {
			if state != rowstore.LinkPending {
				outcomes = append(outcomes, rowstore.LinkOutcome{Hash: links[i].Hash, State: state})
			}
		}
		for range 2 {
			s.ok(s.store.PutLinkStates(s.ctx, site, started, outcomes))
		}
	}
	states := func(version, site ids.ID) (found []rowstore.LinkState) {
		s.Helper()
		for _, l := range s.allLinks(version, site) {
			found = append(found, l.State)
		}
		return found
	}
	const pending, visited, errored = rowstore.LinkPending, rowstore.LinkVisited,
		rowstore.LinkErrored
	s.equal("states of no run", []rowstore.LinkState{pending, pending, pending, pending},
		states(first, site))
	tell(site, 20, visited, errored)
	tell(site, 10, errored, visited, errored)
	tell(other, 30, errored, errored, errored, errored)
	s.equal("states", []rowstore.LinkState{visited, errored, errored, pending},
		states(first, site))
	tell(site, 30, pending, visited, visited, pending, errored)
	s.equal("states of the next version", []rowstore.LinkState{visited, visited, visited, pending,
		errored, pending}, states(second, site))
	stated, err := s.store.StatedSites(s.ctx)
	s.ok(err)
	s.equal("sites with states", []ids.ID{site, other}, stated)
	for range 2 {
		s.ok(s.store.DropLinkStates(s.ctx, site))
	}
	s.equal("states that were dropped", []rowstore.LinkState{pending, pending, pending, pending},
		states(first, site))
	s.equal("states of another site", []rowstore.LinkState{errored, errored, errored, errored},
		states(first, other))
	stated, err = s.store.StatedSites(s.ctx)
	s.ok(err)
	s.equal("sites with states that are left", []ids.ID{other}, stated)
}

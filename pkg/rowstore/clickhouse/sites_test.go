package clickhouse_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// siteVersion is a version of a site that is read, and dropped at the end. Its site has the same
// id.
var siteVersion = [12]byte{11: 3}

// sites returns the calls of the API server.
func (r *rights) sites(s *clickhouse.Store) []call {
	return []call{
		{"PutSiteLinks", func(ctx context.Context) error {
			return s.PutSiteLinks(ctx, siteVersion, []rowstore.SiteLink{{URL: "http://a.test/"}})
		}},
		{"FinishSite", func(ctx context.Context) error {
			return s.FinishSite(ctx, siteVersion, 1)
		}},
		{"SiteLinks", func(ctx context.Context) error {
			_, err := s.SiteLinks(ctx, rowstore.SiteQuery{Version: siteVersion, Limit: 1})
			return err
		}},
		{"FindSiteLinks", func(ctx context.Context) error {
			_, _, err := s.FindSiteLinks(ctx, rowstore.SiteQuery{Version: siteVersion, Limit: 1},
				filter.Compare{Field: "state", Op: filter.Eq,
					Values: []filter.Value{{Kind: filter.Text, Text: "PENDING"}}})
			return err
		}},
		{"DropSite", func(ctx context.Context) error { return s.DropSite(ctx, r.ids.New()) }},
	}
}

// orphanSites returns the calls of the control plane.
func (r *rights) orphanSites(s *clickhouse.Store) []call {
	return []call{
		{"AllSites", func(ctx context.Context) error {
			_, err := s.AllSites(ctx)
			return err
		}},
		{"StatedSites", func(ctx context.Context) error {
			_, err := s.StatedSites(ctx)
			return err
		}},
		{"DropSite", func(ctx context.Context) error { return s.DropSite(ctx, siteVersion) }},
		{"DropLinkStates", func(ctx context.Context) error {
			return s.DropLinkStates(ctx, siteVersion)
		}},
	}
}

var benchLinks = flag.Int("bench-links", 1_000_000, "links of the site that BenchmarkFindLinks reads")

// BenchmarkFindLinks reads pages of 100 links that pass a filter, by address. One of 33 links is
// errored, the others are visited.
func BenchmarkFindLinks(b *testing.B) {
	store, source := openB(b, database(b)), &ids.Sequence{}
	version, site := source.New(), source.New()
	for from := 0; from < *benchLinks; from += rowstore.MaxSitePart {
		links := make([]rowstore.SiteLink, min(rowstore.MaxSitePart, *benchLinks-from))
		outcomes := make([]rowstore.LinkOutcome, len(links))
		for i := range links {
			seq := from + i
			url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
			links[i] = rowstore.SiteLink{Seq: uint32(seq), Hash: rowstore.LinkHash(url), URL: url,
				Title: fmt.Sprintf("Product %d", seq)}
			outcomes[i] = rowstore.LinkOutcome{Hash: links[i].Hash, State: rowstore.LinkVisited}
			if seq%33 == 0 {
				outcomes[i].State = rowstore.LinkErrored
			}
		}
		err := errors.Join(store.PutSiteLinks(b.Context(), version, links),
			store.PutLinkStates(b.Context(), site, 1, outcomes))
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := store.FinishSite(b.Context(), version, uint32(*benchLinks)); err != nil {
		b.Fatal(err)
	}
	for _, text := range []string{`{"title":{"contains":"/77"}}`, `{"title":{"contains":"t 77"}}`,
		`{"title":{"regex":"7{4}"}}`, `{"state":"ERRORED"}`, `{"state":"VISITED"}`,
		`{"state":"PENDING"}`} {
		f, err := filter.Parse([]byte(text))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			q := rowstore.SiteQuery{Version: version, Site: site, By: rowstore.ByURL, Limit: 100}
			for b.Loop() {
				if _, _, err := store.FindSiteLinks(b.Context(), q, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

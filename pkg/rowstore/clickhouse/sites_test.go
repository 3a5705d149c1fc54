package clickhouse_test

import (
	"context"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// siteVersion is a version of a site that is read, and dropped at the end. Its site is called so,
// too.
var siteVersion = [12]byte{11: 3}

// sites are the calls of the API server.
func (r *rights) sites(s *clickhouse.Store) []call {
	return []call{
		{"PutSiteLinks", func(ctx context.Context) error {
			return s.PutSiteLinks(ctx, siteVersion, []rowstore.SiteLink{{URL: "http://a.test/"}})
		}},
		{"FinishSite", func(ctx context.Context) error {
			return s.FinishSite(ctx, siteVersion, 1)
		}},
		{"SiteLinks", func(ctx context.Context) error {
			return s.SiteLinks(ctx, rowstore.SiteQuery{Version: siteVersion},
				func(*rowstore.SiteLink) error { return nil })
		}},
		{"DropSite", func(ctx context.Context) error { return s.DropSite(ctx, r.ids.New()) }},
	}
}

// orphanSites are the calls of the control plane.
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

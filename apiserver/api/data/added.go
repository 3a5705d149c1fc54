package data

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// addedOf tells by which runs the rows of protected scrapers are kept, of those that a read is of;
// 0: there are none. A file that is added moves the rows to its own run. A cursor from before
// would miss those that it has not come to, so it is refused then.
func (r Resource) addedOf(ctx context.Context, v *client.View, scope rowstore.Scope,
	run ids.ID) (uint64, error) {
	sum := xxh3.New()
	has := false
	add := func(s *client.Scraper) bool {
		if p := s.Protection; p != nil && !p.Run.IsZero() {
			has = true
			_, _ = sum.Write(p.Run[:]) // a hash never fails
		}
		return true
	}
	if s := v.Scraper(scope.Scraper); s != nil {
		add(s)
	} else if v.GroupScrapers(scope.Group, add); has && !run.IsZero() {
		job, err := r.History.Run(ctx, v, run)
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", run, err)
		}
		sum.Reset()
		has = false
		if job != nil {
			if s := v.Scraper(job.Scraper); s != nil {
				add(s)
			}
		}
	}
	if !has {
		return 0, nil
	}
	return sum.Sum64(), nil
}

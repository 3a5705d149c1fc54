package data

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// addedOf tells by which runs the rows of protected scrapers are kept, of those that a read is of;
// 0: there are none. A file that is added moves the rows to its own run. A cursor from before
// would miss those that it has not come to, so it is refused then.
func (r Resource) addedOf(ctx context.Context, v *client.View, scope rowstore.Scope,
	run ids.ID) (uint64, error) {
	sum := xxh3.New()
	has := false
	err := r.eachScraper(ctx, v, scope, run, func(s *client.Scraper) bool {
		if added(s) {
			has = true
			_, _ = sum.Write(s.Protection.Run[:]) // a hash never fails
		}
		return true
	})
	if err != nil || !has {
		return 0, err
	}
	return sum.Sum64(), nil
}

// added says whether the rows of a scraper are those that its files have added up to.
func added(s *client.Scraper) bool { return s.Protection != nil && !s.Protection.Run.IsZero() }

// addedUp is the run that a run's rows are kept by. The files of a protected scraper are one run to
// those who read it (specification 4.9), whichever of them they name.
func addedUp(ctx context.Context, h *client.History, v *client.View,
	job *client.Job) (*client.Job, error) {
	s := v.Scraper(job.Scraper)
	if s == nil || !added(s) || job.State != model.Completed || v.DeletedRun(job.ID) != nil {
		return job, nil
	}
	kept, err := h.Run(ctx, v, s.Protection.Run)
	switch {
	case err != nil:
		return nil, fmt.Errorf("where the rows of run %s are: %w", job.ID, err)
	case kept == nil || kept.Group != job.Group: // what ran before a move stays where it was
		return job, nil
	}
	return kept, nil
}

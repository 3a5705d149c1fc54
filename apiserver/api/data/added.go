package data

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// addedOf returns a hash of the runs that hold the rows of the protected scrapers of a read; 0:
// none. Adding a file moves the rows to its own run. An older cursor would miss rows that it has
// not reached yet, so it is refused then.
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

// added reports whether a scraper's rows are the accumulated rows of its files.
func added(s *client.Scraper) bool { return s.Protection != nil && !s.Protection.Run.IsZero() }

// addedUp returns the run that holds a run's rows. For readers, all files of a protected scraper
// are one run (specification 4.9), whichever of them they name.
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
	case kept == nil:
		return job, nil
	}
	return kept, nil
}

// readableRun returns the run that holds the rows of a run, or the run itself if the customer may
// not read that one. Files of a moved scraper bring its rows to another group.
func readableRun(ctx context.Context, h *client.History, v *client.View, customer string, id ids.ID,
	field string) (*client.Job, error) {
	job, err := h.Run(ctx, v, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if job != nil && !job.Trial() {
		kept, err := addedUp(ctx, h, v, job)
		if err != nil || ownership.Reads(v, customer, kept.Customer, kept.Group) {
			return kept, err
		}
	}
	return ownership.ReadableJob(ctx, h, v, customer, id, field)
}

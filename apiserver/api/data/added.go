package data

import (
	"context"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// addedOf tells which runs have the rows of uploads, of those that a read is of; 0: there are none.
// A file that replaces or adds to the one before moves the rows to its own run. A cursor from
// before would miss those that it has not come to, so it is refused then.
func (r Resource) addedOf(ctx context.Context, v *client.View, scope rowstore.Scope,
	run ids.ID) (uint64, error) {
	sum := xxh3.New()
	has := false
	var err error
	add := func(s *client.Scraper) bool {
		var only ids.ID
		if only, err = r.onlyRun(ctx, v, s); !only.IsZero() {
			has = true
			_, _ = sum.Write(only[:]) // a hash never fails
		}
		return err == nil
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
	if err != nil || !has {
		return 0, err
	}
	return sum.Sum64(), nil
}

// onlyRun is the one run that has rows of a scraper, zero: they may be those of several runs.
func (r Resource) onlyRun(ctx context.Context, v *client.View, s *client.Scraper) (ids.ID, error) {
	switch p := s.Protection; {
	case s.Spec.Type != model.File:
		return ids.ID{}, nil
	case p != nil && !p.Run.IsZero():
		return p.Run, nil
	case client.Retained(v, s) != 1:
		return ids.ID{}, nil
	}
	latest, err := latestRun(ctx, r.History, v, s, newest{Queued: math.MaxInt64})
	if err != nil {
		return ids.ID{}, fmt.Errorf("latest file of scraper %s: %w", s.ID, err)
	}
	if latest == nil {
		return ids.ID{}, nil
	}
	return latest.ID, nil
}

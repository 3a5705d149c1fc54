package data

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// checkRetained refuses a cursor of rows that went since it was made, because newer runs replaced
// theirs. It looks after the page was read, by what is known then, and only where retention has
// come further. Cursors that go on need not be looked at for the same removals again.
func (in *readRequest) checkRetained(ctx context.Context, r Resource, at *place,
	scope rowstore.Scope) error {
	v := r.Client.View()
	now := client.RetainingNow(v).Next
	if now <= at.Retained {
		return nil
	}
	var gone bool
	var err error
	look := func(s *client.Scraper) bool {
		gone, err = in.retainedAway(ctx, r.History, v, s, at, now)
		return !gone && err == nil
	}
	switch {
	case !in.JobID.IsZero():
		job, failed := r.History.Run(ctx, v, in.JobID)
		if failed != nil {
			return fmt.Errorf("run %s: %w", in.JobID, failed)
		}
		if job == nil {
			return nil
		}
		scope.Scraper = job.Scraper
		fallthrough
	case !scope.Scraper.IsZero():
		if s := v.Scraper(scope.Scraper); s != nil {
			look(s)
		}
	default:
		v.GroupScrapers(scope.Group, look)
	}
	if err != nil {
		return err
	}
	if gone {
		return api.RefuseCursor()
	}
	at.Retained = now
	return nil
}

// retainedAway says whether the rows of a scraper's run that a read is of went since it was at a
// place. Files take the place of others by themselves (addedOf).
func (in *selection) retainedAway(ctx context.Context, h *client.History, v *client.View,
	s *client.Scraper, at *place, now uint64) (gone bool, err error) {
	count := client.Retained(v, s)
	if count == 0 || s.Spec.Type == model.File || !closedSince(v, s, at.Retained) {
		return false, nil
	}
	only := in.JobID
	if in.IsLastRun {
		latest, err := latestRun(ctx, h, v, s, at.Newest)
		if err != nil {
			return false, fmt.Errorf("latest run of scraper %s: %w", s.ID, err)
		}
		if latest == nil || !only.IsZero() && only != latest.ID {
			return false, nil
		}
		only = latest.ID
	}
	reads := func(job *client.Job) bool {
		return (only.IsZero() || only == job.ID) && at.Newest.has(job.Queued, job.ID) &&
			(in.GroupID.IsZero() || in.GroupID == job.Group)
	}
	since := client.RowsSince(v)
	var before, kept int // of the newest runs: those that retention knew then, and now
	err = h.ScraperRuns(ctx, v, s.ID, func(job *client.Job) bool {
		switch {
		case before == count || job.Started*1000 < since:
			return false // what is older had gone by then, or expires
		case !job.Closed || job.Items == 0 || shownNoMore(v, job.ID):
			return true
		case kept == count && reads(job):
			gone = true
			return false
		}
		if client.Replaces(job, s) {
			if job.Index <= at.Retained {
				before++
			}
			if job.Index <= now && kept < count {
				kept++
			}
		}
		return true
	})
	if err != nil {
		return false, fmt.Errorf("runs of scraper %s: %w", s.ID, err)
	}
	return gone, nil
}

// closedSince says whether a scraper may have had runs closed by commands behind an index. Nothing
// of it is removed without. It asks the state alone, which has them all but for old cursors.
func closedSince(v *client.View, s *client.Scraper, index uint64) bool {
	if index < v.ArchivedTo() {
		return true
	}
	closed := false
	v.ScraperJobs(s.ID, func(job *client.Job) bool {
		closed = job.Closed && job.Index > index
		return !closed
	})
	return closed
}

// shownNoMore says whether a run's rows were deleted, or are held back.
func shownNoMore(v *client.View, job ids.ID) bool {
	return v.DeletedRun(job) != nil || v.HeldRun(job) != nil
}

package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// checkRetained refuses a cursor if rows of its read were removed since it was made, because newer
// runs or files replaced them. It checks after the page was read, with the newest view. The next
// cursor records what was checked, so that nothing is checked twice.
func (in *readRequest) checkRetained(ctx context.Context, r Resource, at *place,
	scope rowstore.Scope) error {
	v := r.Client.View()
	now := client.RetainingNow(v).Next
	var gone bool
	var err error
	failed := r.eachScraper(ctx, v, scope, in.JobID, func(s *client.Scraper) bool {
		switch {
		case s.Spec.Type == model.File:
			gone, err = in.replacedAway(ctx, r, v, s, at)
		case now > at.Retained: // retention has advanced
			gone, err = in.retainedAway(ctx, r.History, v, s, at, now)
		}
		return !gone && err == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if gone {
		return api.RefuseCursor()
	}
	at.Retained = max(at.Retained, now)
	at.Files, err = r.filesOf(ctx, v, scope, in.JobID)
	return err
}

// eachScraper visits the scrapers whose rows a read may contain, until visit returns false.
func (r Resource) eachScraper(ctx context.Context, v *client.View, scope rowstore.Scope, run ids.ID,
	visit func(*client.Scraper) bool) error {
	if !run.IsZero() {
		job, err := r.History.Run(ctx, v, run)
		if err != nil {
			return fmt.Errorf("run %s: %w", run, err)
		}
		if job == nil {
			return nil
		}
		scope.Scraper = job.Scraper
	}
	if scope.Scraper.IsZero() {
		v.GroupScrapers(scope.Group, visit)
	} else if s := v.Scraper(scope.Scraper); s != nil {
		visit(s)
	}
	return nil
}

// filesOf returns the index up to which the ended files of a read are known.
func (r Resource) filesOf(ctx context.Context, v *client.View, scope rowstore.Scope,
	run ids.ID) (upto uint64, err error) {
	upto = v.ArchivedTo()
	err = r.eachScraper(ctx, v, scope, run, func(s *client.Scraper) bool {
		if s.Spec.Type == model.File {
			v.ScraperJobs(s.ID, func(job *client.Job) bool {
				upto = max(upto, job.Index)
				return true
			})
		}
		return true
	})
	return upto, err
}

// replacedAway reports whether a file of the read was replaced since the cursor was made. The
// number of files to keep may have changed, so it asks the store which files still have rows. It
// also counts files that were replaced before the read began; newer files replace them together.
func (in *selection) replacedAway(ctx context.Context, r Resource, v *client.View,
	s *client.Scraper, at *place) (gone bool, err error) {
	if added(s) || !closedSince(v, s, at.Files) {
		return false, nil
	}
	var failed error
	var now *client.Job // the latest file that the read sees now
	if in.IsLastRun {
		if now, err = latestRun(ctx, r.History, v, s, at.Newest); err != nil {
			return false, fmt.Errorf("latest file of scraper %s: %w", s.ID, err)
		}
	}
	since := client.RowsSince(v)
	err = r.History.ScraperRuns(ctx, v, s.ID, func(job *client.Job) bool {
		switch {
		case job.Started*1000 < since:
			return false // older ones expire
		case !client.Replaces(v, job, s) || job.Index > at.Files,
			!at.Newest.has(job.Queued, job.ID),
			!in.JobID.IsZero() && in.JobID != job.ID,
			!in.GroupID.IsZero() && in.GroupID != job.Group:
			return true
		}
		if gone = in.IsLastRun && (now == nil || now.ID != job.ID); gone {
			return false
		}
		var rows []json.RawMessage
		rows, failed = r.Store.Rows(ctx,
			rowstore.RowsQuery{Scope: client.ShownOf(v, job), Limit: 1})
		gone = failed == nil && len(rows) == 0
		return !gone && failed == nil && !in.IsLastRun
	})
	if err = errors.Join(err, failed); err != nil {
		return false, fmt.Errorf("files of scraper %s: %w", s.ID, err)
	}
	return gone, nil
}

// retainedAway reports whether retention removed rows of the read since the cursor was made.
func (in *selection) retainedAway(ctx context.Context, h *client.History, v *client.View,
	s *client.Scraper, at *place, now uint64) (gone bool, err error) {
	count := client.Retained(v, s)
	if count == 0 || !closedSince(v, s, at.Retained) {
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
	var before, kept int // counts of the newest runs, as of the cursor's retention and as of now
	err = h.ScraperRuns(ctx, v, s.ID, func(job *client.Job) bool {
		switch {
		case before == count || job.Started*1000 < since:
			return false // older runs were already gone, or expire
		case !job.Closed || job.Items == 0 || v.DeletedRun(job.ID) != nil:
			return true
		case kept == count && reads(job):
			gone = true
			return false
		}
		if client.Replaces(v, job, s) {
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

// closedSince reports whether commands after index may have closed runs of a scraper; without
// those, nothing is removed. It asks only the state, which knows them all unless the cursor is old.
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

package data

import (
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// expiresSoon is how long before their expiry rows are no longer counted. In a busy group some
// expire all the time, and its reads go on.
const expiresSoon = 6 * time.Hour

// freshTime is how long a read waits for the newest state. Without a leader there is none.
const freshTime = time.Second

// rowCount is how many rows a read had at its beginning, without those that expire soon.
type rowCount struct {
	Rows  int64 `json:"r"`
	Since int64 `json:"s,omitempty"` // the earliest start of their runs, in Unix microseconds
}

// countRows counts the rows of a read that has more pages than the first. late says that rows may
// have gone between that page and the count: then the page has to be read again.
func (in *readRequest) countRows(ctx context.Context, r Resource, from *operation.Caller,
	at *place, whole rowstore.Scope, scopes []rowstore.Scope) (there *rowCount, late bool,
	err error) {
	there = &rowCount{Since: client.RowsSince(from.View)}
	if there.Since > 0 {
		there.Since += expiresSoon.Microseconds()
	}
	there.Rows, err = r.Store.CountUpto(ctx, there.within(scopes), at.Upto)
	if err != nil {
		return nil, false, fmt.Errorf("rows of the read: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, freshTime)
	defer cancel()
	newest, unknown := r.Client.Fresh(asking) // it has what retention may remove
	if unknown != nil {
		return there, true, nil
	}
	late, err = in.isReplaced(ctx, r, newest, at, whole)
	return there, late, err
}

// within returns scopes of the counted rows.
func (c *rowCount) within(scopes []rowstore.Scope) []rowstore.Scope {
	scopes = slices.Clone(scopes)
	for i := range scopes {
		scopes[i].Since = max(scopes[i].Since, c.Since)
	}
	return scopes
}

// checkRetained refuses a cursor if rows of its read were removed since it was made, because newer
// runs or files replaced them. What these replace depends on counts, releases and quarantines, and
// all of them may have changed since. So it asks the store. A page is checked after it was read,
// with the newest view. The next cursor records what was checked, so that nothing is checked twice.
func (in *readRequest) checkRetained(ctx context.Context, r Resource, now *operation.Caller,
	at *place, whole rowstore.Scope) error {
	progress := client.RetainingNow(now.View)
	replaced, err := in.isReplaced(ctx, r, now.View, at, whole)
	if err == nil && replaced {
		err = in.checkCounted(ctx, r, now, at, whole)
	}
	if err != nil {
		return err
	}
	at.Retained = max(at.Retained, progress.Upto) // beyond it, rows may still be going
	at.Files, err = r.filesOf(ctx, now.View, whole, in.JobID)
	return err
}

// isReplaced reports whether newer runs or files may have replaced rows of a read since a place.
func (in *readRequest) isReplaced(ctx context.Context, r Resource, v *client.View, at *place,
	whole rowstore.Scope) (replaced bool, err error) {
	next := client.RetainingNow(v).Next
	err = r.eachScraper(ctx, v, whole, in.JobID, func(s *client.Scraper) bool {
		replaced = next > at.Retained && closedSince(v, s, at.Retained) ||
			s.Spec.Type == model.File && closedSince(v, s, at.Files)
		return !replaced
	})
	return replaced, err
}

// checkCounted refuses a cursor if the store has fewer rows of its read than at the beginning.
func (in *readRequest) checkCounted(ctx context.Context, r Resource, now *operation.Caller,
	at *place, whole rowstore.Scope) error {
	if at.Counted == nil {
		return api.RefuseCursor() // of an earlier version, which counted nothing
	}
	scopes, err := in.scopes(ctx, r.History, now, whole, at.Newest)
	if err == nil {
		err = at.Seen.hide(now.View, scopes)
	}
	if err != nil {
		return err
	}
	left, err := r.Store.CountUpto(ctx, at.Counted.within(scopes), at.Upto)
	if err != nil {
		return fmt.Errorf("rows that the read still has: %w", err)
	}
	if left < at.Counted.Rows {
		return api.RefuseCursor()
	}
	return nil
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

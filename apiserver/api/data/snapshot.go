package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxHidden is how many hidden runs a cursor lists. Beyond that it has only a hash.
const maxHidden = 8

// seen is what a read saw at its beginning, beside the rows. A page that can no longer see the same
// is refused, never shortened.
type seen struct {
	// Hidden are the runs that were hidden from reads. This read never sees them.
	Hidden []byte `json:"h,omitempty"`
	// Latest is a hash of a moved scraper's groups and of removals of deleted scrapers' rows. A
	// read of latest runs adds these.
	Latest uint64 `json:"l,omitempty"`
	// Deleted is the time of the newest deletion of a run's rows, in Unix milliseconds.
	Deleted int64 `json:"d,omitempty"`
}

// see records what a read of scopes sees now.
func (in *selection) see(v *client.View, owner string, scopes []rowstore.Scope) seen {
	now := seen{Hidden: pin(hiddenIn(v, scopes), maxHidden), Latest: in.sumLatest(v, scopes)}
	for _, deleted := range v.DeletedRunsOf(owner) {
		now.Deleted = max(now.Deleted, deleted.At)
	}
	return now
}

// hiddenIn lists the hidden runs of scopes.
func hiddenIn(v *client.View, scopes []rowstore.Scope) (hidden []ids.ID) {
	for _, scope := range scopes {
		hidden = append(hidden, client.Hidden(v, scope.Group)...)
	}
	return hidden
}

// pin concatenates the ids of runs, or hashes them if there are more than most.
func pin(runs []ids.ID, most int) (pinned []byte) {
	for _, run := range runs {
		pinned = append(pinned, run[:]...)
	}
	if len(runs) > most {
		return binary.BigEndian.AppendUint64(nil, xxh3.Hash(pinned))
	}
	return pinned
}

// unpin returns the runs that were pinned; nil if only their hash was.
func unpin(pinned []byte) []ids.ID {
	var id ids.ID
	if len(pinned)%len(id) != 0 {
		return nil
	}
	runs := []ids.ID{}
	for one := range slices.Chunk(pinned, len(id)) {
		copy(id[:], one)
		runs = append(runs, id)
	}
	return runs
}

// sumLatest is the hash of seen.Latest; 0: there is nothing that a page could miss.
func (in *selection) sumLatest(v *client.View, scopes []rowstore.Scope) uint64 {
	sum, noted := xxh3.New(), false
	note := func(data []byte) {
		_, _ = sum.Write(data) // a hash never fails
		noted = true
	}
	for _, scope := range scopes {
		if in.ofScraper() { // they are read in this order
			note(scope.Group[:])
		}
		if in.IsLastRun {
			for _, run := range scope.Jobs {
				note(run[:])
			}
		}
		group := v.Group(scope.Group)
		if in.ScraperID.IsZero() && in.JobID.IsZero() && group != nil && group.RowsRemoved != 0 {
			note(binary.BigEndian.AppendUint64(nil, uint64(group.RowsRemoved)))
		}
	}
	if !noted {
		return 0
	}
	return sum.Sum64()
}

// hide excludes the runs that were hidden when the read began from scopes. It fails with
// invalid_cursor if they are no longer known.
func (s *seen) hide(v *client.View, scopes []rowstore.Scope) error {
	hidden := unpin(s.Hidden)
	if hidden == nil && !slices.Equal(s.Hidden, pin(hiddenIn(v, scopes), maxHidden)) {
		return api.RefuseCursor()
	}
	hide(scopes, hidden)
	return nil
}

func hide(scopes []rowstore.Scope, hidden []ids.ID) {
	for i := range scopes {
		scopes[i].Without = append(scopes[i].Without, hidden...)
	}
}

// lacksSeen reports whether a read of whole has lost sight of an open run that was there when it
// began: quarantine was switched on since. If only a hash of the hidden runs is known, hide tells.
func (p *place) lacksSeen(v *client.View, whole rowstore.Scope, scopes []rowstore.Scope) bool {
	return p.Newest.hidden != nil && slices.ContainsFunc(hiddenIn(v, scopes), func(id ids.ID) bool {
		job := v.Job(id)
		return job != nil && !job.Closed && p.Newest.has(job.Queued, job.ID) &&
			(whole.Scraper.IsZero() || whole.Scraper == job.Scraper) &&
			(whole.Jobs == nil || slices.Contains(whole.Jobs, job.ID))
	})
}

// checkSeen refuses a cursor if its rows were deleted since it was made, or its runs are no longer
// the latest. A page is checked after it was read, with the newest view.
func (in *readRequest) checkSeen(ctx context.Context, r Resource, now *operation.Caller,
	at *place, whole rowstore.Scope, owner string) error {
	scopes, err := in.scopes(ctx, r.History, now, whole, at.Newest)
	if err != nil {
		return err
	}
	gone := !in.stillSees(now.View, scopes, at.Seen.Latest)
	if !gone && !in.IsLastRun {
		gone, err = in.deletedAway(ctx, r.History, now.View, at, owner, scopes)
	}
	if !gone && err == nil && len(whole.Jobs) > 0 {
		gone, err = r.isRowless(ctx, now.View, whole.Jobs[0])
	}
	if err == nil && gone {
		err = api.RefuseCursor()
	}
	return err
}

// stillSees reports whether scopes begin with those in the hash. Later scopes are groups to which
// the scraper was moved since; they have no rows of the read.
func (in *selection) stillSees(v *client.View, scopes []rowstore.Scope, latest uint64) bool {
	for n := range scopes {
		if in.sumLatest(v, scopes[:n+1]) == latest {
			return true
		}
	}
	return false
}

// isRowless reports whether a run's rows were deleted with its scraper or group.
func (r Resource) isRowless(ctx context.Context, v *client.View, run ids.ID) (bool, error) {
	job, err := r.History.Run(ctx, v, run)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", run, err)
	}
	if job == nil || job.Items == 0 ||
		v.Scraper(job.Scraper) != nil && v.Group(job.Group) != nil {
		return false, nil
	}
	rows, err := r.Store.Rows(ctx, rowstore.RowsQuery{Scope: client.ShownOf(v, job), Limit: 1})
	if err != nil {
		return false, fmt.Errorf("rows of run %s: %w", run, err)
	}
	return len(rows) == 0, nil
}

// deletedAway reports whether rows of the read were deleted since the cursor was made. It records
// in at how far it has looked.
func (in *selection) deletedAway(ctx context.Context, h *client.History, v *client.View, at *place,
	owner string, scopes []rowstore.Scope) (bool, error) {
	upto := at.Seen.Deleted
	for _, deleted := range v.DeletedRunsOf(owner) {
		reads := func(scope rowstore.Scope) bool {
			return scope.Group == deleted.Group &&
				(scope.Jobs == nil || slices.Contains(scope.Jobs, deleted.Job))
		}
		if deleted.At <= at.Seen.Deleted || !slices.ContainsFunc(scopes, reads) {
			continue
		}
		upto = max(upto, deleted.At)
		run, err := h.Run(ctx, v, deleted.Job)
		if err != nil {
			return false, fmt.Errorf("deleted run %s: %w", deleted.Job, err)
		}
		if run != nil && run.Items > 0 && at.Newest.has(run.Queued, run.ID) &&
			(in.ScraperID.IsZero() || in.ScraperID == run.Scraper) {
			return true, nil
		}
	}
	at.Seen.Deleted = upto
	return false, nil
}

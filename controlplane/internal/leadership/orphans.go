package leadership

import (
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	orphansEvery = 5 * time.Minute
	orphanAge    = 15 * time.Minute
	trialKept    = 2 * time.Minute // longer than a call waits for its trial
	unsureRests  = 10 * time.Second
	// oldListsEvery is how often lists older than itself are checked.
	oldListsEvery = 24 * time.Hour
	listsAtOnce   = 1_000
)

// Orphans removes link lists that nothing names. A leader does this as soon as it leads.
func (h *Holder) Orphans() work.Kind {
	return work.Kind{Name: work.Orphans, Recurring: true, AtStart: true,
		Ready: func() bool { return h.Current() != nil },
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			l := h.Current()
			if l == nil {
				return work.Rest(nil, 0), nil // the next leader goes on
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(l.ctx, cancel)()
			now, ok := l.clocks.Safe()
			if !ok {
				return work.Rest(nil, unsureRests), nil
			}
			err := l.dropOrphans(ctx, now)
			if err == nil {
				err = l.dropSites(ctx, now)
			}
			return work.Rest(nil, orphansEvery), err
		}}
}

// dropOrphans removes link lists that neither a run nor an open call has. It also removes those of
// expired runs and the remains of trials. An intake holds its claim while it works, so a list older
// than any intake has no owner. If there is no other process, this holds for lists older than this
// process. A list older than the cluster stays: another cluster had the row store before, and its
// backup may be restored here.
func (l *Leadership) dropOrphans(ctx context.Context, now time.Time) error {
	before := l.orphansBefore(now)
	lists, err := l.config.Store.AllLists(ctx)
	if err != nil {
		return fmt.Errorf("list the link lists: %w", err)
	}
	// after the lists: it includes what was launched from them meanwhile
	view, err := l.config.Proposer.Fresh(ctx)
	if err != nil {
		return err
	}
	past, err := l.pastLists(ctx, view, lists, now)
	if err != nil {
		return err
	}
	for _, list := range lists {
		job, known := past[list.ID]
		if here := view.JobOfList(list.ID); here != nil {
			job, known = here, true
		}
		if job != nil && job.Trial() {
			if err := l.dropTrial(ctx, job, now); err != nil {
				return err
			}
		}
		if known && !expired(job, now) || !known && !l.orphaned(view, list.ID, before) {
			continue
		}
		l.config.Point("work.orphans.before_drop")
		if err := l.config.Store.DropList(ctx, list.ID); err != nil {
			return fmt.Errorf("drop link list %s: %w", list.ID, err)
		}
		l.config.Point("work.orphans.after_drop")
	}
	return nil
}

// orphansBefore returns the time before which an unowned list is an orphan.
func (l *Leadership) orphansBefore(now time.Time) time.Time {
	before := now.Add(-orphanAge)
	boot := time.Unix(l.config.Boot.Seconds(), 0)
	if len(l.view().Nodes()) <= 1 && boot.After(before) {
		before = boot
	}
	return before
}

// expired says whether a run's list has expired with its rows. A trial's list goes sooner.
func expired(job *state.Job, now time.Time) bool {
	return job != nil && job.Closed && job.Started < now.Add(-rowstore.Expiry).UnixMilli()
}

// pastLists maps the lists that no run of the state has to the runs of the archive that have them.
// A list that was not looked up maps to nil: old lists are checked once a day.
func (l *Leadership) pastLists(ctx context.Context, view *state.View, lists []rowstore.ListInfo,
	now time.Time) (map[ids.ID]*state.Job, error) {
	past := map[ids.ID]*state.Job{}
	path := archive.Path(view)
	if path == nil {
		return past, nil
	}
	all := now.Sub(time.UnixMilli(l.oldLists.Load())) >= oldListsEvery
	var ask []ids.ID
	for _, list := range lists {
		switch {
		case view.JobOfList(list.ID) != nil:
		case all || list.ID.Seconds() > now.Add(-oldListsEvery).Unix():
			ask = append(ask, list.ID)
		default:
			past[list.ID] = nil
		}
	}
	for some := range slices.Chunk(ask, listsAtOnce) {
		runs, err := l.config.Store.PastRuns(ctx, rowstore.PastQuery{Path: path, Lists: some,
			Trials: true, By: rowstore.BySealed, Limit: rowstore.MaxPast})
		if err != nil {
			return nil, fmt.Errorf("runs of link lists: %w", err)
		}
		for i := range runs {
			job, err := archive.DecodeRun(runs[i])
			if err != nil {
				return nil, err
			}
			past[job.List] = job
		}
	}
	if all {
		l.oldLists.Store(now.UnixMilli())
	}
	return past, nil
}

// orphaned says whether a list, or a version of a site, has no owner, given that no archived run
// has it.
func (l *Leadership) orphaned(view *state.View, list ids.ID, before time.Time) bool {
	made, cluster := list.Seconds(), view.Cluster()
	if cluster.Generation != nil && l.inGrace(cluster) &&
		made <= cluster.Generation.At/1000+int64(orphanAge/time.Second) {
		return false // a backup may still be restored that has it
	}
	return made < before.Unix() && made >= cluster.ID.Seconds() &&
		view.JobOfList(list) == nil && view.ClaimOfList(list) == nil &&
		view.SiteOfVersion(list) == nil && view.Site(list) == nil
}

// dropTrial removes the rows and the list of a trial that ended long enough ago for its caller to
// have read them. The list goes last, because the trial is found by it. The page record stays, as
// it explains the ledger.
func (l *Leadership) dropTrial(ctx context.Context, job *state.Job, now time.Time) error {
	if !job.Closed || job.Finished > now.Add(-trialKept).UnixMilli() {
		return nil
	}
	if err := l.config.Store.DeleteJob(ctx, job.ID, false); err != nil {
		return fmt.Errorf("delete the rows of trial %s: %w", job.ID, err)
	}
	l.config.Point("work.orphans.before_drop")
	if err := l.config.Store.DropList(ctx, job.List); err != nil {
		return fmt.Errorf("drop the link list of trial %s: %w", job.ID, err)
	}
	l.config.Point("work.orphans.after_drop")
	return nil
}

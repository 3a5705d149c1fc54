package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Intervals of the routines. In bulk a command carries hundreds of units, so small changes are
// gathered for a while.
const (
	planGap      = 20 * time.Millisecond
	bulkPlanGap  = 500 * time.Millisecond // between plans that no command triggered
	bulkOut      = 2048                   // seqs out from which on it is bulk
	fullGap      = 20 * time.Millisecond  // until a full shard is retried
	expireEvery  = 30 * time.Second
	behindMost   = time.Minute
	undoneEvery  = time.Minute
	undoneAtOnce = 256
)

// plan reads lists and dispatches units whenever there may be room. Each routine starts with what
// came due before it ran.
func (l *Leadership) plan(ctx context.Context) error {
	l.planNow.Raise()
	var last time.Time // when units were last dispatched
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.planNow:
		case <-l.unread:
			again = l.config.Clock.After(dispatch.UnreadPause)
			continue
		case <-again:
		case <-l.planLater:
			if l.dispatcher.Out() < bulkOut {
				break
			}
			select {
			case <-ctx.Done():
				return nil
			case <-l.planNow:
			case <-l.config.Clock.After(bulkPlanGap - l.config.Clock.Now().Sub(last)):
			}
		}
		if !clock.Pause(ctx, l.config.Clock, planGap-l.config.Clock.Now().Sub(last)) {
			return nil
		}
		read, err := l.steps.Read(ctx)
		extended, failed := l.steps.Extend(ctx)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if extended {
			last = l.config.Clock.Now()
		}
		if read || extended {
			l.planLater.Raise()
			l.publishNow.Raise() // the addresses of unsent tasks may now be known
		}
	}
}

// publish publishes the tasks of new dispatches to the shards that have a reader.
func (l *Leadership) publish(ctx context.Context) error {
	l.publishNow.Raise()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.publishNow:
		}
		view, full := l.view(), false
		var failed error
		for shard := range int(l.config.Shards) {
			if !l.held(view, shard) {
				continue
			}
			all, err := l.steps.Publish(ctx, shard)
			failed = cmp.Or(failed, err) // other shards continue
			full = full || !all
		}
		if failed != nil {
			return failed
		}
		l.planLater.Raise()
		if full {
			if !clock.Pause(ctx, l.config.Clock, fullGap) {
				return nil
			}
			l.publishNow.Raise()
		}
	}
}

// mark sends markers: to all shards at intervals, to a newly held shard at once.
func (l *Leadership) mark(ctx context.Context) error {
	due := l.config.Clock.After(l.config.MarkerEvery)
	for {
		all := false
		select {
		case <-ctx.Done():
			return nil
		case <-l.markNow:
		case <-due:
			all = true
			due = l.config.Clock.After(l.config.MarkerEvery)
		}
		l.marksMu.Lock()
		wanted := l.marksWanted
		l.marksWanted = map[uint16]struct{}{}
		l.marksMu.Unlock()
		view := l.view()
		for shard := range int(l.config.Shards) {
			if _, asked := wanted[uint16(shard)]; (!all && !asked) || !l.held(view, shard) {
				continue
			}
			if _, err := l.steps.Mark(shard); err != nil {
				return err
			}
		}
	}
}

// recover acts on all markers that have come back, together.
func (l *Leadership) recover(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-l.returned:
			markers := []model.Marker{m}
			for len(l.returned) > 0 && len(markers) < maxReturned { // this is the only receiver
				markers = append(markers, <-l.returned)
			}
			if err := l.steps.Returned(ctx, markers...); err != nil {
				return err
			}
		}
	}
}

// giveBack gives back what ended runs never published.
func (l *Leadership) giveBack(ctx context.Context) error {
	l.giveBackNow.Raise()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.giveBackNow:
		}
		if _, err := l.steps.GiveBack(ctx); err != nil {
			return err
		}
	}
}

// assignWhenDue assigns shards when nodes join, and as soon as owners count as gone.
func (l *Leadership) assignWhenDue(ctx context.Context) error {
	for {
		view := l.view()
		select {
		case <-ctx.Done():
			return nil
		case <-l.assignNow:
		case <-l.config.Clock.After(l.tracker.Due(view.Nodes(), view.Shards())):
		}
		if err := l.Assign(); err != nil {
			return err
		}
	}
}

// expire advances state time so that what is due expires.
func (l *Leadership) expire(ctx context.Context) error {
	for clock.Pause(ctx, l.config.Clock, expireEvery) {
		for due := l.behind(); due || l.due(); due = false {
			if _, err := l.propose(ctx, command.TickPayload{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// behind says whether state time has not moved for a while. It is kept close to the clocks, so that
// the next leader can tell a pause from a wrong clock.
func (l *Leadership) behind() bool {
	_, now := l.node.Store().Progress()
	stamp, _ := l.clocks.Stamp()
	return stamp-now >= behindMost.Milliseconds()
}

// due says whether a claim or a stored result has expired.
func (l *Leadership) due() bool {
	view, due := l.view(), false
	now, _ := l.clocks.Stamp()
	view.ClaimsByExpiry(func(c *state.Claim) bool { due = c.Expires <= now; return false })
	if !due {
		view.ResultsByExpiry(func(r *state.StoredResult) bool {
			due = r.Expires <= now
			return false
		})
	}
	return due
}

// GraceOver returns when the row store removes what the newest restore undid; zero: no restore.
func GraceOver(cluster *state.Cluster, grace time.Duration) time.Time {
	if cluster == nil || cluster.Generation == nil {
		return time.Time{}
	}
	return time.UnixMilli(cluster.Generation.At).Add(grace)
}

// spares says whether stored pages of a run that are not settled stay. They do if the run was
// launched before the cut of the newest restore and the grace is not over.
func (l *Leadership) spares(job *state.Job) bool {
	cluster := l.view().Cluster()
	return cluster.Generation != nil && job.Queued <= cluster.Generation.CutTime &&
		l.inGrace(cluster)
}

// inGrace says whether a restore is so recent that nothing older may be removed from the row store.
func (l *Leadership) inGrace(cluster *state.Cluster) bool {
	now, _ := l.clocks.Safe()
	return now.Before(GraceOver(cluster, l.config.RestoreGrace))
}

// dropUndone removes the stored data of runs that a restore undid, once the grace is over.
func (l *Leadership) dropUndone(ctx context.Context) error {
	for {
		if _, ok := l.awaitSafeTime(ctx); !ok {
			return nil
		}
		for !l.inGrace(l.view().Cluster()) {
			var undone []*state.Undone
			var jobs []ids.ID
			l.view().Undone(func(u *state.Undone) bool {
				undone, jobs = append(undone, u), append(jobs, u.Job)
				return len(jobs) < undoneAtOnce
			})
			if len(jobs) == 0 {
				break
			}
			for _, job := range jobs {
				l.config.Point("leader.before_drop")
				if err := l.config.Store.DeleteJob(ctx, job, true); err != nil {
					return fmt.Errorf("delete what is stored of run %s, which a restore undid: %w",
						job, err)
				}
			}
			if err := l.config.DropBodies(ctx, undone); err != nil {
				return err
			}
			l.config.Point("leader.before_forget")
			if _, err := l.propose(ctx, command.ForgetUndonePayload{Jobs: jobs}); err != nil {
				return err
			}
			l.config.Point("leader.after_forget")
		}
		if !clock.Pause(ctx, l.config.Clock, undoneEvery) {
			return nil
		}
	}
}

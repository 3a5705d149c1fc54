package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Paces of the routines. In bulk a command carries hundreds of units: what comes in small gathers a
// while.
const (
	planGap         = 20 * time.Millisecond
	bulkPlanGap     = 500 * time.Millisecond // between plans that no command asked for
	bulkOut         = 2048                   // seqs out that make it bulk
	fullGap         = 20 * time.Millisecond  // until a full shard is tried again
	expireEvery     = 30 * time.Second
	behindMost      = time.Minute
	orphansEvery    = 5 * time.Minute
	orphanAge       = 15 * time.Minute
	trialKept       = 2 * time.Minute // longer than a call waits for the answer that it gives
	expireRowsEvery = 24 * time.Hour
	finishEvery     = time.Minute
	undoneEvery     = time.Minute
	undoneAtOnce    = 256
)

// plan reads lists and sends units out whenever there may be room. Each routine begins by doing
// what may be due since before it ran.
func (l *Leadership) plan(ctx context.Context) error {
	l.planNow.raise()
	var last time.Time // when units were sent out last
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.planNow:
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
			l.planLater.raise()
		}
	}
}

// publish sends the tasks of what went out, to the shards that somebody reads.
func (l *Leadership) publish(ctx context.Context) error {
	l.publishNow.raise()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.publishNow:
		}
		view, full := l.view(), false
		for shard := range int(l.config.Shards) {
			if !l.held(view, shard) {
				continue
			}
			all, err := l.steps.Publish(ctx, shard)
			if err != nil {
				return err
			}
			full = full || !all
		}
		l.planLater.raise()
		if full {
			if !clock.Pause(ctx, l.config.Clock, fullGap) {
				return nil
			}
			l.publishNow.raise()
		}
	}
}

// mark sends markers: to all shards every so often, to a shard that has just been taken at once.
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

// recover acts on markers that came back, on all that there are together.
func (l *Leadership) recover(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-l.returned:
			markers := []model.Marker{m}
			for len(l.returned) > 0 && len(markers) < maxReturned { // nobody else takes any
				markers = append(markers, <-l.returned)
			}
			if err := l.steps.Returned(ctx, markers...); err != nil {
				return err
			}
		}
	}
}

// finish gives back what ended runs never sent and closes the runs that are done.
func (l *Leadership) finish(ctx context.Context) error {
	l.finishNow.raise()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.finishNow:
		case <-l.config.Clock.After(finishEvery): // what a restore had spared
		}
		_, err := l.steps.GiveBack(ctx)
		if err == nil {
			_, err = l.steps.Close(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// assignWhenDue assigns shards when nodes come, and as soon as owners are known to be gone.
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

// expire lets state time remove what has come due.
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

// behind says whether nothing has moved state time for a while: it is kept near the clocks, so that
// the next leader can tell a pause from a clock that is wrong.
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

// dropOrphans removes link lists that no run and no call under way has, and what trials have left.
// An intake holds its claim for as long as it works, so a list that is older than any intake's
// beginning, or than this process when there is no other, is nobody's. One that is older than the
// cluster is of another that had the row store before, and whose backup may be restored here: it
// stays.
func (l *Leadership) dropOrphans(ctx context.Context) error {
	boot := time.Time{}
	if nodes := l.view().Nodes(); len(nodes) <= 1 {
		boot = time.Unix(l.config.Boot.Seconds(), 0)
	}
	for {
		now, ok := l.awaitSafeTime(ctx)
		if !ok {
			return nil
		}
		before := now.Add(-orphanAge)
		if !boot.IsZero() {
			before = boot
		}
		lists, err := l.config.Store.AllLists(ctx)
		if err != nil {
			return fmt.Errorf("list the link lists: %w", err)
		}
		// after the lists: what was launched from them meanwhile is in it
		view, err := l.config.Proposer.Fresh(ctx)
		if err != nil {
			return err
		}
		generation := view.Cluster().Generation
		spared := generation != nil && l.inGrace(view.Cluster())
		for _, list := range lists {
			if job := view.JobOfList(list.ID); job != nil && job.Trial() {
				if err := l.dropTrial(ctx, job, now); err != nil {
					return err
				}
				continue
			}
			made := list.ID.Seconds()
			if spared && made <= generation.At/1000+int64(orphanAge/time.Second) {
				continue // another backup may be restored that has it
			}
			if made >= before.Unix() || made < view.Cluster().ID.Seconds() ||
				view.JobOfList(list.ID) != nil || view.ClaimOfList(list.ID) != nil {
				continue
			}
			if err := l.config.Store.DropList(ctx, list.ID); err != nil {
				return fmt.Errorf("drop link list %s: %w", list.ID, err)
			}
		}
		if !clock.Pause(ctx, l.config.Clock, orphansEvery) {
			return nil
		}
		boot = time.Time{}
	}
}

// GraceOver is when what the newest restore undid goes from the row store.
func GraceOver(cluster *state.Cluster, grace time.Duration) time.Time {
	if cluster == nil || cluster.Generation == nil {
		return time.Time{}
	}
	return time.UnixMilli(cluster.Generation.At).Add(grace)
}

// spares says whether what is stored of a run beyond its ledger stays: it was launched before the
// cut of the newest restore, whose grace is not over.
func (l *Leadership) spares(job *state.Job) bool {
	cluster := l.view().Cluster()
	return cluster.Generation != nil && job.Queued <= cluster.Generation.CutTime &&
		l.inGrace(cluster)
}

// inGrace says whether a restore is so new that nothing of before it may go from the row store.
func (l *Leadership) inGrace(cluster *state.Cluster) bool {
	now, _ := l.clocks.Safe()
	return now.Before(GraceOver(cluster, l.config.RestoreGrace))
}

// dropUndone removes what the row store has of runs that a restore undid, once its grace is over.
func (l *Leadership) dropUndone(ctx context.Context) error {
	for {
		if _, ok := l.awaitSafeTime(ctx); !ok {
			return nil
		}
		for !l.inGrace(l.view().Cluster()) {
			var jobs []ids.ID
			l.view().Undone(func(u *state.Undone) bool {
				jobs = append(jobs, u.Job)
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

// dropTrial removes the rows and the list of a trial that has ended long enough ago for its caller
// to have read them. The list goes last: it is how a trial is found. The page record stays, as it
// explains the ledger.
func (l *Leadership) dropTrial(ctx context.Context, job *state.Job, now time.Time) error {
	if !job.Closed || job.Finished > now.Add(-trialKept).UnixMilli() {
		return nil
	}
	if err := l.config.Store.DeleteJob(ctx, job.ID, false); err != nil {
		return fmt.Errorf("delete the rows of trial %s: %w", job.ID, err)
	}
	if err := l.config.Store.DropList(ctx, job.List); err != nil {
		return fmt.Errorf("drop the link list of trial %s: %w", job.ID, err)
	}
	return nil
}

// expireRows removes the rows of runs that started long ago, once a day.
func (l *Leadership) expireRows(ctx context.Context) error {
	for {
		now, ok := l.awaitSafeTime(ctx)
		if !ok {
			return nil
		}
		if err := l.config.Store.Expire(ctx, now.Add(-rowstore.Expiry)); err != nil {
			return fmt.Errorf("expire rows: %w", err)
		}
		if !clock.Pause(ctx, l.config.Clock, expireRowsEvery) {
			return nil
		}
	}
}

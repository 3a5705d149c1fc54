package leadership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
)

// How many runs, and how many entries beside theirs, are written at once, and how many commands'
// worth of them leave the state by one. A command must not hold others up.
const (
	archivedAtOnce = 2_000
	droppedAtOnce  = 100
)

// historyMargin is for how much longer than it must a row store may keep a run in the history: one
// removes whole months.
const historyMargin = 32 * 24 * time.Hour

// expireHistoryEvery is the pause between two removals of runs that are too old for the history.
const expireHistoryEvery = 24 * time.Hour

// archivePast writes what has been sealed to the archive, in the order in which it was, and then
// has the state drop it. While the row store cannot be written the state grows; nothing else
// happens.
func (l *Leadership) archivePast(ctx context.Context) error {
	for advanced := false; ; {
		more, failed := false, error(nil)
		if l.view().ClusterVersion() >= 2 {
			if !advanced {
				if err := l.config.Store.Advance(ctx); err != nil {
					return fmt.Errorf("bring the row store's schema to the cluster's version: %w",
						err)
				}
				advanced = true
			}
			runs, err := l.archiveSome(ctx)
			entries, unwritten := l.archiveAudit(ctx) // the one holds up neither of the others
			failed = cmp.Or(err, unwritten)
			more = runs || entries
		}
		if failed = cmp.Or(failed, l.expireHistory(ctx)); failed != nil {
			return failed
		}
		if !more && !clock.Pause(ctx, l.config.Clock, l.config.ArchiveEvery) {
			return nil
		}
	}
}

// expireHistory removes the runs that are too old, once a day. The ledger stays. While it is not
// sure what time it is nothing is removed.
func (l *Leadership) expireHistory(ctx context.Context) error {
	now, sure := l.clocks.Safe()
	if !sure || now.Sub(l.historyExpired) < expireHistoryEvery {
		return nil
	}
	kept := l.historyKept()
	if err := l.config.Store.ExpirePast(ctx, now.Add(-kept)); err != nil {
		return fmt.Errorf("expire the history: %w", err)
	}
	l.historyExpired = now
	return l.forgetDeleted(ctx, now.Add(-kept-historyMargin))
}

// historyKept is how long an ended run stays in the history: what operators have set, else what
// this leader was started with.
func (l *Leadership) historyKept() time.Duration {
	if days := l.view().Settings().HistoryDays; days > 0 {
		return time.Duration(days) * 24 * time.Hour
	}
	return l.config.HistoryKept
}

// forgetDeleted drops the marks of runs that are in no history any more.
func (l *Leadership) forgetDeleted(ctx context.Context, before time.Time) error {
	if l.view().ClusterVersion() < command.DeletesSince {
		return nil
	}
	for {
		old := false
		l.view().DeletedByAge(func(d *state.DeletedRun) bool {
			old = d.Removed < before.UnixMilli()
			return false
		})
		if !old {
			return nil
		}
		_, err := l.propose(ctx, command.ForgetDeletedRunsPayload{Before: before.UnixMilli()})
		if err != nil {
			return err
		}
	}
}

// auditedAtOnce is how many entries of the audit trail are written, and leave the state, at once.
const auditedAtOnce = 500

// archiveAudit moves some entries of the audit trail to the archive, and says whether more wait. A
// leader that was paused writes what is there already, and proposes what changes nothing.
func (l *Leadership) archiveAudit(ctx context.Context) (more bool, err error) {
	batch, err := archive.NextAudit(l.view(), auditedAtOnce)
	if err != nil || len(batch.Entries) == 0 {
		return false, err
	}
	l.config.Point("leader.before_audit")
	if err := l.config.Store.PutAudit(ctx, batch.Entries); err != nil {
		return false, fmt.Errorf("archive %d entries of the audit trail: %w", len(batch.Entries),
			err)
	}
	l.config.Point("leader.after_audit")
	drop := command.DropAuditPayload{Generation: batch.Generation, From: batch.Entries[0].Number,
		Upto: batch.Entries[len(batch.Entries)-1].Number}
	if _, err := l.propose(ctx, drop); err != nil {
		return false, err
	}
	l.config.Point("leader.after_drop_audit")
	l.metrics.archived.Add(float64(len(batch.Entries)))
	return batch.More, nil
}

// archiveSome archives one batch, and says whether more waits. A leader that was paused writes what
// is there already, since what is sealed is the same for ever, and proposes what changes nothing.
func (l *Leadership) archiveSome(ctx context.Context) (more bool, err error) {
	batch, err := archive.Next(l.view(), archivedAtOnce)
	if err != nil || batch.Upto == batch.From {
		return false, err
	}
	l.config.Point("leader.before_archive")
	if err := l.config.Store.PutPast(ctx, batch.Runs, batch.Entries); err != nil {
		return false, fmt.Errorf("archive %d runs and %d entries: %w", len(batch.Runs),
			len(batch.Entries), err)
	}
	l.config.Point("leader.after_archive")
	from := batch.From
	for cuts := range slices.Chunk(batch.Cuts, droppedAtOnce) {
		drop := command.DropArchivedPayload{Generation: batch.Generation, From: from,
			Upto: cuts[len(cuts)-1], Keep: l.config.ArchiveKeep}
		if _, err := l.propose(ctx, drop); err != nil {
			return false, err
		}
		from = drop.Upto
		l.config.Point("leader.after_drop_archived")
	}
	l.metrics.archived.Add(float64(len(batch.Runs) + len(batch.Entries)))
	return batch.More, nil
}

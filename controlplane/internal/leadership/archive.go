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

// archivedAtOnce is how many runs, and other entries, are written at once. One command drops those
// of droppedAtOnce commands from the state, or so many old runs, and must not hold up others.
const (
	archivedAtOnce = 2_000
	droppedAtOnce  = 100
)

// expireHistoryEvery is the interval at which runs too old for the history are removed.
const expireHistoryEvery = 24 * time.Hour

// archivePast writes sealed records to the archive, in the order of their seals, and then has the
// state drop them. While the row store cannot be written, the state grows; nothing else changes.
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
			entries, unwritten := l.archiveAudit(ctx) // neither prevents the other
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

// expireHistory removes runs that are too old, once a day. The ledger stays. Nothing is removed
// while the time is uncertain.
func (l *Leadership) expireHistory(ctx context.Context) error {
	now, sure := l.clocks.Safe()
	if !sure || now.Sub(l.historyExpired) < expireHistoryEvery {
		return nil
	}
	before := now.Add(-l.historyKept())
	if err := l.config.Store.ExpirePast(ctx, before); err != nil {
		return fmt.Errorf("expire the history: %w", err)
	}
	if err := l.expireKept(ctx, before); err != nil {
		return err
	}
	if err := l.forgetDeleted(ctx, before); err != nil {
		return err
	}
	l.historyExpired = now
	return nil
}

// expireKept drops the runs that finished before a time from those that the state keeps beside the
// archive.
func (l *Leadership) expireKept(ctx context.Context, before time.Time) error {
	for some := range slices.Chunk(archive.Expired(l.view(), before), droppedAtOnce) {
		if _, err := l.propose(ctx, command.ExpireRunsPayload{Runs: some}); err != nil {
			return err
		}
	}
	return nil
}

// historyKept returns how long the history keeps an ended run: the operators' setting, else this
// leader's configuration.
func (l *Leadership) historyKept() time.Duration {
	if days := l.view().Settings().HistoryDays; days > 0 {
		return time.Duration(days) * 24 * time.Hour
	}
	return l.config.HistoryKept
}

// forgetDeleted drops the marks of deleted runs that no history has any more.
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

// auditedAtOnce is how many audit entries are archived and dropped at once.
const auditedAtOnce = 500

// archiveAudit archives some audit entries, and says whether more wait. After a pause a leader may
// repeat writes and proposals; both change nothing.
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

// archiveSome archives one batch, and says whether more waits. After a pause a leader may repeat
// writes and proposals; both change nothing, since sealed records never change.
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

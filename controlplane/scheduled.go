package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// Backups says when a leader takes backups on its own.
type Backups struct {
	Every time.Duration // between two; 0: none is taken
	Keep  int           // newest backups of this cluster that are kept, at least 1
}

const (
	// backupsOwner owns the backups of all clusters that share a blob store. After the loss of a
	// cluster, a new one can restore its backups.
	backupsOwner = "cluster"
	// backupTime is the prefix of a backup's name. Names sort by it.
	backupTime = "20060102T150405.000Z"
	// maxBackups bounds a list of backups.
	maxBackups = 1000
	// backupsLook is the longest rest: a new leader's time may be as old as the last leader, and
	// clocks may jump.
	backupsLook = time.Hour
	// noBackups is how long the work rests when no backups are configured.
	noBackups = 24 * time.Hour
)

// scheduled takes scheduled backups, and keeps figures about them for the metrics.
type scheduled struct {
	s        *Server
	newest   atomic.Pointer[client.KeptBackup] // nil: none is known
	failures prometheus.Counter
}

func newScheduled(s *Server) *scheduled {
	b := &scheduled{s: s}
	if s.config.Metrics != nil {
		b.measure(s.config.Metrics)
	}
	return b
}

// Backups takes backups and removes old ones, as background work of the leader. The first backup is
// due when the cluster is one interval old.
func (s *Server) Backups() work.Kind {
	return work.Kind{Name: work.Backup, Recurring: true, AtStart: true,
		Ready: func() bool { return s.holder.Current() != nil },
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			rest, err := s.scheduled.step(ctx)
			if err != nil && s.scheduled.failures != nil {
				s.scheduled.failures.Inc()
			}
			return work.Rest(nil, rest), err
		}}
}

// wanted says whether backups are configured.
func (b *scheduled) wanted() bool {
	return b.s.config.Blobs != nil && b.s.config.Backups.Every > 0
}

// step takes a backup if one is due, and returns when to look again. It uses state time, which also
// names the backups and so orders them. With a wrong clock for an hour, a backup would be the
// newest or oldest for good.
func (b *scheduled) step(ctx context.Context) (time.Duration, error) {
	switch {
	case b.s.holder.Current() == nil:
		return 0, nil // the next leader goes on
	case !b.wanted():
		return noBackups, nil
	}
	kept, err := b.own(ctx)
	if err != nil {
		return 0, err
	}
	now := b.s.holder.Clocks().Now()
	if due := b.since(kept).Add(b.s.config.Backups.Every); now.Before(due) {
		return min(due.Sub(now), backupsLook), b.prune(ctx, kept)
	}
	taken, err := b.writeBackup(ctx, now)
	if err != nil {
		return 0, err
	}
	kept = slices.Insert(kept, 0, taken)
	b.newest.Store(&kept[0])
	return min(b.s.config.Backups.Every, backupsLook), b.prune(ctx, kept)
}

// own returns this cluster's backups, newest first.
func (b *scheduled) own(ctx context.Context) ([]client.KeptBackup, error) {
	kept, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	cluster := b.s.node.Store().View().Cluster().ID
	kept = slices.DeleteFunc(kept, func(k client.KeptBackup) bool { return k.Cluster != cluster })
	b.newest.Store(nil)
	if len(kept) > 0 {
		b.newest.Store(&kept[0])
	}
	return kept, nil
}

// since returns when the newest backup was taken, or when the cluster was founded.
func (b *scheduled) since(kept []client.KeptBackup) time.Time {
	if len(kept) > 0 {
		return kept[0].Taken
	}
	return time.Unix(b.s.node.Store().View().Cluster().ID.Seconds(), 0)
}

// writeBackup streams a new backup into the blob store.
func (b *scheduled) writeBackup(ctx context.Context, now time.Time) (client.KeptBackup, error) {
	cluster := b.s.node.Store().View().Cluster().ID
	name := now.UTC().Format(backupTime) + "-" + cluster.String()
	r, w := io.Pipe()
	made := make(chan struct{})
	go func() {
		defer close(made)
		w.CloseWithError(b.s.Operator().Backup(ctx, w))
	}()
	written, err := b.s.config.Blobs.Put(ctx, backupKey(name), r)
	r.CloseWithError(errors.New("nobody reads the backup any more"))
	<-made
	if err != nil {
		return client.KeptBackup{}, fmt.Errorf("keep backup %s: %w", name, err)
	}
	b.s.config.Point("work.backup.after_put")
	b.s.config.Logger.Info("a backup is kept", "name", name, "bytes", written.Bytes)
	return client.KeptBackup{Name: name, Cluster: cluster, Taken: now, Bytes: written.Bytes}, nil
}

// prune removes the backups beyond those that are kept.
func (b *scheduled) prune(ctx context.Context, kept []client.KeptBackup) error {
	for _, old := range kept[min(len(kept), max(b.s.config.Backups.Keep, 1)):] {
		if err := b.s.config.Blobs.Delete(ctx, backupKey(old.Name)); err != nil {
			return fmt.Errorf("remove backup %s: %w", old.Name, err)
		}
	}
	return nil
}

// list returns the backups of all clusters, newest first, at most maxBackups.
func (b *scheduled) list(ctx context.Context) (kept []client.KeptBackup, err error) {
	var next []byte
	for {
		page, err := b.s.config.Blobs.List(ctx, blobstore.Backups, backupsOwner, next)
		if err != nil {
			return nil, fmt.Errorf("list the backups: %w", err)
		}
		for _, info := range page.Blobs {
			if k, ok := backupNamed(info.Key.ID); ok {
				k.Bytes = info.Bytes
				kept = append(kept, k)
			}
		}
		kept = kept[max(0, len(kept)-maxBackups):] // they come sorted by name
		if next = page.Next; next == nil {
			slices.Reverse(kept)
			return kept, nil
		}
	}
}

func backupKey(name string) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Backups, Owner: backupsOwner, ID: name}
}

// backupNamed parses a backup's name.
func backupNamed(name string) (k client.KeptBackup, ok bool) {
	taken, cluster, _ := strings.Cut(name, "-")
	at, err := time.Parse(backupTime, taken)
	if err != nil {
		return k, false
	}
	id, err := ids.Parse(cluster)
	return client.KeptBackup{Name: name, Cluster: id, Taken: at}, err == nil
}

// Backups implements client.Operator.
func (o operator) Backups(ctx context.Context) ([]client.KeptBackup, error) {
	if o.s.config.Blobs == nil {
		return nil, nil
	}
	kept, err := o.s.scheduled.list(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the blob store does not answer")
	}
	return kept, nil
}

// RestoreKept implements client.Operator.
func (o operator) RestoreKept(ctx context.Context, name string,
	how client.RestoreOptions) (client.Restored, error) {
	if _, ok := backupNamed(name); !ok || o.s.config.Blobs == nil {
		return client.Restored{}, fault.New(fault.NotFound, "there is no backup %q", name)
	}
	from, err := o.s.config.Blobs.Open(ctx, backupKey(name), 0, -1)
	switch {
	case errors.Is(err, blobstore.ErrNotFound):
		return client.Restored{}, fault.New(fault.NotFound, "there is no backup %q", name)
	case err != nil:
		return client.Restored{}, fault.Wrap(fault.Unavailable, err,
			"the blob store does not answer")
	}
	restored, err := o.Restore(ctx, from, how)
	_ = from.Close() // the backup's own digest proves that it was read whole
	return restored, err
}

// measure exports the age of the newest backup, on a leader with backups configured.
func (b *scheduled) measure(to *telemetry.Metrics) {
	b.failures = to.Counter("shoal_backup_failures_total",
		"Failures to take a due backup or to remove an old one.")
	telemetry.NewSamples(func() (newest client.KeptBackup, ok bool) {
		if b.s.holder.Current() == nil || !b.wanted() {
			return newest, false
		}
		if known := b.newest.Load(); known != nil {
			return *known, true
		}
		return client.KeptBackup{Taken: b.since(nil)}, true
	}).
		Gauge("shoal_backup_age_seconds", "Age of the cluster's newest backup in the blob store, "+
			"on the leader. Without a backup: age of the cluster.",
			func(k client.KeptBackup) float64 {
				return b.s.holder.Clocks().Now().Sub(k.Taken).Seconds()
			}).
		Gauge("shoal_backup_bytes", "Size of the newest backup, on the leader; 0 without a "+
			"backup.", func(k client.KeptBackup) float64 { return float64(k.Bytes) }).
		Gauge("shoal_backup_interval_seconds", "Configured time between two backups, on the "+
			"leader.", func(client.KeptBackup) float64 {
			return b.s.config.Backups.Every.Seconds()
		}).
		Declare(to)
}

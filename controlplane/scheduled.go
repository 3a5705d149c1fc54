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
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// Backups says when a leader takes backups on its own.
type Backups struct {
	Every time.Duration // between two; 0: none is taken
	Keep  int           // newest backups of this cluster that are kept, at least 1
	// Rows says whether a row store without backups of its own is copied along with the newest one.
	Rows bool
	// Disk is the one that the copy fills, if it is a disk of this machine; nil: it has room.
	Disk *telemetry.Disk
}

const (
	// backupsOwner owns the backups of all clusters that share a blob store. After the loss of a
	// cluster, a new one can restore its backups.
	backupsOwner = "cluster"
	// rowsSuffix follows a backup's name in the name of the row store's copy.
	rowsSuffix = ".rows"
	// rowsPatience is how long a copy of the row store may take, and rowsLook how often its disk is
	// looked at meanwhile.
	rowsPatience = 6 * time.Hour
	rowsLook     = 2 * time.Second
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
			if err != nil {
				s.scheduled.countFailure()
			}
			return work.Rest(nil, rest), err
		}}
}

func (b *scheduled) countFailure() {
	if b.failures != nil {
		b.failures.Inc()
	}
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
	now, rest := b.s.holder.Clocks().Now(), b.s.config.Backups.Every
	if due := b.since(kept).Add(rest); now.Before(due) {
		rest = due.Sub(now)
	} else {
		taken, err := b.writeBackup(ctx, now)
		if err != nil {
			return 0, err
		}
		kept = slices.Insert(kept, 0, taken)
		b.newest.Store(&taken)
	}
	// The state's next backup is not held up by a copy that fails.
	if err := b.keepRows(ctx, kept); err != nil {
		b.countFailure()
		b.s.config.Logger.Warn("the row store is not kept with the backups", "error", err)
	}
	return min(rest, backupsLook), b.prune(ctx, kept)
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
		newest := kept[0]
		b.newest.Store(&newest)
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
	written, err := b.put(ctx, name, b.s.Operator().Backup)
	if err != nil {
		return client.KeptBackup{}, err
	}
	b.s.config.Point("work.backup.after_put")
	return client.KeptBackup{Name: name, Cluster: cluster, Taken: now, Bytes: written}, nil
}

// put streams what write writes into the blob store.
func (b *scheduled) put(ctx context.Context, name string,
	write func(context.Context, io.Writer) error) (bytes int64, err error) {
	r, w := io.Pipe()
	made := make(chan struct{})
	go func() {
		defer close(made)
		w.CloseWithError(write(ctx, w))
	}()
	written, err := b.s.config.Blobs.Put(ctx, backupKey(name), r)
	r.CloseWithError(errors.New("nobody reads the backup any more"))
	<-made
	if err != nil {
		return 0, fmt.Errorf("keep backup %s: %w", name, err)
	}
	b.s.config.Logger.Info("a backup is kept", "name", name, "bytes", written.Bytes)
	return written.Bytes, nil
}

// keepRows keeps a copy of the row store with the newest backup, and removes older copies. One copy
// is enough: with a newer copy, an older backup restores as well. It is tried again at each look.
func (b *scheduled) keepRows(ctx context.Context, kept []client.KeptBackup) error {
	if _, copied := b.s.config.Store.(rowstore.Copied); !copied || !b.s.config.Backups.Rows ||
		len(kept) == 0 {
		return nil
	}
	newest := kept[0]
	if newest.Rows == 0 {
		room, err := b.roomForRows(ctx)
		if err != nil || !room {
			return err
		}
		if err := b.putRows(ctx, newest.Name+rowsSuffix); err != nil {
			return err
		}
	}
	for i := range kept[1:] {
		old := &kept[1+i]
		if old.Rows == 0 {
			continue
		}
		if err := b.s.config.Blobs.Delete(ctx, backupKey(old.Name+rowsSuffix)); err != nil {
			return fmt.Errorf("remove backup %s: %w", old.Name+rowsSuffix, err)
		}
		old.Rows = 0
	}
	return nil
}

// putRows copies the row store into the blob store. It gives up a blob store that stops reading: a
// copy that stands still would let the row store's log fill its disk.
func (b *scheduled) putRows(ctx context.Context, name string) error {
	copying, stop := context.WithTimeout(ctx, rowsPatience)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for clock.Pause(copying, b.s.config.Clock, rowsLook) {
			if err := (operator{b.s}).rowsShort(); err != nil {
				stop()
			}
		}
	}()
	_, err := b.put(copying, name, b.s.Operator().BackupRows)
	stop()
	<-watched
	return err
}

// roomForRows says whether the row store is small enough for a blob. It fails if the copy would
// leave too little of a disk.
func (b *scheduled) roomForRows(ctx context.Context) (bool, error) {
	size, err := b.s.Operator().RowsBytes(ctx)
	if err != nil {
		return false, err
	}
	if size > blobstore.Backups.MaxBytes {
		b.s.config.Logger.Warn("the row store is too large to be kept with the backups", "bytes",
			size, "most", blobstore.Backups.MaxBytes)
		return false, nil
	}
	disk := b.s.config.Backups.Disk
	if disk == nil {
		return true, nil
	}
	if left, known := disk.Left(); known && left < disk.Floor.Bytes()+uint64(size) {
		return false, fmt.Errorf("keep the row store with the backups: %d bytes are left in %s, "+
			"and %d are needed", left, disk.Dir, disk.Floor.Bytes()+uint64(size))
	}
	return true, nil
}

// prune removes the backups beyond those that are kept. One with the only copy of the row store
// stays.
func (b *scheduled) prune(ctx context.Context, kept []client.KeptBackup) error {
	for _, old := range kept[min(len(kept), max(b.s.config.Backups.Keep, 1)):] {
		if old.Rows > 0 {
			continue
		}
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
		for _, info := range page.Blobs { // a backup's rows come right after it
			name, isRows := strings.CutSuffix(info.Key.ID, rowsSuffix)
			k, ok := backupNamed(name)
			last := len(kept) - 1
			switch {
			case ok && !isRows:
				k.Bytes = info.Bytes
				kept = append(kept, k)
			case ok && last >= 0 && kept[last].Name == name:
				kept[last].Rows = info.Bytes
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

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/backup"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	restoreTries    = 20 // while the servers of Raft are being changed
	restoreGap      = 100 * time.Millisecond
	tickPatience    = 5 * time.Second
	maxUndone       = 5_000_000
	partBytes       = 512 << 10
	uploadIdle      = time.Minute // after which a new upload replaces an unfinished one
	spoolPattern    = "restore-*.tmp"
	restorePatience = 50 * time.Second // for the leader's answer; calls end after a minute
	lostPatience    = 10 * time.Second // for looking which rows are lost
	lostNamed       = 10               // runs with lost rows that are named
)

// restorer replaces the state by a backup.
type restorer struct {
	config    *Config
	node      *node.Node
	holder    *leadership.Holder
	proposer  *proposer
	restoring sync.Mutex // held while a backup replaces the state
	uploads   uploads
}

// spool is a temporary file.
type spool struct{ *os.File }

func (r *restorer) spool() (spool, error) {
	file, err := os.CreateTemp(r.config.Dir, spoolPattern)
	if err != nil {
		return spool{}, fmt.Errorf("controlplane: restore: %w", err)
	}
	return spool{file}, nil
}

// sweep removes the files that a killed process left.
func (r *restorer) sweep() {
	left, _ := filepath.Glob(filepath.Join(r.config.Dir, spoolPattern)) // the pattern is valid
	for _, path := range left {
		_ = os.Remove(path)
	}
}

func (f spool) discard() {
	_ = f.Close()
	_ = os.Remove(f.Name()) // a file that stays is never read
}

// here replaces the cluster's state by a backup, when this node leads.
func (r *restorer) here(ctx context.Context, file spool, header backup.Header,
	how client.RestoreOptions) (client.Restored, error) {
	none := client.Restored{}
	if r.holder.Current() == nil {
		return none, raft.ErrNotLeader
	}
	if r.node.View().ClusterVersion() < 2 { // older nodes could not read the state
		return none, fault.New(fault.Unavailable, "the cluster is being upgraded: a backup is "+
			"restored once all its nodes run the new version")
	}
	if !r.restoring.TryLock() {
		return none, fault.New(fault.Unavailable, "another backup is being restored")
	}
	defer r.restoring.Unlock()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return none, fmt.Errorf("controlplane: restore: %w", err)
	}
	store, err := state.Restore(file)
	if err != nil {
		return none, fault.Wrap(fault.InvalidBackup, err, "%v", err)
	}
	if err := r.fits(store, header); err != nil {
		return none, err
	}
	saved, own := store.View(), r.node.View().Cluster().ID
	lacks, err := r.lackedHistory(ctx, saved)
	if err != nil {
		return none, err
	}
	// A row store that has the backup's history is that of its cluster, whose data is lost.
	has := len(lacks) == 0 && (saved.AuditHead().Archived > 0 || saved.ArchivedTo() > 0)
	if header.Cluster != own && !has && !how.Force {
		return none, fault.New(fault.OtherCluster, "the backup is of cluster %s, and this is %s, "+
			"whose row store does not have its history; force takes it all the same",
			header.Cluster, own)
	}
	if len(lacks) > 0 && !how.Force {
		return none, fault.New(fault.InvalidBackup, "%s: restore the row store first, or force "+
			"it without", strings.Join(lacks, "; "))
	}
	restored := client.Restored{Cluster: header.Cluster, Index: header.Index, Taken: header.Taken,
		Lacks: lacks}
	if err := r.holder.Aside(ctx,
		func() (err error) {
			restored.Changes,
				err = r.replace(ctx, store, how)
			return err
		}); err != nil {
		return none, err
	}
	restored.Until = leadership.GraceOver(r.node.View().Cluster(),
		r.config.RestoreGrace).UnixMilli()
	// Other nodes receive the new state before this command. Whoever waits for its index has that
	// state.
	if err := r.tick(ctx); err != nil {
		return none, err
	}
	lost, err := r.lostRows(ctx, r.node.View())
	if err != nil {
		lost = "it is not known whether rows are lost: " + err.Error()
	}
	if lost != "" {
		restored.Lacks = append(restored.Lacks, lost)
	}
	r.config.Logger.Warn("a backup was restored", "index", header.Index, "taken",
		time.UnixMilli(header.Taken).UTC(),
		"cluster", header.Cluster, "force", how.Force, "reviveKeys", how.ReviveKeys, "changes",
		restored.Changes, "lacks", restored.Lacks)
	return restored, nil
}

// storedSince lists the runs in the row store that started after a backup was taken. It asks the
// row store because a state in between, which is gone, may have launched them.
func (r *restorer) storedSince(ctx context.Context, cut int64) ([]state.Undone, error) {
	var runs []state.Undone
	err := r.config.Store.JobsSince(ctx, cut*1000, func(job rowstore.Job) error {
		if len(runs) == maxUndone {
			return fault.New(fault.InvalidBackup, "more than %d runs have been launched "+
				"since the backup", maxUndone)
		}
		runs = append(runs, state.Undone{Job: job.ID, Customer: job.Customer, Group: job.Group,
			Scraper: job.Scraper})
		return nil
	})
	return runs, err
}

// fits checks that a backup is whole in itself, and of a cluster like this one.
func (r *restorer) fits(store *state.Store, header backup.Header) error {
	saved, own := store.View().Cluster(), r.node.View().Cluster()
	switch {
	case saved == nil || saved.ID != header.Cluster || saved.Shards != header.Shards:
		return fault.New(fault.InvalidBackup, "the backup's header does not fit what is in it")
	case saved.Shards != own.Shards:
		return fault.New(fault.InvalidBackup, "the backup is of a cluster with %d shards, and "+
			"this one has %d for ever",
			saved.Shards, own.Shards)
	}
	return nil
}

// lackedHistory says what the row store lacks of a backup's history, because it is older or another
// one.
func (r *restorer) lackedHistory(ctx context.Context, view *state.View) (lacks []string,
	err error) {
	if upto := view.AuditHead().Archived; upto > 0 {
		head, err := r.config.Store.AuditHead(ctx, archive.AuditPath(view))
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "")
		}
		if head < upto {
			lacks = append(lacks, fmt.Sprintf("the row store's audit trail ends at number %d, and "+
				"the backup's goes on to %d", head, upto))
		}
	}
	path := archive.Path(view)
	if path == nil {
		return lacks, nil
	}
	head, err := r.config.Store.PastHead(ctx, path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "")
	}
	if head < view.ArchivedTo() {
		lacks = append(lacks, fmt.Sprintf("the row store's history ends at index %d, and the "+
			"backup's goes on to %d", head, view.ArchivedTo()))
	}
	return lacks, nil
}

// lostRows says which runs have lost their rows: a newer run of their scraper, which is undone now,
// had replaced them. It looks at the newest run of each scraper.
func (r *restorer) lostRows(ctx context.Context, view *state.View) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lostPatience)
	defer cancel()
	history := leadership.HistoryOf(r.config.Store)
	seen, lost := map[ids.ID]bool{}, []string{}
	var failed error
	view.Undone(func(undone *state.Undone) bool {
		scraper := view.Scraper(undone.Scraper)
		if scraper == nil || seen[scraper.ID] {
			return true
		}
		seen[scraper.ID] = true
		newest, err := history.NewestWithRows(ctx, view, scraper)
		if err != nil || newest == nil {
			failed = err
			return err == nil
		}
		held, err := r.config.Store.Holding(ctx, rowstore.Scope{Group: newest.Group,
			Scraper: newest.Scraper, Jobs: []ids.ID{newest.ID}}, 1)
		if err == nil && len(held) == 0 {
			lost = append(lost, newest.ID.String())
		}
		failed = err
		return err == nil
	})
	if failed != nil || len(lost) == 0 {
		return "", failed
	}
	named := strings.Join(lost[:min(len(lost), lostNamed)], ", ")
	if more := len(lost) - lostNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return "rows are lost that newer runs, undone now, had replaced: of run " + named, nil
}

// replace replaces the state by a restored one. No leadership's routines run meanwhile, so no shard
// is assigned between the old state and the new one.
func (r *restorer) replace(ctx context.Context, store *state.Store,
	how client.RestoreOptions) (changes state.Changes, err error) {
	term, err := r.node.Term(ctx)
	if err != nil {
		return changes, err
	}
	if err := r.tick(ctx); err != nil { // after everything that the routines proposed
		return changes, err
	}
	_, cut := store.Progress()
	stored, err := r.storedSince(ctx, cut)
	if err != nil {
		return changes, err
	}
	changes, err = store.Succeed(r.node.Store(),
		state.Restoration{Generation: r.config.IDs.New(), Stored: stored,
			ReviveKeys: how.ReviveKeys, Actor: how.Actor})
	if err != nil {
		return changes, fault.Wrap(fault.InvalidBackup, err, "%v", err)
	}
	return changes, r.install(ctx, store, term)
}

// install has Raft replace the state by the restored one, on every node.
func (r *restorer) install(ctx context.Context, store *state.Store, term uint64) error {
	file, err := r.spool()
	if err != nil {
		return err
	}
	defer file.discard()
	if err := store.Snapshot().Write(file); err != nil {
		return fmt.Errorf("controlplane: restore: %w", err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("controlplane: restore: %w", err)
	}
	index, _ := store.Progress()
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: index, Term: term,
		Size: size}
	for try := 1; ; try++ {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("controlplane: restore: %w", err)
		}
		r.config.Point("raft.before_restore")
		// Not within ctx: the file must exist while Raft reads it.
		_, err := node.Ask(r.node.Life(), r.node, func(n *node.Raft) (struct{}, error) {
			if n.CurrentTerm() != term {
				return struct{}{}, raft.ErrLeadershipLost
			}
			return struct{}{}, n.Restore(meta, file, 0)
		})
		if err == nil {
			r.config.Point("raft.after_restore")
		}
		if err == nil || try == restoreTries || errors.Is(err, raft.ErrNotLeader) ||
			errors.Is(err, raft.ErrLeadershipLost) {
			return err
		}
		if !clock.Pause(ctx, r.config.Clock, restoreGap) {
			return err
		}
	}
}

// tick has a command applied that changes nothing. It gives up soon, because the node may have lost
// the leadership.
func (r *restorer) tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tickPatience)
	defer cancel()
	_, err := r.proposer.Propose(ctx, command.TickPayload{})
	return err
}

// Messages by which a node sends a verified backup to the leader to be restored.
type (
	restorePart struct {
		Upload ids.ID `cbor:"1,keyasint"`
		Offset int64  `cbor:"2,keyasint"`
		Data   []byte `cbor:"3,keyasint"`
	}
	restoreRequest struct {
		Upload ids.ID        `cbor:"1,keyasint"`
		Size   int64         `cbor:"2,keyasint"`
		Header backup.Header `cbor:"3,keyasint"`
		Force  bool          `cbor:"4,keyasint,omitempty"`
		// ReviveKeys is ignored by an older leader, which always revives keys.
		ReviveKeys bool `cbor:"5,keyasint,omitempty"`
		// Actor is ignored by an older leader.
		Actor *client.Actor `cbor:"6,keyasint,omitempty"`
	}
)

const (
	methodRestorePart = "restore-part"
	methodRestore     = "restore"
)

// methods are the calls that restore a backup.
func (r *restorer) methods() map[string]port.Method {
	return map[string]port.Method{
		methodRestorePart: port.Handle(r.servePart, identity.APIServer),
		methodRestore:     port.Handle(r.serve, identity.APIServer),
	}
}

// there sends a backup's state to the leader in parts and has it restored there.
func (r *restorer) there(ctx context.Context, file spool, header backup.Header,
	how client.RestoreOptions) (client.Restored, error) {
	none := client.Restored{}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return none, fmt.Errorf("controlplane: restore: %w", err)
	}
	upload, offset := r.config.IDs.New(), int64(0)
	part := make([]byte, partBytes)
	for {
		count, err := io.ReadFull(file, part)
		if count > 0 {
			sent := restorePart{Upload: upload, Offset: offset, Data: part[:count]}
			if err := r.proposer.forward(ctx, methodRestorePart, sent,
				&node.Nothing{}); err != nil {
				return none, err
			}
			offset += int64(count)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return none, fmt.Errorf("controlplane: restore: %w", err)
		}
	}
	var restored client.Restored
	err := r.proposer.forwardFor(ctx, restorePatience, methodRestore,
		restoreRequest{Upload: upload, Size: offset, Header: header, Force: how.Force,
			ReviveKeys: how.ReviveKeys, Actor: how.Actor}, &restored)
	return restored, err
}

// uploads holds the backup that another node is sending; there is one at a time.
type uploads struct {
	mu   sync.Mutex
	id   ids.ID
	file spool
	size int64
	last time.Time // when the newest part arrived
}

// drop ends the upload.
func (u *uploads) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget()
}

// forget ends the upload; mu is held.
func (u *uploads) forget() {
	if !u.id.IsZero() {
		u.file.discard()
	}
	u.id, u.size = ids.ID{}, 0
}

func (r *restorer) servePart(_ context.Context, _ identity.Peer, part restorePart) (node.Nothing,
	error) {
	if r.holder.Current() == nil {
		return node.Nothing{}, raft.ErrNotLeader
	}
	u, now := &r.uploads, r.config.Clock.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.id != part.Upload {
		if !u.id.IsZero() && now.Sub(u.last) < uploadIdle {
			return node.Nothing{}, fault.New(fault.Unavailable, "another backup is being restored")
		}
		u.forget()
		file, err := r.spool()
		if err != nil {
			return node.Nothing{}, err
		}
		u.id, u.file = part.Upload, file
	}
	u.last = now
	if part.Offset > u.size {
		return node.Nothing{}, fault.New(fault.InvalidRequest, "a part of the backup is missing")
	}
	if _, err := u.file.WriteAt(part.Data, part.Offset); err != nil {
		return node.Nothing{}, fmt.Errorf("controlplane: restore: %w", err)
	}
	u.size = max(u.size, part.Offset+int64(len(part.Data)))
	return node.Nothing{}, nil
}

func (r *restorer) serve(ctx context.Context, _ identity.Peer,
	asked restoreRequest) (client.Restored, error) {
	u := &r.uploads
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.id != asked.Upload || u.size != asked.Size || asked.Upload.IsZero() {
		return client.Restored{}, fault.New(fault.Unavailable, "the backup did not arrive at "+
			"this leader; ask again")
	}
	defer u.forget()
	return r.here(ctx, u.file, asked.Header,
		client.RestoreOptions{Force: asked.Force, ReviveKeys: asked.ReviveKeys,
			Actor: asked.Actor})
}

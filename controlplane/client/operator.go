package client

import (
	"context"
	"io"
	"time"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Operator is what an administrator does to the cluster itself. It is safe for concurrent use.
type Operator interface {
	// Backup writes a backup of the whole state: everything that was applied anywhere before the
	// call is in it. When it fails in the middle, what was written is refused by Restore. Faults:
	// unavailable.
	Backup(ctx context.Context, to io.Writer) error
	// Restore reads a backup to its end and, when it is whole, puts it in the place of the state on
	// every node. What has happened since the backup is undone, but for the cluster's id, its
	// nodes, and who fetches what. Runs that were launched since are not read any more. What the
	// row store has of them goes when the grace is over, so a second restore may bring them back
	// until then. Faults: invalid_backup, other_cluster, unavailable: the outcome is not known
	// then, and may be learnt by comparing State hashes, or made certain by asking again.
	Restore(ctx context.Context, from io.Reader, how RestoreOptions) (Restored, error)
	// Backups are those in the blob store, of all clusters that share it, the newest first, at most
	// 1,000. Faults: unavailable.
	Backups(ctx context.Context) ([]KeptBackup, error)
	// RestoreKept restores a backup of the blob store. Faults: not_found, and those of Restore.
	RestoreKept(ctx context.Context, name string, how RestoreOptions) (Restored, error)
	// RemoveNode takes a node that is gone out of the cluster. It may come back as a new one.
	// Faults: not_found, node_alive, quorum_at_risk: without it there would be no majority.
	RemoveNode(ctx context.Context, node string) error
}

// KeptBackup is a backup in the blob store.
type KeptBackup struct {
	Name    string // unique in the store; it sorts by time
	Cluster ids.ID // that it was taken of
	Taken   time.Time
	Bytes   int64
}

// RestoreOptions say how a backup is restored.
type RestoreOptions struct {
	Force      bool // another cluster's backup is taken, too
	ReviveKeys bool // keys that were revoked since the backup are valid again
	// Actor is who restores; Restore takes it from its context.
	Actor *Actor
}

// Restored says what a backup was of, and what came of restoring it.
type Restored struct {
	Cluster ids.ID
	Index   uint64 // Raft index of the newest command in it
	Taken   int64  // Unix milliseconds
	Until   int64  // when what was undone goes from the row store, Unix milliseconds
	Changes state.Changes
}

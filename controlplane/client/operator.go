package client

import (
	"context"
	"io"
	"time"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Operator is what an administrator can do to the cluster itself. It is safe for concurrent use.
type Operator interface {
	// Backup writes a backup of the whole state, with everything applied anywhere before the call.
	// If it fails midway, Restore refuses what was written. Faults: unavailable.
	Backup(ctx context.Context, to io.Writer) error
	// RowsBytes returns about how many bytes BackupRows writes. Faults: out_of_space, unavailable;
	// not_found: the row store has backups of its own.
	RowsBytes(ctx context.Context) (int64, error)
	// BackupRows writes a copy of the row store. It belongs to every backup of the state that ended
	// before the call. A copy that fails midway is not whole. Faults: those of RowsBytes.
	BackupRows(ctx context.Context, to io.Writer) error
	// Restore reads a backup to its end. If it is whole, it replaces the state on every node.
	// Changes since the backup are undone, except the cluster's id, its nodes and the owners of
	// shards. Runs launched since are no longer read. The row store removes them after the grace,
	// so until then a second restore can bring them back. Faults: invalid_backup, other_cluster,
	// unavailable. After unavailable the outcome is unknown: compare State hashes, or ask again.
	Restore(ctx context.Context, from io.Reader, how RestoreOptions) (Restored, error)
	// Backups lists the backups in the blob store, of all clusters that share it, newest first, at
	// most 1,000. Faults: unavailable.
	Backups(ctx context.Context) ([]KeptBackup, error)
	// RestoreKept restores a backup from the blob store. Faults: not_found, and those of Restore.
	RestoreKept(ctx context.Context, name string, how RestoreOptions) (Restored, error)
	// RemoveNode removes a node that is gone from the cluster. It may come back as a new node.
	// Faults: not_found, node_alive, quorum_at_risk: there would be no majority without it.
	RemoveNode(ctx context.Context, node string) error
}

// KeptBackup is a backup in the blob store.
type KeptBackup struct {
	Name    string // unique in the store; it sorts by time
	Cluster ids.ID // whose state it holds
	Taken   time.Time
	Bytes   int64
	Rows    int64 // bytes of the row store's copy beside it; 0: there is none
}

// RestoreOptions say how a backup is restored.
type RestoreOptions struct {
	// Force accepts another cluster's backup, and one whose history the row store lacks.
	Force      bool
	ReviveKeys bool // make keys valid again that were revoked since the backup
	// Actor is who restores; Restore takes it from its context.
	Actor *Actor
}

// Restored describes a restored backup and the effect of restoring it.
type Restored struct {
	Cluster ids.ID
	Index   uint64 // Raft index of its newest command
	Taken   int64  // Unix milliseconds
	Until   int64  // when the row store removes what was undone, Unix milliseconds
	Changes state.Changes
	// Lacks says which rows are lost, and, if the restore was forced, what the row store lacks of
	// the backup's history. It is empty if an older leader restored.
	Lacks []string
}

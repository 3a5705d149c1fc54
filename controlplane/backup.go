package controlplane

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/backup"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// operator implements client.Operator on the server, for administrators.
type operator struct{ s *Server }

var _ client.Operator = operator{}

// Operator returns what an administrator can do to the cluster from this node.
func (s *Server) Operator() client.Operator { return operator{s} }

// Backup implements client.Operator.
func (o operator) Backup(ctx context.Context, to io.Writer) error {
	view, err := o.s.proposer.Fresh(ctx)
	if err != nil {
		return err
	}
	term, err := o.s.node.Term(ctx)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "")
	}
	goOn := o.s.node.Between()
	now := o.s.node.FSM().Snapshot()
	index, _ := o.s.node.Store().Progress()
	goOn()
	cluster := view.Cluster()
	header := backup.Header{Cluster: cluster.ID, Shards: cluster.Shards, Index: index, Term: term,
		Taken: o.s.config.Clock.Now().UnixMilli()}
	return backup.Write(ending{w: to, ended: ctx.Err}, header, now.Write)
}

// ending is a writer that fails once ended returns an error.
type ending struct {
	w     io.Writer
	ended func() error
}

func (e ending) Write(p []byte) (int, error) {
	if err := e.ended(); err != nil {
		return 0, err
	}
	return e.w.Write(p)
}

// RowsBytes implements client.Operator.
func (o operator) RowsBytes(ctx context.Context) (int64, error) {
	store, err := o.copied()
	if err != nil {
		return 0, err
	}
	size, err := store.Size(ctx)
	if err != nil {
		return 0, fault.Wrap(fault.Unavailable, err, "")
	}
	return size, nil
}

// BackupRows implements client.Operator. It gives up while the row store's disk is short of space:
// what others write is freed only when a copy has ended.
func (o operator) BackupRows(ctx context.Context, to io.Writer) error {
	store, err := o.copied()
	if err != nil {
		return err
	}
	return store.Copy(ctx, ending{w: to, ended: o.rowsShort})
}

// copied returns the row store, if this node may copy it.
func (o operator) copied() (rowstore.Copied, error) {
	store, ok := o.s.config.Store.(rowstore.Copied)
	if !ok {
		return nil, fault.New(fault.NotFound, "the row store has backups of its own")
	}
	return store, o.rowsShort()
}

// rowsShort returns an error while the row store's disk is short of space.
func (o operator) rowsShort() error {
	if floor := o.s.config.RowsFloor; floor != nil && floor.Short() {
		return fault.New(fault.OutOfSpace, "the row store's disk has too little room for what is "+
			"written during a copy")
	}
	return nil
}

// Restore implements client.Operator. It spools the backup to a file and verifies it first. A node
// that does not lead then sends it to the leader.
func (o operator) Restore(ctx context.Context, from io.Reader,
	how client.RestoreOptions) (client.Restored, error) {
	var none client.Restored
	how.Actor = client.ActorOf(ctx)
	file, err := o.s.restorer.spool()
	if err != nil {
		return none, err
	}
	defer file.discard()
	header, err := backup.Read(from, file)
	switch {
	case errors.Is(err, backup.ErrDamaged):
		return none, fault.Wrap(fault.InvalidBackup, err, "%v", err)
	case err != nil:
		return none, err
	}
	restored, err := o.s.restorer.here(ctx, file, header, how)
	if errors.Is(err, raft.ErrNotLeader) {
		restored, err = o.s.restorer.there(ctx, file, header, how)
	}
	var coded *fault.Error
	if err != nil && !errors.As(err, &coded) {
		err = fault.Wrap(fault.Unavailable, err, "the outcome is not known; ask again")
	}
	return restored, err
}

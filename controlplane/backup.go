package controlplane

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/backup"
	"shoal.dev/shoal/pkg/fault"
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
	return backup.Write(ending{ctx, to}, header, now.Write)
}

// ending is a writer that fails once ctx has ended.
type ending struct {
	ctx context.Context
	w   io.Writer
}

func (e ending) Write(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.w.Write(p)
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

package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	// maxCommandBytes bounds an encoded command: Raft sends entries whole, among its heartbeats.
	maxCommandBytes = 512 << 10
	enqueuePatience = 5 * time.Second
	minRetry        = 5 * time.Millisecond
	maxRetry        = 250 * time.Millisecond
)

// forwarder takes requests that only the leader can answer to the leader, when that is another node.
type forwarder interface {
	propose(ctx context.Context, id ids.ID, payload command.Payload, call *command.Call) (fsm.Result, error)
	readIndex(ctx context.Context) (uint64, error)
	heartbeat(ctx context.Context, beat client.Heartbeat) (client.Leases, error)
	nodes(ctx context.Context) ([]client.NodeStatus, error)
}

// nowhere is the forwarder of a node that knows no way to another one.
type nowhere struct{}

func (nowhere) propose(context.Context, ids.ID, command.Payload, *command.Call) (fsm.Result, error) {
	return fsm.Result{}, errNoLeader
}

func (nowhere) readIndex(context.Context) (uint64, error) { return 0, errNoLeader }

func (nowhere) heartbeat(context.Context, client.Heartbeat) (client.Leases, error) {
	return client.Leases{}, errNoLeader
}

func (nowhere) nodes(context.Context) ([]client.NodeStatus, error) { return nil, errNoLeader }

var (
	errNoLeader = fault.New(fault.Unavailable, "no leader can be reached from this node")
	errStopped  = fault.New(fault.Unavailable, "this node is stopping")
)

// propose applies a command under its id and returns what that gave. An error means that the outcome is not known.
func (s *Server) propose(ctx context.Context, id ids.ID, payload command.Payload, call *command.Call) (fsm.Result, error) {
	var result fsm.Result
	err := s.retry(ctx, func(n *node) error {
		if n.State() != raft.Leader {
			if _, leader := n.LeaderWithID(); leader == "" {
				return raft.ErrNotLeader
			}
			var err error
			result, err = s.forward.propose(ctx, id, payload, call)
			return err
		}
		data, err := s.machine.fsm.Encode(id, s.cfg.Clock.Now().UnixMilli(), payload, call)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "")
		}
		if len(data) > maxCommandBytes {
			return errTooLarge
		}
		began := s.metrics.now()
		future := n.Apply(data, enqueuePatience)
		if err := future.Error(); err != nil {
			return err
		}
		s.metrics.proposed(began)
		result = future.Response().(fsm.Result)
		return nil
	})
	return result, err
}

var errTooLarge = fault.New(fault.PayloadTooLarge, "the command has more than %d bytes", maxCommandBytes)

// retry asks Raft until it answers, ctx ends or the error is a coded one, which is final.
func (s *Server) retry(ctx context.Context, ask func(*node) error) error {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := s.askRaft(ask)
		var final *fault.Error
		if err == nil || errors.As(err, &final) {
			return err
		}
		if !s.pause(ctx, wait) {
			return fault.Wrap(fault.Unavailable, errors.Join(ctx.Err(), err), "the outcome is not known yet; ask again")
		}
	}
}

// askRaft holds Raft for one request.
func (s *Server) askRaft(ask func(*node) error) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	switch {
	case s.over:
		return errStopped
	case s.raft == nil:
		return errors.New("controlplane: not started yet")
	}
	return ask(s.raft)
}

// settle applies receipts in their order, in as many commands as their size asks for.
func (s *Server) settle(ctx context.Context, receipts []model.Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	result, err := s.propose(ctx, s.cfg.IDs.New(), command.SettlePayload{Receipts: receipts}, nil)
	if errors.Is(err, errTooLarge) && len(receipts) > 1 {
		half := len(receipts) / 2
		if err := s.settle(ctx, receipts[:half]); err != nil {
			return err
		}
		return s.settle(ctx, receipts[half:])
	}
	if err != nil {
		return err
	}
	return result.Err
}

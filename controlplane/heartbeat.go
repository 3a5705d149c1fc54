package controlplane

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/leadership"
)

// heartbeat has the leader answer a heartbeat. Each attempt has its own order number.
func (s *Server) heartbeat(ctx context.Context, heartbeat client.Heartbeat) (client.Leases, error) {
	var leases client.Leases
	err := s.proposer.retry(ctx, func() (err error) {
		next := leadership.Beat{Heartbeat: heartbeat, Order: s.beats.Add(1)}
		leases, err = s.heartbeatHere(ctx, next)
		if errors.Is(err, raft.ErrNotLeader) {
			leases = client.Leases{}
			err = s.proposer.forward(ctx, methodHeartbeat, next, &leases)
		}
		return err
	})
	return leases, err
}

// heartbeatHere answers a heartbeat as the leader. It is one attempt.
func (s *Server) heartbeatHere(ctx context.Context, b leadership.Beat) (client.Leases, error) {
	// Confirm after the beat arrived: a leader deposed meanwhile must not grant leases.
	index, err := s.proposer.confirmHere(ctx)
	if err == nil {
		err = s.node.WaitFor(ctx, index)
	}
	if err != nil {
		return client.Leases{}, err
	}
	l := s.holder.Current()
	if l == nil {
		return client.Leases{}, raft.ErrNotLeader
	}
	return l.Answer(ctx, b)
}

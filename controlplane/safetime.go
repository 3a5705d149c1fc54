package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/fault"
)

// moment is a time in an answer.
type moment struct {
	Millis int64 `cbor:"1,keyasint"` // Unix
}

// SafeTime implements client.Client.
func (c caller) SafeTime(ctx context.Context) (time.Time, error) {
	var at moment
	asking, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	err := c.s.proposer.retry(asking, func() (err error) {
		at, err = c.s.safeTimeHere()
		if errors.Is(err, raft.ErrNotLeader) {
			err = c.s.proposer.forward(asking, methodSafeTime, node.Nothing{}, &at)
		}
		return err
	})
	return time.UnixMilli(at.Millis), err
}

// Spare returns how much longer the row store keeps what the newest restore undid. Until then
// background work destroys nothing. 0: no restore is recent. Its error is that of Fresh or
// SafeTime.
func (s *Server) Spare(ctx context.Context) (time.Duration, error) {
	view, err := s.Client().Fresh(ctx) // this node may not have heard of a restore yet
	if err != nil {
		return 0, err
	}
	over := leadership.GraceOver(view.Cluster(), s.config.RestoreGrace)
	if over.IsZero() {
		return 0, nil
	}
	now, err := s.Client().SafeTime(ctx)
	if err != nil {
		return 0, err
	}
	return max(0, over.Sub(now)), nil
}

// safeTimeHere returns the safe time, as the leader.
func (s *Server) safeTimeHere() (moment, error) {
	if s.holder.Current() == nil {
		return moment{}, raft.ErrNotLeader
	}
	now, ok := s.holder.Clocks().Safe()
	if !ok {
		return moment{}, fault.New(fault.Unavailable,
			"it is not certain what time it is: nothing is removed by age")
	}
	return moment{Millis: now.UnixMilli()}, nil
}

func (s *Server) serveSafeTime(context.Context, identity.Peer, node.Nothing) (moment, error) {
	return s.safeTimeHere()
}

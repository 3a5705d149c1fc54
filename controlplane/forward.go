package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/fault"
)

// forwardPatience is how long one attempt to have the leader do something may take. A leader that is gone is noticed
// sooner: attempts end when this node hears of another one, or loses its own.
const forwardPatience = 5 * time.Second

var errLeaderless = errors.New("controlplane: this node knows of no leader")

// tenure ends when this node hears of another leader, or stops.
func (s *Server) tenure() context.Context { return s.reign.Load().ctx }

// reign is the time of one leader, as this node sees it.
type reign struct {
	ctx context.Context
	end context.CancelFunc
}

// nextReign ends the tenure and begins another.
func (s *Server) nextReign() {
	next := &reign{}
	next.ctx, next.end = context.WithCancel(s.life)
	if last := s.reign.Swap(next); last != nil {
		last.end()
	}
}

// watchLeaders makes a new tenure whenever the leader changes.
func (s *Server) watchLeaders(ctx context.Context, n *node) {
	changes := make(chan raft.Observation, 1) // what does not fit is seen with what is in it
	observer := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.RegisterObserver(observer)
	defer n.DeregisterObserver(observer)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			s.nextReign()
		}
	}
}

// leads says whether Raft leads here, as far as it knows.
func (s *Server) leads() bool {
	n, err := s.gate.enter()
	if err != nil {
		return false
	}
	defer s.gate.leave()
	return n.State() == raft.Leader
}

// forward has the leader do something, when that is another node. Its errors are plain, unless the leader gave a coded
// one: the outcome is not known then.
func (s *Server) forward(ctx context.Context, method string, request, answer any) error {
	return s.forwardFor(ctx, forwardPatience, method, request, answer)
}

func (s *Server) forwardFor(ctx context.Context, patience time.Duration, method string, request, answer any) error {
	tenure := s.tenure()
	n, err := s.gate.enter()
	if err != nil {
		return err
	}
	leader, id := n.LeaderWithID()
	s.gate.leave()
	switch {
	case leader == "":
		return errLeaderless
	case id == raft.ServerID(s.cfg.Node):
		return raft.ErrNotLeader // it begins, or ends
	case n.port == nil:
		return errNoWay
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(tenure, cancel)()
	err = n.port.CallVoter(ctx, string(leader), method, request, answer)
	if fault.CodeOf(err) == fault.NotSupported { // a leader of an older version knows neither the command nor the method
		err = fault.Wrap(fault.Unavailable, err, olderLeader)
	}
	return err
}

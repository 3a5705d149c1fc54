package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/telemetry"
)

// digestsEvery is how often the leader compares the digests of all copies of the state.
const digestsEvery = time.Minute

// errDiverged is why a node is not ready whose copy of the state is another than that of most voters.
var errDiverged = errors.New("this node's copy of the state is not that of the other voters: start it anew without its data")

// Diverged is nil while nobody has found this node's copy of the state to differ. It stays until the process ends.
func (s *Server) Diverged() error {
	if s.diverged.Load() {
		return errDiverged
	}
	return nil
}

// noteDiverged compares what stands at an index with this node's own digest, if it has one, and says so when they differ.
func (s *Server) noteDiverged(stands state.Digest) {
	for _, own := range s.machine.fsm.Store().Digests() {
		if own.Index == stands.Index && own.Sum != stands.Sum && !s.diverged.Swap(true) {
			s.cfg.Logger.Error(errDiverged.Error(), "index", own.Index, "own", own.Sum, "stands", stands.Sum)
		}
	}
}

// compareDigests compares the digests of all copies of the state every so often, and tells the nodes whose differ. A leader
// that is one of them does not lead on: what it answers and dispatches comes from a state that the others do not have.
func (l *leadership) compareDigests(ctx context.Context) error {
	for {
		if err := l.stepDownIfDiverged(ctx); err != nil {
			return err
		}
		if !l.s.pause(ctx, digestsEvery) {
			return nil
		}
		if err := l.lookForDivergence(ctx); err != nil {
			return err
		}
	}
}

// stepDownIfDiverged hands leadership over when this node's copy of the state was found to differ. Without another voter
// that can take it the node leads on, and tries again.
func (l *leadership) stepDownIfDiverged(ctx context.Context) error {
	if l.s.Diverged() == nil {
		return nil
	}
	_, err := askRaft(ctx, l.s, func(n *node) (struct{}, error) {
		n.handOver()
		return struct{}{}, nil
	})
	return err
}

// lookForDivergence compares once. Nodes of another version are left out: they may write records in another way.
func (l *leadership) lookForDivergence(ctx context.Context) error {
	configuration, err := askRaft(ctx, l.s, func(n *node) (raft.ConfigurationFuture, error) {
		future := n.GetConfiguration()
		return future, future.Error()
	})
	if err != nil {
		return err
	}
	ask, votes := map[string]string{}, map[string]bool{}
	for _, server := range configuration.Configuration().Servers {
		ask[string(server.ID)] = string(server.Address)
		votes[string(server.ID)] = server.Suffrage == raft.Voter
	}
	delete(ask, l.s.cfg.Node)
	told := map[string][]state.Digest{l.s.cfg.Node: l.s.machine.fsm.Store().Digests()}
	for name, answer := range l.s.statuses(ctx, ask) {
		if answer.Applies == l.s.cfg.newest {
			told[name] = answer.Digests
		}
	}
	for name, stands := range divergent(told, votes, l.s.cfg.Node) {
		l.s.cfg.Logger.Error("a node's copy of the state is not that of the other voters", "node", name, "index", stands.Index)
		l.tellDiverged(ctx, name, ask[name], stands)
	}
	return nil
}

// tellDiverged tells a node what stands. One that does not hear it now is told the next time.
func (l *leadership) tellDiverged(ctx context.Context, name, address string, stands state.Digest) {
	if name == l.s.cfg.Node {
		l.s.noteDiverged(stands)
		return
	}
	patience, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var answer nodeStatus
	if err := l.s.callAt(patience, address, methodStatus, statusQuestion{Stands: &stands}, &answer); err != nil {
		l.s.cfg.Logger.Warn("a node was not told that its copy of the state differs", "node", name, "error", err)
	}
}

// divergent are the nodes whose digest at some index is another than what stands there, and what stands: the digest of most
// of the voters that have one, and among equally many the leader's.
func divergent(told map[string][]state.Digest, votes map[string]bool, leader string) map[string]state.Digest {
	sums := map[uint64]map[string]uint64{} // by index, by node
	for name, digests := range told {
		for _, d := range digests {
			if sums[d.Index] == nil {
				sums[d.Index] = map[string]uint64{}
			}
			sums[d.Index][name] = d.Sum
		}
	}
	found := map[string]state.Digest{}
	for index, of := range sums {
		own, has := of[leader]
		if !has {
			continue
		}
		count := map[uint64]int{}
		for name, sum := range of {
			if votes[name] {
				count[sum]++
			}
		}
		stands := own
		for sum, voters := range count {
			if voters > count[stands] || voters == count[stands] && stands != own && sum < stands {
				stands = sum
			}
		}
		for name, sum := range of {
			if sum != stands && index > found[name].Index {
				found[name] = state.Digest{Index: index, Sum: stands}
			}
		}
	}
	return found
}

// serveStatus answers what the node says of itself. The leader may say what its copy of the state should be.
func (s *Server) serveStatus(_ context.Context, from identity.Peer, question statusQuestion) (nodeStatus, error) {
	if question.Stands != nil && from.Has(identity.ControlPlane) {
		s.noteDiverged(*question.Stands)
	}
	return s.statusHere()
}

// measureDigests shows whether this node's copy of the state was found to differ.
func (s *Server) measureDigests(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Server, bool) { return s, true }).
		Gauge("shoal_controlplane_state_diverged", "1 on a node whose copy of the state is not that of the other voters.",
			func(s *Server) float64 { return truth(s.Diverged() != nil) }).
		Declare(to)
}

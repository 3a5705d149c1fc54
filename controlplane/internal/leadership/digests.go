package leadership

import (
	"context"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
)

// compareDigests compares the digests of all copies of the state at intervals, and tells the nodes
// that differ. A leader whose own copy differs steps down, because its answers and dispatches come
// from a wrong state.
func (l *Leadership) compareDigests(ctx context.Context) error {
	for {
		if err := l.stepDownIfDiverged(ctx); err != nil {
			return err
		}
		if !clock.Pause(ctx, l.config.Clock, l.config.DigestsEvery) {
			return nil
		}
		if err := l.lookForDivergence(ctx); err != nil {
			return err
		}
	}
}

// stepDownIfDiverged hands leadership over if this node's copy of the state was found to differ. If
// no other voter takes over, the node still leads and tries again.
func (l *Leadership) stepDownIfDiverged(ctx context.Context) error {
	if l.node.Diverged() == nil {
		return nil
	}
	_, err := node.Ask(ctx, l.node, func(n *node.Raft) (struct{}, error) {
		n.HandOver()
		return struct{}{}, nil
	})
	return err
}

// lookForDivergence compares once. It skips nodes of another version, which may encode records
// differently, and those whose digests have another form.
func (l *Leadership) lookForDivergence(ctx context.Context) error {
	servers, _, err := l.node.Servers(ctx)
	if err != nil {
		return err
	}
	ask, votes := map[string]string{}, map[string]bool{}
	for _, server := range servers {
		ask[string(server.ID)] = string(server.Address)
		votes[string(server.ID)] = server.Suffrage == raft.Voter
	}
	delete(ask, l.node.Name())
	told := map[string][]state.Digest{l.node.Name(): l.node.Store().Digests()}
	for name, answer := range l.node.Statuses(ctx, ask) {
		if answer.Applies == l.node.Newest() && answer.Form == state.DigestForm {
			told[name] = answer.Digests
		}
	}
	for name, stands := range divergent(told, votes, l.node.Name()) {
		l.config.Logger.Error("a node's copy of the state is not that of the other voters", "node",
			name, "index", stands.Index)
		l.tellDiverged(ctx, name, ask[name], stands)
	}
	return nil
}

// tellDiverged tells a node which digest stands. A node that misses it is told the next time.
func (l *Leadership) tellDiverged(ctx context.Context, name, address string, stands state.Digest) {
	if name == l.node.Name() {
		l.node.NoteDiverged(stands)
		return
	}
	if err := l.node.TellDiverged(ctx, address, stands); err != nil {
		l.config.Logger.Warn("a node was not told that its copy of the state differs", "node", name,
			"error", err)
	}
}

// divergent returns the nodes with a digest that differs from the one that stands at its index, and
// the latter. The digest of most voters stands; in a tie, the leader's.
func divergent(told map[string][]state.Digest, votes map[string]bool,
	leader string) map[string]state.Digest {
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

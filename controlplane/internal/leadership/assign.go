package leadership

import (
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// endWithin is how long after its lease's end a fetcher may be at work. Fetchers of cluster version
// 1 finish their requests.
func (l *Leadership) endWithin() time.Duration {
	if l.view().ClusterVersion() < 2 {
		return max(l.config.FetchDeadline, l.config.EndWithin)
	}
	return l.config.EndWithin
}

// Assign proposes the changes of owners that are due.
func (l *Leadership) Assign() error {
	l.assigning.Lock()
	defer l.assigning.Unlock()
	return l.reassign()
}

// reassign is Assign with assigning held. It returns only when the outcome is known or the
// leadership is over, even if the call that caused it has ended. An answer must not overtake a
// change that is under way.
func (l *Leadership) reassign() error {
	if l.ctx.Err() != nil {
		return raft.ErrLeadershipLost // it waited for the lock: the next leader plans
	}
	view := l.view()
	changes := l.tracker.Plan(view.Nodes(), view.Shards())
	if len(changes) == 0 {
		return nil
	}
	_, err := l.propose(l.ctx, command.AssignShardsPayload{Changes: changes})
	return err
}

// held says whether a shard has a fetcher that reads its tasks.
func (l *Leadership) held(view *state.View, shard int) bool {
	record := view.Shard(uint16(shard))
	return record != nil && l.tracker.Held(view.Node(record.Owner), record)
}

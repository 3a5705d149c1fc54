package leadership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/quorum"
)

const (
	// autopilotProbes is the interval between two looks at the servers, in probes, while no member
	// comes or goes.
	autopilotProbes = 2
	changePatience  = 5 * time.Second
)

// autopilot keeps Raft's servers and the registered nodes in step with the present nodes.
func (l *Leadership) autopilot(ctx context.Context) error {
	n, err := l.node.Enter()
	if err != nil {
		return err
	}
	members := n.Members
	l.node.Leave()
	if members == nil {
		<-ctx.Done()
		return nil
	}
	planner, w := quorum.New(l.config.Autopilot), Witness{}
	for {
		changed := members.Changed()
		for again := true; again && ctx.Err() == nil; {
			again, err = l.adjust(ctx, n, planner, w)
			if err != nil && ctx.Err() == nil {
				l.config.Logger.Warn("autopilot: a change of the cluster's servers failed", "error",
					err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-l.config.Clock.After(autopilotProbes * l.node.Probe()):
		}
	}
}

// adjust makes the next change that is due. It reports whether it made one; then another may be
// due.
func (l *Leadership) adjust(ctx context.Context, n *node.Raft, planner *quorum.Planner,
	w Witness) (changed bool, err error) {
	l.admission.Lock()
	defer l.admission.Unlock()
	servers, index, err := l.node.Servers(ctx)
	if err != nil {
		return false, err
	}
	change, due := planner.Next(l.situation(ctx, n, servers, w))
	gone := planner.Gone()
	l.gone.Store(&gone)
	if err := ctx.Err(); err != nil {
		return false, err // a node that was not heard in time may be there
	}
	if !due {
		return false, nil
	}
	l.config.Logger.Info("autopilot: "+string(change.Kind), "server", change.Name, "address",
		change.Address, "why", change.Why)
	if err := l.make(ctx, change, index); err != nil {
		return false, fmt.Errorf("%s %q: %w", change.Kind, change.Name, err)
	}
	return true, nil
}

// situation returns the facts for the planner.
func (l *Leadership) situation(ctx context.Context, n *node.Raft, configuration []raft.Server,
	w Witness) quorum.Situation {
	s := quorum.Situation{Leader: l.node.Name(), Progress: map[string]quorum.Progress{}}
	servers := map[string]raft.Server{}
	for _, server := range configuration {
		servers[string(server.ID)] = server
	}
	told := slices.DeleteFunc(n.Members.Members(), func(member membership.Member) bool {
		// it does not yet know which cluster it belongs to
		return member.Cluster != n.Members.Self().Cluster
	})
	members, asked, answers := w.Members(ctx, l, told, servers)
	s.Members = members
	there := map[string]bool{}
	for _, member := range s.Members {
		there[member.Name] = !member.ControlPlane
	}
	ask := map[string]string{}
	for name, server := range servers {
		voter := server.Suffrage == raft.Voter
		s.Servers = append(s.Servers,
			quorum.Server{Name: name, Address: string(server.Address), Voter: voter})
		answer, heard := answers[name]
		switch {
		// the progress of non-voters does not matter while they gossip
		case name == l.node.Name() || !voter && there[name]:
		case heard:
			s.Progress[name] = l.progress(answer)
		case asked[name] != string(server.Address):
			ask[name] = string(server.Address)
		}
	}
	for name, answer := range l.node.Statuses(ctx, ask) {
		s.Progress[name] = l.progress(answer)
	}
	s.Index = n.LastIndex()
	for _, node := range l.view().Nodes() {
		s.Registered = append(s.Registered, node.Name)
	}
	s.Now = l.config.Clock.Now()
	return s
}

// progress returns how far a server is.
func (l *Leadership) progress(answer node.Answer) quorum.Progress {
	progress := quorum.Progress{Contact: answer.Silence}
	// this leader may not have an entry of an earlier term
	if answer.LastTerm == l.term {
		progress.Index = answer.LastIndex
	}
	return progress
}

// make makes a change to the configuration at an index. Raft refuses it if that is not the newest.
func (l *Leadership) make(ctx context.Context, c quorum.Change, at uint64) error {
	if c.Kind == quorum.Retire {
		node := l.view().Node(c.Name)
		if node == nil {
			return nil
		}
		_, err := l.propose(ctx, command.RemoveNodePayload{Name: node.Name, Boot: node.Boot})
		return err
	}
	if c.Kind == quorum.Admit {
		return l.admit(ctx, c, at)
	}
	id, address := raft.ServerID(c.Name), raft.ServerAddress(c.Address)
	_, err := node.Ask(ctx, l.node, func(n *node.Raft) (struct{}, error) {
		switch c.Kind {
		case quorum.Add:
			return struct{}{}, n.AddNonvoter(id, address, at, changePatience).Error()
		case quorum.Readdr, quorum.Promote:
			return struct{}{}, n.AddVoter(id, address, at, changePatience).Error()
		case quorum.Demote:
			return struct{}{}, n.DemoteVoter(id, at, changePatience).Error()
		case quorum.Remove:
			return struct{}{}, n.RemoveServer(id, at, changePatience).Error()
		}
		return struct{}{}, errors.New("not a change of servers")
	})
	return err
}

// admit lets a node without a log take part in Raft. It must be certain that the node has no vote:
// the configuration is committed, and this node still leads. A later configuration cannot give the
// node a vote before it keeps up.
func (l *Leadership) admit(ctx context.Context, c quorum.Change, at uint64) error {
	committed, err := node.Ask(ctx, l.node,
		func(n *node.Raft) (uint64, error) { return n.CommitIndex(), nil })
	if err != nil {
		return err
	}
	if committed < at {
		return errors.New("the servers before this change are not agreed upon yet")
	}
	if err := l.config.Proposer.Confirm(ctx); err != nil {
		return err
	}
	return l.node.AdmitAt(ctx, c.Address, c.Boot)
}

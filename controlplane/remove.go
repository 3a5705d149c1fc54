package controlplane

import (
	"context"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/fault"
)

// RemoveNode implements client.Operator. It removes the node's record. The autopilot then removes
// the node from Raft, since it is gone and has no record.
func (o operator) RemoveNode(ctx context.Context, name string) error {
	view, err := o.s.proposer.Fresh(ctx)
	if err != nil {
		return err
	}
	servers, err := node.Ask(ctx, o.s.node, func(n *node.Raft) (raft.Configuration, error) {
		future := n.GetConfiguration()
		return future.Configuration(), future.Error()
	})
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "")
	}
	there, err := o.there()
	if err != nil {
		return err
	}
	record, counted := view.Node(name), false
	votes, rest, alive := false, 0, 0
	for _, server := range servers.Servers {
		mine := string(server.ID) == name
		counted = counted || mine
		switch {
		case server.Suffrage != raft.Voter:
		case mine:
			votes = true
		default:
			rest++
			if there[string(server.ID)] {
				alive++
			}
		}
	}
	switch {
	case record == nil && !counted:
		return fault.New(fault.NotFound, "there is no node %q", name)
	case there[name]:
		return fault.New(fault.NodeAlive, "node %q is there: stop it first", name)
	case votes && 2*alive <= rest:
		return fault.New(fault.QuorumAtRisk, "without node %q, %d of %d voters would be "+
			"there: no majority", name, alive, rest)
	case record == nil:
		return nil // it is being removed
	}
	_, err = o.s.proposer.propose(ctx, o.s.config.IDs.New(),
		command.RemoveNodePayload{Name: name, Boot: record.Boot}, nil)
	return err
}

// there returns the nodes that gossip.
func (o operator) there() (map[string]bool, error) {
	n, err := o.s.node.Enter()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "")
	}
	defer o.s.node.Leave()
	there := map[string]bool{o.s.config.Node: true}
	if n.Members != nil {
		for _, member := range n.Members.Members() {
			there[member.Name] = true
		}
	}
	return there, nil
}

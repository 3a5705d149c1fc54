package leadership

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/quorum"
)

// Witness holds what nodes have reported to this leader, by name. Anybody with the gossip key can
// gossip in any name, but a report comes from the node that the certificate names. So gossip is a
// reason to ask. On its own, it never changes Raft's configuration.
type Witness map[string]membership.Info

// Members returns the members for the planner. It asks voters each time, and other nodes when
// gossip has news of them. If a server does not answer, gossip is believed only when it says that a
// non-voter leaves. Others than the leader may still reach such a server, and it can rejoin. A node
// that is not a server is a member only if it answers.
func (w Witness) Members(ctx context.Context, l *Leadership, told []membership.Member,
	servers map[string]raft.Server) (
	believed []quorum.Member, asked map[string]string, answers map[string]node.Answer) {
	asked = map[string]string{}
	there := map[string]bool{}
	for _, member := range told {
		there[member.Name] = true
		server, counted := servers[member.Name]
		vote := counted && server.Suffrage == raft.Voter
		if member.Name != l.node.Name() && (vote || !counted || !w.confirms(member)) {
			asked[member.Name] = member.Address
		}
	}
	maps.DeleteFunc(w, func(name string, _ membership.Info) bool { return !there[name] })
	answers = l.node.Statuses(ctx, asked)
	for _, member := range told {
		info, said := w.hear(l, member, answers)
		server, counted := servers[member.Name]
		answer, heard := answers[member.Name]
		switch {
		case said && (counted || info.Leaving || heard && l.applies(member.Name, answer)):
			believed = append(believed, quorum.Member{Name: member.Name, Address: info.Address,
				ControlPlane: node.IsControlPlane(info.Roles), Leaving: info.Leaving,
				Empty: info.Empty, Boot: info.Boot})
		case counted || !heard && member.Leaving: // keep it as it is in Raft
			vote := counted && server.Suffrage == raft.Voter
			believed = append(believed,
				quorum.Member{Name: member.Name, Address: string(server.Address),
					ControlPlane: vote,
					Leaving:      !heard && member.Leaving && !vote, Boot: member.Boot})
		}
	}
	return believed, asked, answers
}

// hear returns what a node reports now, or reported before if it does not answer. It is not ok if
// the node has not confirmed what gossip says.
func (w Witness) hear(l *Leadership, member membership.Member,
	answers map[string]node.Answer) (info membership.Info, ok bool) {
	answer, heard := answers[member.Name]
	switch {
	case member.Name == l.node.Name():
		return member.Info, true
	case !heard:
		return w[member.Name], w.confirms(member)
	}
	info = member.Info // for versions that do not report it
	if answer.Gossips != nil {
		info = *answer.Gossips
	}
	if info.Cluster != member.Cluster {
		return info, false
	}
	info.Roles = slices.DeleteFunc(slices.Clone(info.Roles),
		func(role string) bool { return !answer.From.Has(role) })
	w[member.Name] = info
	return info, true
}

// confirms says whether a node has reported what gossip says of it now.
func (w Witness) confirms(member membership.Member) bool {
	own, known := w[member.Name]
	return known && own.Boot == member.Boot && own.Address == member.Address &&
		own.Cluster == member.Cluster &&
		own.Leaving == member.Leaving && own.Empty == member.Empty &&
		slices.Contains(own.Roles, identity.ControlPlane) == node.IsControlPlane(member.Roles)
}

// applies says whether a node can apply the cluster's version. The state of an older binary would
// diverge.
func (l *Leadership) applies(name string, answer node.Answer) bool {
	active, most := l.view().ClusterVersion(), max(answer.Applies, 1)
	if most < active {
		l.config.Logger.Warn("a node cannot join: its binary is older than the cluster's version",
			"node", name, "applies",
			most, "active", active)
	}
	return most >= active
}

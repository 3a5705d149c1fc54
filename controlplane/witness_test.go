package controlplane

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/quorum"
)

// Gossip about names, roles, addresses, leaving and lost logs is believed only if the node of that
// name, by its certificate, confirms it.
func TestGossipIsHeldAgainstCertificates(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	a := r.found("a")
	r.add("b", controlPlane)
	r.add("f", identity.Fetcher)
	r.untilServers("a* b f") // two votes tolerate no more failures than one
	l := a.holder.Current()
	n, err := a.node.Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer a.node.Leave()
	var truth []membership.Member
	r.until("a knows that all have been admitted", func() bool {
		truth = n.Members.Members()
		return len(truth) == 3 &&
			!slices.ContainsFunc(truth, func(m membership.Member) bool { return m.Empty })
	})
	nowhere := freeAddress(t)
	servers := func(voters ...string) map[string]raft.Server {
		all := map[string]raft.Server{}
		for _, m := range truth {
			all[m.Name] = raft.Server{ID: raft.ServerID(m.Name),
				Address: raft.ServerAddress(m.Address), Suffrage: raft.Nonvoter}
			if slices.Contains(voters, m.Name) {
				all[m.Name] = raft.Server{ID: raft.ServerID(m.Name),
					Address: raft.ServerAddress(m.Address)}
			}
		}
		return all
	}
	honest, _, _ := leadership.Witness{}.Members(t.Context(), l, truth, servers("a", "b"))
	if len(honest) != 3 || !honest[1].ControlPlane || honest[2].ControlPlane {
		t.Fatalf("what is true: %+v", honest)
	}
	for name, lie := range map[string]func([]membership.Member) []membership.Member{
		"a fetcher is of the control plane": func(m []membership.Member) []membership.Member {
			m[2].Roles = identity.Roles()
			return m
		},
		"a voter is not": func(m []membership.Member) []membership.Member {
			m[1].Roles = []string{identity.Fetcher}
			return m
		},
		"a voter leaves": func(m []membership.Member) []membership.Member {
			m[1].Leaving = true
			return m
		},
		"a fetcher leaves": func(m []membership.Member) []membership.Member {
			m[2].Leaving = true
			return m
		},
		"a voter has lost its log": func(m []membership.Member) []membership.Member {
			m[1].Empty, m[1].Boot = true, a.config.IDs.New()
			return m
		},
		"a voter is where another node is": func(m []membership.Member) []membership.Member {
			m[1].Address, m[1].Leaving = m[2].Address, true
			return m
		},
		"a voter is where nobody is": func(m []membership.Member) []membership.Member {
			m[1].Address, m[1].Empty = nowhere, true
			return m
		},
		"there is another voter": func(m []membership.Member) []membership.Member {
			ghost := m[2]
			ghost.Name, ghost.Roles = "ghost", []string{controlPlane}
			return append(m, ghost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := lie(slices.Clone(truth))
			got, _, _ := leadership.Witness{}.Members(t.Context(), l, told, servers("a", "b"))
			for at := range got {
				got[at].Boot = honest[at].Boot // Boot matters to nodes without a log only
			}
			if diff := cmp.Diff(honest, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a fetcher says itself that it is of the control plane", func(t *testing.T) {
		f, err := r.nodes["f"].node.Enter()
		if err != nil {
			t.Fatal(err)
		}
		defer r.nodes["f"].node.Leave()
		if err := f.Members.Update(func(info *membership.Info) {
			info.Roles = identity.Roles()
		}); err != nil {
			t.Fatal(err)
		}
		got, _, answers := leadership.Witness{}.Members(t.Context(), l, truth,
			servers("a", "b", "f"))
		if !node.IsControlPlane(answers["f"].Gossips.Roles) ||
			slices.ContainsFunc(got, func(m quorum.Member) bool {
				return m.Name == "f" && m.ControlPlane
			}) {
			t.Errorf("%+v", got)
		}
	})
}

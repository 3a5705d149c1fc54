package controlplane

import (
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/quorum"
)

// What gossip says of names, roles, addresses, leaving and lost logs is believed as far as the node itself says it, with
// the certificate that it takes.
func TestGossipIsHeldAgainstCertificates(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	a := r.found("a")
	r.add("b", controlPlane)
	r.add("f", identity.Fetcher)
	r.untilServers("a* b f") // two votes bear no more than one
	l := a.leading.Load()
	n, err := a.gate.enter()
	if err != nil {
		t.Fatal(err)
	}
	defer a.gate.leave()
	var truth []membership.Member
	r.until("a knows that all have been admitted", func() bool {
		truth = n.members.Members()
		return len(truth) == 3 && !slices.ContainsFunc(truth, func(m membership.Member) bool { return m.Empty })
	})
	nowhere := freeAddress(t)
	servers := func(voters ...string) map[string]raft.Server {
		all := map[string]raft.Server{}
		for _, m := range truth {
			all[m.Name] = raft.Server{ID: raft.ServerID(m.Name), Address: raft.ServerAddress(m.Address), Suffrage: raft.Nonvoter}
			if slices.Contains(voters, m.Name) {
				all[m.Name] = raft.Server{ID: raft.ServerID(m.Name), Address: raft.ServerAddress(m.Address)}
			}
		}
		return all
	}
	honest, _, _ := witness{}.members(t.Context(), l, truth, servers("a", "b"))
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
			m[1].Empty, m[1].Boot = true, a.cfg.IDs.New()
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
			got, _, _ := witness{}.members(t.Context(), l, told, servers("a", "b"))
			for at := range got {
				got[at].Boot = honest[at].Boot // it matters to who has lost its log
			}
			if diff := cmp.Diff(honest, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a fetcher says itself that it is of the control plane", func(t *testing.T) {
		f, err := r.nodes["f"].gate.enter()
		if err != nil {
			t.Fatal(err)
		}
		defer r.nodes["f"].gate.leave()
		if err := f.members.Update(func(info *membership.Info) { info.Roles = identity.Roles() }); err != nil {
			t.Fatal(err)
		}
		got, _, answers := witness{}.members(t.Context(), l, truth, servers("a", "b", "f"))
		if !isControlPlane(answers["f"].Gossips.Roles) || slices.ContainsFunc(got, func(m quorum.Member) bool {
			return m.Name == "f" && m.ControlPlane
		}) {
			t.Errorf("%+v", got)
		}
	})
}

// dialled notes the targets of what Raft sends.
type dialled struct {
	voting
	to []string
}

func (d *dialled) note(to raft.ServerAddress) error {
	d.to = append(d.to, string(to))
	return nil
}

func (d *dialled) AppendEntries(_ raft.ServerID, to raft.ServerAddress, _ *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	return d.note(to)
}

func (d *dialled) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress, _ *raft.InstallSnapshotRequest, _ *raft.InstallSnapshotResponse, _ io.Reader) error {
	return d.note(to)
}

func (d *dialled) RequestVote(_ raft.ServerID, to raft.ServerAddress, _ *raft.RequestVoteRequest, _ *raft.RequestVoteResponse) error {
	return d.note(to)
}

func (d *dialled) RequestPreVote(_ raft.ServerID, to raft.ServerAddress, _ *raft.RequestPreVoteRequest, _ *raft.RequestPreVoteResponse) error {
	return d.note(to)
}

func (d *dialled) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, _ *raft.TimeoutNowRequest, _ *raft.TimeoutNowResponse) error {
	return d.note(to)
}

// Raft means nodes by name wherever they are, and voters with their role.
func TestRaftNamesWhomItDials(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	n, err := c.at(0).gate.enter()
	if err != nil {
		t.Fatal(err)
	}
	defer c.at(0).gate.leave()
	sent := &dialled{}
	transport := &named{voting: sent, where: func(id string) (string, bool) { return "now:1", id == "moved" }}
	if err := transport.AppendEntries("voter-0", "old:1", nil, nil); err == nil {
		t.Error("entries are sent by who does not know yet who votes")
	}
	transport.raft.Store(n.Raft)
	for _, err := range []error{
		transport.AppendEntries("voter-0", "old:1", nil, nil),
		transport.AppendEntries("moved", "old:1", nil, nil),
		transport.InstallSnapshot("voter-0", "old:1", nil, nil, nil),
		transport.InstallSnapshot("node-0", "old:1", nil, nil, nil),
		transport.RequestVote("moved", "old:1", nil, nil),
		transport.RequestPreVote("node-0", "old:1", nil, nil),
		transport.TimeoutNow("node-0", "old:1", nil, nil),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"controlplane/voter-0@old:1", "/moved@now:1", "controlplane/voter-0@old:1", "/node-0@old:1",
		"controlplane/moved@now:1", "controlplane/node-0@old:1", "controlplane/node-0@old:1"}
	if diff := cmp.Diff(want, sent.to); diff != "" {
		t.Error(diff)
	}
}

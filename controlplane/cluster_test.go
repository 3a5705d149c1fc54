package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func TestEveryNodeWritesAndReads(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 2)
	for n := range c.configs {
		ref := fmt.Sprint("customer-", n)
		openCustomer(t, c.at(n), ref)
		if c.at(n).View().Customer(ref) == nil {
			t.Fatalf("node %d does not see its own write", n)
		}
		for m := range c.configs {
			if fresh(t, c.at(m)).Customer(ref) == nil {
				t.Fatalf("node %d reads freshly and does not see what node %d wrote", m, n)
			}
		}
	}
	for n := range c.configs {
		until(t, fmt.Sprint("the leader's name at node ", n), func() bool {
			status, err := c.at(n).Status(patient(t))
			if err != nil || status.Node != c.configs[n].Node || status.Shards != testShards {
				t.Fatalf("node %d: status %+v, %v", n, status, err)
			}
			return status.Leader == c.configs[c.untilLed()].Node
		})
		name := c.configs[n].Node
		told, heard := c.at(0).node.Statuses(patient(t),
			map[string]string{name: c.configs[n].Cluster.Listen})[name]
		if !heard || told.Status.Node != c.configs[n].Node || told.LastIndex == 0 ||
			told.LastTerm == 0 {
			t.Fatalf("node %d says of itself %+v", n, told)
		}
	}
	for _, record := range fresh(t, c.at(4)).Nodes() {
		if record.Address == "" || len(record.Roles) < 3 {
			t.Errorf("registered as %+v", record)
		}
	}
}

// A call with a key is one step on every node, under one ticket.
func TestIdempotencyHoldsBetweenNodes(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 2)
	ctx := patient(t)
	openCustomer(t, c.at(1), "ann")
	call := func() *client.Call {
		return &client.Call{Customer: "ann", Operation: "mint", Key: "k",
			Request: 7}
	}
	first, second := call(), call()
	mint := client.MintKey{ID: ids.ID{1}, Customer: "ann", Prefix: "abcdefg",
		Scope: model.ScopeUser}
	one, err := client.Do(ctx, c.at(1), mint, first)
	if err != nil || first.Replayed {
		t.Fatal(err, first.Replayed)
	}
	two, err := client.Do(ctx, c.at(2), mint, second)
	if err != nil || !second.Replayed || two != one {
		t.Fatalf("at another node: %+v, want %+v, replayed %v, %v", two, one, second.Replayed, err)
	}
	claim := &client.Call{Customer: "ann", Operation: "run", Key: "k", Request: 1}
	boot := c.at(1).config.Boot
	if _, err := client.Do(ctx, c.at(1),
		client.ClaimCall{List: ids.ID{9}, Node: "node-1", Boot: boot}, claim); err != nil {
		t.Fatal(err)
	}
	other := *claim
	other.Ticket = ids.ID{}
	if _, err := client.Do(ctx, c.at(2), client.ClaimCall{Node: "node-2"},
		&other); fault.CodeOf(err) != fault.IdempotencyInFlight {
		t.Fatalf("a claim of the same key at another node: %v", err)
	}
	if _, err := client.Do(ctx, c.at(1), client.ReleaseClaim{}, claim); err != nil {
		t.Fatal(err)
	}
	if fresh(t, c.at(2)).ClaimOfList(ids.ID{9}) != nil {
		t.Fatal("a released claim is there")
	}
}

// A write whose outcome cannot be learnt fails after a while with a code for that. If it was done,
// a repeated call does not do it again.
func TestWriteOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	openCustomer(t, c.at(3), "ann")
	adjust := func(amount int64) (*client.Call, error) {
		call := &client.Call{Customer: "ann", Operation: "adjust", Key: fmt.Sprint(amount),
			Request: 1}
		_, err := client.Do(patient(t), c.at(3),
			client.AdjustWallet{Customer: "ann", Entry: c.configs[3].IDs.New(), Amount: amount},
			call)
		return call, err
	}
	slow := c.at(3)
	slow.config.patience = 2 * time.Second
	goOn := slow.node.Between() // this node applies nothing from now on
	_, err := adjust(7)
	goOn()
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without an answer: %v", err)
	}
	if got := fresh(t, c.at(1)).Wallet("ann").Balance(); got != 7 {
		t.Errorf("the balance is %d: the command was not applied elsewhere", got)
	}
	for n := range 3 {
		c.net.cut(c.configs[n].Node) // there is no majority
	}
	if _, err := adjust(5); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without a leader: %v", err)
	}
	for n := range 3 {
		c.net.mend(c.configs[n].Node)
	}
	slow.config.patience = time.Minute
	for _, amount := range []int64{7, 5} {
		call, err := adjust(amount)
		if err != nil || amount == 7 && !call.Replayed {
			t.Errorf("the same call again: %v, replayed %v", err, call.Replayed)
		}
	}
	if got := fresh(t, c.at(3)).Wallet("ann").Balance(); got != 12 {
		t.Errorf("the balance is %d, want 12", got)
	}
}

func TestFetchersHoldShardsThroughAnyNode(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	r := c.at(3)
	beat := client.Heartbeat{Node: r.config.Node, Boot: r.config.Boot}
	for ctx := patient(t); ; {
		leases, err := r.Heartbeat(ctx, beat)
		if err != nil {
			t.Fatal(err)
		}
		if len(leases.Hold) == testShards && leases.For == r.config.Lease {
			break
		}
		if !clock.Pause(ctx, r.config.Clock, time.Millisecond) {
			t.Fatalf("leases %+v", leases)
		}
	}
	beat.Boot = ids.ID{1}
	if _, err := r.Heartbeat(patient(t), beat); fault.CodeOf(err) != fault.Unavailable {
		t.Fatalf("a heartbeat of another start: %v", err)
	}
	if err := r.Settle(patient(t), []model.Receipt{{Job: ids.ID{1}, Outcome: model.Delivered}},
		nil); err != nil {
		t.Fatal(err)
	}
	// Markers reach the leader after the receipts.
	leads := c.untilLed()
	mark := model.Marker{Leader: c.at(leads).holder.Current().Began(), Shard: 3}
	if err := r.Settle(patient(t), nil, []model.Marker{mark}); err != nil {
		t.Fatal(err)
	}
	until(t, "a marker that came back", func() bool {
		families, err := c.at(leads).config.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "shoal_controlplane_markers_returned_total" {
				return family.GetMetric()[0].GetCounter().GetValue() == 1
			}
		}
		return false
	})
}

// An abandoned heartbeat that arrives late is refused.
func TestLateHeartbeatsAreRefused(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 1)
	leader, node := c.at(0), c.configs[1].Node
	send := func(order uint64) error {
		_, err := leader.heartbeatHere(patient(t), leadership.Beat{Order: order,
			Heartbeat: client.Heartbeat{Node: node, Boot: c.at(1).config.Boot}})
		return err
	}
	for _, step := range []struct {
		order uint64
		heard bool
	}{{5, true}, {4, false}, {5, false}, {6, true}, {1, false}} {
		if err := send(step.order); (err == nil) != step.heard {
			t.Fatalf("beat %d: %v, want heard: %v", step.order, err, step.heard)
		}
	}
}

func TestRolesDecideWhatIsForwarded(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	config := c.config("f-1", identity.Fetcher)
	config.Log, config.Store = c.configs[0].Log, c.store
	c.configs, c.running = append(c.configs, config), append(c.running, nil)
	c.start(1)
	c.add(1, false)
	c.ready(1)
	r, ctx := c.at(1), patient(t)
	for what, err := range map[string]error{
		"an API command": second(client.Do(ctx, r, client.OpenCustomer{Customer: "ann"}, nil)),
		"the leader's":   second(client.Do(ctx, r, command.CloseRunPayload{}, nil)),
		"a settlement":   r.Settle(ctx, []model.Receipt{{Job: ids.ID{1}}}, nil),
		"another's beat": second(r.Heartbeat(ctx, client.Heartbeat{Node: "voter-0"})),
		"another's name": second(client.Do(ctx, r, command.RegisterNodePayload{Name: "voter-0"},
			nil)),
		"a role it lacks": second(client.Do(ctx, r,
			command.RegisterNodePayload{Name: "f-1", Roles: []string{"billing"}}, nil)),
	} {
		if fault.CodeOf(err) != fault.ScopeRejected {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, calls := c.at(0).Refused(); calls != 6 {
		t.Errorf("%d refused calls are counted, want 6", calls)
	}
	if _, err := r.Heartbeat(ctx, client.Heartbeat{Node: "f-1", Boot: r.config.Boot}); err != nil {
		t.Error(err)
	}
}

func second[A any](_ A, err error) error { return err }

// TestDeclaredProposersAloneMayPropose tries every command. Its declared role may propose it, other
// nodes may not. No node may propose the leader's own.
func TestDeclaredProposersAloneMayPropose(t *testing.T) {
	t.Parallel()
	const most = 1000 // command numbers
	machine := fsm.New()
	for number := range command.Number(most) {
		payload, err := machine.DecodePayload(number, []byte{0xa0})
		if err != nil {
			continue // no such command
		}
		by := payload.Declaration().By
		if by == command.Worker { // see TestWorkIsDoneInOnesOwnName
			continue
		}
		named := identity.Peer{Roles: []string{string(by)}}
		others := identity.Peer{Roles: slices.DeleteFunc(identity.Roles(),
			func(r string) bool { return r == string(by) })}
		mayNamed, mayOthers := mayNotPropose(named, payload) == "",
			mayNotPropose(others, payload) == ""
		if mayNamed != (by != command.Leader) || mayOthers != (by == command.Itself) {
			t.Errorf("%T by %s: that role may %v, all others %v", payload, by, mayNamed, mayOthers)
		}
	}
}

// A certificate limits what a node can register: its own name and roles, a fetcher's capacity, and
// no other services.
func TestCertificateBoundsRegistration(t *testing.T) {
	as := func(role string) identity.Peer { return identity.Peer{Node: "a", Roles: []string{role}} }
	for _, role := range identity.Roles() {
		for _, c := range []struct {
			what    string
			payload command.RegisterNodePayload
			may     bool
		}{
			{"itself", command.RegisterNodePayload{Name: "a", Roles: []string{role}}, true},
			{"another", command.RegisterNodePayload{Name: "b", Roles: []string{role}}, false},
			{"all roles", command.RegisterNodePayload{Name: "a", Roles: identity.Roles()}, false},
			{"other services", command.RegisterNodePayload{Name: "a", Rebind: true},
				role == identity.ControlPlane},
			{"a capacity", command.RegisterNodePayload{Name: "a", Capacity: MaxCapacity},
				role == identity.Fetcher},
			{"too much", command.RegisterNodePayload{Name: "a", Capacity: MaxCapacity + 1}, false},
		} {
			if why := mayNotPropose(as(role), c.payload); (why == "") != c.may {
				t.Errorf("%s registers %s: %q", role, c.what, why)
			}
		}
	}
}

func TestDirectoryIsOneNodes(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	c.at(0).stop()
	other := c.config("voter-1", identity.ControlPlane)
	other.Dir, other.Log, other.Store = c.configs[0].Dir, c.configs[0].Log, c.store
	s, err := New(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another node") {
		t.Fatalf("another node on the same directory: %v", err)
	}
}

func TestIdentityMustFit(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 0)
	for want, change := range map[string]func(*Config){
		"that of node": func(config *Config) { config.Node = "other" },
		"does not have the role": func(config *Config) {
			config.Roles = identity.Roles()
		},
		"Identity is missing": func(config *Config) {
			config.Cluster.Identity = nil
		},
		"Cluster.Listen": func(config *Config) {
			config.Cluster.Listen = "7400"
		},
		"Cluster.Advertise": func(config *Config) {
			config.Cluster.Advertise = ":7400"
		},
		"Bootstrap needs the role": func(config *Config) {
			config.Roles,
				config.Cluster.Bootstrap = []string{"fetcher"}, true
		},
		"certificate expired": func(config *Config) {
			config.Clock = later{config.Clock}
		},
		"bind: cannot assign requested addr": func(config *Config) {
			config.Cluster.Listen = "192.0.2.1:7400"
		},
	} {
		config := c.config("f-1", identity.Fetcher)
		config.Log, config.Store = c.configs[0].Log, c.store
		change(&config)
		s, err := New(config)
		if err == nil {
			err = s.Run(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

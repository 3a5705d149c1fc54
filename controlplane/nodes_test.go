package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/stream"
)

// peer imitates a fetcher of another process by its heartbeats.
type peer struct {
	t    *testing.T
	r    *running
	beat client.Heartbeat
}

func join(t *testing.T, r *running, name string, capacity uint32) *peer {
	t.Helper()
	p := &peer{t: t, r: r, beat: client.Heartbeat{Node: name,
		Boot: ids.Random{Now: time.Now}.New()}}
	_, err := client.Do(t.Context(), r,
		client.RegisterNode{Name: name, Boot: p.beat.Boot, Capacity: capacity, Version: "v2",
			Roles: []string{"fetcher"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a heartbeat, and records which shards to hold and release.
func (p *peer) send(ctx context.Context) client.Leases {
	leases, err := p.r.Heartbeat(ctx, p.beat)
	if err != nil && ctx.Err() == nil {
		p.t.Error(err)
	}
	return leases
}

// obey sends heartbeats until the node holds exactly what it is told to. It releases what it is
// told to release.
func (p *peer) obey() client.Leases {
	p.t.Helper()
	leases := p.send(p.t.Context())
	p.beat.Holding = leases.Hold
	return p.send(p.t.Context())
}

func statusOf(t *testing.T, r *running, name string) client.NodeStatus {
	t.Helper()
	nodes, err := r.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("node %s is not among %+v", name, nodes)
	return client.NodeStatus{}
}

func drain(t *testing.T, r *running, name string, draining bool) {
	t.Helper()
	if _, err := client.Do(t.Context(), r, client.DrainNode{Name: name, Draining: draining},
		nil); err != nil {
		t.Fatal(err)
	}
}

// A run launched while its fetcher was draining is dispatched as soon as the drain is cancelled.
// The fetcher has held its shards all along, so no heartbeat brings news.
func TestDrainThatIsUndoneSendsWhatWaits(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.Lease = time.Hour // one heartbeat is enough
	r := serve(t, config)
	customer, scraper := prepare(t, r, config)
	const links = 3
	sent := make(chan string, links)
	var readers sync.WaitGroup
	ctx, end := context.WithCancel(patient(t))
	defer readers.Wait()
	defer end()
	for shard := range testShards {
		reader, err := config.Log.Tail(stream.Tasks, shard)
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			defer func() { _ = reader.Close() }()
			for {
				messages, err := reader.Fetch(ctx, 100)
				if err != nil {
					return
				}
				for _, message := range messages {
					task, _, err := stream.DecodeTasks(message.Value)
					if err == nil && task != nil {
						sent <- task.URL
					}
				}
			}
		})
	}
	join(t, r, "f", 3).obey()
	drain(t, r, "f", true)
	launch(t, r, config, customer, scraper, links)
	until(t, "units that are out", func() bool {
		status, err := r.Status(patient(t))
		return err == nil && status.Out == links
	})
	if len(sent) > 0 {
		t.Error("a task was sent to a node that is drained")
	}
	drain(t, r, "f", false)
	for range links {
		select {
		case <-sent:
		case <-ctx.Done():
			t.Fatal("what waited is not sent")
		}
	}
}

func TestNodesAndDrain(t *testing.T) {
	t.Parallel()
	r := serve(t, testConfig(t, t.TempDir()))
	if _, err := client.Do(t.Context(), r, client.DrainNode{Name: "nobody", Draining: true},
		nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("drain of an unknown node: %v", err)
	}
	f := join(t, r, "f", 3)
	if n := statusOf(t, r, "f"); n.State != client.NodeUnknown || n.HeardMillis != -1 ||
		n.Lag != nil || n.Capacity != 3 || n.Version != "v2" {
		t.Errorf("registered: %+v", n)
	}
	f.beat.Open, f.beat.Unread = 5, 9
	f.obey()
	n := statusOf(t, r, "f")
	if n.State != client.NodeAlive || n.Shards != testShards || n.Open != 5 || n.Unread != 9 ||
		n.HeardMillis < 0 || n.Moving != 0 {
		t.Errorf("at work: %+v", n)
	}
	if n := statusOf(t, r, "one"); n.Suffrage != client.RaftLeader || n.Lag == nil || *n.Lag != 0 {
		t.Errorf("the leader: %+v", n)
	}

	drain(t, r, "f", true)
	if leases := f.send(t.Context()); len(leases.Release) != testShards || len(leases.Hold) != 0 {
		t.Errorf("a draining node is told %+v", leases)
	}
	if n := statusOf(t, r, "f"); n.State != client.NodeDraining || n.Moving != testShards ||
		!n.Draining {
		t.Errorf("draining: %+v", n)
	}
	f.beat.Holding, f.beat.Open = nil, 0
	f.send(t.Context()) // it drains even though no other node is there
	if n := statusOf(t, r, "f"); n.State != client.NodeDrained || n.Shards != 0 {
		t.Errorf("drained: %+v", n)
	}
	f = join(t, r, "f", 3) // a restart
	f.obey()
	if n := statusOf(t, r, "f"); n.State != client.NodeDrained || !n.Draining || n.Shards != 0 {
		t.Errorf("drained and restarted: %+v", n)
	}
	drain(t, r, "f", false)
	f.obey()
	if n := statusOf(t, r, "f"); n.State != client.NodeAlive || n.Shards != testShards {
		t.Errorf("back: %+v", n)
	}
	f.beat.Leaving, f.beat.Holding = true, nil
	f.send(t.Context())
	if n := statusOf(t, r, "f"); n.State != client.NodeLeft || n.Shards != 0 || n.Draining {
		t.Errorf("stopped: %+v", n)
	}
}

// A node reports itself how many entries it lags; unknown if it cannot be asked.
func TestLag(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 1)
	const still = 3
	asker := c.untilLed()
	voter := (asker + 1) % 3
	until := func(what string, node int, holds func(lag *uint64) bool) {
		t.Helper()
		var nodes []client.NodeStatus
		for ctx := patient(t); ; {
			var err error
			nodes, err = c.at(asker).Nodes(ctx)
			at := slices.IndexFunc(nodes,
				func(n client.NodeStatus) bool { return n.Name == c.configs[node].Node })
			if err == nil && at >= 0 && holds(nodes[at].Lag) {
				return
			}
			if !clock.Pause(ctx, c.at(asker).config.Clock, 5*time.Millisecond) {
				t.Fatalf("%s: %+v, %v", what, nodes, err)
			}
		}
	}
	unknown := func(lag *uint64) bool { return lag == nil }
	none := func(lag *uint64) bool { return lag != nil && *lag == 0 }
	atLeast := func(entries uint64) func(*uint64) bool {
		return func(lag *uint64) bool { return lag != nil && *lag >= entries }
	}
	for n := range c.configs {
		until("all keep up", n, none)
	}

	goOn := sync.OnceFunc(c.at(still).node.Between()) // it applies nothing from now on
	defer goOn()
	for n := range uint64(3) {
		openCustomer(t, c.at(asker), fmt.Sprint("customer-", n))
		until("it lags more and more", still, atLeast(n+1))
	}
	until("a voter keeps up", voter, none)
	goOn()
	until("it has caught up", still, none)

	for _, n := range []int{still, voter} {
		c.net.cut(c.configs[n].Node)
		until("it is cut off", n, unknown)
		c.net.mend(c.configs[n].Node)
		until("it is back", n, none)
	}
}

// Shards that a node was told to hold stay its own until its next heartbeat, whatever is planned at
// that moment.
func TestAnswersAreNotOvertaken(t *testing.T) {
	t.Parallel()
	r := serve(t, testConfig(t, t.TempDir()))
	a, b := join(t, r, "a", 1), join(t, r, "b", 1)
	ctx, cancel := context.WithCancel(t.Context())
	l := r.holder.Current()
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			if err := l.Assign(); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, err := client.Do(ctx, r,
				client.DrainNode{Name: []string{"a", "b"}[n/2%2], Draining: n%2 == 0}, nil)
			if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() {
		for ctx.Err() == nil {
			b.send(ctx) // it never reports holding, so its shards can be moved
		}
	})
	for range 200 {
		leases := a.send(ctx)
		if err := l.Assign(); err != nil { // after the one that was running
			t.Fatal(err)
		}
		for _, held := range leases.Hold {
			if s := r.View().Shard(held.Shard); s.Owner != "a" || s.Epoch != held.Epoch {
				t.Errorf("a is told to hold %+v, and the shard is %+v", held, s)
			}
		}
	}
	cancel()
	others.Wait()
}

// A leader says since when a node is gone, also if it was gone before the leader led.
func TestGoneBeforeTheLeadership(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, controlPlane)
	}
	r.add("f", identity.Fetcher)
	r.untilServers("a* b* c* f")
	r.kill("f")
	for name, n := range r.nodes {
		r.until(name+" knows that f is gone", func() bool {
			_, gone := n.node.GoneSince("f")
			return gone
		})
	}
	known := time.Now()
	r.nextLeader()
	r.until("the next leader says since when f is gone", func() bool {
		asked := time.Now()
		nodes, err := r.untilLed().Nodes(patient(t))
		at := slices.IndexFunc(nodes, func(n client.NodeStatus) bool { return n.Name == "f" })
		if err != nil || at < 0 || nodes[at].GoneMillis == nil {
			return false
		}
		if gone, least := *nodes[at].GoneMillis, asked.Sub(known).Milliseconds(); gone < least {
			t.Errorf("gone for %d ms, at least %d", gone, least)
		}
		return true
	})
}

package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// The world below runs fetchers by their side of the rules, with clocks that drift, messages that are late or lost,
// pauses, restarts and changes of leader, against the real Tracker. Times are in milliseconds of true time.
const (
	lease    = 1000
	fetch    = 600
	maxDrift = 0.015
	shardsN  = 6
)

type world struct {
	t      *rapid.T
	r      *rand.Rand
	now    float64
	nodes  []*state.Node
	shards []*state.Shard
	procs  []*process
	boots  ids.Sequence

	tracker *Tracker
	rate    float64 // of the leader's clock
	faults  bool
	moves   int
}

// process is a fetcher.
type process struct {
	node   *state.Node
	rate   float64 // of its clock, which runs through pauses
	up     bool
	paused float64 // until
	cut    float64 // until then nothing that it sends arrives
	held   map[uint16]*tenure
	until  float64 // end of the lease, by its own clock
	call   *call
	next   float64 // heartbeat
}

type tenure struct {
	epoch    uint64
	mode     mode
	open     int       // requests that are still to start for what was open when it was to be released
	requests []float64 // ends of those under way, true time
}

type mode int

const (
	working mode = iota
	releasing
	leaving
)

// call is a heartbeat under way.
type call struct {
	sent    float64 // by the sender's clock
	beat    client.Heartbeat
	arrives float64
	leases  *client.Leases
}

func (w *world) clock(rate float64) float64 { return w.now * rate }

// drift is the rate of a clock: the extremes are where it hurts.
func (w *world) drift() float64 { return 1 + float64(w.r.IntN(3)-1)*maxDrift }

func (w *world) lead() {
	w.rate = w.drift()
	w.tracker = New(Config{Lease: lease * time.Millisecond, Fetch: fetch * time.Millisecond, Now: func() time.Time {
		return time.UnixMicro(int64(w.clock(w.rate) * 1000))
	}})
}

func (w *world) boot(p *process) {
	*p = process{node: p.node, rate: w.drift(), up: true, held: map[uint16]*tenure{}}
	registered := *p.node
	registered.Boot = w.boots.New()
	p.node = &registered
	w.nodes = slices.DeleteFunc(w.nodes, func(n *state.Node) bool { return n.Name == p.node.Name })
	w.nodes = append(w.nodes, p.node)
}

func (w *world) assign() {
	for _, change := range w.tracker.Plan(w.nodes, w.shards) {
		s := *w.shards[change.Number]
		if s.Epoch != change.Epoch {
			continue
		}
		s.Next = change.Next
		if s.Owner != change.Owner {
			s.Owner = change.Owner
			s.Epoch++
			w.moves++
		}
		w.shards[change.Number] = &s
	}
}

func (w *world) step(p *process) {
	if !p.up || w.now < p.paused {
		return
	}
	own := w.clock(p.rate)
	for shard, held := range p.held {
		held.requests = slices.DeleteFunc(held.requests, func(end float64) bool { return end <= w.now })
		if held.mode != working && len(held.requests) == 0 && w.r.IntN(3) == 0 {
			delete(p.held, shard)
			continue
		}
		if (held.mode == working || (held.mode == releasing && held.open > 0)) && own < p.until && w.r.IntN(2) == 0 {
			held.open--
			w.alone(p, shard)
			held.requests = append(held.requests, w.now+w.lasting()*fetch/p.rate)
		}
	}
	w.converse(p, own)
}

// alone fails unless nobody but p has a request to the shard under way.
func (w *world) alone(p *process, shard uint16) {
	for _, other := range w.procs {
		if other == p || other.held[shard] == nil {
			continue
		}
		for _, end := range other.held[shard].requests {
			if end > w.now {
				w.t.Fatalf("at %.0f %s starts on shard %d while %s is at work until %.0f", w.now, p.node.Name, shard,
					other.node.Name, end)
			}
		}
	}
}

// converse sends a heartbeat, or takes an answer in.
func (w *world) converse(p *process, own float64) {
	switch c := p.call; {
	case c == nil && w.now >= p.next:
		beat := client.Heartbeat{Node: p.node.Name, Boot: p.node.Boot}
		for shard, held := range p.held {
			beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: shard, Epoch: held.epoch})
		}
		p.call = &call{sent: own, beat: beat, arrives: w.now + w.delay()}
		p.next = w.now + w.r.Float64()*lease/3
		if w.now < p.cut {
			p.call.arrives = 1e9
		}
	case c != nil && w.now > p.next+lease/4: // given up: it is never delivered
		p.call = nil
	case c != nil && c.leases != nil && w.now >= c.arrives:
		p.call = nil
		w.obey(p, c)
	}
}

func (w *world) delay() float64 {
	switch {
	case !w.faults:
		return w.r.Float64() * 20
	case w.r.IntN(10) == 0:
		return 1e9 // lost
	case w.r.IntN(2) == 0:
		return 0
	}
	return w.r.Float64() * 400
}

// lasting is how long a request takes, as a part of its deadline: often all of it.
func (w *world) lasting() float64 { return min(1, 2*w.r.Float64()) }

func (w *world) obey(p *process, c *call) {
	p.until = c.sent + float64(c.leases.For.Milliseconds())
	told := map[uint16]mode{}
	for _, h := range c.leases.Hold {
		told[h.Shard] = working
		if p.held[h.Shard] == nil {
			p.held[h.Shard] = &tenure{}
		}
		p.held[h.Shard].epoch = h.Epoch
	}
	for _, h := range c.leases.Release {
		told[h.Shard] = releasing
	}
	for shard, held := range p.held {
		as, known := told[shard]
		if !known {
			as = leaving
		}
		if as == releasing && held.mode != releasing {
			held.open = w.r.IntN(4)
		}
		held.mode = as
	}
}

// deliver lets the leader answer what has arrived.
func (w *world) deliver() {
	for _, p := range w.procs {
		c := p.call
		if !p.up || c == nil || c.leases != nil || w.now < c.arrives {
			continue
		}
		w.tracker.Heard(c.beat)
		w.assign()
		leases := w.tracker.Answer(p.node.Name, w.shards)
		c.leases, c.arrives = &leases, w.now+w.delay()
	}
}

func (w *world) fault() {
	p := w.procs[w.r.IntN(len(w.procs))]
	switch w.r.IntN(6) {
	case 0:
		p.paused = w.now + w.r.Float64()*4*lease
	case 1: // the process ends, its requests with it
		p.up, p.held = false, nil
	case 2:
		if !p.up {
			w.boot(p)
		}
	case 3:
		w.lead()
	case 5:
		p.cut = w.now + w.r.Float64()*4*lease
	case 4:
		drained := *p.node
		drained.Draining = !drained.Draining
		w.nodes[slices.Index(w.nodes, p.node)] = &drained
		p.node = &drained
	}
}

func TestNeverTwoFetchersOnOneShard(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt, r: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), faults: true}
		for n := range uint16(shardsN) {
			w.shards = append(w.shards, &state.Shard{Number: n})
		}
		w.lead()
		for i := range rapid.IntRange(1, 5).Draw(rt, "members") {
			p := &process{node: &state.Node{Name: fmt.Sprintf("n%d", i), Capacity: 1 + w.r.Uint32N(3)}}
			w.procs = append(w.procs, p)
			w.boot(p)
		}
		const tick = 10
		for range rapid.IntRange(100, 4000).Draw(rt, "ticks") {
			w.tick(tick)
			if w.r.IntN(100) == 0 {
				w.fault()
			}
		}
		w.calm(tick)
	})
}

func (w *world) tick(by float64) {
	w.now += by
	w.deliver()
	if w.r.IntN(25) == 0 {
		w.assign()
	}
	for _, p := range w.procs {
		w.step(p)
	}
}

// calm ends the faults: before long every shard is held by the node to which it belongs, and stays there.
func (w *world) calm(tick float64) {
	w.faults = false
	var all []Candidate
	for _, p := range w.procs {
		if !p.up {
			w.boot(p)
		}
		p.paused, p.cut = 0, 0
		settled := *p.node
		settled.Draining = false
		w.nodes[slices.Index(w.nodes, p.node)] = &settled
		p.node = &settled
		all = append(all, Candidate{Node: p.node.Name, Weight: p.node.Capacity})
	}
	for end := w.now + 8*(lease+fetch); w.now < end; {
		w.tick(tick)
	}
	moves := w.moves
	for end := w.now + 2*(lease+fetch); w.now < end; {
		w.tick(tick)
	}
	if w.moves != moves {
		w.t.Fatalf("shards go on moving")
	}
	for _, s := range w.shards {
		if want := Best(s.Number, all); s.Owner != want || s.Next != "" || !w.tracker.Held(s) {
			w.t.Fatalf("shard %d: owner %q, next %q, held %v; want owner %q", s.Number, s.Owner, s.Next, w.tracker.Held(s), want)
		}
	}
}

func TestFreshNodeHasItsShardsWithTheFirstAnswer(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, Fetch: time.Second, Now: func() time.Time { return now }})
	node := &state.Node{Name: "one", Boot: ids.ID{2}, Capacity: 1}
	for _, owner := range []string{"", "one"} { // a new cluster, and a restart
		shard := &state.Shard{Owner: owner, Epoch: 3}
		tracker.Heard(client.Heartbeat{Node: "one", Boot: node.Boot})
		for _, change := range tracker.Plan([]*state.Node{node}, []*state.Shard{shard}) {
			shard = &state.Shard{Owner: change.Owner, Epoch: shard.Epoch + 1}
		}
		if hold := tracker.Answer("one", []*state.Shard{shard}).Hold; len(hold) != 1 || hold[0].Epoch != shard.Epoch {
			t.Fatalf("owner %q before: told to hold %v", owner, hold)
		}
	}
}

func TestNewLeaderWaits(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, Fetch: time.Second, Now: func() time.Time { return now }})
	nodes := []*state.Node{{Name: "gone", Boot: ids.ID{1}, Capacity: 1}, {Name: "here", Boot: ids.ID{2}, Capacity: 1}}
	shard := []*state.Shard{{Owner: "gone", Epoch: 1}}
	beat := client.Heartbeat{Node: "here", Boot: ids.ID{2}}
	tracker.Heard(beat)
	for _, change := range tracker.Plan(nodes, shard) {
		if change.Owner != "gone" {
			t.Fatal("the shard was given away at once")
		}
	}
	now = now.Add(2*time.Second + 2*time.Second/driftShare)
	tracker.Heard(beat)
	if changes := tracker.Plan(nodes, shard); len(changes) != 1 || changes[0].Owner != "here" {
		t.Fatalf("after the wait: %+v", changes)
	}
}

func TestWaitCoversClocksThatDrift(t *testing.T) {
	tracker := New(Config{Lease: lease * time.Millisecond, Fetch: fetch * time.Millisecond, Now: time.Now})
	given := float64(tracker.wait().Milliseconds()) / (1 + maxDrift) // true time, by a fast leader's clock
	if works := (lease + fetch) / (1 - maxDrift); given < works {    // by a slow fetcher's
		t.Fatalf("a shard is given away after %.0f ms while its holder may work for %.0f ms", given, works)
	}
}

package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// The world below runs fetchers, which obey their side of the rules, against the real Tracker.
// Clocks drift, messages are late or lost, and there are pauses, restarts and changes of leader.
// Times are in milliseconds of true time.
const (
	lease    = 1000
	ending   = 400  // requests end within this after a lease
	fetch    = 1500 // the longest request
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
	taken   int // of them, those from an owner that had not released
}

// process is a fetcher process.
type process struct {
	node   *state.Node
	rate   float64 // of its clock, which runs during pauses
	up     bool
	stops  bool    // it says that it leaves, and ends once it holds nothing
	paused float64 // until
	cut    float64 // until then its messages are lost
	held   map[uint16]*holding
	until  float64 // end of the lease, by its own clock
	soon   bool
	told   bool // the leader knows that it holds nothing
	call   *call
	next   float64 // heartbeat
}

type holding struct {
	epoch uint64
	mode  mode
	// requests yet to start for pages that were open at the release
	open     int
	requests []float64 // ends of the open requests, true time
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

// drift returns the rate of a clock, mostly an extreme one.
func (w *world) drift() float64 { return 1 + float64(w.r.IntN(3)-1)*maxDrift }

func (w *world) lead() {
	w.rate = w.drift()
	w.tracker = New(Config{Lease: lease * time.Millisecond,
		EndWithin: within(ending * time.Millisecond), Now: func() time.Time {
			return time.UnixMicro(int64(w.clock(w.rate) * 1000))
		}})
}

func (w *world) boot(p *process) {
	*p = process{node: p.node, rate: w.drift(), up: true, held: map[uint16]*holding{}}
	w.record(p, func(n *state.Node) { n.Boot = w.boots.New() })
}

// record changes a node's record.
func (w *world) record(p *process, change func(*state.Node)) {
	changed := *p.node
	change(&changed)
	p.node = &changed
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
			if s.Owner != "" && !change.Planned {
				w.taken++
			}
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
	if own >= p.until && (own >= p.until+ending || w.r.IntN(3) == 0) {
		clear(p.held) // its requests end, too
	}
	for shard, held := range p.held {
		held.requests = slices.DeleteFunc(held.requests,
			func(end float64) bool { return end <= w.now })
		if held.mode != working && len(held.requests) == 0 && w.r.IntN(3) == 0 {
			delete(p.held, shard)
			continue
		}
		if (held.mode == working || (held.mode == releasing && held.open > 0)) && own < p.until &&
			w.r.IntN(2) == 0 {
			held.open--
			w.alone(p, shard)
			held.requests = append(held.requests, w.now+w.lasting()*fetch/p.rate)
		}
	}
	w.converse(p, own)
	if p.stops && len(p.held) == 0 && p.told {
		p.up = false
	}
}

// stop begins a clean stop.
func (w *world) stop(p *process) {
	p.stops = true
	for _, held := range p.held {
		if held.mode == working {
			held.mode, held.open = releasing, w.r.IntN(4)
		}
	}
}

// alone fails if any process but p has an open request to the shard. A frozen process requests
// nothing, and finds its lease lapsed when it wakes up.
func (w *world) alone(p *process, shard uint16) {
	for _, other := range w.procs {
		if other == p || other.held[shard] == nil {
			continue
		}
		for _, end := range other.held[shard].requests {
			if end = min(end, (other.until+ending)/other.rate); end > w.now {
				w.t.Fatalf("at %.0f %s starts on shard %d while %s is at work until %.0f", w.now,
					p.node.Name, shard,
					other.node.Name, end)
			}
		}
	}
}

// converse sends a heartbeat or receives an answer.
func (w *world) converse(p *process, own float64) {
	switch c := p.call; {
	case c == nil && w.now >= p.next:
		beat := client.Heartbeat{Node: p.node.Name, Boot: p.node.Boot, Leaving: p.stops}
		for shard, held := range p.held {
			beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: shard, Epoch: held.epoch})
		}
		p.call = &call{sent: own, beat: beat, arrives: w.now + w.delay()}
		p.next = w.now + w.r.Float64()*lease/3
		if p.soon {
			p.next = w.now + lease/30
		}
		if w.now < p.cut {
			p.call.arrives = 1e9
		}
	case c != nil && w.now > p.next+lease/4: // abandoned: it is never delivered
		p.call = nil
	case c != nil && c.leases != nil && w.now >= c.arrives:
		p.call = nil
		p.told = c.beat.Leaving && len(c.beat.Holding) == 0
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

// lasting returns the duration of a request as a fraction of its deadline: often all of it.
func (w *world) lasting() float64 { return min(1, 2*w.r.Float64()) }

func (w *world) obey(p *process, c *call) {
	p.until, p.soon = c.sent+float64(c.leases.For.Milliseconds()), c.leases.Soon
	told := map[uint16]mode{}
	for _, h := range c.leases.Hold {
		if p.stops {
			told[h.Shard] = releasing
			continue
		}
		told[h.Shard] = working
		if p.held[h.Shard] == nil {
			p.held[h.Shard] = &holding{}
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
		if !slices.Contains(w.nodes, p.node) {
			c.arrives = 1e9 // refused
			continue
		}
		w.tracker.Heard(c.beat)
		w.assign()
		leases := w.tracker.Answer(p.node, w.shards)
		c.leases, c.arrives = &leases, w.now+w.delay()
	}
}

func (w *world) fault() {
	p := w.procs[w.r.IntN(len(w.procs))]
	switch w.r.IntN(9) {
	case 0:
		p.paused = w.now + w.r.Float64()*4*lease
	case 1: // the process ends with its requests
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
		if slices.Contains(w.nodes, p.node) {
			w.record(p, func(n *state.Node) { n.Draining = !n.Draining })
		}
	case 6:
		if slices.Contains(w.nodes, p.node) {
			w.record(p, func(n *state.Node) { n.Capacity = 1 + w.r.Uint32N(3) })
		}
	case 7:
		w.stop(p)
	case 8: // its record is removed although it works
		w.nodes = slices.DeleteFunc(w.nodes,
			func(n *state.Node) bool { return n.Name == p.node.Name })
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	for n := range uint16(shardsN) {
		w.shards = append(w.shards, &state.Shard{Number: n})
	}
	w.lead()
	for i := range rapid.IntRange(1, 5).Draw(t, "members") {
		p := &process{node: &state.Node{Name: fmt.Sprintf("n%d", i), Capacity: 1 + w.r.Uint32N(3)}}
		w.procs = append(w.procs, p)
		w.boot(p)
	}
	return w
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

// calm ends the faults: soon every shard is held by the node to which it belongs, and stays there.
func (w *world) calm(tick float64) {
	w.faults = false
	for _, p := range w.procs {
		if !p.up || p.stops || !slices.Contains(w.nodes, p.node) {
			p.up, p.held = false, nil
			w.boot(p)
		}
		p.paused, p.cut = 0, 0
		w.record(p, func(n *state.Node) { n.Draining = false })
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
	w.settled()
}

// settled fails unless every node that may have shards holds exactly its share. If no node may,
// nobody holds any.
func (w *world) settled() {
	var all []Candidate
	owners := map[string]*state.Node{}
	for _, p := range w.procs {
		owners[p.node.Name] = p.node
		if p.up && !p.stops && !p.node.Draining {
			all = append(all, Candidate{Node: p.node.Name, Weight: p.node.Capacity})
		}
	}
	var to []string
	for _, s := range w.shards {
		held := w.tracker.Held(owners[s.Owner], s)
		if s.Next != "" || held != (len(all) > 0) || (s.Owner != "") != held {
			w.t.Fatalf("shard %d: owner %q, next %q, held %v; %d may have it", s.Number, s.Owner,
				s.Next, held, len(all))
		}
		to = append(to, s.Owner)
	}
	checkShares(w.t, to, bounded(all))
}

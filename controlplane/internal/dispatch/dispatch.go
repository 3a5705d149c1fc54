// Package dispatch owns the leader's volatile memory of what to send out next. It knows the seqs
// set aside for each host, whose turn it is, and the order of publications. It is pure logic: it
// reads no store or log, and proposes and publishes nothing. Its driver (the leader, or the
// protocol simulation) does that and reports what was applied. All of it can be lost: it is rebuilt
// from the replicated sets and the link lists.
package dispatch

import (
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
)

// Config configures the dispatcher.
type Config struct {
	// Leader is this leadership's unique number. (A Raft term is not unique: a restore begins a new
	// leadership in the same term.)
	Leader uint64
	// Newest is the number of the newest dispatch before this leadership.
	Newest uint64
	Shards int
	// Window is the most seqs that may be out, over all runs.
	Window int
	// HostOf returns the host of a listed address, ShardOf the shard of a host.
	HostOf  func(url string) string
	ShardOf func(host string) int
	// DomainOf returns a hash of the domain that a listed address counts for; 0: nothing is read
	// there.
	DomainOf func(url string) uint64
	// Pace returns the request starts a second that a run may have at one host; 0: no bound.
	Pace func(view *state.View, job *state.Job) float64
	// Now reads the leader's clock.
	Now func() time.Time
	// View returns the replicated state.
	View func() *state.View
}

// Fixed bounds: seqs of a run in one turn, links of a list held at a time, dispatches waiting for a
// shard. minHostOut is how many seqs any host may have out.
const (
	turn          = 16
	bufferedLinks = 4096
	maxUnsent     = 2048
	minHostOut    = 4
)

// UnreadPause is how long to wait before an unreadable list is read again.
const UnreadPause = time.Second

// Dispatcher holds what to send out next. It is safe for concurrent use.
type Dispatcher struct {
	config Config

	mu        sync.Mutex
	runs      map[ids.ID]*run
	customers []*customer // in order of turns
	byRef     map[string]*customer
	hosts     map[string]*host
	shards    []shard
	out       int // out or picked, over all runs
	aside     int // seqs set aside, over all runs
	published uint64
	markers   uint64
}

// customer takes turns with other customers, and its runs take turns with each other.
type customer struct {
	ref  string
	runs []*run
}

// run is the memory of one run.
type run struct {
	job       ids.ID
	customer  *customer
	scraper   ids.ID
	revision  uint32
	list      ids.ID
	links     uint32
	pace      float64
	closed    uint64             // number of closed seqs
	scanned   uint32             // links read from the list
	skip      func(uint32) bool  // seqs closed before this leadership; nil: none
	buffer    []link             // read and not yet placed
	aside     map[*host]*waiting // set-aside seqs
	ready     []*host            // hosts of aside that had room when last checked
	picked    map[uint32]link    // proposed, outcome not known yet
	outs      map[uint32]*outSeq
	ended     bool
	starved   bool      // the money did not suffice; retried when some comes back to the customer
	reading   bool      // a read of the list is under way
	rests     time.Time // until then an unreadable list is not read
	launch    []byte    // span of the call that launched the run; nil: not traced
	trace     []byte    // span under which seqs go out
	unlocated []uint32
	domains   map[uint32]uint64 // domains of the links read, if the run has daily limits; else nil
	// places come from its price table; nil: the table has no rows for domains
	places price.Places
}

type link struct {
	seq  uint32
	url  string // "" if it must be read again
	host *host
}

// outSeq is a seq that is out.
type outSeq struct {
	grant command.Grant
	url   string // kept until publication
	trace []byte
	host  *host // nil until located, after a change of leader
	// unread: the address could not be read. Nothing counts the seq as out until Locate gives it.
	unread bool
	// sent is its place in the order of publications. 0 with isSent: published before this
	// leadership.
	sent   uint64
	isSent bool
}

// New returns an empty dispatcher.
func New(config Config) *Dispatcher {
	return &Dispatcher{config: config, runs: map[ids.ID]*run{}, byRef: map[string]*customer{},
		hosts:  map[string]*host{},
		shards: make([]shard, config.Shards)}
}

// Adopt takes over a run from the replicated sets: what is out counts as published. The hosts of
// those seqs are unknown until Locate.
func (d *Dispatcher) Adopt(job *state.Job, sets *state.Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.addRun(job)
	r.closed = sets.Closed.GetCardinality()
	closed := sets.Closed.Clone()
	r.skip = closed.Contains
	rows := d.pricesOf(job).Domains()
	for seq, o := range sets.Out {
		r.outs[seq] = &outSeq{isSent: true,
			grant: command.Grant{Attempt: o.Attempt, Tiers: o.Tiers, Budget: o.Grant,
				From: o.From, Limited: o.Limited, Domain: price.KeyAt(rows, o.Domain),
				DispatchRef: command.DispatchRef{Job: job.ID, Seq: seq, Number: o.Number}}}
		r.unlocated = append(r.unlocated, seq)
		d.out++
	}
}

// Unlocated returns, per run, the list and the seqs whose addresses Locate needs.
func (d *Dispatcher) Unlocated() map[ids.ID]Located {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[ids.ID]Located{}
	now := d.config.Now()
	for id, r := range d.runs {
		if len(r.unlocated) > 0 && !r.rests.After(now) {
			found[id] = Located{List: r.list, Seqs: slices.Sorted(slices.Values(r.unlocated))}
		}
	}
	return found
}

// Located names seqs of a list, in ascending order.
type Located struct {
	List ids.ID
	Seqs []uint32
}

// Locate gives the addresses of seqs that Unlocated asked for.
func (d *Dispatcher) Locate(job ids.ID, links []rowstore.Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[job]
	if r == nil {
		return
	}
	for _, l := range links {
		o := r.outs[l.Seq]
		if o == nil || o.host != nil && !o.unread {
			continue
		}
		if o.host == nil {
			o.host = d.hostOf(l.URL)
			o.host.out++
			d.shards[o.host.shard].outs[command.DispatchRef{Job: job, Seq: l.Seq}] = o
		}
		if o.unread {
			d.recall(o)
		}
		if !o.isSent {
			o.url = l.URL
			s := &d.shards[o.host.shard]
			s.unsent = append(s.unsent, o)
		}
	}
	r.unlocated = slices.DeleteFunc(r.unlocated, func(seq uint32) bool {
		o := r.outs[seq]
		return o == nil || o.host != nil && !o.unread
	})
}

// Unreadable records that a run's list could not be read. It is read again after UnreadPause.
func (d *Dispatcher) Unreadable(job ids.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[job]; r != nil {
		r.reading, r.rests = false, d.config.Now().Add(UnreadPause)
	}
}

// adopt takes over a grant that this leadership did not ask for. An earlier leadership of this node
// may have proposed the command.
func (d *Dispatcher) adopt(r *run, grant command.Grant) {
	if r.outs[grant.Seq] != nil {
		return
	}
	r.outs[grant.Seq] = &outSeq{grant: grant, trace: r.traceOf(grant.Seq)}
	r.unlocated = append(r.unlocated, grant.Seq)
	r.buffer = slices.DeleteFunc(r.buffer, func(l link) bool { return l.seq == grant.Seq })
	d.out++
}

// pricesOf returns the prices under which a run was launched.
func (d *Dispatcher) pricesOf(job *state.Job) price.List {
	if table := d.config.View().Prices(job.Prices); table != nil {
		return table.Rows
	}
	return nil
}

func (d *Dispatcher) addRun(job *state.Job) *run {
	c := d.byRef[job.Customer]
	if c == nil {
		c = &customer{ref: job.Customer}
		d.byRef[job.Customer] = c
		d.customers = append(d.customers, c)
	}
	r := &run{job: job.ID, customer: c, scraper: job.Scraper, revision: job.Revision,
		list: job.List, links: job.Links,
		pace: d.config.Pace(d.config.View(), job), aside: map[*host]*waiting{},
		picked: map[uint32]link{}, outs: map[uint32]*outSeq{}, ended: job.State.Final()}
	if job.Daily != (model.DailyLimits{}) {
		r.domains = map[uint32]uint64{}
	}
	r.places = d.pricesOf(job).Places()
	c.runs = append(c.runs, r)
	d.runs[job.ID] = r
	return r
}

// Need is a range of a link list that the dispatcher needs.
type Need struct {
	Job  ids.ID
	List ids.ID
	From uint32
	Most int
}

// Needs returns the reads needed now, at most one per run. Each must be answered by Feed or
// Unreadable.
func (d *Dispatcher) Needs() []Need {
	d.mu.Lock()
	defer d.mu.Unlock()
	var needs []Need
	now := d.config.Now()
	for _, c := range d.customers {
		for _, r := range c.runs {
			if r.ended || r.reading || len(r.unlocated) > 0 || len(r.buffer) > 0 ||
				r.scanned >= r.links || d.out >= d.config.Window || r.rests.After(now) {
				continue
			}
			r.reading = true
			// A list may go on behind the run's links.
			needs = append(needs, Need{Job: r.job, List: r.list, From: r.scanned,
				Most: int(min(bufferedLinks, r.links-r.scanned))})
		}
	}
	return needs
}

// Feed answers a Need.
func (d *Dispatcher) Feed(job ids.ID, links []rowstore.Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[job]
	if r == nil {
		return
	}
	r.reading = false
	for _, l := range links {
		r.scanned = l.Seq + 1
		if r.domains != nil {
			r.domains[l.Seq] = d.config.DomainOf(l.URL)
		}
		if r.ended || r.outs[l.Seq] != nil || (r.skip != nil && r.skip(l.Seq)) {
			continue
		}
		r.buffer = append(r.buffer, link{seq: l.Seq, url: l.URL})
	}
}

// Plan picks what to send out next, at most most seqs. Customers and their runs take turns. The
// picks must be proposed until they are applied. Empty: nothing can go out now.
func (d *Dispatcher) Plan(most int) []command.WindowRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	picks := map[*run]*command.WindowRun{}
	var order []*command.WindowRun
	for idle := 0; idle < len(d.customers) && most > 0; {
		c := d.customers[0]
		d.customers = append(d.customers[1:], c)
		r, took := d.turnOf(c, min(most, turn, d.config.Window-d.out))
		if len(took) == 0 {
			idle++
			continue
		}
		idle = 0
		most -= len(took)
		if picks[r] == nil {
			picks[r] = &command.WindowRun{Job: r.job}
			order = append(order, picks[r])
		}
		picks[r].Seqs = append(picks[r].Seqs, took...)
		for _, seq := range took {
			if r.domains != nil {
				picks[r].Domains = append(picks[r].Domains, r.domains[seq])
			}
			if r.places != nil {
				host := r.picked[seq].host.name
				picks[r].Priced = append(picks[r].Priced, r.places.Of(host))
			}
		}
	}
	plan := make([]command.WindowRun, len(order))
	for i, w := range order {
		plan[i] = *w
	}
	return plan
}

// turnOf gives a turn to the next run of a customer that can use one.
func (d *Dispatcher) turnOf(c *customer, most int) (*run, []uint32) {
	for range c.runs {
		r := c.runs[0]
		c.runs = append(c.runs[1:], r)
		if r.ended || r.starved || most <= 0 || len(r.unlocated) > 0 {
			continue
		}
		if took := d.pickSeqs(r, most); len(took) > 0 {
			return r, took
		}
	}
	return nil, nil
}

// pickSeqs picks up to most seqs of a run: first those set aside whose hosts have room again, then
// new links.
func (d *Dispatcher) pickSeqs(r *run, most int) []uint32 {
	var took []uint32
	for len(r.ready) > 0 && len(took) < most {
		h := r.ready[0]
		w := r.aside[h]
		if w == nil || !d.room(r, h) {
			r.ready = r.ready[1:]
			if w != nil {
				w.ready = false
			}
			continue
		}
		seq := w.pop()
		d.aside--
		if w.empty() {
			delete(r.aside, h)
			h.forget(r)
		}
		took = append(took, seq)
		d.pick(r, link{seq: seq, host: h})
	}
	for len(r.buffer) > 0 && len(took) < most {
		l := r.buffer[0]
		l.host = d.hostOf(l.url)
		r.buffer = r.buffer[1:]
		if !d.room(r, l.host) {
			d.setAside(r, l.host, l.seq)
			continue
		}
		took = append(took, l.seq)
		d.pick(r, l)
	}
	if len(r.buffer) == 0 {
		r.buffer = nil
	}
	return took
}

func (d *Dispatcher) pick(r *run, l link) {
	r.picked[l.seq] = l
	l.host.out++
	d.out++
}

// Closable returns the runs with nothing out or picked, and nothing left to send.
func (d *Dispatcher) Closable() []ids.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var done []ids.ID
	for id, r := range d.runs {
		if len(r.outs) == 0 && len(r.picked) == 0 && (r.ended || r.closed >= uint64(r.links)) {
			done = append(done, id)
		}
	}
	slices.SortFunc(done, func(a, b ids.ID) int { return slices.Compare(a[:], b[:]) })
	return done
}

// Unwanted returns dispatches of ended runs that were never published. Redispatch gives them back.
func (d *Dispatcher) Unwanted(most int) []command.DispatchRef {
	d.mu.Lock()
	defer d.mu.Unlock()
	var refs []command.DispatchRef
	for _, r := range d.runs {
		if !r.ended {
			continue
		}
		for _, o := range r.outs {
			if !o.isSent {
				refs = append(refs, o.grant.DispatchRef)
			}
		}
	}
	slices.SortFunc(refs, byNumber)
	return refs[:min(most, len(refs))]
}

// Out returns the number of seqs out or proposed.
func (d *Dispatcher) Out() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out
}

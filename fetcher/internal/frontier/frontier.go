// Package frontier owns the order in which a fetcher starts its tasks. It is polite to each host,
// and fair between customers and their runs, at each host and overall. It is pure logic: it is told
// the time, starts nothing itself, and knows no shards, pages or log. A Frontier has one caller at
// a time.
package frontier

import (
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/retry"
)

// Bounds of a host's back-off.
const (
	MaxBackoff = time.Minute // the longest back-off after a throttling answer
)

// backoffs are the back-offs after throttling answers in a row that name no time.
var backoffs = retry.Backoff{First: time.Second, Most: MaxBackoff}

// Forever is Next's wait when only an outside change can make a task ready.
const Forever = time.Duration(1<<63 - 1)

// Pace bounds a run's requests at a host. Zero values set no bound.
type Pace struct {
	Rate        float64 // request starts per second
	Connections int     // concurrent requests
}

func (p Pace) spacing() time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.Rate)
}

// Item is a task's next request. Change its exported fields only while it is outside the frontier.
type Item struct {
	Customer string
	Job      ids.ID // of one customer only
	Host     string // authority
	Pace     Pace
	Open     bool // a connection to its host is open: it goes before the run's other hosts
	Value    any  // the caller's

	state  state
	at     int64 // while delayed: due time
	place  int   // while delayed: place in the heap
	queue  *queue
	node   node[Item] // while waiting: in its queue
	host   *host      // while running: the host of its first connection
	start  start      // while running: its start at host
	others []*host    // while running: hosts of redirects
	free   bool       // while running: it has released its connections
	whose  *customer  // while running
}

// start is a request start, with what it replaced at its host.
type start struct {
	at, last int64
	begun    bool   // last is set
	queue    *queue // its own
	own      int64  // the queue's earlier notBefore
}

type state uint8

const (
	outside state = iota // not in the frontier
	delayed              // waiting for its time
	waiting              // in its queue
	running              // handed out
)

// Answer reports how a host answered a request.
type Answer struct {
	Host       string        // the host that answered; "": none did
	Throttled  bool          // with 429 or 503
	RetryAfter time.Duration // of the answer; 0: none
	Unasked    bool          // no request was made: the start is undone
}

// Frontier holds the items that wait or run. Each operation takes O(log n) steps for n items, plus
// one step per waiting run for a host that becomes ready.
type Frontier struct {
	random    func() float64
	epoch     time.Time
	most      int   // items that may run at once; 0: no bound
	mostBytes int64 // that customers should hold together; 0: no bound

	hosts     map[string]*host
	customers map[string]*customer
	jobs      map[ids.ID]*job
	queues    map[queueKey]*queue
	shares    map[shareKey]*share

	turns  list[customer] // customers that may have something ready, next turn first
	asleep heap[*host]    // hosts that become ready, or are dropped, at a time
	later  heap[*Item]
	size   int      // items waiting or delayed
	runs   int      // items running
	bytes  int64    // held by customers, counted up to a share each
	beyond int64    // see Beyond
	ready  int      // number of ready hosts
	left   []string // hosts, see Left
}

// New returns an empty frontier. At most most items run at once, and customers should hold at most
// mostBytes together; 0: no bound. random returns numbers in [0, 1) for jitter. Later times must
// not be before epoch.
func New(epoch time.Time, most int, mostBytes int64, random func() float64) *Frontier {
	return &Frontier{
		random:    random,
		epoch:     epoch,
		most:      most,
		mostBytes: mostBytes,
		hosts:     map[string]*host{},
		customers: map[string]*customer{},
		jobs:      map[ids.ID]*job{},
		queues:    map[queueKey]*queue{},
		shares:    map[shareKey]*share{},
	}
}

func (f *Frontier) nanos(t time.Time) int64 { return int64(t.Sub(f.epoch)) }

// Waiting returns the number of items that have not been handed out.
func (f *Frontier) Waiting() int { return f.size }

// Ready returns the number of hosts with something waiting that may start now.
func (f *Frontier) Ready(now time.Time) int {
	f.wake(f.nanos(now))
	return f.ready
}

// Hosts returns the number of hosts remembered.
func (f *Frontier) Hosts() int { return len(f.hosts) }

// Add appends an item to its run's queue at its host.
func (f *Frontier) Add(it *Item, now time.Time) { f.enter(it, f.nanos(now), false) }

// Resume is Add for a task that has already begun: it goes to the head of the queue, no earlier
// than notBefore.
func (f *Frontier) Resume(it *Item, notBefore, now time.Time) {
	t := f.nanos(now)
	if it.at = f.nanos(notBefore); it.at <= t {
		f.enter(it, t, true)
		return
	}
	it.state = delayed
	f.size++
	f.later.push(it)
}

func (f *Frontier) enter(it *Item, now int64, head bool) {
	it.state = waiting
	f.size++
	q := f.queueOf(it)
	it.queue = q
	it.node.value = it
	if head {
		q.items.pushFront(&it.node)
	} else {
		q.items.pushBack(&it.node)
	}
	h := q.host
	if h.ready {
		f.list(q)
		return
	}
	f.placeHost(h, now)
}

// Next hands out the item whose turn it is, or returns how long none will be ready without an
// outside change. The item holds a connection of its host until Done.
func (f *Frontier) Next(now time.Time) (*Item, time.Duration) {
	t := f.nanos(now)
	f.wake(t)
	for q := f.front(); q != nil; q = f.front() {
		h := q.host
		turn := h.turn(f, t)
		if at, free := h.readyAt(turn); !free || at > t {
			f.placeHost(h, t)
			continue
		}
		f.pass(q)
		if (q == turn || h.overtaken) && f.mayStart(turn.job.customer) {
			// The queue that waited longest at a host gets at least every second turn. Otherwise a
			// run with many hosts could be first at each of them.
			h.overtaken = false
			f.pass(turn)
			return f.start(turn, t), 0
		}
		if at, free := h.readyAt(q); !free || at > t {
			// Its own pace forbids it. The host is woken when it may start.
			q.job.ready.remove(&q.listed)
			h.unlisted = true
			if free && (h.place == noPlace || at < h.wakes) {
				f.sleepUntil(h, at)
			}
			continue
		}
		h.overtaken = true
		return f.start(q, t), 0
	}
	return nil, f.sleep(t)
}

// TakeItem hands out a given item out of turn, if its host allows a start now, even if its customer
// rests. With others, the queue that waited longest at the host still gets at least every second
// turn.
func (f *Frontier) TakeItem(it *Item, others bool, now time.Time) bool {
	t := f.nanos(now)
	f.wake(t)
	q := it.queue
	if it.state != waiting || !f.hasPlace(q.job.customer) {
		return false
	}
	h := q.host
	if at, free := h.after(q, it.Pace); !free || at > t {
		return false
	}
	if turn := h.turn(f, t); others && h.overtaken && turn != q {
		if at, _ := h.readyAt(turn); at <= t && f.mayStart(turn.job.customer) {
			return false
		}
	}
	h.overtaken = true
	q.items.remove(&it.node)
	q.items.pushFront(&it.node)
	f.start(q, t)
	return true
}

// start hands out the first item of a queue.
func (f *Frontier) start(q *queue, now int64) *Item {
	it := q.items.front()
	q.items.remove(&it.node)
	f.size--
	h := q.host
	it.start = start{at: now, last: h.started, begun: h.begun, queue: q, own: q.notBefore}
	h.noteStart(q, it.Pace, now)
	h.active++
	h.served(q)
	it.state, it.whose, it.queue, it.host, it.free = running, q.job.customer, nil, h, false
	it.whose.running++
	f.runs++
	f.placeHost(h, now)
	return it
}

// Hop asks for another request of a running item, usually at the host of a redirect. If it returns
// true, it has taken a start, and at a new host also a connection until Done.
func (f *Frontier) Hop(it *Item, name string, pace Pace, now time.Time) bool {
	t := f.nanos(now)
	h := f.hostOf(name)
	q := f.queueAt(f.jobOf(it), h)
	at, free := h.after(q, pace)
	here := h == it.host
	for _, other := range it.others {
		here = here || other == h
	}
	if at > t || !free && !here {
		f.placeHost(h, t)
		return false
	}
	h.noteStart(q, pace, t)
	if !here {
		h.active++
		it.others = append(it.others, h)
	}
	f.placeHost(h, t)
	return true
}

// Free releases the connections of a running item that makes no more requests, and learns from its
// last answer.
func (f *Frontier) Free(it *Item, answer Answer, now time.Time) {
	f.free(it, answer, f.nanos(now))
}

func (f *Frontier) free(it *Item, answer Answer, now int64) {
	if it.free {
		return
	}
	it.free = true
	if h := f.hosts[answer.Host]; h != nil {
		f.learn(h, answer, now)
	}
	if h := it.host; answer.Unasked && h.started == it.start.at {
		h.started, h.begun = it.start.last, it.start.begun
	}
	if q := it.start.queue; answer.Unasked && q.notBefore == it.start.at+int64(it.Pace.spacing()) {
		q.notBefore = it.start.own
	}
	f.disconnect(it.host, now)
	for _, h := range it.others {
		f.disconnect(h, now)
	}
}

func (f *Frontier) disconnect(h *host, now int64) {
	h.active--
	f.placeHost(h, now)
}

// Done removes a running item from the frontier, and learns from its last answer. It includes Free.
func (f *Frontier) Done(it *Item, answer Answer, now time.Time) {
	f.free(it, answer, f.nanos(now))
	f.runs--
	it.whose.running--
	f.forgetCustomer(it.whose)
	f.noteLeft(it.host)
	for _, h := range it.others {
		f.noteLeft(h)
	}
	it.state, it.whose, it.host, it.others = outside, nil, nil, nil
}

func (f *Frontier) noteLeft(h *host) {
	if h.isIdle() {
		f.left = append(f.left, h.name)
	}
}

// Left appends the hosts of items done since the last call at which nothing waits or runs any more.
func (f *Frontier) Left(names []string) []string {
	for _, name := range f.left {
		if h := f.hosts[name]; h == nil || h.isIdle() {
			names = append(names, name)
		}
	}
	clear(f.left)
	f.left = f.left[:0]
	return names
}

// learn adjusts a host's back-off.
func (f *Frontier) learn(h *host, answer Answer, now int64) {
	if !answer.Throttled {
		h.strikes = 0
		return
	}
	h.strikes++
	wait := answer.RetryAfter
	if wait <= 0 {
		wait = backoffs.After(h.strikes)
		wait = wait/2 + time.Duration(f.random()*float64(wait/2))
	}
	h.notBefore = max(h.notBefore, now+int64(min(wait, MaxBackoff)))
	f.placeHost(h, now)
}

// Delay sets the least time between any two starts at a host. It holds while the host is
// remembered.
func (f *Frontier) Delay(name string, delay time.Duration) {
	if h := f.hosts[name]; h != nil {
		h.delay = delay
	}
}

// Remove removes a waiting or delayed item. It returns false for any other item.
func (f *Frontier) Remove(it *Item, now time.Time) bool {
	switch it.state {
	case delayed:
		f.later.remove(it)
	case waiting:
		q := it.queue
		q.items.remove(&it.node)
		it.queue = nil
		defer f.placeHost(q.host, f.nanos(now))
	default:
		return false
	}
	it.state = outside
	f.size--
	return true
}

// wake moves what has come due.
func (f *Frontier) wake(now int64) {
	for f.later.len() > 0 && f.later.first().at <= now {
		it := f.later.first()
		f.later.remove(it)
		f.size--
		f.enter(it, now, true)
	}
	for f.asleep.len() > 0 && f.asleep.first().wakes <= now {
		f.placeHost(f.asleep.first(), now)
	}
}

// sleep returns the time until something comes due.
func (f *Frontier) sleep(now int64) time.Duration {
	wait := Forever
	if f.later.len() > 0 {
		wait = time.Duration(f.later.first().at - now)
	}
	if f.asleep.len() > 0 {
		wait = min(wait, time.Duration(f.asleep.first().wakes-now))
	}
	return wait
}

package frontier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/ids"
)

// simulation runs random work through a frontier with some workers, and checks every start.
type simulation struct {
	t       *rapid.T
	f       *Frontier
	rng     *rand.Rand
	now     time.Time
	workers int
	bounded bool // the frontier knows the number of workers
	running []*run
	hosts   map[string]*simHost
	delayed map[*Item]bool
	weights map[*Item]int64 // bytes held
	kept    map[*Item]bool  // waiting items among them, not yet taken
	left    int             // items that have not finished
}

type run struct {
	it    *Item
	until time.Time
	hosts map[string]bool // where it holds a connection
}

type simHost struct {
	started time.Time
	begun   bool
	active  int
	spacing time.Duration       // after the last start
	own     map[ids.ID]ownStart // by run, the last starts
	blocked time.Time
	waiting int
	pace    Pace // of all its items, if they agree
	uniform bool
}

type ownStart struct {
	at      time.Time
	spacing time.Duration
}

// checkStart checks the pace of an item's run at a host, against its own starts and others'.
func (s *simulation) checkStart(name string, it *Item) {
	h, want := s.hosts[name], it.Pace.spacing()
	if own := h.own[it.Job]; s.now.Sub(own.at) < own.spacing {
		s.t.Fatalf("a start at %s %v after the run's last, want %v", name, s.now.Sub(own.at),
			own.spacing)
	}
	if want = min(want, h.spacing); h.begun && s.now.Sub(h.started) < want {
		s.t.Fatalf("a start at %s %v after the last, want %v", name, s.now.Sub(h.started), want)
	}
	if s.now.Before(h.blocked) {
		s.t.Fatalf("a start at %s during its back-off", name)
	}
	h.started, h.begun, h.spacing = s.now, true, it.Pace.spacing()
	h.own[it.Job] = ownStart{s.now, h.spacing}
}

func (s *simulation) connect(name string, pace Pace) {
	h := s.hosts[name]
	if pace.Connections > 0 && h.active >= pace.Connections {
		s.t.Fatalf("connection %d at %s, want at most %d", h.active+1, name, pace.Connections)
	}
	h.active++
}

// checkShare checks that a customer leaves places and bytes to others.
func (s *simulation) checkShare(it *Item, kept bool) {
	weights, all := map[string]int64{}, int64(0)
	for other, bytes := range s.weights {
		weights[other.Customer] += bytes
	}
	for _, bytes := range weights {
		all += min(bytes, mostBytes/4)
	}
	held := weights[it.Customer]
	if rests := held > mostBytes/4 || all >= mostBytes && held > mostBytes/64; s.bounded &&
		rests && !kept {
		s.t.Fatalf("%s starts while it holds %d of %d bytes", it.Customer, held, all)
	}
	theirs := 0
	for _, r := range s.running {
		if r.it.Customer == it.Customer {
			theirs++
		}
	}
	if free := s.workers - len(s.running); s.bounded && theirs > 0 &&
		(theirs >= shareOfFree*free || free == 1) {
		s.t.Fatalf("%s starts beside %d of its own while %d places are free", it.Customer, theirs,
			free)
	}
}

// startAll hands out what is ready, and returns how long nothing more will be.
func (s *simulation) startAll() time.Duration {
	for len(s.running) < s.workers {
		it, wait := s.f.Next(s.now)
		kept := it == nil && s.bounded
		if kept {
			it = s.takeKept()
		}
		if it == nil {
			if wait <= 0 {
				s.t.Fatalf("nothing is ready, but to be asked again in %v", wait)
			}
			if s.bounded {
				s.listed()
				if len(s.kept) > 0 {
					wait = min(wait, 50*time.Millisecond)
				}
			} else {
				s.conserved()
			}
			return wait
		}
		s.checkShare(it, kept)
		s.checkStart(it.Host, it)
		s.connect(it.Host, it.Pace)
		if !s.delayed[it] {
			s.hosts[it.Host].waiting--
		}
		delete(s.delayed, it)
		delete(s.kept, it)
		until := s.now.Add(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
		r := &run{it: it, until: until, hosts: map[string]bool{it.Host: true}}
		s.hop(r)
		s.running = append(s.running, r)
	}
	return Forever
}

// takeKept hands out an item that holds bytes, of a customer that may begin nothing.
func (s *simulation) takeKept() *Item {
	for it := range s.kept {
		if s.f.Rests(it.Customer) && s.f.TakeItem(it, s.rng.IntN(2) > 0, s.now) {
			return it
		}
	}
	return nil
}

func (s *simulation) hop(r *run) {
	if s.rng.IntN(4) > 0 {
		return
	}
	to := fmt.Sprint("host-", s.rng.IntN(len(s.hosts)))
	if !s.f.Hop(r.it, to, r.it.Pace, s.now) {
		return
	}
	s.checkStart(to, r.it)
	if r.it.Pace != s.hosts[to].pace {
		s.hosts[to].uniform = false // this pace limits the run's next start there
	}
	if !r.hosts[to] {
		s.connect(to, r.it.Pace)
	}
	r.hosts[to] = true
}

// conserved checks that no worker is idle while a host could be used.
func (s *simulation) conserved() {
	for name, h := range s.hosts {
		if h.waiting == 0 || !h.uniform || h.pace.Connections > 0 &&
			h.active >= h.pace.Connections {
			continue
		}
		if (!h.begun || s.now.Sub(h.started) >= h.pace.spacing()) && !s.now.Before(h.blocked) {
			s.t.Fatalf("%s could be asked, and %d wait for it", name, h.waiting)
		}
	}
}

// listed checks that whatever may start at a ready host is in the turns, or that the host wakes in
// time. The host's turn may belong to a customer that may start nothing for long.
func (s *simulation) listed() {
	now := s.f.nanos(s.now)
	for name, h := range s.f.hosts {
		for _, q := range s.f.queues {
			if q.host != h || !h.ready || q.items.front() == nil ||
				!s.f.mayStart(q.job.customer) {
				continue
			}
			at, free := h.readyAt(q)
			if free && (at <= now || h.place == noPlace || h.wakes > at) {
				s.t.Fatalf("%s is ready, and %s is not looked at though it may start", name,
					q.job.customer.name)
			}
		}
	}
}

// mostBytes is what customers should hold together, in simulations with bounds.
const mostBytes = 640

// weighOne makes a running item hold bytes, or more of them.
func (s *simulation) weighOne() {
	if len(s.running) > 0 && s.rng.IntN(4) == 0 {
		it := s.running[s.rng.IntN(len(s.running))].it
		bytes := s.rng.Int64N(mostBytes)
		s.weights[it] += bytes
		s.f.Weigh(it.Customer, bytes)
	}
}

// forget releases what an item holds.
func (s *simulation) forget(it *Item) {
	s.f.Weigh(it.Customer, -s.weights[it])
	delete(s.weights, it)
}

// finish finishes the running item that ends first.
func (s *simulation) finish(wait time.Duration) {
	next := -1
	for i, r := range s.running {
		if next < 0 || r.until.Before(s.running[next].until) {
			next = i
		}
	}
	if next < 0 && wait == Forever {
		s.t.Fatalf("%d items wait for nothing", s.left)
	}
	if next < 0 || wait != Forever && s.running[next].until.After(s.now.Add(wait)) {
		s.now = s.now.Add(wait)
		return
	}
	r := s.running[next]
	s.running = slices.Delete(s.running, next, next+1)
	s.now = r.until
	answer := Answer{Host: r.it.Host}
	if len(r.hosts) > 0 && s.rng.IntN(10) == 0 { // it has connections
		answer.Throttled, answer.RetryAfter = true, time.Duration(s.rng.IntN(5))*time.Second
		least := answer.RetryAfter
		if least == 0 {
			least = backoffs.First / 2
		}
		h := s.hosts[answer.Host]
		if until := s.now.Add(least); until.After(h.blocked) {
			h.blocked, h.uniform = until, false // the simulation does not know for how long
		}
	}
	s.disconnect(r)
	goesOn := s.rng.IntN(5) == 0
	keeps := goesOn && s.weights[r.it] > 0 && s.rng.IntN(2) == 0
	if !keeps {
		s.forget(r.it)
	}
	s.f.Done(r.it, answer, s.now)
	if goesOn {
		if keeps {
			s.kept[r.it] = true
		}
		// the host may be dropped meanwhile
		s.hosts[r.it.Host].uniform = false
		s.delayed[r.it] = true
		s.f.Resume(r.it, s.now.Add(time.Duration(s.rng.IntN(2000))*time.Millisecond), s.now)
		return
	}
	s.left--
}

// disconnect releases the connections of a running item.
func (s *simulation) disconnect(r *run) {
	for name := range r.hosts {
		s.hosts[name].active--
	}
	clear(r.hosts)
}

// freeOne lets an item run on without its connections.
func (s *simulation) freeOne() {
	if len(s.running) > 0 && s.rng.IntN(4) == 0 {
		r := s.running[s.rng.IntN(len(s.running))]
		s.disconnect(r)
		s.f.Free(r.it, Answer{}, s.now)
	}
}

func TestPaceAndProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{t: t, f: newFrontier(), now: epoch, hosts: map[string]*simHost{},
			delayed: map[*Item]bool{}, weights: map[*Item]int64{}, kept: map[*Item]bool{},
			rng:     rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
			workers: rapid.IntRange(1, 8).Draw(t, "workers")}
		if s.bounded = rapid.Bool().Draw(t, "bounded"); s.bounded {
			s.f.most, s.f.mostBytes = s.workers, mostBytes
		}
		hosts := rapid.IntRange(1, 6).Draw(t, "hosts")
		total := rapid.IntRange(1, 120).Draw(t, "items")
		mixed := rapid.Bool().Draw(t, "mixed paces")
		randomPace := func() Pace {
			return Pace{Rate: []float64{0, 0.5, 1, 3, 1000}[s.rng.IntN(5)],
				Connections: s.rng.IntN(4)}
		}
		for n := range hosts {
			s.hosts[fmt.Sprint("host-", n)] = &simHost{pace: randomPace(), uniform: !mixed,
				own: map[ids.ID]ownStart{}}
		}
		ofJobs := [5]Pace{randomPace(), randomPace(), randomPace(), randomPace(), randomPace()}
		items := make([]*Item, total)
		for n := range items {
			host := fmt.Sprint("host-", s.rng.IntN(hosts))
			pace, job := s.hosts[host].pace, s.rng.IntN(5)
			if mixed {
				pace = ofJobs[job]
			}
			items[n] = item(job%3, job, host, pace)
		}
		var wait time.Duration
		for step := 0; s.left > 0 || len(items) > 0; step++ {
			if step > 100*total {
				t.Fatalf("%d items have not ended", s.left)
			}
			for len(items) > 0 && s.rng.IntN(3) > 0 {
				s.left++
				s.hosts[items[0].Host].waiting++
				s.f.Add(items[0], s.now)
				items = items[1:]
			}
			s.freeOne()
			if s.bounded {
				s.weighOne()
			}
			if wait = s.startAll(); s.left > 0 {
				s.finish(wait)
			}
		}
		forgotten(t, s.f, s.now.Add(time.Hour))
	})
}

// If all customers always have something ready, none waits for more than one turn of each other.
func TestTurnsOverAllHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, now := newFrontier(), epoch
		customers := rapid.IntRange(1, 6).Draw(t, "customers")
		for c := range customers {
			for n := range rapid.IntRange(1, 200).Draw(t, "items") {
				f.Add(item(c, c*10+n%3, fmt.Sprintf("host-%d-%d", c, n%50), Pace{}), now)
			}
		}
		last := map[string]int{}
		for starts := 1; f.Waiting() > 0; starts++ {
			it, _ := f.Next(now)
			if gap := starts - last[it.Customer]; gap > customers {
				t.Fatalf("%s waited for %d starts, with %d customers", it.Customer, gap, customers)
			}
			last[it.Customer] = starts
			f.Done(it, Answer{}, now)
		}
	})
}

// A customer whose hosts are all shared gets as many turns as one with other hosts.
func TestTurnsAtSharedHosts(t *testing.T) {
	f, now := newFrontier(), epoch
	for n := range 300 {
		host := fmt.Sprint("host-", n)
		f.Add(item(1, 1, host, Pace{}), now)
		f.Add(item(2, 2, host, Pace{}), now)
		f.Add(item(2, 2, fmt.Sprint("other-", n), Pace{}), now)
	}
	got := map[string]int{}
	for range 300 {
		it := takeItem(t, f, now)
		got[it.Customer]++
		f.Done(it, Answer{}, now)
	}
	if got["customer-1"] < 140 {
		t.Errorf("turns are %v", got)
	}
}

// A customer with many other hosts is not kept out of a shared one by its only user.
func TestNobodyIsOvertakenTwice(t *testing.T) {
	f, now := newFrontier(), epoch
	for n := range 1000 {
		f.Add(item(2, 2, fmt.Sprint("other-", n), Pace{}), now)
	}
	for range 100 {
		f.Add(item(1, 1, "shared", Pace{}), now)
	}
	f.Add(item(2, 2, "shared", Pace{}), now)
	overtaken := 0
	for range 10 {
		it := takeItem(t, f, now)
		f.Done(it, Answer{}, now)
		switch {
		case it.Host == "shared" && it.Customer == "customer-2":
			return
		case it.Host == "shared":
			overtaken++
		}
	}
	t.Errorf("overtaken %d times", overtaken)
}

// A slow run holds nobody up at a host, and gets its turn when its own pace allows it.
func TestSlowRunsHoldNobodyUp(t *testing.T) {
	f, now := newFrontier(), epoch
	slow, quick := Pace{Rate: 1. / 30, Connections: 2}, Pace{Rate: 1, Connections: 2}
	f.Add(item(3, 3, "a", Pace{Rate: 1. / 20}), now)
	for range 5 {
		f.Add(item(1, 1, "a", slow), now)
	}
	for range 50 {
		f.Add(item(2, 2, "a", quick), now)
	}
	var slowly, quickly []time.Duration
	for f.Waiting() > 0 {
		it, wait := f.Next(now)
		if it == nil {
			now = now.Add(wait)
			continue
		}
		switch at := now.Sub(epoch); it.Pace {
		case slow:
			slowly = append(slowly, at)
		case quick:
			quickly = append(quickly, at)
		}
		f.Done(it, Answer{Host: "a"}, now)
	}
	for i, at := range slowly {
		if least := 30 * time.Second * time.Duration(i); at < least || at > least+6*time.Second {
			t.Errorf("page %d of the slow run starts after %v", i, at)
		}
	}
	if last := quickly[len(quickly)-1]; last > 54*time.Second {
		t.Errorf("50 pages of the quick run took %v", last)
	}
	forgotten(t, f, now.Add(time.Hour))
}

// A run that was skipped for its slower pace runs once the run before it is gone.
func TestSlowerPaceIsNotForgotten(t *testing.T) {
	f, now := newFrontier(), epoch
	first, slow := item(4, 4, "a", Pace{}), item(1, 1, "a", Pace{Connections: 1})
	a, b := item(2, 2, "a", Pace{}), item(3, 3, "a", Pace{})
	f.Add(first, now)
	takeItem(t, f, now)
	for _, it := range []*Item{b, a, slow} { // slow has the first turn over all hosts
		f.Add(it, now)
	}
	for f.hosts["a"].turn(f, 0).items.front() != a {
		f.hosts["a"].served(f.hosts["a"].turn(f, 0))
	}
	f.placeHost(f.hosts["a"], 0)
	started := takeItem(t, f, now)
	f.Done(first, Answer{}, now)
	f.Done(started, Answer{}, now)
	for _, it := range []*Item{a, b} {
		f.Remove(it, now)
	}
	if takeItem(t, f, now) != slow {
		t.Error("another item came")
	}
}

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

var epoch = time.Unix(1_700_000_000, 0)

func newFrontier() *Frontier { return New(epoch, func() float64 { return 0.5 }) }

func jobID(n int) ids.ID { return ids.ID{10: byte(n >> 8), 11: byte(n)} }

func item(customer, job int, host string, pace Pace) *Item {
	return &Item{Customer: fmt.Sprint("customer-", customer), Job: jobID(job), Host: host,
		Pace: pace}
}

// take expects an item at once.
func take(t *testing.T, f *Frontier, now time.Time) *Item {
	t.Helper()
	it, wait := f.Next(now)
	if it == nil {
		t.Fatalf("nothing is ready; the next in %v", wait)
	}
	return it
}

// idle expects nothing to be ready for a while.
func idle(t *testing.T, f *Frontier, now time.Time, want time.Duration) {
	t.Helper()
	it, wait := f.Next(now)
	if it != nil || wait != want {
		t.Fatalf("Next gave %v, %v; want none for %v", it, wait, want)
	}
}

// What could be asked for is counted by hosts: neither what waits for a host's pace nor a second
// page of a host.
func TestReady(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 2}
	for _, host := range []string{"a", "a", "b"} {
		f.Add(item(1, 1, host, pace), now)
	}
	ready := func(want int) {
		t.Helper()
		if got := f.Ready(now); got != want {
			t.Fatalf("%d hosts are ready, want %d", got, want)
		}
	}
	ready(2)
	first := take(t, f, now)
	ready(1)
	take(t, f, now)
	ready(0)
	now = now.Add(time.Second)
	ready(1)
	f.Done(first, Answer{Host: "a"}, now)
	take(t, f, now)
	now = now.Add(time.Second)
	ready(0)
}

// Take passes the turns by, and nothing else.
func TestTake(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 1}
	first, second, other := item(1, 1, "a", pace), item(1, 1, "a", pace), item(2, 2, "b", pace)
	f.Add(other, now)
	f.Add(first, now)
	f.Resume(second, now.Add(2*time.Second), now)
	if f.Take(second, now) || !f.Take(first, now) || f.Take(first, now) {
		t.Fatal("at first")
	}
	now = now.Add(2 * time.Second)
	if f.Take(second, now) {
		t.Fatal("both connections of a host that has one are taken")
	}
	f.Done(first, Answer{Host: "a"}, now)
	if !f.Take(second, now) || take(t, f, now) != other || f.Waiting() != 0 {
		t.Fatal("at last")
	}
	f.Done(second, Answer{}, now)
	f.Done(other, Answer{}, now)
	idle(t, f, now.Add(time.Minute), Forever)
	if len(f.hosts)+len(f.jobs)+len(f.queues)+len(f.shares)+len(f.customers) != 0 {
		t.Errorf("left: %+v", f)
	}
}

func TestHostPace(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 2, Connections: 2}
	for range 4 {
		f.Add(item(1, 1, "a", pace), now)
	}
	first := take(t, f, now)
	idle(t, f, now, 500*time.Millisecond)
	now = now.Add(500 * time.Millisecond)
	take(t, f, now)
	now = now.Add(500 * time.Millisecond)
	idle(t, f, now, Forever) // both connections are taken
	f.Done(first, Answer{Host: "a"}, now)
	third := take(t, f, now)
	now = now.Add(time.Second)
	f.Done(third, Answer{Host: "a"}, now)
	f.Delay("a", 7*time.Second)
	idle(t, f, now, 6*time.Second) // the last start was a second ago
}

func TestAStartThatAskedNothingIsGivenBack(t *testing.T) {
	f, now := newFrontier(), epoch
	for range 6 {
		f.Add(item(1, 1, "a", Pace{Rate: 1}), now)
	}
	f.Done(take(t, f, now), Answer{Unasked: true}, now) // the first start of all
	f.Done(take(t, f, now), Answer{Host: "a"}, now)
	idle(t, f, now, time.Second)
	now = now.Add(time.Second)
	f.Done(take(t, f, now), Answer{Unasked: true}, now)
	late := take(t, f, now)
	now = now.Add(time.Second)
	take(t, f, now)
	f.Done(late, Answer{Unasked: true}, now) // another has started since
	idle(t, f, now, time.Second)
}

func TestDelayIsBounded(t *testing.T) {
	f := newFrontier()
	f.Add(item(1, 1, "a", Pace{}), epoch)
	f.Add(item(1, 1, "a", Pace{}), epoch)
	f.Delay("a", time.Hour)
	take(t, f, epoch)
	idle(t, f, epoch, MaxDelay)
}

func TestBackoff(t *testing.T) {
	for name, c := range map[string]struct {
		answers []Answer
		want    time.Duration
	}{
		"as the host says": {[]Answer{{Throttled: true, RetryAfter: 3 * time.Second}},
			3 * time.Second},
		"no longer than the bound": {[]Answer{{Throttled: true, RetryAfter: time.Hour}},
			MaxBackoff},
		"with jitter": {[]Answer{{Throttled: true}}, 750 * time.Millisecond},
		"twice as long": {[]Answer{{Throttled: true}, {Throttled: true}},
			1500 * time.Millisecond},
		"a good answer ends it": {[]Answer{{Throttled: true}, {}, {Throttled: true}},
			750 * time.Millisecond},
		"bounded": {slices.Repeat([]Answer{{Throttled: true}}, 100),
			45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f, now := newFrontier(), epoch
			for _, answer := range c.answers {
				f.Add(item(1, 1, "a", Pace{}), now)
				it, wait := f.Next(now)
				if it == nil {
					now = now.Add(wait)
					it = take(t, f, now)
				}
				answer.Host = "a"
				f.Done(it, answer, now)
			}
			f.Add(item(1, 1, "a", Pace{}), now)
			idle(t, f, now, c.want)
		})
	}
}

func TestHop(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 1}
	for _, host := range []string{"a", "b", "b"} {
		f.Add(item(1, 1, host, pace), now)
	}
	a := take(t, f, now)
	if f.Hop(a, "a", pace, now) {
		t.Error("a second start at once")
	}
	if f.Hop(a, "c", pace, now) != true {
		t.Error("no start at a host that nobody asks")
	}
	b := take(t, f, now)
	now = now.Add(time.Second)
	if f.Hop(a, "b", pace, now) {
		t.Error("a second connection")
	}
	if !f.Hop(a, "a", pace, now) || !f.Hop(a, "c", pace, now) {
		t.Error("no start where it has a connection")
	}
	idle(t, f, now, Forever) // b waits for its connection
	f.Done(b, Answer{}, now)
	if !f.Hop(a, "b", pace, now) {
		t.Error("no start at a host that has become free")
	}
	now = now.Add(time.Second)
	idle(t, f, now, Forever)
	f.Done(a, Answer{}, now)
	f.Done(take(t, f, now), Answer{}, now)
	forgotten(t, f, now.Add(time.Hour))
}

func TestResumeAndRemove(t *testing.T) {
	f, now := newFrontier(), epoch
	late, queued, gone := item(1, 1, "a", Pace{}), item(1, 1, "a", Pace{}), item(1, 1, "a", Pace{})
	f.Resume(late, now.Add(time.Second), now)
	f.Resume(gone, now.Add(time.Second), now)
	if f.Waiting() != 2 || !f.Remove(gone, now) || f.Remove(gone, now) || f.Waiting() != 1 {
		t.Error("a delayed item is not removed once")
	}
	idle(t, f, now, time.Second)
	now = now.Add(time.Second)
	f.Add(queued, now)
	f.Add(gone, now)
	if !f.Remove(gone, now) {
		t.Error("a waiting item is not removed")
	}
	if it := take(t, f, now); it != late {
		t.Error("a task that has begun does not come first")
	}
	if f.Remove(late, now) {
		t.Error("a running item is removed")
	}
	f.Done(late, Answer{}, now)
	f.Done(take(t, f, now), Answer{}, now)
	forgotten(t, f, now)
}

// forgotten checks that an idle frontier keeps nothing.
func forgotten(t interface {
	Helper()
	Fatalf(string, ...any)
}, f *Frontier, now time.Time) {
	t.Helper()
	if it, wait := f.Next(now); it != nil || wait != Forever {
		t.Fatalf("still something to do: %v, %v", it, wait)
	}
	n := len(f.hosts) + len(f.customers) + len(f.jobs) + len(f.queues) + len(f.shares) +
		f.asleep.len() + f.later.len()
	if n != 0 || f.turns.first != nil {
		t.Fatalf("kept: %d hosts, %d customers, %d jobs, %d queues, %d shares", len(f.hosts),
			len(f.customers), len(f.jobs),
			len(f.queues), len(f.shares))
	}
}

// A customer with 20 pages is not held up by another's thousands of ready hosts, nor by its own
// other run.
func TestSmallRunIsNotHeldUp(t *testing.T) {
	for name, customer := range map[string]int{"of another customer": 2,
		"of the same customer": 1} {
		t.Run(name, func(t *testing.T) {
			f, now := newFrontier(), epoch
			for n := range 5000 {
				f.Add(item(1, 1, fmt.Sprint("host-", n), Pace{}), now)
			}
			f.Done(take(t, f, now), Answer{}, now)
			for n := range 20 {
				f.Add(item(customer, 2, fmt.Sprint("host-", n*200), Pace{}), now)
			}
			left := 20
			for starts := 0; left > 0; starts++ {
				if starts == 80 {
					t.Fatalf("%d pages of the small run wait after %d starts", left, starts)
				}
				it := take(t, f, now)
				if it.Job == jobID(2) {
					left--
				}
				f.Done(it, Answer{}, now)
			}
		})
	}
}

// At one host that lets few through, customers take turns whatever they bring and however they come
// and go.
func TestTurnsAtOneHost(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 1}
	for range 100 {
		f.Add(item(1, 1, "a", pace), now)
	}
	got := map[string]int{}
	for range 60 {
		if len(f.shares) < 3 {
			f.Add(item(2, 2, "a", pace), now) // never more than one, and it comes back at once
			f.Add(item(3, 3, "a", pace), now)
		}
		it := take(t, f, now)
		got[it.Customer]++
		f.Done(it, Answer{}, now)
		if it.Customer != "customer-1" {
			f.Add(it, now)
		}
		now = now.Add(time.Second)
	}
	if got["customer-1"] != 20 || got["customer-2"] != 20 || got["customer-3"] != 20 {
		t.Errorf("turns are %v", got)
	}
}

// simulation runs random work through a frontier with a number of workers, checking every start.
type simulation struct {
	t       *rapid.T
	f       *Frontier
	rng     *rand.Rand
	now     time.Time
	workers int
	running []*run
	hosts   map[string]*simHost
	delayed map[*Item]bool
	left    int // items that have not ended
}

type run struct {
	it    *Item
	until time.Time
	hosts map[string]bool // where it has a connection
}

type simHost struct {
	started time.Time
	begun   bool
	active  int
	spacing time.Duration // after the last start
	// since then nothing waited or ran for a while: it may be forgotten once spacing is over
	lapsed  bool
	blocked time.Time
	waiting int
	pace    Pace // of all its items, when they agree
	uniform bool
}

func (s *simulation) begin(name string, pace Pace) {
	h := s.hosts[name]
	want := pace.spacing()
	if h.lapsed {
		want = min(want, h.spacing)
	}
	if h.begun && s.now.Sub(h.started) < want {
		s.t.Fatalf("a start at %s %v after the last, want %v", name, s.now.Sub(h.started), want)
	}
	h.spacing, h.lapsed = pace.spacing(), false
	if s.now.Before(h.blocked) {
		s.t.Fatalf("a start at %s during its back-off", name)
	}
	h.started, h.begun = s.now, true
}

func (s *simulation) connect(name string, pace Pace) {
	h := s.hosts[name]
	if pace.Connections > 0 && h.active >= pace.Connections {
		s.t.Fatalf("connection %d at %s, want at most %d", h.active+1, name, pace.Connections)
	}
	h.active++
}

// startAll hands out what is ready and returns how long nothing will be.
func (s *simulation) startAll() time.Duration {
	for len(s.running) < s.workers {
		it, wait := s.f.Next(s.now)
		if it == nil {
			if wait <= 0 {
				s.t.Fatalf("nothing is ready, but to be asked again in %v", wait)
			}
			s.conserved()
			return wait
		}
		s.begin(it.Host, it.Pace)
		s.connect(it.Host, it.Pace)
		if !s.delayed[it] {
			s.hosts[it.Host].waiting--
		}
		delete(s.delayed, it)
		until := s.now.Add(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
		r := &run{it: it, until: until, hosts: map[string]bool{it.Host: true}}
		s.hop(r)
		s.running = append(s.running, r)
	}
	return Forever
}

func (s *simulation) hop(r *run) {
	if s.rng.IntN(4) > 0 {
		return
	}
	to := fmt.Sprint("host-", s.rng.IntN(len(s.hosts)))
	if !s.f.Hop(r.it, to, r.it.Pace, s.now) {
		return
	}
	s.begin(to, r.it.Pace)
	if !r.hosts[to] {
		s.connect(to, r.it.Pace)
	}
	r.hosts[to] = true
}

// conserved checks that no worker is left idle while a host could be asked.
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

// finish ends the running item that ends first.
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
	if s.rng.IntN(10) == 0 {
		answer.Throttled, answer.RetryAfter = true, time.Duration(s.rng.IntN(5))*time.Second
		least := answer.RetryAfter
		if least == 0 {
			least = minBackoff / 2
		}
		h := s.hosts[answer.Host]
		if until := s.now.Add(least); until.After(h.blocked) {
			h.blocked, h.uniform = until, false // how long is not for the simulation to say
		}
	}
	for name := range r.hosts {
		h := s.hosts[name]
		h.active--
		h.lapsed = h.lapsed || h.active == 0 && h.waiting == 0
	}
	s.f.Done(r.it, answer, s.now)
	if s.rng.IntN(5) == 0 { // goes on
		// the host may be forgotten meanwhile, with its connections
		s.hosts[r.it.Host].uniform = false
		s.delayed[r.it] = true
		s.f.Resume(r.it, s.now.Add(time.Duration(s.rng.IntN(2000))*time.Millisecond), s.now)
		return
	}
	s.left--
}

func TestPaceAndProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{t: t, f: newFrontier(), now: epoch, hosts: map[string]*simHost{},
			delayed: map[*Item]bool{},
			rng:     rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
			workers: rapid.IntRange(1, 8).Draw(t, "workers")}
		hosts := rapid.IntRange(1, 6).Draw(t, "hosts")
		total := rapid.IntRange(1, 120).Draw(t, "items")
		mixed := rapid.Bool().Draw(t, "mixed paces")
		randomPace := func() Pace {
			return Pace{Rate: []float64{0, 0.5, 1, 3, 1000}[s.rng.IntN(5)],
				Connections: s.rng.IntN(4)}
		}
		for n := range hosts {
			s.hosts[fmt.Sprint("host-", n)] = &simHost{pace: randomPace(), uniform: !mixed}
		}
		items := make([]*Item, total)
		for n := range items {
			host := fmt.Sprint("host-", s.rng.IntN(hosts))
			pace := s.hosts[host].pace
			if mixed {
				pace = randomPace()
			}
			job := s.rng.IntN(5)
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
			if wait = s.startAll(); s.left > 0 {
				s.finish(wait)
			}
		}
		forgotten(t, s.f, s.now.Add(time.Hour))
	})
}

// With customers that always have something ready, none waits for more than one turn of each other.
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

// A customer that shares all its hosts has as many turns as one that has others besides.
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
		it := take(t, f, now)
		got[it.Customer]++
		f.Done(it, Answer{}, now)
	}
	if got["customer-1"] < 140 {
		t.Errorf("turns are %v", got)
	}
}

// Who has many other hosts before a shared one is not kept out of it by one that has only that.
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
		it := take(t, f, now)
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

// A run that was passed over for its slower pace comes when the one before it has gone.
func TestSlowerPaceIsNotForgotten(t *testing.T) {
	f, now := newFrontier(), epoch
	first, slow := item(4, 4, "a", Pace{}), item(1, 1, "a", Pace{Connections: 1})
	a, b := item(2, 2, "a", Pace{}), item(3, 3, "a", Pace{})
	f.Add(first, now)
	take(t, f, now)
	for _, it := range []*Item{b, a, slow} { // slow has the first turn over all hosts
		f.Add(it, now)
	}
	for f.hosts["a"].turn(f).items.front() != a {
		f.hosts["a"].served(f.hosts["a"].turn(f))
	}
	f.settle(f.hosts["a"], 0)
	started := take(t, f, now)
	f.Done(first, Answer{}, now)
	f.Done(started, Answer{}, now)
	for _, it := range []*Item{a, b} {
		f.Remove(it, now)
	}
	if take(t, f, now) != slow {
		t.Error("another item came")
	}
}

func BenchmarkItem(b *testing.B) {
	for _, c := range []struct{ hosts, jobs int }{{1, 1}, {1000, 1}, {1000, 20}} {
		b.Run(fmt.Sprintf("hosts=%d/jobs=%d", c.hosts, c.jobs), func(b *testing.B) {
			f, now := newFrontier(), epoch
			names := make([]string, c.hosts)
			for n := range names {
				names[n] = fmt.Sprint("www.host-", n, ".test")
			}
			items := make([]*Item, 4*c.hosts)
			for n := range items {
				items[n] = item(n%3, n%c.jobs, names[n%c.hosts], Pace{Rate: 1e6, Connections: 1000})
				items[n].Customer = fmt.Sprint("customer-", n%c.jobs)
				f.Add(items[n], now)
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				it, _ := f.Next(now)
				if it == nil {
					b.Fatal("nothing is ready")
				}
				f.Done(it, Answer{}, now)
				f.Add(it, now)
			}
		})
	}
}

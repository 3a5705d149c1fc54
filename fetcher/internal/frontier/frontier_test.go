package frontier

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

var epoch = time.Unix(1_700_000_000, 0)

func newFrontier() *Frontier { return New(epoch, 0, 0, func() float64 { return 0.5 }) }

func jobID(n int) ids.ID { return ids.ID{10: byte(n >> 8), 11: byte(n)} }

func item(customer, job int, host string, pace Pace) *Item {
	return &Item{Customer: fmt.Sprint("customer-", customer), Job: jobID(job), Host: host,
		Pace: pace}
}

// takeItem expects an item at once.
func takeItem(t *testing.T, f *Frontier, now time.Time) *Item {
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

// Ready counts hosts: not those that wait for their pace, and not a second page of a host.
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
	first := takeItem(t, f, now)
	ready(1)
	takeItem(t, f, now)
	ready(0)
	now = now.Add(time.Second)
	ready(1)
	f.Done(first, Answer{Host: "a"}, now)
	takeItem(t, f, now)
	now = now.Add(time.Second)
	ready(0)
}

// An item that keeps bytes can start before others of its run that may not begin.
func TestTakeFromBehind(t *testing.T) {
	f, now := newFrontier(), epoch
	first, second := item(1, 1, "a", Pace{}), item(1, 1, "a", Pace{})
	f.Add(first, now)
	f.Add(second, now)
	if !f.TakeItem(second, false, now) || takeItem(t, f, now) != first || f.Waiting() != 0 {
		t.Fatal("the second cannot be taken before the first")
	}
}

// TakeItem ignores the turns, and nothing else.
func TestTake(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 1}
	first, second, other := item(1, 1, "a", pace), item(1, 1, "a", pace), item(2, 2, "b", pace)
	f.Add(other, now)
	f.Add(first, now)
	f.Resume(second, now.Add(2*time.Second), now)
	if f.TakeItem(second, false, now) || !f.TakeItem(first, false, now) ||
		f.TakeItem(first, false, now) {
		t.Fatal("at first")
	}
	now = now.Add(2 * time.Second)
	if f.TakeItem(second, false, now) {
		t.Fatal("both connections of a host that has one are taken")
	}
	f.Done(first, Answer{Host: "a"}, now)
	if !f.TakeItem(second, false, now) || takeItem(t, f, now) != other || f.Waiting() != 0 {
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
	first := takeItem(t, f, now)
	idle(t, f, now, 500*time.Millisecond)
	now = now.Add(500 * time.Millisecond)
	takeItem(t, f, now)
	now = now.Add(500 * time.Millisecond)
	idle(t, f, now, Forever) // both connections are in use
	f.Done(first, Answer{Host: "a"}, now)
	third := takeItem(t, f, now)
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
	f.Done(takeItem(t, f, now), Answer{Unasked: true}, now) // the very first start
	f.Done(takeItem(t, f, now), Answer{Host: "a"}, now)
	idle(t, f, now, time.Second)
	now = now.Add(time.Second)
	f.Done(takeItem(t, f, now), Answer{Unasked: true}, now)
	late := takeItem(t, f, now)
	now = now.Add(time.Second)
	takeItem(t, f, now)
	f.Done(late, Answer{Unasked: true}, now) // another item has started since
	idle(t, f, now, time.Second)
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
					it = takeItem(t, f, now)
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
	a := takeItem(t, f, now)
	if f.Hop(a, "a", pace, now) {
		t.Error("a second start at once")
	}
	if f.Hop(a, "c", pace, now) != true {
		t.Error("no start at a host that nobody asks")
	}
	b := takeItem(t, f, now)
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
	f.Done(takeItem(t, f, now), Answer{}, now)
	forgotten(t, f, now.Add(time.Hour))
}

// A host with an open connection goes before the run's other hosts, but not before other runs. A
// list over many hosts opens only as many connections at once as its pace needs.
func TestOpenHostsComeFirst(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 2}
	for n := range 100 {
		f.Add(item(1, 1, fmt.Sprint("host-", n), pace), now)
	}
	open, most := map[string]bool{}, 0
	for turns := 0; turns < 200; turns++ {
		it, wait := f.Next(now)
		if it == nil {
			now = now.Add(wait)
			turns--
			continue
		}
		again := !open[it.Host]
		if f.Done(it, Answer{Host: it.Host}, now); again {
			open[it.Host], it.Open = true, true
			f.Resume(it, now, now)
		} else {
			delete(open, it.Host)
		}
		if left := f.Left(nil); again != (len(left) == 0) || !again && left[0] != it.Host {
			t.Fatalf("left %v after %s, which goes on: %t", left, it.Host, again)
		}
		most = max(most, len(open))
		now = now.Add(100 * time.Millisecond)
	}
	if len(open) != 0 || most > 11 {
		t.Errorf("%d hosts were open at once, %d at the end", most, len(open))
	}

	first := item(1, 1, "a", Pace{})
	first.Open = true
	f.Resume(first, now, now)
	f.Add(item(1, 1, "b", Pace{}), now)
	f.Add(item(2, 2, "c", Pace{}), now)
	runs := map[ids.ID]bool{takeItem(t, f, now).Job: true, takeItem(t, f, now).Job: true}
	if len(runs) != 2 {
		t.Error("a run's open host came before another run's turn")
	}
}

// A host is left when nothing waits or runs there any more, whether or not its pace is over.
func TestLeft(t *testing.T) {
	for _, pace := range []Pace{{}, {Rate: 1}} {
		f, now := newFrontier(), epoch
		f.Add(item(1, 1, "a", pace), now)
		f.Add(item(1, 1, "a", pace), now)
		it := takeItem(t, f, now)
		if !f.Hop(it, "b", pace, now) {
			t.Fatal("no hop")
		}
		f.Done(it, Answer{}, now)
		if left := f.Left(nil); !slices.Equal(left, []string{"b"}) {
			t.Errorf("left %v while an item waits at a", left)
		}
		now = now.Add(time.Second)
		f.Done(takeItem(t, f, now), Answer{}, now)
		f.Resume(it, now, now) // before anybody asks
		if left := f.Left(nil); len(left) != 0 {
			t.Errorf("left %v although an item came back", left)
		}
		now = now.Add(time.Second)
		f.Done(takeItem(t, f, now), Answer{}, now)
		if left := f.Left(nil); !slices.Equal(left, []string{"a"}) {
			t.Errorf("left %v at the end", left)
		}
	}
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
	if it := takeItem(t, f, now); it != late {
		t.Error("a task that has begun does not come first")
	}
	if f.Remove(late, now) {
		t.Error("a running item is removed")
	}
	f.Done(late, Answer{}, now)
	f.Done(takeItem(t, f, now), Answer{}, now)
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

// A customer with 20 pages is not held up by another's thousands of ready hosts, or by its own
// other run.
func TestSmallRunIsNotHeldUp(t *testing.T) {
	for name, customer := range map[string]int{"of another customer": 2,
		"of the same customer": 1} {
		t.Run(name, func(t *testing.T) {
			f, now := newFrontier(), epoch
			for n := range 5000 {
				f.Add(item(1, 1, fmt.Sprint("host-", n), Pace{}), now)
			}
			f.Done(takeItem(t, f, now), Answer{}, now)
			for n := range 20 {
				f.Add(item(customer, 2, fmt.Sprint("host-", n*200), Pace{}), now)
			}
			left := 20
			for starts := 0; left > 0; starts++ {
				if starts == 80 {
					t.Fatalf("%d pages of the small run wait after %d starts", left, starts)
				}
				it := takeItem(t, f, now)
				if it.Job == jobID(2) {
					left--
				}
				f.Done(it, Answer{}, now)
			}
		})
	}
}

// At one slow host, customers take turns, whatever they bring and however they come and go.
func TestTurnsAtOneHost(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1, Connections: 1}
	for range 100 {
		f.Add(item(1, 1, "a", pace), now)
	}
	got := map[string]int{}
	for range 60 {
		if len(f.shares) < 3 {
			f.Add(item(2, 2, "a", pace), now) // one at a time, and it returns at once
			f.Add(item(3, 3, "a", pace), now)
		}
		it := takeItem(t, f, now)
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

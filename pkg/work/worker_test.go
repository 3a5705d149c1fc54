package work_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/work"
)

func TestWorkIsDoneToItsEnd(t *testing.T) {
	in(t, func(w *world) {
		for n := range 40 {
			w.enqueue(customer(n%7), uint64(1+n))
		}
		a, b := w.start("a"), w.start("b")
		w.awaitSettled(10 * time.Minute)
		if repeated := w.exact(); repeated > 0 {
			t.Errorf("%d units are written twice, and nobody failed", repeated)
		}
		if a.table.count() == 0 || b.table.count() == 0 {
			t.Error("one node did all")
		}
		for _, p := range []*process{a, b} {
			for i := 1; i < len(p.table.progress); i++ {
				if gap := p.table.progress[i].Sub(p.table.progress[i-1]); gap < 10*time.Second {
					t.Errorf("%s tells of progress %v after it did", p.name, gap)
				}
			}
		}
	})
}

// TestTenThousandOpenItems: open items cost nothing, and finished ones are reported in batches.
func TestTenThousandOpenItems(t *testing.T) {
	in(t, func(w *world) {
		for n := range 10_000 {
			w.enqueue(customer(n/100), 1)
		}
		const nodes = 3
		var all []*process
		for n := range nodes {
			all = append(all, w.start(fmt.Sprint("n", n), work.Kind{Name: work.Orphans}))
		}
		commands := func(seconds int) (n int) {
			for _, p := range all {
				n -= p.table.count()
			}
			pass(time.Duration(seconds) * time.Second)
			for _, p := range all {
				n += p.table.count()
			}
			return n
		}
		if n := commands(60); n > 0 {
			t.Errorf("%d commands, and nobody does that kind", n)
		}
		for n := range nodes {
			kind := w.units(nil, 10*time.Millisecond)
			kind.Held = 256
			all = append(all, w.start(fmt.Sprint("m", n), kind))
		}
		seconds, n := 0, 0
		for ; w.open() > 0; seconds += 10 {
			n += commands(10)
			if seconds > 600 {
				t.Fatalf("%d items are open", w.open())
			}
		}
		t.Logf("10,000 items in %d s with %d commands: %.2f a second", seconds, n,
			float64(n)/float64(seconds))
		if n > 2*seconds {
			t.Errorf("%d commands in %d s", n, seconds)
		}
		w.exact()
	})
}

// TestASilentNodeIsSoonAtWork: a single item begins without waiting for a turn. Later items wait
// for the next turn.
func TestASilentNodeIsSoonAtWork(t *testing.T) {
	in(t, func(w *world) {
		p := w.start("a")
		pass(time.Minute)
		before := p.table.count()
		w.enqueue("ann", 1) // a tenth of a second
		pass(150 * time.Millisecond)
		if w.open() == 0 || len(p.table.Held()) != 1 {
			t.Error("a silent node has not claimed what came")
		}
		pass(time.Second)
		if w.open() > 0 {
			t.Error("a node has not told what it ended in the second after its claim")
		}
		for range 10 {
			w.enqueue("ann", 1)
			pass(100 * time.Millisecond)
		}
		if n := p.table.count() - before; n < 2 || n > 4 {
			t.Errorf("%d exchanges in 2.15 s", n)
		}
		w.awaitSettled(time.Minute)
		w.exact()
	})
}

func TestAnotherNodeResumes(t *testing.T) {
	in(t, func(w *world) {
		const units = 600 // a minute
		w.enqueue("ann", units)
		a, b := w.start("a"), w.start("b")
		pass(45 * time.Second)
		owner, other := a, b
		if b.table.count() > a.table.count() {
			owner, other = b, a
		}
		owner.kill()
		pass(29 * time.Second) // its lease was renewed at most ten seconds ago
		if len(other.table.Held()) > 0 && len(owner.table.Held()) > 0 {
			t.Error("two hold one item")
		}
		w.awaitSettled(2 * time.Minute)
		if repeated := w.exact(); repeated > 110 {
			t.Errorf("%d units are done again: more than ten seconds of work", repeated)
		}
	})
}

// TestAPauseBeyondTheLease: a node that stands still loses its items. Its later reports are
// ignored, even if its step ends beside the new owner's.
func TestAPauseBeyondTheLease(t *testing.T) {
	in(t, func(w *world) {
		id := w.enqueue("ann", 50)
		frozen, goOn := make(chan struct{}), make(chan struct{})
		var passed atomic.Int64
		stuck := w.units(nil, 0)
		stuck.Step = func(_ context.Context, item work.Item) (work.Outcome, error) {
			if passed.Add(1) == 10 {
				close(frozen)
				<-goOn // even if the context has ended
			}
			return w.write(nil, item)
		}
		a := w.start("a", stuck)
		<-frozen
		a.hear(false)
		b := w.start("b")
		pass(31 * time.Second)
		if item := w.control.View().WorkItem(id); item == nil || item.Node != "b" {
			t.Fatalf("after the lease: %+v", item)
		}
		a.hear(true)
		close(goOn)
		pass(time.Second)
		if item := w.control.View().WorkItem(id); item != nil && item.Node != "b" {
			t.Fatalf("what lost its lease is heard: %+v", item)
		}
		w.awaitSettled(time.Minute)
		w.exact()
		if b.table.count() == 0 {
			t.Error("the other did nothing")
		}
	})
}

// TestTwoOwnersAtOnce: a node is cut off, and its steps ignore the end of its lease. It continues
// its items beside the next owner, for minutes. That only causes repeats.
func TestTwoOwnersAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		in(t, func(w *world) {
			random := rand.New(rand.NewPCG(seed, 1))
			for c := range 6 {
				w.enqueue(customer(c), uint64(300+random.IntN(600)))
			}
			heedless := w.units(nil, 0)
			heedless.Step = func(_ context.Context, item work.Item) (work.Outcome, error) {
				takes := 50 + readNumber(item.Progress)*37%100
				<-time.After(time.Duration(takes) * time.Millisecond)
				outcome, err := w.write(nil, item)
				for n := readNumber(outcome.Progress); n > 0 && n%50 == 0 && err == nil; n = 0 {
					<-time.After(40 * time.Second) // longer than the lease, within one step
				}
				return outcome, err
			}
			a := w.start("a", heedless)
			pass(3 * time.Second)
			b := w.start("b")
			for range 4 {
				a.hear(false)
				pass(time.Duration(31+random.IntN(30)) * time.Second)
				a.hear(true)
				pass(time.Duration(1+random.IntN(15)) * time.Second)
			}
			w.awaitSettled(time.Hour)
			if repeated := w.exact(); repeated == 0 {
				t.Errorf("seed %d: the two never worked on one item", seed)
			}
			if b.table.count() == 0 {
				t.Error("the other did nothing")
			}
		})
	}
}

// TestKilledAtEachPoint kills the node at each point, several times, and restarts it. In the end
// every unit is there, and nothing else.
func TestKilledAtEachPoint(t *testing.T) {
	for _, at := range []string{"work.before_exchange", "work.after_exchange",
		"work." + kindOfTest + ".before_step", "work." + kindOfTest + ".after_step"} {
		fired := 0
		for n := range int64(12) {
			in(t, func(w *world) {
				for c := range 3 {
					w.enqueue(customer(c), uint64(200+100*c))
				}
				if !w.killAt(at, 1+n*n) {
					return
				}
				fired++
				w.start("a")
				w.awaitSettled(10 * time.Minute)
				w.exact()
			})
		}
		if t.Logf("%s fired %d times", at, fired); fired < 3 {
			t.Errorf("%s fired %d times", at, fired)
		}
	}
}

// killAt kills a node when it passes a point for the n-th time; false if it does not get there.
func (w *world) killAt(point string, n int64) bool {
	w.t.Helper()
	var passed atomic.Int64
	var p *process
	ready := make(chan struct{})
	p = w.startWith("a", func(name string) {
		<-ready
		if name == point && passed.Add(1) == n {
			p.kill()
		}
	})
	close(ready)
	for !p.isDead() {
		if w.open() == 0 {
			return false
		}
		pass(time.Second)
	}
	return true
}

func TestAStopGivesItsItemsBack(t *testing.T) {
	in(t, func(w *world) {
		id := w.enqueue("ann", 200)
		a := w.start("a")
		pass(5 * time.Second)
		a.stop()
		<-a.ended
		item := w.control.View().WorkItem(id)
		if item.State != client.WorkReady || readNumber(item.Progress) < 20 {
			t.Fatalf("after the stop: %+v", item)
		}
		w.start("b")
		w.awaitSettled(time.Minute)
		if repeated := w.exact(); repeated > 0 {
			t.Errorf("%d units are done again after a clean stop", repeated)
		}
	})
}

func TestFailuresAreTriedAgainAndGivenUp(t *testing.T) {
	in(t, func(w *world) {
		flaky, hopeless, panics := w.enqueue("ann", 1), w.enqueue("bob", 1), w.enqueue("cid", 1)
		var flakes, panicked int
		kind := work.Kind{Name: kindOfTest, Tries: 4}
		var p *process
		kind.Step = func(_ context.Context, item work.Item) (work.Outcome, error) {
			switch item.ID {
			case hopeless:
				return work.Outcome{}, work.GiveUp(errors.New("it is gone"))
			case panics:
				panicked++
				panic("a slip")
			}
			if flakes++; flakes < 4 {
				return work.Outcome{}, errors.New("not yet")
			}
			return w.write(p, item)
		}
		p = w.start("a", kind)
		pass(20 * time.Second)
		view := w.control.View()
		if got := view.WorkItem(hopeless); got.State != client.WorkFailed ||
			got.Error != "it is gone" {
			t.Errorf("what cannot be done: %+v", got)
		}
		if got := view.WorkItem(flaky); got.State != client.WorkWaiting || got.Failures == 0 {
			t.Errorf("what failed: %+v", got)
		}
		pass(5 * time.Minute)
		view = w.control.View()
		if got := view.WorkItem(flaky); got != nil || flakes != 4 {
			t.Errorf("what failed three times: %+v after %d tries", got, flakes)
		}
		if got := view.WorkItem(panics); got == nil || got.State != client.WorkFailed ||
			panicked != 4 {
			t.Errorf("what panics: %+v after %d tries", got, panicked)
		}
	})
}

// TestRecurringWork: all nodes share one item. It becomes due when its step said so, or when a node
// begins to do the kind.
func TestRecurringWork(t *testing.T) {
	in(t, func(w *world) {
		var ran atomic.Int64
		var leads atomic.Bool
		kind := work.Kind{Name: kindOfTest, Recurring: true, AtStart: true, Ready: leads.Load,
			Step: func(context.Context, work.Item) (work.Outcome, error) {
				ran.Add(1)
				return work.Rest(number(uint64(ran.Load())), time.Hour), nil
			}}
		want := func(n int64, when string) {
			t.Helper()
			if got := ran.Load(); got != n || w.open() > 1 {
				t.Errorf("%s: it ran %d times, want %d; %d items", when, got, n, w.open())
			}
		}
		w.start("a", kind)
		pass(time.Minute)
		want(0, "before anybody may")
		leads.Store(true)
		pass(time.Minute)
		want(1, "when one may")
		pass(2 * time.Hour)
		want(3, "two hours later")
		leads.Store(false)
		pass(3 * time.Second)
		leads.Store(true)
		pass(5 * time.Second)
		want(4, "when one may again")
		always := kind
		always.AtStart, always.Ready = false, nil
		w.start("b", always)
		pass(5 * time.Second)
		want(4, "with another node")
	})
}

// TestNothingIsDestroyedInTheGrace: exactly the destroying kinds wait until a restore no longer
// needs the data.
func TestNothingIsDestroyedInTheGrace(t *testing.T) {
	waits := map[string]bool{work.Backup: false, work.Blobs: false, work.Changes: false,
		work.Contracts: false, work.Email: false, work.Erase: false, work.Expire: true,
		work.Export:    false,
		work.Catalogue: false, work.Harvest: false, work.Import: false, work.Launch: false,
		work.LinkStates: false, work.Match: false, work.Merge: false, work.Orphans: false,
		work.Recount: false, work.ReExtract: false, work.Remove: true, work.Retain: true,
		work.Webhooks: false, work.Wipe: true}
	for _, name := range work.Kinds() {
		t.Run(name, func(t *testing.T) {
			wait, said := waits[name]
			if !said {
				t.Fatal("say whether it waits")
			}
			in(t, func(w *world) {
				w.spared = time.Now().Add(time.Hour)
				var ran atomic.Int64
				w.start("a", work.Kind{Name: name, Recurring: true, AtStart: true,
					Step: func(context.Context, work.Item) (work.Outcome, error) {
						ran.Add(1)
						return work.Rest(nil, 100*time.Hour), nil
					}})
				pass(50 * time.Minute)
				if got := ran.Load() == 0; got != wait {
					t.Errorf("it waits: %v", got)
				}
				pass(20 * time.Minute)
				if got := ran.Load(); got != 1 {
					t.Errorf("it ran %d times", got)
				}
			})
		})
	}
}

// TestAKindThatMayNotBeDoneIsReleased at once.
func TestAKindThatMayNotBeDoneIsReleased(t *testing.T) {
	in(t, func(w *world) {
		id := w.enqueue("ann", 100)
		var leads atomic.Bool
		leads.Store(true)
		var p *process
		ready := make(chan struct{})
		kind := work.Kind{Name: kindOfTest, Ready: leads.Load,
			Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
				<-ready
				if !clock.Pause(ctx, clock.System{}, time.Second) {
					return work.Outcome{}, ctx.Err()
				}
				return w.write(p, item)
			}}
		p = w.start("a", kind)
		close(ready)
		pass(20 * time.Second)
		leads.Store(false)
		pass(3 * time.Second)
		if item := w.control.View().WorkItem(id); item.State != client.WorkReady ||
			item.Failures > 0 || readNumber(item.Progress) < 10 {
			t.Fatalf("%+v", item)
		}
		leads.Store(true)
		w.awaitSettled(3 * time.Minute)
		if repeated := w.exact(); repeated > 0 {
			t.Errorf("%d units are done again", repeated)
		}
	})
}

// TestWhatTheTableTakesAwayEnds: work ends on an item that a restore has freed, and resumes when
// the table says so.
func TestWhatTheTableTakesAwayEnds(t *testing.T) {
	in(t, func(w *world) {
		w.enqueue("ann", 1)
		var begun, cut atomic.Int64
		p := w.start("a", work.Kind{Name: kindOfTest, Held: 2,
			Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
				begun.Add(1)
				<-ctx.Done()
				cut.Add(1)
				return work.Outcome{}, ctx.Err()
			}})
		pass(5 * time.Second)
		if begun.Load() != 1 || cut.Load() != 0 {
			t.Fatalf("begun %d times, cut off %d times", begun.Load(), cut.Load())
		}
		p.rob(true)
		w.enqueue("bob", 1) // causes a turn
		pass(3 * time.Second)
		if cut.Load() != 1 {
			t.Errorf("what was taken away is cut off %d times", cut.Load())
		}
		p.rob(false)
		w.enqueue("cid", 1)
		pass(20 * time.Second)
		if begun.Load() != 2 {
			t.Errorf("begun %d times, want one of the two at a time again", begun.Load())
		}
	})
}

func TestProgressIsBounded(t *testing.T) {
	in(t, func(w *world) {
		id := w.enqueue("ann", 1)
		w.start("a", work.Kind{Name: kindOfTest,
			Step: func(context.Context, work.Item) (work.Outcome, error) {
				return work.GoOn(make([]byte, work.MaxProgress+1)), nil
			}})
		pass(10 * time.Second)
		if got := w.control.View().WorkItem(id); got.State != client.WorkFailed {
			t.Errorf("%+v", got)
		}
	})
}

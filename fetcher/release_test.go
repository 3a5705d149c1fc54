package fetcher

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

var onlyShard = []client.ShardEpoch{{Shard: 0, Epoch: 1}}

// orders lets a test set the answers to heartbeats.
type orders struct {
	r      *rig
	leases client.Leases
}

func (o *orders) to(leases client.Leases) {
	leases.For = 3 * time.Second
	o.r.control.change(func() { o.leases = leases })
}

// startOrdered runs a fetcher of one shard, with heartbeat answers from orders.
func startOrdered(t *testing.T, recipe model.Recipe, change func(*rig, *Config)) (*rig, *orders,
	func()) {
	t.Helper()
	o := &orders{leases: client.Leases{For: 3 * time.Second, Hold: onlyShard}}
	r, stop := start(t, 1, recipe, func(r *rig, config *Config) {
		o.r = r
		r.control.answer = func(client.Heartbeat) (client.Leases, error) { return o.leases, nil }
		if change != nil {
			change(r, config)
		}
	})
	return r, o, stop
}

func unrobotic(recipe model.Recipe) model.Recipe {
	recipe.Politeness.IgnoreRobots = true
	return recipe
}

// A release waits for no host: open requests finish, and waiting tasks are laid down, including
// those that arrive meanwhile.
func TestReleaseWaitsForNoSlowHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.01}
			r.web.latency = 4 * time.Second
		})
		defer stop()
		for seq := range 10 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(time.Second) // the first is under way
		o.to(client.Leases{Release: onlyShard})
		pass(2 * time.Second)
		r.send(r.task(10, "http://b.test/"))
		r.publish(0, stream.EncodeMarker(model.Marker{Leader: 1, Number: 1}))
		synctest.Wait()
		if holding(r.control) != "[{0 1}]" {
			t.Errorf("holding %s while a page is under way", holding(r.control))
		}
		if p := r.pages(1)[0]; p.Unit.Seq != 0 {
			t.Errorf("seq %d is the first page", p.Unit.Seq)
		}
		r.nothingMore()
		if holding(r.control) != "[]" || len(r.web.startsAt("a.test")) != 1 ||
			len(r.web.startsAt("b.test")) != 0 {
			t.Errorf("holding %s after %v", holding(r.control), r.web.asked)
		}
	})
}

// A marker that passes during a release names the laid-down tasks: they are not lost while the
// shard is held.
func TestMarkerDuringRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.01}
			r.web.latency = 10 * time.Second
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://a.test/"))
		pass(time.Second)
		o.to(client.Leases{Release: onlyShard})
		pass(2 * time.Second)
		r.send(r.task(2, "http://a.test/"))
		r.publish(0, stream.EncodeMarker(model.Marker{Leader: 1, Number: 7}))
		synctest.Wait()
		messages, err := r.reader.Fetch(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		_, marker, err := stream.DecodePages(messages[0].Value)
		if err != nil || marker == nil || len(marker.Open) != 1 || len(marker.Open[0].Seqs) != 3 {
			t.Errorf("the marker is %+v, %v", marker, err)
		}
		_ = r.reader.Commit(t.Context(), messages)
	})
}

// A release ends a chain at its current page, and finishes the tries of a page that failed once.
func TestReleaseFinishesPagesThatHaveBegun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		six := 6
		chain := unrobotic(paged(model.Pagination{Type: model.URLPageParam, Param: "p", Max: &six}))
		r, o, stop := startOrdered(t, chain, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.2, Connections: 1}
			r.web.latency = time.Second
			r.web.fails("http://b.test/", 2, web.Failure{Code: fault.PageConnect, Retry: true})
			r.web.redirect("http://c.test/", "http://d.test/")
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://b.test/"))
		pass(5500 * time.Millisecond) // two pages of a and two failures of b
		r.send(r.task(3, "http://d.test/?p=0"), r.task(2, "http://c.test/"))
		pass(1200 * time.Millisecond) // d, where c leads, has had its start
		o.to(client.Leases{Release: onlyShard})
		pass(time.Minute)
		if holding(r.control) != "[]" {
			t.Fatalf("holding %s", holding(r.control))
		}
		got := map[uint32][]string{}
		for _, p := range r.pages(int(r.memory.Lag(stream.Pages))) {
			got[p.Unit.Seq] = append(got[p.Unit.Seq], shorthand(p))
		}
		if len(got[0]) != 2 || len(got[1]) != 1 || len(got[2]) != 1 ||
			len(r.web.startsAt("b.test")) != 3 ||
			len(r.web.startsAt("d.test")) != 2 {
			t.Errorf("pages %v after %v", got, r.web.asked)
		}
		asked := map[string]int{}
		for _, url := range r.web.asked {
			asked[url]++
		}
		if asked["http://c.test/"] != 1 {
			t.Errorf("the redirect is asked %d times", asked["http://c.test/"])
		}
		r.nothingMore()
	})
}

// A page that cannot be finished within one more time-out does not hold up a release.
func TestReleaseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Timeout = 10 * time.Second
			r.web.fails("http://a.test/", -1,
				web.Failure{Code: fault.PageStatus, Status: 503, Retry: true,
					RetryAfter: time.Minute})
			r.web.at("http://b.test/", func(ctx context.Context, _ web.Request) (*web.Page,
				error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://b.test/"))
		pass(500 * time.Millisecond)
		o.to(client.Leases{Release: onlyShard})
		pass(time.Second + 2*10*time.Second + hold.SweepEvery)
		synctest.Wait()
		if holding(r.control) != "[]" {
			t.Errorf("holding %s", holding(r.control))
		}
		if n := len(r.web.startsAt("a.test")); n != 1 {
			t.Errorf("%d requests of a host that asked for a minute", n)
		}
	})
}

// When the leader cancels a release, everything goes on where it was.
func TestReleaseTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.25}
			r.web.latency = 3 * time.Second
		})
		defer stop()
		for seq := range 5 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(100 * time.Millisecond)
		o.to(client.Leases{Release: onlyShard})
		pass(1500 * time.Millisecond)
		r.send(r.task(5, "http://a.test/"))
		synctest.Wait()
		if c := r.f.Counts(); c.Open != 6 || c.Waiting != 0 {
			t.Errorf("while it is being released: %+v", c)
		}
		o.to(client.Leases{Hold: onlyShard})
		r.pages(6)
		if n := len(r.web.startsAt("a.test")); n != 6 {
			t.Errorf("%d requests for 6 pages", n)
		}
	})
}

// When a run ends its tasks are answered even if they are laid down.
func TestEndedRunDuringRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.01}
			r.web.latency = 20 * time.Second
		})
		defer stop()
		for seq := range 5 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(100 * time.Millisecond)
		o.to(client.Leases{Release: onlyShard})
		pass(1500 * time.Millisecond)
		r.control.end(jobID)
		pass(2 * hold.SweepEvery)
		for _, p := range r.pages(4) {
			if shorthand(p) != "0 cancelled last" {
				t.Errorf("seq %d is %s", p.Unit.Seq, shorthand(p))
			}
		}
	})
}

// A process that stops says so, finishes open requests although its leases name the shard, and
// takes no more tasks.
func TestCleanStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.5, Connections: 10}
			r.web.latency = 3 * time.Second
		})
		for seq := range 10 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(2500 * time.Millisecond)
		began := time.Now()
		stop()
		if took := time.Since(began); took < 2500*time.Millisecond || took > 4*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if c := r.f.Counts(); c.Pages != 2 {
			t.Errorf("%d pages are passed on", c.Pages)
		}
		if n := len(r.web.startsAt("a.test")); n != 2 {
			t.Errorf("%d requests", n)
		}
		r.control.change(func() {
			last := r.control.beats[len(r.control.beats)-1]
			if !last.Leaving || len(last.Holding) != 0 || last.Open != 0 {
				t.Errorf("the last heartbeat is %+v", last)
			}
		})
	})
}

// A stop does not wait for a log that accepts nothing, or for a leader that does not answer.
func TestStopIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.StopWithin = 5 * time.Second
			r.web.latency = time.Hour
			config.Timeout = time.Hour
		})
		r.send(r.task(0, "http://a.test/"))
		pass(time.Second)
		r.control.change(func() {
			r.control.answer = func(client.Heartbeat) (client.Leases,
				error) {
				return client.Leases{}, errTest
			}
		})
		began := time.Now()
		stop()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("the stop took %v", took)
		}
	})
}

// leap is a clock that can be set ahead, as after a suspension.
type leap struct {
	clock.System
	by atomic.Int64 // nanoseconds
}

func (l *leap) Now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

// A process that slept past its lease starts nothing when it wakes, before or after it learns of
// that. Results of earlier requests are published or discarded.
func TestSuspendedPastTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asleep := &leap{}
		r, _, stop := startOrdered(t, unrobotic(title), func(r *rig, config *Config) {
			config.Clock = asleep
			config.Pace = Pace{Rate: 10}
			config.Workers = 4
			r.web.latency = 950 * time.Millisecond
		})
		defer stop()
		for seq := range 100 {
			r.send(r.task(seq, "http://a.test/"))
		}
		// just before the next heartbeat and the next sweep; all workers are busy
		pass(900 * time.Millisecond)
		before := len(r.web.startsAt("a.test"))
		r.control.change(func() {
			asleep.by.Store(int64(time.Minute))
			r.control.answer = func(client.Heartbeat) (client.Leases,
				error) {
				return client.Leases{}, errTest
			}
		})
		r.send(r.task(100, "http://a.test/")) // wakes the waiter for a turn
		pass(time.Minute)
		synctest.Wait()
		if n := len(r.web.startsAt("a.test")); n != before {
			t.Errorf("%d requests after the lease's end", n-before)
		}
		if c := r.f.Counts(); c.Shards != 0 || c.Open != 0 || c.Waiting != 0 {
			t.Errorf("still held: %+v", c)
		}
	})
}

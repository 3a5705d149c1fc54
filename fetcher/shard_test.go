package fetcher

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

func holding(c *fakeControl) string {
	type lease struct {
		shard uint16
		epoch uint64
	}
	held := []lease{}
	for _, h := range c.lastBeat() {
		held = append(held, lease{h.Shard, h.Epoch})
	}
	return fmt.Sprint(held)
}

func TestShardIsOpenedBeforeItIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sent := false
		r, stop := start(t, 2, title, func(r *rig, config *Config) {
			r.control.answer = func(beat client.Heartbeat) (client.Leases, error) {
				if len(beat.Holding) == 2 && !sent {
					sent = true
					r.publish(1, stream.EncodeTask(r.task(0, "http://a.test/")))
				}
				return r.control.holdAll(time.Hour), nil
			}
		})
		defer stop()
		if r.pages(1); holding(r.control) != "[{0 1} {1 1}]" {
			t.Errorf("holding %s", holding(r.control))
		}
	})
}

func TestHeartbeatEveryThirdOfALease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, _ *Config) {
			r.control.answer = func(client.Heartbeat) (client.Leases,
				error) {
				return r.control.holdAll(9 * time.Second), nil
			}
		})
		defer stop()
		first := r.control.count()
		pass(30*time.Second + time.Millisecond)
		if n := r.control.count() - first; n != 10 {
			t.Errorf("%d heartbeats in 30 s", n)
		}
	})
}

// Heartbeats report the unread task records of the fetcher's shards.
func TestHeartbeatsTellWhatIsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := start(t, 2, title, func(r *rig, _ *Config) {
			r.control.answer = func(client.Heartbeat) (client.Leases,
				error) {
				return client.Leases{For: 9 * time.Second}, nil
			}
		})
		defer stop()
		// the shard is not held
		r.send(r.task(1, "http://a.example/1"), r.task(2, "http://a.example/2"))
		pass(10 * time.Second)
		synctest.Wait()
		r.control.change(func() {
			if last := r.control.beats[len(r.control.beats)-1]; last.Unread != 2 {
				t.Errorf("the newest heartbeat tells of %d records", last.Unread)
			}
		})
	})
}

// After the lease has lapsed nothing starts and the open tasks are dropped. A new lease starts at
// the end of the tasks.
func TestLapsedLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		alive := true
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 100}
			r.control.answer = func(client.Heartbeat) (client.Leases, error) {
				if !alive {
					return client.Leases{}, errTest
				}
				return r.control.holdAll(hold.SweepEvery + 100*time.Millisecond), nil
			}
		})
		defer stop()
		r.control.change(func() { alive = false })
		for seq := range 100 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(time.Minute)
		if n := len(r.web.startsAt("a.test")); n != 35 { // the first at once
			t.Errorf("%d starts under a lease of 350 ms at one in 10 ms", n)
		}
		if c := r.f.Counts(); c.Shards != 0 || c.Open != 0 || c.Waiting != 0 {
			t.Errorf("still held: %+v", c)
		}
		r.control.change(func() { alive = true })
		pass(2 * time.Second)
		r.pages(34) // robots.txt used one start
		r.send(r.task(200, "http://a.test/"))
		if p := r.pages(1)[0]; p.Unit.Seq != 200 {
			t.Errorf("seq %d after the new lease", p.Unit.Seq)
		}
	})
}

// Tasks that wait for a slow host are dropped with the lease, too, although none of them starts.
func TestLapsedLeaseOfWaitingTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		alive := true
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.001}
			r.control.answer = func(client.Heartbeat) (client.Leases, error) {
				if !alive {
					return client.Leases{}, errTest
				}
				return r.control.holdAll(3 * time.Second), nil
			}
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://a.test/"))
		r.control.change(func() { alive = false })
		pass(3*time.Second + hold.SweepEvery)
		synctest.Wait()
		if c := r.f.Counts(); c.Shards != 0 || c.Open != 0 || c.Waiting != 0 {
			t.Errorf("still held: %+v", c)
		}
	})
}

// The next owner may use the shard's hosts soon after the lease's end: no request is open any more.
func TestRequestsEndWithTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		alive := true
		r, stop := start(t, 1, title, func(r *rig, _ *Config) {
			r.web.latency = DefaultTimeout - time.Millisecond
			r.control.answer = func(client.Heartbeat) (client.Leases, error) {
				if !alive {
					return client.Leases{}, errTest
				}
				return r.control.holdAll(9 * time.Second), nil
			}
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://b.test/"))
		pass(10 * time.Second) // the lease is renewed at 9 s
		synctest.Wait()
		if n := r.f.Counts().Turns; n != 2 {
			t.Fatalf("%d requests under way while leases are renewed", n)
		}
		r.control.change(func() { alive = false })
		pass(8 * time.Second)
		synctest.Wait()
		if c := r.f.Counts(); c.Turns != 0 || c.Lapsed != 1 {
			t.Errorf("at the lease's end: %+v", c)
		}
		r.nothingMore()
	})
}

// A page that arrives just after its shard was dropped is discarded, and its buffers are released.
func TestPageBehindTheLeaseIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, o, stop := startOrdered(t, unrobotic(title), func(r *rig, _ *Config) {
			r.web.at("http://a.test/", func(ctx context.Context, _ web.Request) (*web.Page, error) {
				<-ctx.Done()
				return r.web.html("http://a.test/", "<h1>x</h1>"), nil
			})
		})
		defer stop()
		r.send(r.task(0, "http://a.test/"))
		o.to(client.Leases{})
		r.nothingMore()
		r.web.mu.Lock()
		defer r.web.mu.Unlock()
		if r.web.released != 1 || len(r.web.asked) != 1 {
			t.Errorf("%d of %d pages are given back", r.web.released, len(r.web.asked))
		}
	})
}

// jumpingClock imitates a suspended process: a jump fires no timers, as when a process has just
// woken up.
type jumpingClock struct {
	clock.System
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return c.System.Now().Add(time.Duration(c.ahead.Load())) }

// refusingLog refuses the first publication, during which the process is suspended.
type refusingLog struct {
	stream.Log
	clock *jumpingClock
	tries atomic.Int64
}

func (l *refusingLog) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	if topic == stream.Pages && l.tries.Add(1) == 1 {
		l.clock.ahead.Store(int64(2 * time.Hour))
		return errTest
	}
	return l.Log.Publish(ctx, topic, partition, records...)
}

// A process suspended beyond its lease publishes nothing of what it had begun, wherever it was.
func TestSuspendedFetcherPublishesNothing(t *testing.T) {
	for _, suspended := range []string{"after_fetch", "robots", "publish", "before_publish"} {
		t.Run(suspended, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				frozen := &jumpingClock{}
				jump := func() { frozen.ahead.Store(int64(2 * time.Hour)) }
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					config.Clock = frozen
					config.Point = func(point string) {
						if point == "fetcher."+suspended {
							jump()
						}
					}
					switch suspended {
					case "publish":
						config.Log = &refusingLog{Log: r.memory, clock: frozen}
					case "robots":
						r.web.onRobots = jump
					}
				})
				defer stop()
				r.control.change(func() {
					r.control.answer = func(client.Heartbeat) (client.Leases,
						error) {
						return client.Leases{}, errTest
					}
				})
				r.send(r.task(0, "http://a.test/"))
				r.nothingMore()
				if n := len(r.web.startsAt("a.test")); suspended == "robots" && n != 1 {
					t.Errorf("%d starts: robots.txt alone was asked for in time", n)
				}
			})
		})
	}
}

// Shards that lapse together are told in one line, whether a turn sees it first or a publisher.
func TestLapsedLeasesAreOneLine(t *testing.T) {
	for _, suspended := range []string{"after_fetch", "before_publish"} {
		t.Run(suspended, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const shards = 8
				var told bytes.Buffer
				frozen := &jumpingClock{}
				r, stop := start(t, shards, unrobotic(title), func(_ *rig, config *Config) {
					config.Clock, config.Logger = frozen, slog.New(slog.NewTextHandler(&told, nil))
					config.Point = func(point string) {
						if point == "fetcher."+suspended {
							frozen.ahead.Store(int64(2 * time.Hour))
						}
					}
				})
				r.control.change(func() {
					r.control.answer = func(client.Heartbeat) (client.Leases, error) {
						return client.Leases{}, errTest
					}
				})
				for shard := range shards {
					url := fmt.Sprintf("http://%d.test/", shard)
					r.publish(shard, stream.EncodeTask(r.task(shard, url)))
				}
				r.nothingMore()
				stop()
				lines, lapsed := strings.Count(told.String(), "leases lapsed"), r.f.Counts().Lapsed
				if lines != 1 || lapsed != shards {
					t.Errorf("%d lines about %d of %d shards:\n%s", lines, lapsed, shards, &told)
				}
			})
		})
	}
}

func TestNewEpochBeginsAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		epoch := uint64(1)
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Pace = Pace{Rate: 0.1}
			r.control.answer = func(client.Heartbeat) (client.Leases, error) {
				return client.Leases{For: time.Minute,
					Hold: []client.ShardEpoch{{Shard: 0, Epoch: epoch}}}, nil
			}
		})
		defer stop()
		for seq := range 10 {
			r.send(r.task(seq, "http://a.test/"))
		}
		r.pages(1)
		r.control.change(func() { epoch = 2 })
		pass(time.Minute)
		if c := r.f.Counts(); c.Open != 0 || holding(r.control) != "[{0 2}]" {
			t.Errorf("%d tasks open, holding %s", c.Open, holding(r.control))
		}
	})
}

// slowTail is a log that takes long to open a shard for the first time.
type slowTail struct {
	stream.Log
	tails atomic.Int64
	open  chan struct{}
}

func (l *slowTail) Tail(topic stream.Topic, partition int) (stream.Reader, error) {
	if l.tails.Add(1) == 1 {
		<-l.open
	}
	return l.Log.Tail(topic, partition)
}

// A shard may return while the log still opens it for the previous epoch. It is taken only once.
func TestLateTailEndsNoNewerOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := &slowTail{open: make(chan struct{})}
		r, o, stop := startOrdered(t, title, func(r *rig, config *Config) {
			slow.Log = r.memory
			config.Log = slow
		})
		defer stop()
		o.to(client.Leases{})
		pass(3 * time.Second)
		o.to(client.Leases{Hold: []client.ShardEpoch{{Shard: 0, Epoch: 2}}})
		pass(3 * time.Second)
		close(slow.open)
		pass(10 * time.Second)
		synctest.Wait()
		if c := r.f.Counts(); holding(r.control) != "[{0 2}]" || c.Taken != 1 {
			t.Errorf("holding %s, taken %d times", holding(r.control), c.Taken)
		}
	})
}

func TestUnnamedShardIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		leases := client.Leases{For: time.Minute,
			Hold: []client.ShardEpoch{{Shard: 0, Epoch: 1}, {Shard: 1, Epoch: 1}}}
		r, stop := start(t, 2, title, func(r *rig, _ *Config) {
			r.control.answer = func(client.Heartbeat) (client.Leases, error) { return leases, nil }
		})
		defer stop()
		r.control.change(func() { leases.Hold = leases.Hold[1:] })
		pass(time.Minute)
		if holding(r.control) != "[{1 1}]" {
			t.Errorf("holding %s", holding(r.control))
		}
	})
}

// A log may repeat tasks that were answered long ago, and a replaced leader may send old tasks
// late. Nothing is fetched for either.
func TestRepeatedTasksAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, nil)
		defer stop()
		late := r.task(0, "http://a.test/0")
		tasks := []model.Task{r.task(1, "http://a.test/1"), r.task(2, "http://a.test/2"),
			r.task(3, "http://a.test/3")}
		r.send(tasks...)
		r.pages(3)
		r.send(tasks...)
		r.send(late)
		r.nothingMore()
		if c := r.f.Counts(); c.Dropped != 4 {
			t.Errorf("%d of 4 tasks are dropped", c.Dropped)
		}
		// the dispatches that followed
		r.send(r.task(1, "http://a.test/1"), r.task(0, "http://a.test/0"))
		r.pages(2)
	})
}

// A task that arrives after a lease or marker called it sent counts as lost already. It is sent
// again under a higher number.
func TestLateTasksAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var late, later model.Task
		r, stop := start(t, 1, title, func(r *rig, _ *Config) {
			late, later = r.task(0, "http://a.test/0"), r.task(1, "http://a.test/1")
			r.control.answer = func(client.Heartbeat) (client.Leases, error) {
				return client.Leases{For: time.Minute,
					Hold: []client.ShardEpoch{{Shard: 0, Epoch: 1, Newest: late.Number}}}, nil
			}
		})
		defer stop()
		r.send(late)
		r.publish(0, stream.EncodeMarker(model.Marker{Leader: 1, Number: 1, Newest: later.Number}))
		r.send(later, r.task(1, "http://a.test/1"), r.task(0, "http://a.test/0"))
		r.pages(2)
		r.nothingMore()
		if c := r.f.Counts(); c.Dropped != 2 {
			t.Errorf("%d of 2 tasks are dropped", c.Dropped)
		}
	})
}

// When a run ends its tasks are answered at once, however slow their host is.
func TestEndedRunIsAnsweredAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title,
			func(_ *rig, config *Config) { config.Pace = Pace{Rate: 0.01} })
		defer stop()
		for seq := range 100 {
			r.send(r.task(seq, "http://a.test/"))
		}
		pass(time.Minute)
		r.control.end(jobID)
		pass(2 * hold.SweepEvery)
		synctest.Wait()
		if lag := r.memory.Lag(stream.Pages); lag != 100 {
			t.Fatalf("%d of 100 tasks are answered", lag)
		}
		for _, p := range r.pages(100) {
			if shorthand(p) != "0 cancelled last" {
				t.Errorf("seq %d is %s", p.Unit.Seq, shorthand(p))
			}
		}
		if c := r.f.Counts(); c.Open != 0 || c.Cancelled != 100 {
			t.Errorf("counts are %+v", c)
		}
	})
}

func TestBadRecordsAreSkipped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, nil)
		defer stop()
		r.publish(0, []byte("rubbish"), stream.EncodeTask(model.Task{}),
			stream.EncodeTask(r.task(1, "http://a.test/")))
		r.pages(1)
		if c := r.f.Counts(); c.Undecodable != 2 {
			t.Errorf("counts are %+v", c)
		}
	})
}

package work_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// kindOfTest is the kind of the tests' items: any known kind.
const kindOfTest = work.Expire

// world is a cluster with a table of work, and the output of steps.
type world struct {
	t       *testing.T
	control *clienttest.Client
	ids     ids.Source

	mu      sync.Mutex
	spared  time.Time                 // nothing is destroyed until then
	written map[ids.ID]map[uint64]int // item → unit → number of writes
	items   map[ids.ID]uint64         // item → number of units
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, control: clienttest.New(t, clock.System{}),
		ids: &ids.Sequence{}, written: map[ids.ID]map[uint64]int{}, items: map[ids.ID]uint64{}}
}

// enqueue adds an item with a number of units.
func (w *world) enqueue(customer string, units uint64) ids.ID {
	w.t.Helper()
	id := w.ids.New()
	w.control.Must(w.t, client.EnqueueWork{ID: id, Kind: kindOfTest, Customer: customer,
		Args: number(units)})
	w.items[id] = units
	return id
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func readNumber(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// process is one start of a node. Once it is dead, it cannot reach the cluster.
type process struct {
	*work.Worker
	world *world
	name  string
	table *counted
	stop  context.CancelFunc
	ended chan struct{}
	point func(name string)

	mu      sync.Mutex
	dead    bool
	unheard bool // its commands do not get through
	robbed  bool // the table says that it holds no items
}

var errUnheard = errors.New("this process is dead, or cut off")

func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.stop()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// hear sets whether the process's commands get through.
func (p *process) hear(heard bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unheard = !heard
}

// rob makes the table hide the process's items, or show them again.
func (p *process) rob(robbed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.robbed = robbed
}

func (p *process) isHeard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead && !p.unheard
}

// counted is a process's table. It counts commands, and fails once the process is dead.
type counted struct {
	work.Table
	process *process

	mu        sync.Mutex
	exchanges int
	progress  []time.Time // of exchanges that reported progress
}

func (c *counted) Exchange(ctx context.Context, turn work.Turn) error {
	if !c.process.isHeard() {
		return errUnheard
	}
	c.mu.Lock()
	c.exchanges++
	for _, r := range turn.Reports {
		if r.End == work.Held {
			c.progress = append(c.progress, time.Now())
			break
		}
	}
	c.mu.Unlock()
	return c.Table.Exchange(ctx, turn)
}

func (c *counted) Held() []work.Item {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	if c.process.robbed {
		return nil
	}
	return c.Table.Held()
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchanges
}

// start starts a node with kinds; without any, with the kind that writes units.
func (w *world) start(name string, kinds ...work.Kind) *process {
	w.t.Helper()
	return w.startWith(name, func(string) {}, kinds...)
}

func (w *world) startWith(name string, point func(string), kinds ...work.Kind) *process {
	w.t.Helper()
	boot := w.ids.New()
	w.control.Must(w.t, client.RegisterNode{Name: name, Boot: boot})
	p := &process{world: w, name: name, ended: make(chan struct{}), point: point}
	p.table = &counted{Table: client.Work(w.control, name, boot), process: p}
	p.Worker = work.New(work.Config{Table: p.table, IDs: &ids.Sequence{},
		Clock: clock.System{}, Point: p.pass,
		Spare: func(context.Context) (time.Duration, error) { return time.Until(w.spared), nil }})
	if len(kinds) == 0 {
		kinds = []work.Kind{w.units(p, 100*time.Millisecond)}
	}
	for _, k := range kinds {
		p.Add(k)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	p.stop = stop
	go func() {
		defer close(p.ended)
		_ = p.Run(ctx) // it returns nil
	}()
	return p
}

// pass ends the goroutine of a dead process at a point, as its end would.
func (p *process) pass(name string) {
	p.point(name)
	if p.isDead() {
		runtime.Goexit()
	}
}

// units returns a kind whose steps each write one unit.
func (w *world) units(p *process, takes time.Duration) work.Kind {
	return work.Kind{Name: kindOfTest, AtOnce: 4, Held: 16,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			if !clock.Pause(ctx, clock.System{}, takes) {
				return work.Outcome{}, ctx.Err()
			}
			return w.write(p, item)
		}}
}

// write writes the next unit of an item by its key. A nil process never dies.
func (w *world) write(p *process, item work.Item) (work.Outcome, error) {
	if p != nil && p.isDead() {
		return work.Outcome{}, errUnheard
	}
	next := readNumber(item.Progress)
	w.mu.Lock()
	if w.written[item.ID] == nil {
		w.written[item.ID] = map[uint64]int{}
	}
	w.written[item.ID][next]++
	w.mu.Unlock()
	if next++; next == readNumber(item.Args) {
		return work.Done(), nil
	}
	return work.GoOn(number(next)), nil
}

// open returns the number of open items.
func (w *world) open() int {
	n := 0
	w.control.View().EachWork(func(*client.WorkItem) bool { n++; return true })
	return n
}

// awaitSettled lets time pass until no items are open.
func (w *world) awaitSettled(within time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(within); w.open() > 0; pass(time.Second) {
		if time.Now().After(end) {
			w.t.Fatalf("%d items are open after %v", w.open(), within)
		}
	}
}

// pass lets the bubble's time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// exact requires every unit of each item, and returns how many were written repeatedly.
func (w *world) exact() (repeated int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for item, units := range w.items {
		if len(w.written[item]) != int(units) {
			w.t.Errorf("item %s: %d units of %d are written", item, len(w.written[item]), units)
		}
		for unit, times := range w.written[item] {
			if unit >= units {
				w.t.Errorf("item %s has no unit %d", item, unit)
			}
			repeated += times - 1
		}
	}
	return repeated
}

// in runs a test in a bubble, where time passes while all goroutines wait.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t)) })
}

func customer(n int) string { return fmt.Sprintf("c%03d", n) }

package fsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// What nodes of the work world ask for, and how long they hold it.
const (
	workLease       = 30_000
	workMost        = 7
	workPerCustomer = 3
)

// workWorld has nodes at a table of work.
type workWorld struct {
	m     *FSM
	ids   ids.Sequence
	index uint64
	now   int64
	boots map[string]ids.ID
	open  map[ids.ID]uint64 // items not ended yet, with the newest epoch seen
}

func newWorkWorld(t rapid.TB) *workWorld {
	w := &workWorld{m: New(), now: 1_000_000, boots: map[string]ids.ID{},
		open: map[ids.ID]uint64{}}
	w.must(t, command.CreateClusterPayload{Version: command.Newest, ID: w.ids.New(), Shards: 1})
	w.start(t, "a")
	w.start(t, "b")
	return w
}

func (w *workWorld) view() *state.View { return w.m.Store().View() }

func (w *workWorld) do(t rapid.TB, payload command.Payload) error {
	t.Helper()
	data, err := w.m.Encode(w.ids.New(), w.now, payload, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.index++
	return w.m.Apply(w.index, data).Err
}

func (w *workWorld) must(t rapid.TB, payload command.Payload) {
	t.Helper()
	if err := w.do(t, payload); err != nil {
		t.Fatalf("%T: %v", payload, err)
	}
}

// start restarts a node's process.
func (w *workWorld) start(t rapid.TB, node string) {
	t.Helper()
	w.boots[node] = w.ids.New()
	w.must(t, command.RegisterNodePayload{Name: node, Boot: w.boots[node]})
}

func (w *workWorld) enqueue(t rapid.TB, kind, customer string) ids.ID {
	t.Helper()
	item := command.EnqueueWorkPayload{ID: w.ids.New(), Kind: kind, Customer: customer}
	w.must(t, item)
	w.open[item.ID] = 0
	return item.ID
}

// exchange makes a node's turn.
func (w *workWorld) exchange(t rapid.TB, node string, reports ...command.WorkReport) {
	t.Helper()
	w.must(t, w.turn(node, reports...))
}

func (w *workWorld) turn(node string,
	reports ...command.WorkReport) command.ExchangeWorkPayload {
	return command.ExchangeWorkPayload{Node: node, Boot: w.boots[node], Lease: workLease,
		Reports: reports, Wants: []command.WorkWant{
			{Kind: "x", Most: workMost, PerCustomer: workPerCustomer},
			{Kind: "y", Most: workMost, PerCustomer: workPerCustomer}}}
}

func (w *workWorld) held(node string) []*state.Work { return w.view().WorkHeldBy(node) }

// tables prints the items and leases, without the state time.
func (w *workWorld) tables() string {
	var all bytes.Buffer
	w.view().EachWork(func(item *state.Work) bool {
		fmt.Fprintf(&all, "%+v\n", *item)
		return true
	})
	w.view().WorkersByLease(func(worker *state.Worker) bool {
		fmt.Fprintf(&all, "%+v\n", *worker)
		return true
	})
	return all.String()
}

// check checks the invariants.
func (w *workWorld) check(t *rapid.T) {
	view := w.view()
	seen, holders := 0, map[string]map[string]int{}
	view.EachWork(func(item *state.Work) bool {
		seen++
		epoch, open := w.open[item.ID]
		if !open || item.Epoch < epoch {
			t.Fatalf("%+v: it was ended (%v), or its epoch fell from %d", item, !open, epoch)
		}
		w.open[item.ID] = item.Epoch
		if (item.State == state.WorkHeld) != (item.Node != "") {
			t.Fatalf("%+v: held without an owner, or owned and not held", item)
		}
		if item.Node == "" {
			return true
		}
		lease := view.Worker(item.Node)
		if lease == nil || lease.Boot != item.Boot || item.Boot != w.boots[item.Node] {
			t.Fatalf("%+v is held without a lease: %+v", item, lease)
		}
		of := holders[item.Kind+" of "+item.Customer]
		if of == nil {
			of = map[string]int{}
			holders[item.Kind+" of "+item.Customer] = of
		}
		of["all"]++
		if of["all"] > workPerCustomer {
			t.Fatalf("%d of %s of %q are held", of["all"], item.Kind, item.Customer)
		}
		return true
	})
	if seen != len(w.open) {
		t.Fatalf("%d items are there, and %d were not ended", seen, len(w.open))
	}
	view.WorkersByLease(func(lease *state.Worker) bool {
		kinds := map[string]int{}
		for _, item := range view.WorkHeldBy(lease.Node) {
			if kinds[item.Kind]++; kinds[item.Kind] > workMost {
				t.Fatalf("%s holds %v", lease.Node, kinds)
			}
		}
		if len(kinds) == 0 {
			t.Fatalf("%+v is a lease on nothing", lease)
		}
		return true
	})
}

// TestWorkIsHeldOnce: whatever nodes, starts and times do, an item has one owner with a lease, and
// its epoch never falls. Only its owner can end it, and bounds hold. Repeated reports change
// nothing.
func TestWorkIsHeldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorkWorld(t)
		node := rapid.SampledFrom([]string{"a", "b"})
		outcomes := rapid.SampledFrom([]command.WorkOutcome{command.WorkGoesOn, command.WorkEnded,
			command.WorkPaused, command.WorkReleased, command.WorkFailed, command.WorkGivenUp})
		t.Repeat(map[string]func(*rapid.T){
			"": w.check,
			"enqueue": func(t *rapid.T) {
				w.enqueue(t, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "kind"),
					rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "customer"))
			},
			"exchange": func(t *rapid.T) {
				of, from := node.Draw(t, "node"), node.Draw(t, "whose items")
				var reports []command.WorkReport
				for _, item := range w.held(from) {
					old := rapid.Bool().Draw(t, "of an earlier epoch")
					r := command.WorkReport{ID: item.ID, Epoch: item.Epoch,
						Outcome:  outcomes.Draw(t, "outcome"),
						Advanced: rapid.Bool().Draw(t, "advanced"), Progress: []byte("p"),
						After: 5000}
					if old {
						r.Epoch--
					}
					if !old && of == from && r.Outcome == command.WorkEnded {
						delete(w.open, item.ID)
					}
					reports = append(reports, r)
				}
				turn := w.turn(of, reports...)
				turn.Leaving = rapid.IntRange(0, 9).Draw(t, "leaving") == 0
				w.must(t, turn)
				once := w.tables()
				w.must(t, turn)
				if twice := w.tables(); once != twice {
					t.Fatalf("told twice:\n%s\nand once:\n%s", twice, once)
				}
			},
			"start": func(t *rapid.T) { w.start(t, node.Draw(t, "node")) },
			"wait": func(t *rapid.T) {
				w.now += rapid.Int64Range(1, 2*workLease).Draw(t, "time")
				w.must(t, command.TickPayload{})
			},
			"snapshot": func(t *rapid.T) {
				var b strings.Builder
				if err := w.m.Snapshot().Write(&b); err != nil {
					t.Fatal(err)
				}
				restored := New()
				if err := restored.Restore(strings.NewReader(b.String())); err != nil {
					t.Fatal(err)
				}
				w.m = restored
			},
		})
		w.drain(t)
	})
}

// drain makes one node end all items, which must succeed in bounded time.
func (w *workWorld) drain(t *rapid.T) {
	w.now += 2 * workLease
	for rounds := 0; ; rounds++ {
		var ended []command.WorkReport
		for _, item := range w.held("a") {
			ended = append(ended, command.WorkReport{ID: item.ID, Epoch: item.Epoch,
				Outcome: command.WorkEnded})
			delete(w.open, item.ID)
		}
		w.exchange(t, "a", ended...)
		w.now += 10_000
		left := 0
		w.view().EachWork(func(item *state.Work) bool {
			if item.State != state.WorkFailed {
				left++
			}
			return true
		})
		if left == 0 {
			return
		}
		if rounds > 200 {
			t.Fatalf("%d items are never done", left)
		}
	}
}

func TestALeaseIsRenewedByItsOwnerAlone(t *testing.T) {
	w := newWorkWorld(t)
	item := w.enqueue(t, "x", "ann")
	w.exchange(t, "a")
	owner := func() string { return w.view().WorkItem(item).Node }
	for range 5 {
		w.now += workLease - 1
		w.exchange(t, "a")
		w.exchange(t, "b")
		if owner() != "a" {
			t.Fatalf("%q has taken what is leased", owner())
		}
	}
	w.now += workLease - 1
	w.exchange(t, "b")
	if owner() != "a" {
		t.Fatalf("%q has taken it a moment before the lease ended", owner())
	}
	w.now++
	w.exchange(t, "b")
	if owner() != "b" {
		t.Fatalf("%q holds it after the lease", owner())
	}
	late := command.WorkReport{ID: item, Epoch: 1, Outcome: command.WorkEnded, Advanced: true,
		Progress: []byte("late")}
	w.exchange(t, "a", late)
	if got := w.view().WorkItem(item); got == nil || got.Node != "b" || len(got.Progress) > 0 {
		t.Fatalf("what the owner before said was taken: %+v", got)
	}
	w.start(t, "b")
	if got := w.view().WorkItem(item); got.State != state.WorkReady {
		t.Fatalf("its owner was started again, and it is %v", got.State)
	}
}

func TestOneCustomerTakesNoOthersTurn(t *testing.T) {
	w := newWorkWorld(t)
	for range maxWork {
		w.enqueue(t, "x", "ann")
	}
	over := command.EnqueueWorkPayload{ID: w.ids.New(), Kind: "x", Customer: "ann"}
	if err := w.do(t, over); fault.CodeOf(err) != fault.LimitReached {
		t.Fatalf("one more: %v", err)
	}
	w.enqueue(t, "y", "ann")
	w.enqueue(t, "x", "zoe")
	w.exchange(t, "a")
	of := map[string]int{}
	for _, item := range w.held("a") {
		of[item.Kind+" of "+item.Customer]++
	}
	if of["x of ann"] != workPerCustomer || of["x of zoe"] != 1 || of["y of ann"] != 1 {
		t.Fatalf("held: %v", of)
	}
	turn := w.turn("b")
	turn.Wants[0] = command.WorkWant{Kind: "x", Most: 2, PerCustomer: maxWork, After: "ann"}
	w.enqueue(t, "x", "zoe")
	w.must(t, turn)
	if n := w.view().WorkHeldFor("x", "zoe"); n != 2 {
		t.Fatalf("%d of zoe are held: who comes behind the last one is not first", n)
	}
}

func TestFailuresDoNotCountAsProgress(t *testing.T) {
	w := newWorkWorld(t)
	item := w.enqueue(t, "x", "")
	began := w.now
	for failures := uint32(1); failures <= 3; failures++ {
		w.exchange(t, "a")
		w.exchange(t, "a", command.WorkReport{ID: item, Epoch: uint64(failures),
			Outcome: command.WorkFailed, After: 1000,
			Error: strings.Repeat("é", state.MaxWorkError)})
		got := w.view().WorkItem(item)
		if got.Failures != failures || got.State != state.WorkWaiting || got.Advanced != began ||
			len(got.Error) == 0 || len(got.Error) > state.MaxWorkError {
			t.Fatalf("after %d failures: %+v", failures, got)
		}
		w.now += 1000
	}
	w.exchange(t, "a")
	w.now++
	w.exchange(t, "a", command.WorkReport{ID: item, Epoch: 4, Advanced: true,
		Progress: []byte("p"), Outcome: command.WorkPaused, After: 60_000})
	got := w.view().WorkItem(item)
	if got.Failures != 0 || got.Error != "" || got.Advanced != w.now {
		t.Fatalf("after progress: %+v", got)
	}
	w.now = got.At + 5
	w.exchange(t, "a")
	if got = w.view().WorkItem(item); got.Advanced != got.At || got.State != state.WorkHeld {
		t.Fatalf("after a pause: %+v", got)
	}
	w.exchange(t, "a", command.WorkReport{ID: item, Epoch: got.Epoch,
		Outcome: command.WorkGivenUp})
	w.now += failedWorkMillis - 1
	w.must(t, command.TickPayload{})
	if w.view().WorkItem(item) == nil {
		t.Fatal("what was given up goes too soon")
	}
	w.now++
	w.must(t, command.TickPayload{})
	if w.view().WorkItem(item) != nil {
		t.Fatal("what was given up stays")
	}
}

func TestRecurringWorkIsOneItem(t *testing.T) {
	w := newWorkWorld(t)
	once := func(wake bool) {
		w.must(t, command.EnqueueWorkPayload{ID: w.ids.New(), Kind: "x", Once: true, Wake: wake})
	}
	once(false)
	once(true)
	w.exchange(t, "a")
	held := w.held("a")
	if len(held) != 1 {
		t.Fatalf("%d items", len(held))
	}
	w.exchange(t, "a", command.WorkReport{ID: held[0].ID, Epoch: 1, Outcome: command.WorkPaused,
		After: 1000})
	once(false)
	if got := w.view().WorkItem(held[0].ID); got.State != state.WorkWaiting {
		t.Fatalf("it is woken: %v", got.State)
	}
	once(true)
	if got := w.view().WorkItem(held[0].ID); got.State != state.WorkReady || got.At != w.now {
		t.Fatalf("it is not woken: %v, at %d", got.State, got.At)
	}
}

func TestWorkThatIsTooLargeIsRefused(t *testing.T) {
	w := newWorkWorld(t)
	for name, p := range map[string]command.EnqueueWorkPayload{
		"no id":     {Kind: "x"},
		"no kind":   {ID: ids.ID{9}},
		"long kind": {ID: ids.ID{9}, Kind: strings.Repeat("x", maxWorkKind+1)},
		"long args": {ID: ids.ID{9}, Kind: "x", Args: make([]byte, maxWorkArgs+1)},
	} {
		if err := w.do(t, p); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	item := w.enqueue(t, "x", "")
	w.exchange(t, "a")
	w.exchange(t, "a", command.WorkReport{ID: item, Epoch: 1, Advanced: true,
		Progress: make([]byte, state.MaxWorkProgress+1)})
	if got := w.view().WorkItem(item); len(got.Progress) > 0 {
		t.Errorf("%d bytes of progress are kept", len(got.Progress))
	}
	stranger := command.ExchangeWorkPayload{Node: "a", Boot: ids.ID{77}, Lease: workLease}
	if err := w.do(t, stranger); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an earlier start of the node: %v", err)
	}
}

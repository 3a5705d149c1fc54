package work

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// task is an item that this node holds, and the goroutine that works on it. The worker's mu guards
// it.
type task struct {
	kind    *kind
	item    Item // with the newest progress
	cancel  context.CancelFunc
	running bool // its goroutine has not ended
	dirty   bool // the progress is not reported yet
	end     End
	after   time.Duration
	failure string
	lost    bool // another node holds it, or none: nothing of it is reported
}

// reconcile runs exactly those items that this node holds according to the table, under a lease
// from the start of the exchange. It returns how many it started.
func (w *Worker) reconcile(ctx context.Context, held []Item, began time.Time) (started int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = began.Add(lease)
	mine := map[ids.ID]uint64{}
	for _, item := range held {
		mine[item.ID] = item.Epoch
	}
	for id, t := range w.tasks {
		if epoch, ok := mine[id]; !ok || epoch != t.item.Epoch {
			w.lose(id, t)
		}
	}
	for _, item := range held {
		if w.tasks[item.ID] == nil && w.start(ctx, item) {
			started++
		}
	}
	w.renewed.Raise()
	return started
}

// lose ends a task, which is no longer reported. The caller holds mu.
func (w *Worker) lose(id ids.ID, t *task) {
	t.lost = true
	t.cancel()
	if !t.running {
		delete(w.tasks, id)
	}
}

// start begins an item; false if this node does not do its kind. The caller holds mu.
func (w *Worker) start(ctx context.Context, item Item) bool {
	at := slices.IndexFunc(w.kinds, func(k *kind) bool { return k.Name == item.Kind })
	if at < 0 || ctx.Err() != nil {
		return false
	}
	k := w.kinds[at]
	k.behind = item.Customer
	ctx, cancel := context.WithCancel(ctx)
	t := &task{kind: k, item: item, cancel: cancel, running: true}
	w.tasks[item.ID] = t
	w.steps.Go(func() {
		defer cancel()
		for w.step(ctx, t) {
		}
		w.stopped(t)
	})
	return true
}

// step makes one step of a task, when its kind has a free slot. more says whether another follows.
func (w *Worker) step(ctx context.Context, t *task) (more bool) {
	select {
	case <-ctx.Done():
		return w.noteOutcome(t, Outcome{}, ctx.Err(), true)
	case t.kind.slots <- struct{}{}:
	}
	defer func() { <-t.kind.slots }()
	w.config.Point("work." + t.kind.Name + ".before_step")
	began := w.config.Clock.Now()
	outcome, err := w.guarded(ctx, t)
	w.metrics.stepped(t.kind.Name, err, ctx.Err() != nil, w.config.Clock.Now().Sub(began))
	w.config.Point("work." + t.kind.Name + ".after_step")
	return w.noteOutcome(t, outcome, err, ctx.Err() != nil)
}

// guarded runs a step, or postpones it while nothing may be destroyed. A panic fails the step, not
// the process.
func (w *Worker) guarded(ctx context.Context, t *task) (outcome Outcome, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("work: a step panicked: %v\n%s", reason, debug.Stack())
		}
	}()
	if destroys(t.kind.Name) {
		if spared, err := w.config.Spare(ctx); err != nil || spared > 0 {
			return Rest(t.item.Progress, spared), err
		}
	}
	return t.kind.Step(ctx, t.item)
}

// noteOutcome notes the result of a step.
func (w *Worker) noteOutcome(t *task, outcome Outcome, err error, cut bool) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && len(outcome.Progress) > MaxProgress {
		err = GiveUp(fmt.Errorf("work: progress of %d bytes, more than %d", len(outcome.Progress),
			MaxProgress))
	}
	if err != nil {
		w.fail(t, err, cut)
		return false
	}
	t.item.Failures = 0
	if outcome.End != Ended {
		t.dirty = t.dirty || !bytes.Equal(t.item.Progress, outcome.Progress)
		t.item.Progress = outcome.Progress
	}
	if t.end, t.after = outcome.End, outcome.Rest; t.end == Held && cut {
		t.end = Released
	}
	return t.end == Held
}

// fail notes that a step failed, or was cut off. The caller holds mu.
func (w *Worker) fail(t *task, err error, cut bool) {
	if cut {
		t.end = Released
		return
	}
	t.end, t.failure = Failed, err.Error()
	t.item.Failures++
	t.after = tryAgain.After(t.item.Failures)
	if isHopeless(err) || t.kind.Tries > 0 && t.item.Failures >= t.kind.Tries {
		t.end = GivenUp
	}
	w.config.Logger.Warn("work: a step failed", "kind", t.kind.Name, "item", t.item.ID, "customer",
		t.item.Customer, "failures", t.item.Failures, "givenUp", t.end == GivenUp, "error", err)
}

// stopped notes that a task's goroutine has ended.
func (w *Worker) stopped(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.running = false; t.lost {
		delete(w.tasks, t.item.ID)
	}
}

// reports lists what to report now, as much as one exchange may hold: ends at once, progress every
// progressEvery.
func (w *Worker) reports(now time.Time) []Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	progresses := now.Sub(w.reported) >= progressEvery
	var reports []Report
	size := 0
	for _, id := range slices.SortedFunc(maps.Keys(w.tasks),
		func(a, b ids.ID) int { return bytes.Compare(a[:], b[:]) }) {
		t := w.tasks[id]
		if t.lost || t.end == Held && (!t.dirty || !progresses) || t.end != Held && t.running {
			continue
		}
		r := Report{ID: id, Epoch: t.item.Epoch, End: t.end, After: t.after, Error: t.failure,
			Advanced: t.dirty}
		if t.dirty && t.end != Ended {
			r.Progress = t.item.Progress
		}
		if size += len(r.Progress); size > maxReportBytes || len(reports) == maxReports {
			break
		}
		reports = append(reports, r)
	}
	return reports
}

// delivered forgets what was reported.
func (w *Worker) delivered(reports []Report, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range reports {
		t := w.tasks[r.ID]
		switch {
		case t == nil || t.item.Epoch != r.Epoch: // lost meanwhile
		case r.End != Held:
			delete(w.tasks, r.ID)
		default:
			w.reported = now
			if bytes.Equal(t.item.Progress, r.Progress) {
				t.dirty = false
			}
		}
	}
}

// Package steps owns the leader's steps. They read lists, extend the window, publish tasks, send
// markers, recover losses, give back what was never sent, and close runs. Each step is a call that
// ends. The control plane runs them as routines, the protocol simulation in random order. The
// package keeps no state besides the dispatcher's.
package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// MaxAttempts is how often a seq is dispatched without progress before it settles as an error.
const MaxAttempts = 5

// Bounds of one step.
const (
	planMost    = 4096
	planReads   = 16
	publishMost = 512
	settleMost  = 4096
	storedMost  = 2048 // units looked up at once, plus the rest of one grant
)

// Store is the part of the row store that the leader needs.
type Store interface {
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link, error)
	LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error)
	PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt, error)
	Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt, error)
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	Sealed(ctx context.Context, job ids.ID) (bool, error)
}

// Steps are the steps of one leadership. They may run concurrently, each on one goroutine at a
// time. For Close this holds per run.
type Steps struct {
	Dispatcher *dispatch.Dispatcher
	State      func() *state.Store
	// Propose applies a command and returns its result; an error means that the outcome is unknown.
	Propose func(ctx context.Context, payload command.Payload) (any, error)
	Store   Store
	Log     stream.Log
	IDs     ids.Source
	// NowMicros returns the leader's time in Unix microseconds.
	NowMicros func() int64
	// Unread is called with the error of an unreadable list; never nil. Other lists go on.
	Unread func(err error)
	// Point is called at kill points, for crash tests; never nil.
	Point func(name string)
	// Spare says whether a run's stored and unsettled pages must stay for now. A restore may bring
	// back the state that had them settled. Nil: never.
	Spare  func(job *state.Job) bool
	spared sync.Map // run → whether it has unsettled records
	// Judge judges a sealed run. Nil: none is held back.
	Judge  func(ctx context.Context, job *state.Job) (command.Verdict, error)
	Counts *Counts           // never nil
	Tracer *telemetry.Tracer // nil: no traces
}

// Read reads what the dispatcher needs of link lists. It reports whether there was anything to do.
// Unreadable lists do not hold up others.
func (l *Steps) Read(ctx context.Context) (bool, error) {
	did := false
	var failed error
	for job, want := range l.Dispatcher.Unlocated() {
		links, err := l.Store.LinksAt(ctx, want.List, want.Seqs)
		gone := errors.Is(err, rowstore.ErrListUnknown)
		if err != nil {
			failed = errors.Join(failed, l.unreadable(ctx, job, err))
		}
		if err != nil && !gone {
			continue
		}
		if gone { // markers of any shard find out what became of them
			links = nowhere(want.Seqs)
		}
		l.Dispatcher.Locate(job, links)
		did = true
	}
	for _, need := range l.Dispatcher.Needs() {
		links, err := l.Store.Links(ctx, need.List, need.From, need.Most)
		if err != nil {
			failed = errors.Join(failed, l.unreadable(ctx, need.Job, err))
			continue
		}
		l.Dispatcher.Feed(need.Job, links)
		did = true
	}
	return did, failed
}

// unreadable records that a run's list cannot be read. It is read again later, and other lists go
// on.
func (l *Steps) unreadable(ctx context.Context, job ids.ID, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.Dispatcher.Unreadable(job)
	l.Unread(fmt.Errorf("leader: read list of run %s: %w", job, cause))
	return l.endListless(ctx, job, cause)
}

// endListless stops a run whose link list is gone: it expired, or an older row store was restored.
// Nothing more of it can be sent. Other errors do not end the run.
func (l *Steps) endListless(ctx context.Context, job ids.ID, cause error) error {
	record := l.State().View().Job(job)
	if !errors.Is(cause, rowstore.ErrListUnknown) || record == nil || record.State.Final() {
		return nil
	}
	_, err := l.Propose(ctx, command.StopRunPayload{Customer: record.Customer,
		Scraper: record.Scraper, Job: job})
	return err
}

// nowhere returns links with seqs and without addresses.
func nowhere(seqs []uint32) []rowstore.Link {
	links := make([]rowstore.Link, len(seqs))
	for i, seq := range seqs {
		links[i].Seq = seq
	}
	return links
}

// Extend proposes what goes out next. It proposes its picks until the outcome is known or ctx ends.
// While few seqs are picked it reads on: otherwise a long list with full hosts would cost a command
// per read. It reports whether there was anything to do. While disks are short nothing goes out.
func (l *Steps) Extend(ctx context.Context) (bool, error) {
	if l.State().View().IsShort() {
		return false, nil
	}
	plan, read, failed := l.gather(ctx)
	if len(plan) == 0 {
		return read, failed
	}
	l.Point("leader.before_extend")
	end := l.traceExtend(plan)
	_, err := l.Propose(ctx, command.ExtendWindowPayload{Runs: plan})
	end(err)
	l.Point("leader.after_extend")
	return true, errors.Join(failed, err)
}

// gather picks at most planMost seqs, with at most planReads reads.
func (l *Steps) gather(ctx context.Context) (plan []command.WindowRun, read bool, err error) {
	left := planMost
	for range planReads {
		more := l.Dispatcher.Plan(left)
		plan = append(plan, more...)
		for _, run := range more {
			left -= len(run.Seqs)
		}
		if left == 0 {
			break
		}
		did, err := l.Read(ctx)
		read = read || did
		if err != nil || !did {
			return plan, read, err
		}
	}
	return plan, read, nil
}

// Publish publishes unsent tasks of a shard as far as the log has room. It reports whether all
// tasks with readable addresses were sent. While disks are short it sends none.
func (l *Steps) Publish(ctx context.Context, shard int) (bool, error) {
	if l.State().View().IsShort() {
		return true, nil
	}
	for {
		sends := l.Dispatcher.Unsent(shard, publishMost)
		if len(sends) == 0 {
			return true, nil
		}
		sends, err := l.address(ctx, shard, sends)
		if err != nil {
			return false, err
		}
		if len(sends) == 0 {
			continue // more may follow
		}
		records := make([][]byte, len(sends))
		for i := range sends {
			records[i] = stream.EncodeTask(sends[i].Task)
		}
		l.Point("leader.before_publish")
		switch err := l.Log.TryPublish(stream.Tasks, shard, records...); {
		case errors.Is(err, stream.ErrFull):
			l.Counts.Full.Add(1)
			return false, nil
		case err != nil:
			return false, fmt.Errorf("leader: publish tasks: %w", err)
		}
		l.Counts.Published.Add(uint64(len(sends)))
		l.Dispatcher.Sent(shard, sends)
		l.Point("leader.after_publish")
	}
}

// address reads the missing addresses of dispatches, and returns the dispatches that have one.
func (l *Steps) address(ctx context.Context, shard int, sends []dispatch.Send) ([]dispatch.Send,
	error) {
	missing := map[ids.ID]*dispatch.Located{}
	for i := range sends {
		if t := &sends[i].Task; t.URL == "" {
			if missing[t.Job] == nil {
				missing[t.Job] = &dispatch.Located{List: sends[i].List}
			}
			missing[t.Job].Seqs = append(missing[t.Job].Seqs, t.Seq)
		}
	}
	if len(missing) == 0 {
		return sends, nil
	}
	urls, unread := map[ids.ID]map[uint32]string{}, map[ids.ID]bool{}
	for job, want := range missing {
		links, err := l.Store.LinksAt(ctx, want.List, sorted(want.Seqs))
		if err != nil {
			if err := l.unreadable(ctx, job, err); err != nil {
				return nil, err
			}
			unread[job] = true
		}
		urls[job] = make(map[uint32]string, len(links))
		for _, link := range links {
			urls[job][link.Seq] = link.URL
		}
	}
	var ready, back []dispatch.Send
	for _, send := range sends {
		t := &send.Task
		if t.URL == "" && unread[t.Job] {
			back = append(back, send)
			continue
		}
		t.URL = cmp.Or(t.URL, urls[t.Job][t.Seq])
		ready = append(ready, send)
	}
	l.Dispatcher.Unaddressed(shard, back)
	return ready, nil
}

// Mark sends a marker to a shard with published work out. It reports whether one was sent.
func (l *Steps) Mark(shard int) (bool, error) {
	marker, any := l.Dispatcher.Mark(shard)
	if !any {
		return false, nil
	}
	l.Point("leader.before_marker")
	err := l.Log.TryPublish(stream.Tasks, shard, stream.EncodeMarker(marker))
	l.Point("leader.after_marker")
	switch {
	case errors.Is(err, stream.ErrFull):
		l.Counts.Full.Add(1)
		return false, nil
	case err != nil:
		return false, err
	}
	l.Counts.MarkersSent.Add(1)
	return true, nil
}

// GiveBack releases the reservations of ended runs' dispatches that were never published.
func (l *Steps) GiveBack(ctx context.Context) (bool, error) {
	refs := l.Dispatcher.Unwanted(planMost)
	if len(refs) == 0 {
		return false, nil
	}
	_, err := l.Propose(ctx, command.RedispatchPayload{Lost: refs})
	return true, err
}

// Close seals and closes a finished run. The row store then drops the run's late pages and its
// stored pages that are not settled. It reports whether the run is closed; a run to be spared
// waits.
func (l *Steps) Close(ctx context.Context, job *state.Job) (bool, error) {
	if wait, err := l.waits(ctx, job); err != nil || wait {
		return false, err
	}
	l.Point("leader.before_seal")
	if err := l.Store.Seal(ctx, job.ID, l.settled(job)); err != nil {
		return false, fmt.Errorf("leader: seal run %s: %w", job.ID, err)
	}
	l.Point("leader.before_close")
	verdict := command.Verdict{}
	if l.Judge != nil {
		var err error
		if verdict, err = l.Judge(ctx, job); err != nil {
			return false, fmt.Errorf("leader: judge run %s: %w", job.ID, err)
		}
	}
	if _, err := l.Propose(ctx, command.CloseRunPayload{Job: job.ID, Odd: verdict.Odd,
		Unjudged: verdict.Unjudged}); err != nil {
		return false, err
	}
	l.Point("leader.after_close")
	closed := l.State().View().Job(job.ID)
	return closed == nil || closed.Closed, nil
}

// waits says whether an ended run must not be closed yet, because closing would remove pages to be
// spared. Nothing of the run is out, so the answer stays the same.
func (l *Steps) waits(ctx context.Context, job *state.Job) (bool, error) {
	if l.Spare == nil || !job.State.Final() || !l.Spare(job) {
		l.spared.Delete(job.ID)
		return false, nil
	}
	if wait, known := l.spared.Load(job.ID); known {
		return wait.(bool), nil
	}
	beyond, settled := false, l.settled(job)
	err := l.Store.EachRecord(ctx, job.ID, func(r rowstore.Record) error {
		beyond = beyond || !settled(r.Unit, r.Last)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("leader: what is stored of run %s: %w", job.ID, err)
	}
	l.spared.Store(job.ID, beyond)
	return beyond, nil
}

// settled returns a test whether a record's unit is settled, to be called in the order of units. Of
// a closed seq everything up to its last page is settled. Of a seq set aside it is what precedes
// its chain's next page. Nil: every seq is one page and closed, so everything is settled.
func (l *Steps) settled(job *state.Job) func(model.Unit, bool) bool {
	if !job.State.Final() && job.MaxPages == 1 {
		return nil
	}
	var ended struct {
		seq  uint32
		over bool
	}
	return func(unit model.Unit, last bool) (settled bool) {
		l.State().ReadRun(job.ID, func(run *state.Run) {
			switch {
			case run == nil:
				settled = true // an earlier attempt sealed and closed it
			case run.Closed.Contains(unit.Seq):
				if ended.seq != unit.Seq {
					ended.seq, ended.over = unit.Seq, false
				}
				settled = !ended.over
				ended.over = ended.over || last
			case run.Begun[unit.Seq] != nil:
				settled = unit.Page < run.Begun[unit.Seq].Start
			}
		})
		return settled
	}
}

func sorted(seqs []uint32) []uint32 {
	slices.Sort(seqs)
	return seqs
}

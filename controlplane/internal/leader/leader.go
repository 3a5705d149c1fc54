// Package leader owns the leader's steps: read lists, extend the window, publish tasks, send markers, recover what is
// lost, give back what was never sent, close runs. Each step is a call that ends; the control plane's server runs them as
// routines, the protocol simulation in random order. It keeps no state beside the dispatcher's.
package leader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
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
	storedMost  = 2048 // units that are looked for at once, and the rest of one grant
)

// Store is what the leader needs of the row store.
type Store interface {
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link, error)
	LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error)
	PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt, error)
	Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt, error)
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	Sealed(ctx context.Context, job ids.ID) (bool, error)
}

// Leader takes the steps of one leadership. Its steps may run beside each other, each from one goroutine at a time.
type Leader struct {
	Dispatcher *dispatch.Dispatcher
	State      func() *state.Store
	// Propose applies a command and returns its result; an error means that the outcome is unknown.
	Propose func(ctx context.Context, payload command.Payload) (any, error)
	Store   Store
	Log     stream.Log
	IDs     ids.Source
	// NowMicros is the leader's clock in Unix microseconds.
	NowMicros func() int64
	// Point is called at named places, for crash tests; never nil.
	Point func(name string)
	// Spare says whether what is stored of a run and not settled is to stay for now: a restore may bring back the state that
	// had it settled. Nil: never.
	Spare  func(job *state.Job) bool
	spared map[ids.ID]bool   // with records that are not settled
	Counts *Counts           // never nil
	Tracer *telemetry.Tracer // nil: no traces
}

// Read answers what the dispatcher wants to know of link lists. It reports whether there was anything to do. A list that
// cannot be read holds up no other.
func (l *Leader) Read(ctx context.Context) (bool, error) {
	did := false
	var failed error
	for job, want := range l.Dispatcher.Unlocated() {
		links, err := l.Store.LinksAt(ctx, want.List, want.Seqs)
		gone := errors.Is(err, rowstore.ErrListUnknown)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("leader: locate seqs of run %s: %w", job, err), l.endListless(ctx, job, err))
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
			failed = errors.Join(failed, fmt.Errorf("leader: read list of run %s: %w", need.Job, err),
				l.endListless(ctx, need.Job, err))
		}
		l.Dispatcher.Feed(need.Job, links)
		did = true
	}
	return did, failed
}

// endListless stops a run whose link list is gone, because it expired or the row store was put back to before it: nothing
// more of it can be sent. Other errors end nothing.
func (l *Leader) endListless(ctx context.Context, job ids.ID, cause error) error {
	record := l.State().View().Job(job)
	if !errors.Is(cause, rowstore.ErrListUnknown) || record == nil || record.State.Final() {
		return nil
	}
	_, err := l.Propose(ctx, command.StopRunPayload{Customer: record.Customer, Scraper: record.Scraper, Job: job})
	return err
}

// nowhere are links of which only the places in the list are known.
func nowhere(seqs []uint32) []rowstore.Link {
	links := make([]rowstore.Link, len(seqs))
	for i, seq := range seqs {
		links[i].Seq = seq
	}
	return links
}

// Extend proposes what goes out next; whatever it picked it proposes until the outcome is known or ctx ends. As long as
// little was picked it reads on: a long list whose hosts have no room would cost a command for each reading otherwise. It
// reports whether there was anything to do.
func (l *Leader) Extend(ctx context.Context) (bool, error) {
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

// gather picks at most planMost seqs, within planReads readings.
func (l *Leader) gather(ctx context.Context) (plan []command.WindowRun, read bool, err error) {
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

// Publish sends unsent tasks of a shard as far as the log has room. It reports whether all were sent.
func (l *Leader) Publish(ctx context.Context, shard int) (bool, error) {
	for {
		sends := l.Dispatcher.Unsent(shard, publishMost)
		if len(sends) == 0 {
			return true, nil
		}
		if err := l.address(ctx, sends); err != nil {
			return false, err
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

// address reads the addresses that the dispatcher did not keep.
func (l *Leader) address(ctx context.Context, sends []dispatch.Send) error {
	missing, jobs := map[ids.ID][]uint32{}, map[ids.ID]ids.ID{}
	for i := range sends {
		if sends[i].Task.URL == "" {
			missing[sends[i].List] = append(missing[sends[i].List], sends[i].Task.Seq)
			jobs[sends[i].List] = sends[i].Task.Job
		}
	}
	for list, seqs := range missing {
		links, err := l.Store.LinksAt(ctx, list, sorted(seqs))
		if err != nil {
			return errors.Join(fmt.Errorf("leader: read addresses: %w", err), l.endListless(ctx, jobs[list], err))
		}
		urls := make(map[uint32]string, len(links))
		for _, link := range links {
			urls[link.Seq] = link.URL
		}
		for i := range sends {
			if t := &sends[i].Task; t.URL == "" && sends[i].List == list {
				t.URL = urls[t.Seq]
			}
		}
	}
	return nil
}

// Mark sends a marker into a shard that has published work out. It reports whether one was sent.
func (l *Leader) Mark(shard int) (bool, error) {
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

// Returned acts on markers that came back, of any shards: what is lost settles from its page records if they are there, and
// otherwise goes out again, or, after MaxAttempts, settles as an error. All share reads and commands: a lost fetcher had many
// shards, and the last of them does not wait for the others.
func (l *Leader) Returned(ctx context.Context, markers ...model.Marker) error {
	l.Counts.MarkersBack.Add(uint64(len(markers)))
	for lost := range slices.Chunk(l.lost(markers), planMost) {
		if err := l.recover(ctx, lost); err != nil {
			return err
		}
	}
	return nil
}

// lostSeq is a dispatch that a marker shows to be lost. Moved: nobody began it before its shard was handed over, so that it
// is sent again without counting it.
type lostSeq struct {
	command.DispatchRef
	moved bool
}

// lost is what markers show to be lost, each dispatch once, in the order of numbers.
func (l *Leader) lost(markers []model.Marker) []lostSeq {
	view := l.State().View()
	var lost []lostSeq
	for _, m := range markers {
		var moved uint64
		if shard := view.Shard(m.Shard); shard != nil {
			moved = shard.Moved
		}
		for _, ref := range l.Dispatcher.Returned(m) {
			lost = append(lost, lostSeq{ref, ref.Number <= moved})
		}
	}
	slices.SortFunc(lost, func(a, b lostSeq) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(lost, func(a, b lostSeq) bool { return a.Number == b.Number })
}

// recover settles or sends again at most planMost dispatches.
func (l *Leader) recover(ctx context.Context, lost []lostSeq) error {
	if err := l.settleStored(ctx, lost); err != nil {
		return err
	}
	if err := l.endSealed(ctx, lost); err != nil {
		return err
	}
	var counted, uncounted []command.DispatchRef
	var exhausted []rowstore.PageWrite
	for _, seq := range lost {
		out, page, ok := l.stillOut(seq.DispatchRef)
		switch {
		case !ok:
		case seq.moved:
			uncounted = append(uncounted, seq.DispatchRef)
		case out.Attempt >= MaxAttempts && !l.ended(seq.Job):
			if write, ok := l.exhausted(seq.DispatchRef, page); ok {
				exhausted = append(exhausted, write)
			}
		default:
			counted = append(counted, seq.DispatchRef)
		}
	}
	if err := l.settleExhausted(ctx, exhausted); err != nil {
		return err
	}
	if n := len(uncounted); n > 0 {
		if err := l.redispatch(ctx, command.RedispatchPayload{Lost: uncounted, Moved: uncounted[n-1].Number}); err != nil {
			return err
		}
	}
	return l.redispatch(ctx, command.RedispatchPayload{Lost: counted})
}

func (l *Leader) redispatch(ctx context.Context, again command.RedispatchPayload) error {
	if len(again.Lost) == 0 {
		return nil
	}
	l.Point("leader.before_redispatch")
	result, err := l.Propose(ctx, again)
	l.Point("leader.after_redispatch")
	if err != nil {
		return err
	}
	if window, ok := result.(command.Window); ok {
		l.Counts.Redispatched.Add(uint64(len(window.Grants)))
	}
	return nil
}

// settleStored settles lost dispatches as far as the row store has their pages. It reads many of a run at once.
func (l *Leader) settleStored(ctx context.Context, lost []lostSeq) error {
	lost = slices.Clone(lost)
	slices.SortFunc(lost, func(a, b lostSeq) int {
		return cmp.Or(bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Seq, b.Seq))
	})
	var receipts []model.Receipt
	for len(lost) > 0 {
		job, n := lost[0].Job, 0
		var units []model.Unit
		for ; n < len(lost) && lost[n].Job == job && len(units) < storedMost; n++ {
			out, page, _ := l.stillOut(lost[n].DispatchRef)
			for i := range out.Grant { // none when it is not out any more
				units = append(units, model.Unit{Seq: lost[n].Seq, Page: page + i})
			}
		}
		lost = lost[n:]
		if len(units) == 0 {
			continue
		}
		stored, err := l.Store.Records(ctx, job, units)
		if err != nil {
			return fmt.Errorf("leader: look for stored pages: %w", err)
		}
		receipts = append(receipts, upToGaps(units, stored)...)
		if len(receipts) >= settleMost {
			if err := l.settle(ctx, receipts); err != nil {
				return err
			}
			receipts = nil
		}
	}
	return l.settle(ctx, receipts)
}

// upToGaps is what is stored of each seq's units up to the first that is not: what stands behind a gap waits. Both are in
// the order of units.
func upToGaps(units []model.Unit, stored []model.Receipt) []model.Receipt {
	var whole []model.Receipt
	gap := false
	for i, unit := range units {
		gap = gap && units[i-1].Seq == unit.Seq
		switch {
		case len(stored) == 0 || stored[0].Unit != unit:
			gap = true
			continue
		case !gap:
			whole = append(whole, stored[0])
		}
		stored = stored[1:]
	}
	return whole
}

// endSealed ends the runs of which something is lost that the row store will not take: they were sealed, and then a backup
// from before was restored. What they lack would never be stored, however often it is fetched.
func (l *Leader) endSealed(ctx context.Context, lost []lostSeq) error {
	asked := map[ids.ID]bool{}
	for _, ref := range lost {
		if _, _, out := l.stillOut(ref.DispatchRef); !out || asked[ref.Job] || l.ended(ref.Job) {
			continue
		}
		asked[ref.Job] = true
		sealed, err := l.Store.Sealed(ctx, ref.Job)
		if err != nil {
			return fmt.Errorf("leader: %w", err)
		}
		if !sealed {
			continue
		}
		job := l.State().View().Job(ref.Job)
		if _, err := l.Propose(ctx, command.StopRunPayload{Customer: job.Customer, Scraper: job.Scraper, Job: job.ID}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leader) settle(ctx context.Context, receipts []model.Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	_, err := l.Propose(ctx, command.SettlePayload{Receipts: receipts})
	return err
}

// stillOut is the dispatch in the replicated sets, with its first unsettled page; false when it is not out any more.
func (l *Leader) stillOut(ref command.DispatchRef) (out state.Out, page uint32, ok bool) {
	l.State().ReadRun(ref.Job, func(run *state.Run) {
		if run == nil || run.Out[ref.Seq] == nil || run.Out[ref.Seq].Number != ref.Number {
			return
		}
		out, ok = *run.Out[ref.Seq], true
	})
	return out, out.Start, ok
}

func (l *Leader) ended(job ids.ID) bool {
	record := l.State().View().Job(job)
	return record == nil || record.State.Final()
}

// exhausted is the page that stands for a dispatch that was lost too often.
func (l *Leader) exhausted(ref command.DispatchRef, page uint32) (rowstore.PageWrite, bool) {
	job := l.State().View().Job(ref.Job)
	if job == nil {
		return rowstore.PageWrite{}, false
	}
	return rowstore.PageWrite{
		Job: rowstore.Job{ID: job.ID, Customer: job.Customer, Group: job.Group, Scraper: job.Scraper, Started: job.Started * 1000},
		Page: &model.Page{Job: ref.Job, Unit: model.Unit{Seq: ref.Seq, Page: page}, Fetch: l.IDs.New(),
			Outcome: model.Errored, Code: string(fault.PageAttemptsExhausted), At: l.NowMicros(), Last: true},
	}, true
}

func (l *Leader) settleExhausted(ctx context.Context, writes []rowstore.PageWrite) error {
	if len(writes) == 0 {
		return nil
	}
	for i := range writes {
		job := l.State().View().Job(writes[i].Page.Job)
		links, err := l.Store.LinksAt(ctx, job.List, []uint32{writes[i].Page.Unit.Seq})
		if err != nil || len(links) != 1 {
			return errors.Join(fmt.Errorf("leader: address of an exhausted link: %w", errors.Join(err, rowstore.ErrListUnknown)),
				l.endListless(ctx, job.ID, err))
		}
		writes[i].Page.URL = links[0].URL
	}
	stored, err := l.Store.PutPages(ctx, writes)
	if err != nil {
		return fmt.Errorf("leader: store exhausted links: %w", err)
	}
	var receipts []model.Receipt
	for _, receipt := range stored {
		if receipt != nil {
			receipts = append(receipts, *receipt)
		}
	}
	l.Counts.Exhausted.Add(uint64(len(writes)))
	return l.settle(ctx, receipts)
}

// GiveBack returns the reservations of ended runs' dispatches that were never published.
func (l *Leader) GiveBack(ctx context.Context) (bool, error) {
	refs := l.Dispatcher.Unwanted(planMost)
	if len(refs) == 0 {
		return false, nil
	}
	_, err := l.Propose(ctx, command.RedispatchPayload{Lost: refs})
	return true, err
}

// Close seals and closes the runs of which nothing is left: from then on the row store drops their late pages, and what
// was stored without being settled is removed.
func (l *Leader) Close(ctx context.Context) (bool, error) {
	jobs := l.Dispatcher.Closable()
	for _, id := range jobs {
		job := l.State().View().Job(id)
		if job == nil {
			continue
		}
		if wait, err := l.waits(ctx, job); err != nil {
			return true, err
		} else if wait {
			continue
		}
		l.Point("leader.before_seal")
		if err := l.Store.Seal(ctx, id, l.settled(job)); err != nil {
			return true, fmt.Errorf("leader: seal run %s: %w", id, err)
		}
		l.Point("leader.before_close")
		if _, err := l.Propose(ctx, command.CloseRunPayload{Job: id}); err != nil {
			return true, err
		}
		l.Point("leader.after_close")
	}
	return len(jobs) > 0, nil
}

// waits says whether an ended run is not to be closed yet, because that would remove what is to be spared. Nothing of it is
// out, so that what is stored beyond its ledger stays the same.
func (l *Leader) waits(ctx context.Context, job *state.Job) (bool, error) {
	if l.Spare == nil || !job.State.Final() || !l.Spare(job) {
		delete(l.spared, job.ID)
		return false, nil
	}
	if _, known := l.spared[job.ID]; !known {
		beyond := false
		settled := l.settled(job)
		err := l.Store.EachRecord(ctx, job.ID, func(r rowstore.Record) error {
			beyond = beyond || !settled(r.Unit, r.Last)
			return nil
		})
		if err != nil {
			return false, fmt.Errorf("leader: what is stored of run %s: %w", job.ID, err)
		}
		if l.spared == nil {
			l.spared = map[ids.ID]bool{}
		}
		l.spared[job.ID] = beyond
	}
	return l.spared[job.ID], nil
}

// settled says of each record of a run, asked in the order of units, whether its unit is settled: all up to the last page
// of a closed seq, and what the chain says of a seq that was set aside. Nil when everything stored is settled: each seq is
// one page and closed.
func (l *Leader) settled(job *state.Job) func(model.Unit, bool) bool {
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
				settled = true // closed by an earlier attempt, after it was sealed
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

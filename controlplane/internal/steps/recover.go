package steps

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Returned acts on markers that came back, of any shards. Lost dispatches settle from their page
// records if those are stored. Otherwise they go out again, or settle as errors after MaxAttempts.
// All shards share reads and commands: a lost fetcher had many shards, and the last one must not
// wait for the others.
func (l *Steps) Returned(ctx context.Context, markers ...model.Marker) error {
	l.Counts.MarkersBack.Add(uint64(len(markers)))
	var failed error
	for lost := range slices.Chunk(l.lost(markers), planMost) {
		failed = errors.Join(failed, l.recover(ctx, lost))
	}
	return failed
}

// lostSeq is a dispatch that a marker shows to be lost. moved: nobody began it before its shard
// moved, so the new dispatch does not count as an attempt.
type lostSeq struct {
	command.DispatchRef
	moved bool
}

// lost returns the dispatches that the markers show to be lost, without duplicates, by number.
func (l *Steps) lost(markers []model.Marker) []lostSeq {
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

// recover settles or redispatches at most planMost dispatches. Runs that cannot be looked up wait
// for the next markers, and do not hold up others.
func (l *Steps) recover(ctx context.Context, lost []lostSeq) error {
	unread := map[ids.ID]error{}
	if err := l.settleStored(ctx, lost, unread); err != nil {
		return err
	}
	if err := l.endSealed(ctx, lost, unread); err != nil {
		return err
	}
	var failed error
	for job, err := range unread { // report one of them
		failed = fmt.Errorf("leader: look for stored pages of run %s: %w", job, err)
	}
	lost = slices.DeleteFunc(lost, func(seq lostSeq) bool { return unread[seq.Job] != nil })
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
	failed = errors.Join(failed, l.settleExhausted(ctx, exhausted)) // others go on
	if n := len(uncounted); n > 0 {
		failed = errors.Join(failed, l.redispatch(ctx,
			command.RedispatchPayload{Lost: uncounted, Moved: uncounted[n-1].Number}))
	}
	return errors.Join(failed, l.redispatch(ctx, command.RedispatchPayload{Lost: counted}))
}

func (l *Steps) redispatch(ctx context.Context, again command.RedispatchPayload) error {
	if len(again.Lost) == 0 {
		return nil
	}
	l.Point("leader.before_redispatch")
	result, err := l.Propose(ctx, again)
	l.Point("leader.after_redispatch")
	if err != nil {
		return err
	}
	window, err := command.ResultOf[command.RedispatchPayload](result)
	l.Counts.Redispatched.Add(uint64(len(window.Grants)))
	return err
}

// settleStored settles lost dispatches whose pages are in the row store. It reads many of a run at
// once, and records the runs that cannot be read.
func (l *Steps) settleStored(ctx context.Context, lost []lostSeq, unread map[ids.ID]error) error {
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
			for i := range out.Grant { // empty if it is no longer out
				units = append(units, model.Unit{Seq: lost[n].Seq, Page: page + i})
			}
		}
		lost = lost[n:]
		if len(units) == 0 || unread[job] != nil {
			continue
		}
		stored, err := l.Store.Records(ctx, job, units)
		if err != nil {
			unread[job] = err
			continue
		}
		receipts = append(receipts, upToGaps(units, stored)...)
		if len(receipts) >= settleMost {
			if err := l.settleReceipts(ctx, receipts); err != nil {
				return err
			}
			receipts = nil
		}
	}
	return l.settleReceipts(ctx, receipts)
}

// upToGaps returns each seq's stored units up to its first missing unit: those behind a gap wait.
// Both arguments are in the order of units.
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

// endSealed ends runs with lost dispatches that the row store has sealed: after the seal, an older
// backup was restored. Their missing pages would never be stored, however often they are fetched.
func (l *Steps) endSealed(ctx context.Context, lost []lostSeq, unread map[ids.ID]error) error {
	asked := map[ids.ID]bool{}
	for _, ref := range lost {
		if _, _, out := l.stillOut(ref.DispatchRef); !out || asked[ref.Job] || l.ended(ref.Job) ||
			unread[ref.Job] != nil {
			continue
		}
		asked[ref.Job] = true
		sealed, err := l.Store.Sealed(ctx, ref.Job)
		if err != nil {
			unread[ref.Job] = err
			continue
		}
		if !sealed {
			continue
		}
		job := l.State().View().Job(ref.Job)
		if job == nil {
			continue // it is in the archive
		}
		if _, err := l.Propose(ctx,
			command.StopRunPayload{Customer: job.Customer, Scraper: job.Scraper,
				Job: job.ID}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Steps) settleReceipts(ctx context.Context, receipts []model.Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	_, err := l.Propose(ctx, command.SettlePayload{Receipts: receipts})
	return err
}

// stillOut returns the dispatch in the replicated sets and its first unsettled page; false if it is
// no longer out.
func (l *Steps) stillOut(ref command.DispatchRef) (out state.Out, page uint32, ok bool) {
	l.State().ReadRun(ref.Job, func(run *state.Run) {
		if run == nil || run.Out[ref.Seq] == nil || run.Out[ref.Seq].Number != ref.Number {
			return
		}
		out, ok = *run.Out[ref.Seq], true
	})
	return out, out.Start, ok
}

func (l *Steps) ended(job ids.ID) bool {
	record := l.State().View().Job(job)
	return record == nil || record.State.Final()
}

// exhausted returns the error page for a dispatch that was lost too often.
func (l *Steps) exhausted(ref command.DispatchRef, page uint32) (rowstore.PageWrite, bool) {
	job := l.State().View().Job(ref.Job)
	if job == nil {
		return rowstore.PageWrite{}, false
	}
	return rowstore.PageWrite{
		Job: rowstore.Job{ID: job.ID, Customer: job.Customer, Group: job.Group,
			Scraper: job.Scraper, Started: job.Started * 1000},
		Page: &model.Page{Job: ref.Job, Unit: model.Unit{Seq: ref.Seq, Page: page},
			Fetch:   l.IDs.New(),
			Outcome: model.Errored, Code: string(fault.PageAttemptsExhausted), At: l.NowMicros(),
			Last: true},
	}, true
}

// settleExhausted stores and settles such error pages. A page whose address cannot be read waits
// for the next marker.
func (l *Steps) settleExhausted(ctx context.Context, writes []rowstore.PageWrite) (failed error) {
	view, unread := l.State().View(), map[ids.ID]bool{}
	writes = slices.DeleteFunc(writes, func(w rowstore.PageWrite) bool {
		job := view.Job(w.Page.Job)
		if job == nil || unread[job.ID] {
			return true // closed and archived meanwhile, or its list is unreadable
		}
		links, err := l.Store.LinksAt(ctx, job.List, []uint32{w.Page.Unit.Seq})
		if err == nil && len(links) != 1 {
			err = rowstore.ErrListUnknown
		}
		if err != nil {
			unread[job.ID] = true
			failed = errors.Join(failed, fmt.Errorf("leader: address of an exhausted link: %w", err),
				l.endListless(ctx, job.ID, err))
			return true
		}
		w.Page.URL = links[0].URL
		return false
	})
	if len(writes) == 0 {
		return failed
	}
	stored, err := l.Store.PutPages(ctx, writes)
	if err != nil {
		return errors.Join(failed, fmt.Errorf("leader: store exhausted links: %w", err))
	}
	var receipts []model.Receipt
	for _, receipt := range stored {
		if receipt != nil {
			receipts = append(receipts, *receipt)
		}
	}
	l.Counts.Exhausted.Add(uint64(len(writes)))
	return errors.Join(failed, l.settleReceipts(ctx, receipts))
}

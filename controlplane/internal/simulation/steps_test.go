package simulation

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// step lets one role do one thing. Others may act in the middle of a leader's step (meanwhile).
func (w *world) step() error {
	ctx := context.Background()
	s := w.r.IntN(shards)
	w.now += int64(w.r.IntN(50))
	var err error
	role := w.r.IntN(16)
	if w.under != nil {
		if role <= 1 && *w.under <= 1 || role == *w.under && role <= 3 {
			return nil // a leader's routine runs once at a time, unless it closes runs
		}
	} else if role <= 4 {
		w.under = &role
		defer func() { w.under = nil }()
	}
	switch role {
	case 0:
		_, err = w.leader.Read(ctx)
	case 1:
		_, err = w.leader.Extend(ctx)
	case 2:
		_, err = w.leader.Publish(ctx, s)
	case 3:
		_, err = w.leader.GiveBack(ctx)
	case 4:
		_, err = w.closeNext(ctx)
	case 5, 6:
		err = w.readTask(s)
	case 7, 8, 9:
		w.fetch(s)
	case 10, 11:
		err = w.ingest(s)
	case 12, 13:
		err = w.bill(ctx, s)
	case 14:
		if w.r.IntN(3) > 0 {
			_, err = w.leader.Mark(s)
		} else {
			_, err = w.propose(ctx, command.TickPayload{})
		}
	case 15:
		err = w.archive()
	}
	if err = errors.Join(err, w.failed); err != nil {
		return err
	}
	if w.checked == w.index {
		return nil // nothing was applied
	}
	w.checked = w.index
	return w.check()
}

// closeNext closes the first closable run that is not being closed. It reports whether there was
// one.
func (w *world) closeNext(ctx context.Context) (bool, error) {
	for _, id := range w.leader.Dispatcher.Closable() {
		if !w.closing[id] {
			w.closing[id] = true
			defer delete(w.closing, id)
			return w.leader.Close(ctx, w.machine.Store().View().Job(id))
		}
	}
	return false, nil
}

// meanwhile lets others act in the middle of a leader's step, now and then.
func (w *world) meanwhile() {
	if w.under == nil || w.failed != nil || w.between || w.r.IntN(8) > 0 {
		return
	}
	w.between = true
	defer func() { w.between = false }()
	if w.harmed && w.r.IntN(4) == 0 {
		w.failed = w.order()
	}
	for range 1 + w.r.IntN(24) {
		w.failed = errors.Join(w.failed, w.step())
	}
}

// readTask reads one record of the tasks topic, as a fetcher does.
func (w *world) readTask(s int) error {
	if len(w.late[s]) > 0 && w.r.IntN(8) == 0 {
		w.tasks[s], w.late[s] = append(w.tasks[s], w.late[s][0]), w.late[s][1:]
	}
	if len(w.tasks[s]) == 0 {
		return nil
	}
	record := w.tasks[s][0]
	w.tasks[s] = w.tasks[s][1:]
	task, marker, err := stream.DecodeTasks(record)
	if err != nil {
		return err
	}
	if marker != nil {
		w.newest[s] = max(w.newest[s], marker.Newest)
		marker.Open = w.held(s)
		w.pages[s] = append(w.pages[s], item{marker: marker})
		return nil
	}
	key, late := seqKey{task.Job, task.Seq}, task.Number <= w.newest[s]
	w.newest[s] = max(w.newest[s], task.Number)
	if !late && w.open[s][key] == nil {
		o := &openTask{task: *task, left: task.Budget}
		if task.From != nil {
			o.page = task.From.Page
		}
		w.open[s][key] = o
	}
	return nil
}

func (w *world) sortedOpen(s int) []seqKey {
	keys := make([]seqKey, 0, len(w.open[s]))
	for key := range w.open[s] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b seqKey) int {
		return cmp.Or(slices.Compare(a.job[:], b.job[:]), cmp.Compare(a.seq, b.seq))
	})
	return keys
}

func (w *world) held(s int) []model.OpenTasks {
	var open []model.OpenTasks
	for _, key := range w.sortedOpen(s) {
		if n := len(open); n == 0 || open[n-1].Job != key.job {
			open = append(open, model.OpenTasks{Job: key.job})
		}
		last := &open[len(open)-1]
		last.Seqs = append(last.Seqs, key.seq)
	}
	return open
}

// fetch fetches one page of one open task.
func (w *world) fetch(s int) {
	keys := w.sortedOpen(s)
	if len(keys) == 0 {
		return
	}
	key := keys[w.r.IntN(len(keys))]
	o := w.open[s][key]
	job := w.machine.Store().View().Job(key.job)
	if (job == nil || job.State.Final()) && w.r.IntN(10) < 7 {
		delete(w.open[s], key)
		w.pages[s] = append(w.pages[s],
			item{page: &model.Page{Job: key.job, Unit: model.Unit{Seq: key.seq},
				Outcome: model.Cancelled}})
		return
	}
	truth := w.truthOf(key)
	page := &model.Page{Job: key.job, Unit: model.Unit{Seq: key.seq, Page: o.page},
		Fetch: w.ids.New(), URL: "u"}
	w.fetched[unitKey{key.job, page.Unit}]++
	page.Last = int(o.page)+1 >= truth.pages
	if truth.changing && o.page < 28 {
		page.Last = w.r.IntN(4) == 0
	}
	if page.Last && truth.bad {
		page.Outcome, page.Code = model.Errored, "timeout"
	} else {
		page.Outcome, page.Rows = model.Delivered, [][]byte{[]byte(page.Fetch.String())}
		if tiers := o.task.Tiers.Tiers(); job != nil && !truth.free && !o.task.Limited {
			page.PriceRow, page.Quantity = job.Charge.At(o.task.Domain).
				Of(tiers[w.r.IntN(len(tiers))])
		}
	}
	o.page++
	o.left--
	if !page.Last {
		page.Next = &model.Continuation{Page: o.page, URL: "next"}
		page.Spent = o.left == 0
	}
	if page.Last || page.Spent {
		delete(w.open[s], key)
	}
	w.pages[s] = append(w.pages[s], item{page: page})
}

func (w *world) truthOf(key seqKey) link {
	for _, truth := range w.runs {
		if truth.job == key.job {
			return truth.links[key.seq]
		}
	}
	return link{}
}

// ingest stores one page and passes it on before it removes it from its input.
func (w *world) ingest(s int) error {
	if len(w.pages[s]) == 0 || w.stalled {
		return nil
	}
	it := w.pages[s][0]
	switch {
	case it.marker != nil:
		w.receipts[s] = append(w.receipts[s], it)
	case it.page.Outcome == model.Cancelled:
		w.receipts[s] = append(w.receipts[s], item{receipt: receiptOf(it.page)})
	default:
		receipts, err := w.store.PutPages(context.Background(),
			[]rowstore.PageWrite{{Page: it.page}})
		if err != nil {
			return err
		}
		if w.r.IntN(10) == 0 {
			return nil // dies before the receipt
		}
		if receipts[0] != nil {
			w.receipts[s] = append(w.receipts[s], item{receipt: receipts[0]})
		}
		if w.r.IntN(10) == 0 {
			return nil // dies before the commit
		}
	}
	w.pages[s] = w.pages[s][1:]
	return nil
}

// bill settles a batch of one to four receipts and hands on the markers behind them.
func (w *world) bill(ctx context.Context, s int) error {
	var batch []model.Receipt
	var markers []model.Marker
	n := min(len(w.receipts[s]), 1+w.r.IntN(4))
	if n == 0 {
		return nil
	}
	for _, it := range w.receipts[s][:n] {
		if it.marker != nil {
			markers = append(markers, *it.marker)
			continue
		}
		batch = append(batch, *it.receipt)
		if it.receipt.Outcome == model.Delivered {
			w.noteDelivered(*it.receipt)
		}
	}
	if _, err := w.propose(ctx, command.SettlePayload{Receipts: batch}); err != nil {
		return err
	}
	w.returned = append(w.returned, markers...)
	if len(w.returned) > 0 && w.r.IntN(2) == 0 { // the others are handled with the next
		for _, receipts := range w.store.records { // recovery may settle these
			for _, page := range receipts {
				if page.Outcome == model.Delivered {
					w.noteDelivered(*receiptOf(page))
				}
			}
		}
		markers, w.returned = w.returned, nil
		if err := w.leader.Returned(ctx, markers...); err != nil {
			return err
		}
	}
	if w.r.IntN(10) == 0 {
		return nil // dies before the commit
	}
	w.receipts[s] = w.receipts[s][n:]
	return nil
}

func (w *world) noteDelivered(receipt model.Receipt) {
	if w.delivered[receipt.Job] == nil {
		w.delivered[receipt.Job] = map[model.Unit]bool{}
	}
	w.delivered[receipt.Job][receipt.Unit] = true
}

// fault does harm that may cost fetches, but never a row or a charge.
func (w *world) fault() error {
	s := w.r.IntN(shards)
	switch k := w.r.IntN(100); {
	case k < 12:
		w.tasks[s] = dropOne(w, w.tasks[s])
	case k < 24:
		w.pages[s] = dropOne(w, w.pages[s])
	case k < 35:
		w.receipts[s] = dropOne(w, w.receipts[s])
	case k < 45:
		w.repeat(s)
	case k < 52:
		w.tasks[s] = nil
	case k < 54:
		w.pages[s] = nil
	case k < 56:
		w.receipts[s] = nil
	case k < 60:
		for s := range shards {
			w.tasks[s], w.pages[s], w.receipts[s] = nil, nil, nil
		}
	case k < 68: // a fetcher restarts
		w.let(s)
	case k < 75: // the shard moves: its new holder starts at the end
		w.let(s)
		w.tasks[s] = nil
		_, err := w.leader.Mark(s)
		return err
	case k < 80: // everything dies at once
		for s := range shards {
			w.tasks[s], w.pages[s], w.receipts[s] = nil, nil, nil
			w.let(s)
		}
		if err := w.restart(); err != nil {
			return err
		}
		return w.markAll()
	case k < 88:
		return w.mild()
	default:
		return w.order()
	}
	return nil
}

// mild does harm that must not cost a fetch, except those cut off by a lease's end.
func (w *world) mild() error {
	switch w.r.IntN(6) {
	case 5:
		return w.lapse()
	case 0, 1:
		w.stalled = !w.stalled
		return nil
	case 2:
		return w.handOver(w.r.IntN(shards))
	case 3:
		w.repeat(w.r.IntN(shards))
		return nil
	}
	if w.r.IntN(4) == 0 {
		w.depose(w.r.IntN(shards))
	}
	if err := w.lead(); err != nil {
		return err
	}
	return w.markAll()
}

// maxAbsences is the most absences of leaders in one simulation: no dispatch runs out of attempts.
const maxAbsences = steps.MaxAttempts - 2

// lapse makes a leader absent for longer than a lease. The fetchers drop their shards and end their
// requests. The next leader leases them the same shards.
func (w *world) lapse() error {
	if w.absences++; w.absences > maxAbsences {
		return nil
	}
	if err := w.lead(); err != nil {
		return err
	}
	for s := range shards {
		for _, key := range w.sortedOpen(s) {
			if w.r.IntN(3) == 0 {
				under := unitKey{key.job, model.Unit{Seq: key.seq, Page: w.open[s][key].page}}
				w.fetched[under]++
				w.cut[under]++
			}
		}
		w.let(s)
		w.tasks[s] = nil // it is read from its end
	}
	return w.markAll()
}

// depose makes the outgoing leader's last records reach a shard after the first records of the
// next.
func (w *world) depose(s int) {
	from := w.r.IntN(len(w.tasks[s]) + 1)
	w.late[s] = append(w.late[s], w.tasks[s][from:]...)
	w.tasks[s] = w.tasks[s][:from:from]
}

// loseReceipts loses receipts of stored pages. That must not cost a fetch either: the pages settle
// from their records.
func (w *world) loseReceipts() error {
	s := w.r.IntN(shards)
	if w.r.IntN(2) == 0 {
		w.receipts[s] = nil
	} else {
		w.receipts[s] = dropOne(w, w.receipts[s])
	}
	return nil
}

// handOver moves a shard as planned. Its holder publishes the begun pages and lays down its other
// open tasks. The next holder starts at the end, with a marker, and continues each chain with its
// next page.
func (w *world) handOver(s int) error {
	w.let(s)
	w.tasks[s] = nil
	record := w.machine.Store().View().Shard(uint16(s))
	_, err := w.propose(context.Background(),
		command.AssignShardsPayload{Changes: []command.ShardChange{{
			Number: uint16(s), Owner: w.ids.New().String(), Epoch: record.Epoch, Planned: true}}})
	if err == nil {
		_, err = w.leader.Mark(s)
	}
	return err
}

// let gives a shard to a holder that knows what its lease says.
func (w *world) let(s int) {
	w.open[s] = map[seqKey]*openTask{}
	w.newest[s] = w.leader.Dispatcher.Newest(s)
}

// repeat appends a record of a shard's topic again, as a log does that got no answer to its first
// write.
func (w *world) repeat(s int) {
	switch w.r.IntN(3) {
	case 0:
		w.tasks[s] = repeatOne(w, w.tasks[s])
	case 1:
		w.pages[s] = repeatOne(w, w.pages[s])
	case 2:
		w.receipts[s] = repeatOne(w, w.receipts[s])
	}
}

// order does what customers and operators do at any time: stop, top up, wait, switch billing,
// launch.
func (w *world) order() error {
	if len(w.runs) == 0 {
		return nil
	}
	truth := w.runs[w.r.IntN(len(w.runs))]
	switch w.r.IntN(5) {
	case 0:
		if truth.launched {
			_, err := w.propose(context.Background(),
				command.StopRunPayload{Customer: truth.customer, Scraper: truth.scraper})
			return err
		}
	case 1:
		return w.topUp(truth.customer, int64(w.r.IntN(5*pagePrice)+1))
	case 2:
		w.now += day / 3
	case 3:
		off := w.r.IntN(2) == 0
		_, err := w.propose(context.Background(), command.PutSettingsPayload{BillingOff: &off})
		return err
	}
	return w.launch(truth)
}

func dropOne[T any](w *world, list []T) []T {
	if len(list) == 0 {
		return list
	}
	at := w.r.IntN(len(list))
	return slices.Delete(slices.Clone(list), at, at+1)
}

func repeatOne[T any](w *world, list []T) []T {
	if len(list) == 0 {
		return list
	}
	return append(slices.Clone(list), list[w.r.IntN(len(list))])
}

// openJob is a job with its sets.
type openJob struct {
	job *state.Job
	run *state.Run
}

func (w *world) openJobs() []openJob {
	var open []openJob
	for _, job := range w.machine.Store().View().OpenJobs() {
		w.machine.Store().ReadRun(job.ID,
			func(run *state.Run) { open = append(open, openJob{job, run}) })
	}
	return open
}

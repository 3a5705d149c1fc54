package hold

import (
	"context"
	"errors"
	"slices"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// Bounds of one publish.
const (
	batchRecords = 256
	batchBytes   = 1 << 20
)

// outgoing is a page record or a marker on its way to the log.
type outgoing struct {
	record []byte
	kept   Keeping // bodies that the record refers to; nil: none
	final  *Task   // the task that this page ends, if any
	marker *model.Marker
}

// bytes returns the bytes held until the log has the record.
func (o *outgoing) bytes() int64 {
	if o.kept == nil {
		return int64(len(o.record))
	}
	return int64(len(o.record)) + o.kept.Bytes()
}

// Keeping is bodies on their way to the pack that a page record names.
type Keeping interface {
	// Await waits until the pack is durable; false: it never will be, or ctx has ended.
	Await(ctx context.Context) bool
	// Bytes returns the memory they take until then.
	Bytes() int64
	// Strip returns a record that does not refer to them.
	Strip(record []byte) []byte
}

// postPage puts a page into the outbox, and forgets what its unit kept. It needs mu.
func (h *Hold) postPage(t *Task, record []byte, kept Keeping, final bool) {
	h.forgetBytes(t)
	t.Unit.CountPage()
	out := outgoing{record: record, kept: kept}
	if final {
		t.done = true
		out.final = t
	}
	h.enqueue(t.shard, out)
}

// enqueue appends to a shard's outbox. A marker replaces a marker directly before it, because it
// covers more. It needs mu.
func (h *Hold) enqueue(s *shard, out outgoing) {
	if last := len(s.outbox) - 1; out.marker != nil && last >= 0 && s.outbox[last].marker != nil {
		s.outbox[last] = out
		return
	}
	s.outbox = append(s.outbox, out)
	h.countBytes(out.bytes())
	s.wake.Raise()
}

// publishPages publishes the outbox in order until the shard is dropped. A task is open until the
// log has accepted its final page. A marker names the tasks that are open when its turn comes. So
// everything before it is either in the log before it or named by it.
func (h *Hold) publishPages(s *shard) {
	for {
		batch := h.nextBatch(s)
		if batch == nil {
			select {
			case <-s.ctx.Done():
				return
			case <-s.wake:
			}
			continue
		}
		records := make([][]byte, len(batch))
		for i, out := range batch {
			records[i] = out.record
			if out.kept != nil && !out.kept.Await(s.ctx) && s.ctx.Err() == nil {
				records[i] = out.kept.Strip(out.record)
			}
		}
		h.config.Point("fetcher.before_publish")
		ok := h.publishRecords(s, records)
		h.config.Point("fetcher.after_publish")
		h.endPublish(s, batch, ok)
	}
}

// nextBatch takes the next pages from the outbox, or the next marker with its open tasks. It
// returns nil if there is nothing to publish.
func (h *Hold) nextBatch(s *shard) []outgoing {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !s.gone && len(s.outbox) > 0 && s.outbox[0].marker != nil {
		marker := s.outbox[0].marker
		s.outbox = s.outbox[1:]
		// A marker tells what its fetcher does not hold, so only the current holder may publish it.
		if !s.isFresh(h.config.Clock.Now()) {
			continue
		}
		marker.Open = s.openTasks()
		h.counts.markers.Add(1)
		s.publishing = true
		record := stream.EncodeMarker(*marker)
		h.countBytes(int64(len(record)))
		return []outgoing{{record: record}}
	}
	if s.gone || len(s.outbox) == 0 {
		s.outbox = nil
		return nil
	}
	n, size := 0, 0
	for n < len(s.outbox) && n < batchRecords && size < batchBytes && s.outbox[n].marker == nil {
		size += len(s.outbox[n].record)
		n++
	}
	batch := slices.Clone(s.outbox[:n])
	clear(s.outbox[:n])
	s.outbox = s.outbox[n:]
	s.publishing = true
	return batch
}

// openTasks returns the open tasks. It needs mu.
func (s *shard) openTasks() []model.OpenTasks {
	open := make([]model.OpenTasks, 0, len(s.open))
	for job, tasks := range s.open {
		named := model.OpenTasks{Job: job, Seqs: make([]uint32, 0, len(tasks))}
		for seq := range tasks {
			named.Seqs = append(named.Seqs, seq)
		}
		slices.Sort(named.Seqs)
		open = append(open, named)
	}
	return open
}

// publishRecords retries until the log has accepted everything. It returns false if the shard is
// dropped or its lease has lapsed. Records of a failed try may appear twice, in the same order.
// Records that are too large for the log are tried one by one. Of the one that it refuses, the rows
// are left out.
func (h *Hold) publishRecords(s *shard, records [][]byte) bool {
	for failures := 1; h.mayPublish(s); failures++ {
		err := h.config.Log.Publish(s.ctx, stream.Pages, int(s.number), records...)
		if err == nil {
			return true
		}
		if errors.Is(err, stream.ErrTooLarge) {
			if len(records) > 1 {
				return !slices.ContainsFunc(records, func(record []byte) bool {
					return !h.publishRecords(s, [][]byte{record})
				})
			}
			if page := withoutRows(records[0]); page != nil {
				records = [][]byte{stream.EncodePage(*page)}
				h.counts.refused.Add(1)
				h.config.Logger.Warn("fetcher: the log refuses a page for its size: it is an "+
					"error of its link now", "shard", s.number, "run", page.Job, "url", page.URL,
					"error", err)
				continue
			}
		}
		if s.ctx.Err() == nil {
			h.config.Logger.Warn("fetcher: cannot publish pages", "shard", s.number, "error", err)
		}
		if !pauses.Wait(s.ctx, h.config.Clock, failures) {
			return false
		}
	}
	return false
}

// withoutRows returns a record's page as the error that its rows are too large; nil: it has none.
func withoutRows(record []byte) *model.Page {
	page, _, err := stream.DecodePages(record)
	if err != nil || page == nil || len(page.Rows) == 0 {
		return nil
	}
	page.Refuse(string(fault.PageRowTooLarge))
	return page
}

// mayPublish says whether the shard is still held. It drops shards whose lease has lapsed, since
// their batches are lost.
func (h *Hold) mayPublish(s *shard) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.config.Clock.Now(); !s.gone && !s.isFresh(now) {
		h.lapseShards(now)
	}
	return !s.gone
}

// endPublish records that the log has accepted a batch, or never will.
func (h *Hold) endPublish(s *shard, batch []outgoing, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.publishing = false
	for _, out := range batch {
		h.countBytes(-out.bytes())
		if ok && out.final != nil && !s.gone { // a dropped shard has no open tasks
			h.closeTask(s, out.final)
		}
	}
	h.releaseWhenDone(s)
}

// BeginReading frees the connections of the turn's requests, with their host's answer: a page of
// this many bytes. Reading it may take long. The turn makes no more requests.
func (t *Task) BeginReading(bytes int64, answer frontier.Answer) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frontier.Free(&t.item, answer, h.config.Clock.Now())
	h.wake.Raise()
	h.weigh(t, bytes)
}

// EndReading ends the reading of the page.
func (t *Task) EndReading(bytes int64) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.weigh(t, -bytes)
}

// weigh counts bytes held for the task's customer, so that others need not wait. It needs mu.
func (h *Hold) weigh(t *Task, bytes int64) {
	if bytes == 0 {
		return
	}
	customer := t.task.Customer
	rested, full := h.frontier.Rests(customer), h.isFull()
	h.held += bytes
	h.frontier.Weigh(customer, bytes)
	if full && !h.isFull() || rested && !h.frontier.Rests(customer) {
		h.wake.Raise()
	}
}

// KeepBytes counts bytes kept while the task waits for another page of its unit. The unit's page
// record, or the end of the shard, releases them.
func (t *Task) KeepBytes(bytes int64) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.shard.gone {
		return
	}
	h.weigh(t, bytes)
	t.kept += bytes
}

// ForgetBytes releases what the task keeps.
func (t *Task) ForgetBytes() {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetBytes(t)
}

// forgetBytes is ForgetBytes with mu held.
func (h *Hold) forgetBytes(t *Task) {
	delete(h.timed, t)
	delete(h.keeping, t)
	h.weigh(t, -t.kept)
	t.kept = 0
}

// countBytes counts bytes held, and wakes the starter once they are below the bound again. It needs
// mu.
func (h *Hold) countBytes(bytes int64) {
	full := h.isFull()
	h.held += bytes
	if full && !h.isFull() {
		h.wake.Raise()
	}
}

// isFull says whether nothing may be begun. It needs mu.
func (h *Hold) isFull() bool { return h.held-h.frontier.Beyond() >= h.config.MaxBytes }

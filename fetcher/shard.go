package fetcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
)

// Bounds of one publish.
const (
	batchRecords = 256
	batchBytes   = 1 << 20
)

// pauses are between two tries of a failing call.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// fetchMost is how many tasks are read at once.
const fetchMost = 512

// shard is a shard that this process holds. The fetcher's mu guards what is below reader.
type shard struct {
	number uint16
	epoch  uint64
	ctx    context.Context // ends when the shard is dropped; requests of its pages end with it
	cancel context.CancelFunc
	wake   chan struct{} // the outbox has something
	reader stream.Reader

	until      time.Time // the lease's end
	releasing  bool      // no page is begun
	finishBy   time.Time // while releasing: until then pages that have begun may start requests
	gone       bool      // dropped
	publishing bool
	// number of the newest dispatch that came, or had been sent by what lease or marker say
	newest uint64
	// open are the tasks that a marker must name: from their arrival until the log has accepted
	// their final page.
	open   map[ids.ID]map[uint32]*chain
	tasks  int        // in open
	down   int        // of them, those laid down
	outbox []outgoing // in the order in which the log gets it
}

// outgoing is a page record or a marker on its way to the log.
type outgoing struct {
	record []byte
	final  *chain // the task that ends with this page, if it does
	marker *model.Marker
}

func newShard(held client.ShardEpoch, until time.Time, reader stream.Reader) *shard {
	s := &shard{number: held.Shard, epoch: held.Epoch, newest: held.Newest, until: until,
		reader: reader, wake: make(chan struct{}, 1),
		open: map[ids.ID]map[uint32]*chain{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// fresh says whether the shard may be worked on. It needs the fetcher's mu.
func (s *shard) fresh(now time.Time) bool { return !s.gone && now.Before(s.until) }

func (f *Fetcher) isFresh(s *shard) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.fresh(f.config.Clock.Now())
}

// readTasks takes in what comes, until the shard is dropped.
func (f *Fetcher) readTasks(s *shard) {
	defer s.reader.Close()
	failures := 0
	for {
		messages, err := s.reader.Fetch(s.ctx, fetchMost)
		switch {
		case s.ctx.Err() != nil:
			return
		// the log is closed, or somebody else has opened the shard
		case errors.Is(err, stream.ErrClosed):
			f.mu.Lock()
			f.drop(s)
			f.mu.Unlock()
			return
		case err != nil:
			f.config.Logger.Warn("fetcher: cannot read tasks", "shard", s.number, "error", err)
			failures++
			if !pauses.Wait(s.ctx, f.config.Clock, failures) {
				return
			}
			continue
		}
		failures = 0
		f.takeIn(s, messages)
	}
}

// skip notes records that would be refused each time: their units are found by markers. It needs
// the fetcher's mu.
func (f *Fetcher) skip(records uint64) {
	if records == 0 {
		return
	}
	f.counts.undecodable.Add(records)
	f.untold += records
	if now := f.config.Clock.Now(); f.told.IsZero() || now.Sub(f.told) >= tellEvery {
		f.config.Logger.Warn("fetcher: tasks skipped that cannot be decoded, or have no budget",
			"records", f.untold)
		f.told, f.untold = now, 0
	}
}

// takeIn puts tasks into the frontier and markers into the outbox, in their order.
func (f *Fetcher) takeIn(s *shard, messages []stream.Message) {
	type arrival struct {
		chain  *chain
		marker *model.Marker
	}
	arrivals := make([]arrival, 0, len(messages))
	skipped := uint64(0)
	view := f.config.Control.View()
	for _, m := range messages {
		var task *model.Task
		var marker *model.Marker
		var err error
		read := func() { task, marker, err = stream.DecodeTasks(m.Value) }
		if panicked := f.reader.Run(reading.Page{URL: "a record of tasks", Body: m.Value},
			read); panicked != nil {
			err = panicked
		}
		switch {
		case err != nil || task != nil && task.Budget == 0:
			skipped++
		case marker != nil:
			arrivals = append(arrivals, arrival{marker: marker})
		default:
			arrivals = append(arrivals, arrival{chain: f.newChain(view, s, task)})
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skip(skipped)
	if s.gone {
		return
	}
	for _, a := range arrivals {
		if a.marker != nil {
			s.newest = max(s.newest, a.marker.Newest)
			f.send(s, outgoing{marker: a.marker})
		} else {
			f.admit(s, a.chain)
		}
	}
	notify(f.wake)
}

// admit takes a task in, unless it comes again or late, its seq is held open, or too many are. One
// whose final page is not accepted yet gives its place to its next dispatch. Leaders publish a
// shard's tasks in the order of their numbers, which never count back, and say in leases and
// markers how far they are: what is not above the newest is a repeat of the log's, or from a leader
// that has been replaced. It needs mu.
func (f *Fetcher) admit(s *shard, c *chain) {
	job, seq := c.task.Job, c.task.Seq
	held := s.open[job][seq]
	late := c.task.Number <= s.newest
	s.newest = max(s.newest, c.task.Number)
	if late || held != nil && !held.done || held == nil && f.open >= maxOpen {
		f.counts.dropped.Add(1)
		return
	}
	if s.open[job] == nil {
		s.open[job] = map[uint32]*chain{}
	}
	s.open[job][seq] = c
	if held == nil {
		s.tasks++
		f.open++
	}
	if c.invalid != nil {
		f.finish(c, c.errored(f, *c.invalid))
		return
	}
	if s.releasing {
		f.put(c)
		return
	}
	f.frontier.Add(&c.item, f.config.Clock.Now())
}

// closeTask takes a task whose final page the log has accepted out of the open ones. It needs mu.
func (f *Fetcher) closeTask(s *shard, c *chain) {
	job, seq := c.task.Job, c.task.Seq
	if s.open[job][seq] != c {
		return
	}
	delete(s.open[job], seq)
	if len(s.open[job]) == 0 {
		delete(s.open, job)
	}
	s.tasks--
	f.open--
}

// send puts something into a shard's outbox. A marker right behind another takes its place: it says
// more. It needs mu.
func (f *Fetcher) send(s *shard, out outgoing) {
	if last := len(s.outbox) - 1; out.marker != nil && last >= 0 && s.outbox[last].marker != nil {
		s.outbox[last] = out
		return
	}
	s.outbox = append(s.outbox, out)
	f.hold(int64(len(out.record)))
	notify(s.wake)
}

// hold counts bytes held, and lets the starter go on once they are few enough again. It needs mu.
func (f *Fetcher) hold(bytes int64) {
	full := f.held >= f.config.MaxBytes
	f.held += bytes
	if full && f.held < f.config.MaxBytes {
		notify(f.wake)
	}
}

// publishPages empties the outbox into the log, in order, until the shard is dropped. A task is
// open until the log has accepted its final page, and a marker's open tasks are those at the moment
// when it is its turn: whatever stood before it is either in the log before it or named by it.
func (f *Fetcher) publishPages(s *shard) {
	for {
		batch := f.nextBatch(s)
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
		}
		f.config.Crash("fetcher.before_publish")
		ok := f.publish(s, records)
		f.config.Crash("fetcher.after_publish")
		f.published(s, batch, ok)
	}
}

// nextBatch takes the next pages out of the outbox, or the next marker, with its open tasks filled
// in. It is nil when there is nothing to publish.
func (f *Fetcher) nextBatch(s *shard) []outgoing {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !s.gone && len(s.outbox) > 0 && s.outbox[0].marker != nil {
		marker := s.outbox[0].marker
		s.outbox = s.outbox[1:]
		// A marker says what its fetcher does not hold: only who still holds the shard can say so.
		if !s.fresh(f.config.Clock.Now()) {
			continue
		}
		marker.Open = s.openTasks()
		f.counts.markers.Add(1)
		s.publishing = true
		record := stream.EncodeMarker(*marker)
		f.hold(int64(len(record)))
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

// openTasks names the open tasks. It needs the fetcher's mu.
func (s *shard) openTasks() []model.OpenTasks {
	open := make([]model.OpenTasks, 0, len(s.open))
	for job, chains := range s.open {
		tasks := model.OpenTasks{Job: job, Seqs: make([]uint32, 0, len(chains))}
		for seq := range chains {
			tasks.Seqs = append(tasks.Seqs, seq)
		}
		slices.Sort(tasks.Seqs)
		open = append(open, tasks)
	}
	return open
}

// publish repeats until the log has accepted everything; false when the shard is dropped, or its
// lease is over. What a failed try has left in the log comes twice, in the same order.
func (f *Fetcher) publish(s *shard, records [][]byte) bool {
	for failures := 1; f.mayPublish(s); failures++ {
		err := f.config.Log.Publish(s.ctx, stream.Pages, int(s.number), records...)
		if err == nil {
			return true
		}
		if s.ctx.Err() == nil {
			f.config.Logger.Warn("fetcher: cannot publish pages", "shard", s.number, "error", err)
		}
		if !pauses.Wait(s.ctx, f.config.Clock, failures) {
			return false
		}
	}
	return false
}

// mayPublish says whether a shard is still ours. One whose lease is over is dropped, since its
// batch is lost.
func (f *Fetcher) mayPublish(s *shard) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !s.gone && !s.fresh(f.config.Clock.Now()) {
		f.lapse(s)
	}
	return !s.gone
}

// published notes that the log has accepted a batch, or that it never will.
func (f *Fetcher) published(s *shard, batch []outgoing, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.publishing = false
	for _, out := range batch {
		f.hold(-int64(len(out.record)))
		if ok && out.final != nil && !s.gone { // of a dropped shard nothing is open
			f.closeTask(s, out.final)
		}
	}
	f.releaseWhenDone(s)
}

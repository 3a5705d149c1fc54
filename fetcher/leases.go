package fetcher

import (
	"context"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/stream"
)

// firstBeat is how long to wait after a heartbeat that failed before any lease was granted.
const firstBeat = time.Second

// soonShare is the part of a lease after which a fetcher asks again for what is about to be free.
const soonShare = 30

// keepLeases sends heartbeats and takes and gives back shards as they are answered, until ctx ends.
// Then it lets go of them; what is left of them after StopWithin it drops.
func (f *Fetcher) keepLeases(ctx, work context.Context) {
	defer f.dropAll()
	every := firstBeat
	for ctx.Err() == nil {
		if next, ok := f.beat(work, every); ok {
			every = next
		}
		select {
		case <-ctx.Done():
		case <-f.beatNow:
		case <-f.config.Clock.After(every):
		}
	}
	over := f.config.Clock.After(f.config.StopWithin)
	for held := f.letGo(); ; held = f.heldShards() {
		if _, ok := f.beat(work, every); ok && held == 0 {
			return // the leader knows
		}
		select {
		case <-over:
			f.config.Logger.Warn("fetcher: stops before all that has begun is finished", "shards",
				f.heldShards())
			return
		case <-f.beatNow:
		case <-f.config.Clock.After(min(every, firstBeat)):
		}
	}
}

// letGo begins to release every shard, for good. It returns how many are left.
func (f *Fetcher) letGo() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = true
	for _, s := range f.shards {
		f.release(s)
	}
	return len(f.shards)
}

func (f *Fetcher) heldShards() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.shards)
}

// beat sends one heartbeat and does what it is answered. It returns when to send the next one; not
// ok when there was no answer.
func (f *Fetcher) beat(ctx context.Context, timeout time.Duration) (next time.Duration, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, firstBeat))
	defer cancel()
	beat := client.Heartbeat{Node: f.config.Node, Boot: f.config.Boot, Pages: f.counts.pages.Load(),
		Unread: f.behind.Load()}
	f.mu.Lock()
	for _, s := range f.shards {
		beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: s.number, Epoch: s.epoch})
	}
	beat.Leaving, beat.Open = f.leaving, f.open
	f.beats++
	f.mu.Unlock()
	sent := f.config.Clock.Now() // a lease counts from before it was asked for
	leases, err := f.config.Control.Heartbeat(ctx, beat)
	if err != nil {
		f.config.Logger.Warn("fetcher: heartbeat failed", "error", err)
		f.counts.lostBeats.Add(1)
		return 0, false
	}
	owners := map[string]bool{}
	for _, s := range f.config.Control.View().Shards() {
		if s.Owner != "" {
			owners[s.Owner] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetchers = max(len(owners), 1)
	f.leased = sent
	f.obey(leases, sent.Add(leases.For))
	next = leases.For / 3
	if leases.Soon {
		next = leases.For / soonShare
	}
	return max(next, time.Millisecond), true
}

// obey makes the held shards what the leases say. It needs mu.
func (f *Fetcher) obey(leases client.Leases, until time.Time) {
	named := make(map[uint16]bool, len(leases.Hold)+len(leases.Release))
	for _, held := range leases.Hold {
		named[held.Shard] = true
		s := f.shards[held.Shard]
		if s != nil && s.epoch == held.Epoch {
			s.until = until
			f.keep(s)
			continue
		}
		if s != nil {
			f.drop(s)
		}
		if !f.leaving {
			f.take(held, until)
		}
	}
	for number := range f.opening {
		if !named[number] || f.leaving {
			f.giveUp(number)
		}
	}
	for _, held := range leases.Release {
		named[held.Shard] = true
		if s := f.shards[held.Shard]; s != nil && s.epoch == held.Epoch {
			s.until = until
			f.release(s)
		}
	}
	for number, s := range f.shards {
		if !named[number] {
			f.drop(s)
		}
	}
}

// opening is a shard on its way to being held. The log may take long to open one, and leases must
// not wait for it.
type opening struct {
	held   client.ShardEpoch
	until  time.Time
	beat   uint64        // the heartbeat whose answer named it last
	reader stream.Reader // nil: not open yet
}

// take opens a shard at the end of its tasks; only then is it reported as held. It needs mu.
func (f *Fetcher) take(held client.ShardEpoch, until time.Time) {
	o := f.opening[held.Shard]
	if o != nil && o.held.Epoch != held.Epoch {
		f.giveUp(held.Shard)
		o = nil
	}
	if o != nil {
		o.until, o.beat = until, f.beats
		f.begin(o)
		return
	}
	o = &opening{held: held, until: until, beat: f.beats}
	f.opening[held.Shard] = o
	f.running.Go(func() {
		reader, err := f.config.Log.Tail(stream.Tasks, int(held.Shard))
		f.mu.Lock()
		defer f.mu.Unlock()
		switch wanted := f.opening[held.Shard] == o; {
		case err != nil:
			f.config.Logger.Warn("fetcher: cannot open a shard", "shard", held.Shard, "error", err)
			if wanted {
				delete(f.opening, held.Shard) // the next answer asks again
			}
		case !wanted:
			_ = reader.Close() // it gives back what nobody has used
		default:
			o.reader = reader
			f.begin(o)
		}
	})
}

// begin works on a shard that is open, unless a heartbeat was sent meanwhile that did not report
// it: then it may be another's by now, and the answer must name it again. It needs mu.
func (f *Fetcher) begin(o *opening) {
	if o.reader == nil || o.beat != f.beats {
		return
	}
	delete(f.opening, o.held.Shard)
	s := newShard(o.held, o.until, o.reader)
	f.shards[o.held.Shard] = s
	f.counts.taken.Add(1)
	f.running.Go(func() { f.readTasks(s) })
	f.running.Go(func() { f.publishPages(s) })
	notify(f.beatNow)
}

// giveUp forgets a shard that was to be held. It needs mu.
func (f *Fetcher) giveUp(number uint16) {
	if o := f.opening[number]; o.reader != nil {
		_ = o.reader.Close() // it gives back what nobody has used
	}
	delete(f.opening, number)
}

func (f *Fetcher) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shards {
		f.drop(s)
	}
	for number := range f.opening {
		f.giveUp(number)
	}
}

// lapse drops shards whose lease is over. It needs mu.
func (f *Fetcher) lapse(shards ...*shard) {
	if len(shards) == 0 {
		return
	}
	numbers := make([]int, len(shards))
	for i, s := range shards {
		numbers[i] = int(s.number)
		f.drop(s)
	}
	f.counts.lapsed.Add(uint64(len(shards)))
	slices.Sort(numbers)
	f.config.Logger.Warn("fetcher: leases lapsed", "count", len(numbers), "shards", numbers)
}

// drop forgets a shard and all that is open of it, and ends its requests under way. It needs mu.
func (f *Fetcher) drop(s *shard) {
	if s.gone {
		return
	}
	s.gone = true
	s.cancel()
	delete(f.shards, s.number)
	now := f.config.Clock.Now()
	for _, chains := range s.open {
		for _, c := range chains {
			f.frontier.Remove(&c.item, now)
			f.forget(c)
		}
	}
	f.open -= s.tasks
	for _, out := range s.outbox {
		f.hold(-int64(len(out.record)))
	}
	s.open, s.tasks, s.down, s.outbox = nil, 0, 0, nil
}

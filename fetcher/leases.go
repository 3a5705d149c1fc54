package fetcher

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/stream"
)

// firstBeat is how long to wait after a heartbeat that failed before any lease was granted.
const firstBeat = time.Second

// keepLeases sends heartbeats and takes and gives back shards as they are answered, until ctx ends. Then it drops them.
func (f *Fetcher) keepLeases(ctx context.Context) {
	defer f.dropAll()
	every := firstBeat
	for {
		if lease := f.beat(ctx, every); lease > 0 {
			every = max(lease/3, time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.beatNow:
		case <-f.config.Clock.After(every):
		}
	}
}

// beat sends one heartbeat and does what it is answered. It returns the leases' length, 0 when there was no answer.
func (f *Fetcher) beat(ctx context.Context, timeout time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, firstBeat))
	defer cancel()
	beat := client.Heartbeat{Node: f.config.Node, Boot: f.config.Boot}
	f.mu.Lock()
	for _, s := range f.shards {
		beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: s.number, Epoch: s.epoch})
	}
	f.mu.Unlock()
	sent := f.config.Clock.Now() // a lease counts from before it was asked for
	leases, err := f.config.Control.Heartbeat(ctx, beat)
	if err != nil {
		f.config.Logger.Warn("fetcher: heartbeat failed", "error", err)
		f.counts.lostBeats.Add(1)
		return 0
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
	return leases.For
}

// obey makes the held shards what the leases say. It needs mu.
func (f *Fetcher) obey(leases client.Leases, until time.Time) {
	named := make(map[uint16]bool, len(leases.Hold)+len(leases.Release))
	for _, held := range leases.Hold {
		named[held.Shard] = true
		s := f.shards[held.Shard]
		if s != nil && s.epoch == held.Epoch {
			s.until, s.releasing = until, false
			continue
		}
		if s != nil {
			f.drop(s)
		}
		f.take(held, until)
	}
	for _, held := range leases.Release {
		named[held.Shard] = true
		if s := f.shards[held.Shard]; s != nil && s.epoch == held.Epoch {
			s.until, s.releasing = until, true
			f.releaseWhenDone(s)
		}
	}
	for number, s := range f.shards {
		if !named[number] {
			f.drop(s)
		}
	}
}

// take opens a shard at the end of its tasks; only then is it reported as held. It needs mu.
func (f *Fetcher) take(held client.ShardEpoch, until time.Time) {
	reader, err := f.config.Log.Tail(stream.Tasks, int(held.Shard))
	if err != nil {
		f.config.Logger.Warn("fetcher: cannot open a shard", "shard", held.Shard, "error", err)
		return // not reported as held: the next answer asks again
	}
	s := newShard(held, until, reader)
	f.shards[held.Shard] = s
	f.counts.taken.Add(1)
	f.running.Go(func() { f.readTasks(s) })
	f.running.Go(func() { f.publishPages(s) })
	notify(f.beatNow)
}

// releaseWhenDone gives a shard back once nothing of it is open and all its pages are published. It needs mu.
func (f *Fetcher) releaseWhenDone(s *shard) {
	if s.releasing && !s.gone && s.tasks == 0 && len(s.outbox) == 0 && !s.publishing {
		f.counts.released.Add(1)
		f.drop(s)
		notify(f.beatNow)
	}
}

func (f *Fetcher) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shards {
		f.drop(s)
	}
}

// drop forgets a shard and all that is open of it. Requests under way end on their own and find it gone. It needs mu.
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
		}
	}
	f.open -= s.tasks
	for _, out := range s.outbox {
		f.hold(-int64(len(out.record)))
	}
	s.open, s.tasks, s.outbox = nil, 0, nil
}

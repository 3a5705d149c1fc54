package hold

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/stream"
)

// firstBeat is the wait after a failed heartbeat before any lease was granted.
const firstBeat = time.Second

// soonShare is the fraction of a lease after which a fetcher asks again for a shard soon free.
const soonShare = 30

// keepLeases sends heartbeats, and takes and releases shards as they are answered, until ctx ends.
// It then releases all shards, and drops those left after StopWithin.
func (h *Hold) keepLeases(ctx, work context.Context) {
	defer h.dropAll()
	every := firstBeat
	for ctx.Err() == nil {
		if next, ok := h.sendHeartbeat(work, every); ok {
			every = next
		}
		select {
		case <-ctx.Done():
		case <-h.beatNow:
		case <-h.config.Clock.After(every):
		}
	}
	over := h.config.Clock.After(h.config.StopWithin)
	for held := h.releaseAll(); ; held = h.heldShards() {
		if _, ok := h.sendHeartbeat(work, every); ok && held == 0 {
			return // the leader has been told
		}
		select {
		case <-over:
			h.config.Logger.Warn("fetcher: stops before all that has begun is finished", "shards",
				h.heldShards())
			return
		case <-h.beatNow:
		case <-h.config.Clock.After(min(every, firstBeat)):
		}
	}
}

// releaseAll begins to release every shard for good. It returns how many are left.
func (h *Hold) releaseAll() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = true
	for _, s := range h.shards {
		h.releaseShard(s)
	}
	return len(h.shards)
}

func (h *Hold) heldShards() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.shards)
}

// sendHeartbeat sends one heartbeat and obeys the answer. It returns when to send the next one; not
// ok if there was no answer.
func (h *Hold) sendHeartbeat(ctx context.Context, timeout time.Duration) (next time.Duration,
	ok bool) {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, firstBeat))
	defer cancel()
	beat := client.Heartbeat{Node: h.config.Node, Boot: h.config.Boot, Pages: h.config.Pages(),
		Unread: h.behind.Load(), Short: h.config.Short()}
	h.mu.Lock()
	for _, s := range h.shards {
		beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: s.number, Epoch: s.epoch})
	}
	beat.Leaving, beat.Open = h.leaving, h.open
	h.beats++
	h.mu.Unlock()
	sent := h.config.Clock.Now() // a lease counts from before the request
	leases, err := h.config.Heartbeat(ctx, beat)
	if err != nil {
		h.config.Logger.Warn("fetcher: heartbeat failed", "error", err)
		h.counts.lostBeats.Add(1)
		return 0, false
	}
	owners := map[string]bool{}
	for _, s := range h.config.State().Shards() {
		if s.Owner != "" {
			owners[s.Owner] = true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fetchers = max(len(owners), 1)
	h.leased = sent
	h.obeyLeases(leases, sent.Add(leases.For))
	next = leases.For / 3
	if leases.Soon {
		next = leases.For / soonShare
	}
	return max(next, time.Millisecond), true
}

// obeyLeases makes the held shards match the leases. It needs mu.
func (h *Hold) obeyLeases(leases client.Leases, until time.Time) {
	named := make(map[uint16]bool, len(leases.Hold)+len(leases.Release))
	for _, held := range leases.Hold {
		named[held.Shard] = true
		s := h.shards[held.Shard]
		if s != nil && s.epoch == held.Epoch {
			s.until = until
			h.keepShard(s)
			continue
		}
		if s != nil {
			h.dropShard(s)
		}
		if !h.leaving {
			h.openShard(held, until)
		}
	}
	for number := range h.opening {
		if !named[number] || h.leaving {
			h.giveUpOpening(number)
		}
	}
	for _, held := range leases.Release {
		named[held.Shard] = true
		if s := h.shards[held.Shard]; s != nil && s.epoch == held.Epoch {
			s.until = until
			h.releaseShard(s)
		}
	}
	for number, s := range h.shards {
		if !named[number] {
			h.dropShard(s)
		}
	}
}

// opening is a shard that is about to be held. The log may take long to open it, and leases must
// not wait for that.
type opening struct {
	held   client.ShardEpoch
	until  time.Time
	beat   uint64        // the heartbeat whose answer last named the shard
	reader stream.Reader // nil: not open yet
}

// openShard opens a shard at the end of its tasks. Only then is it reported as held. It needs mu.
func (h *Hold) openShard(held client.ShardEpoch, until time.Time) {
	o := h.opening[held.Shard]
	if o != nil && o.held.Epoch != held.Epoch {
		h.giveUpOpening(held.Shard)
		o = nil
	}
	if o != nil {
		o.until, o.beat = until, h.beats
		h.beginShard(o)
		return
	}
	o = &opening{held: held, until: until, beat: h.beats}
	h.opening[held.Shard] = o
	if !h.tailing[held.Shard] {
		h.tailing[held.Shard] = true
		h.running.Go(func() { h.openTails(held.Shard) })
	}
}

// openTails opens a shard's tasks for each opening, one after the other. Opening ends the previous
// reader, so a late opening must not end a newer holder's reader.
func (h *Hold) openTails(number uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := h.opening[number]; o != nil && o.reader == nil; o = h.opening[number] {
		h.mu.Unlock()
		reader, err := h.config.Log.Tail(stream.Tasks, int(number))
		h.mu.Lock()
		switch wanted := h.opening[number] == o; {
		case err != nil:
			h.config.Logger.Warn("fetcher: cannot open a shard", "shard", number, "error", err)
			if wanted {
				delete(h.opening, number) // the next answer retries
			}
		case !wanted:
			_ = reader.Close() // it was never read from
		default:
			o.reader = reader
			h.beginShard(o)
		}
	}
	delete(h.tailing, number)
}

// beginShard starts work on an open shard, unless a heartbeat meanwhile did not report it. Then
// another fetcher may own it by now, and the answer must name it again. It needs mu.
func (h *Hold) beginShard(o *opening) {
	if o.reader == nil || o.beat != h.beats {
		return
	}
	delete(h.opening, o.held.Shard)
	s := h.newShard(o.held, o.until, o.reader)
	h.shards[o.held.Shard] = s
	h.counts.taken.Add(1)
	h.running.Go(func() { h.readTasks(s) })
	h.running.Go(func() { h.publishPages(s) })
	h.beatNow.Raise()
}

// giveUpOpening drops a shard that was about to be held. It needs mu.
func (h *Hold) giveUpOpening(number uint16) {
	if o := h.opening[number]; o.reader != nil {
		_ = o.reader.Close() // it was never read from
	}
	delete(h.opening, number)
}

func (h *Hold) dropAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.shards {
		h.dropShard(s)
	}
	for number := range h.opening {
		h.giveUpOpening(number)
	}
}

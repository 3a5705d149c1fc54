// Package keeping owns the way of page bodies into packs (pkg/bodies). It gathers those of a run
// for a moment, and writes each pack once and whole. A page record that names a pack waits until
// that is durable. It also sees to it that a customer's packs stay within their quota. It does not
// decide which bodies are kept. What it cannot write is not kept: no page is lost for that.
package keeping

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/retry"
)

const (
	// gather is how long a pack waits for more bodies, and so how long a page record waits at most
	// before its pack is written. A host has two seconds of its pace out, so this holds up none.
	gather = 500 * time.Millisecond
	// putTime bounds one try at writing a pack, and puts how many tries there are.
	putTime = 15 * time.Second
	puts    = 2
	// maxCustomers bounds those whose bytes are in mind.
	maxCustomers = 4096
)

// rests are how long nothing is kept, by how many packs in a row could not be written. So page
// records do not wait for a store that is away. Then one pack is tried, once. Until it is written
// the records of its run alone wait, and no other body is kept.
var rests = retry.Backoff{First: 30 * time.Second, Most: 10 * time.Minute}

// Store is where packs are.
type Store interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	List(ctx context.Context, kind blobstore.Kind, owner string, next []byte) (blobstore.Page,
		error)
	Delete(ctx context.Context, key blobstore.Key) error
}

// Config is what a Keeper works with. All of it has to be given.
type Config struct {
	Store  Store
	IDs    ids.Source // safe for concurrent use
	Quota  int64      // bytes of the packs of a customer
	Clock  clock.Clock
	Logger *slog.Logger
	// Point is called with the name of each step's end, for tests that end the process there.
	Point func(name string)
}

// Keeper keeps bodies. It is safe for concurrent use.
type Keeper struct {
	bodies.Codec

	config  Config
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	counts  counters

	tallies *tallies

	mu       sync.Mutex
	open     map[target]*openPack
	rests    time.Time // nothing is kept before
	failures int       // packs in a row that could not be written
	trial    *pack     // that is to show whether the store is back
	closed   bool
}

// target is what one pack has at a time: bodies of a run.
type target struct {
	customer string
	run      bodies.Pack // without an id
}

// pack is gathered until it is full or its time is over, and then written.
type pack struct {
	bodies.Pack

	target target
	data   []byte        // set before full is closed
	full   chan struct{} // closed when it takes no more
	done   chan struct{} // closed when it was written, or given up
	ok     bool          // it is durable; set before done is closed
}

// openPack is a pack that is gathered, with what it has so far.
type openPack struct {
	*pack

	gathered []byte
}

// Counts say what was done since the start.
type Counts struct {
	Bodies    uint64 // units whose bodies are in packs that were written
	Bytes     uint64 // of packs that were written
	Packs     uint64 // written
	Lost      uint64 // units whose bodies were to be kept and are not
	Displaced uint64 // packs that went for the quota
}

type counters struct{ bodies, bytes, packs, lost, displaced atomic.Uint64 }

// New makes a keeper, which Close ends.
func New(config Config) *Keeper {
	k := &Keeper{Codec: bodies.NewCodec(), config: config, open: map[target]*openPack{},
		tallies: newTallies()}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Close gives up what is not written and waits until nothing of it runs any more.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// Counts is safe to call at any time.
func (k *Keeper) Counts() Counts {
	c := &k.counts
	return Counts{Bodies: c.bodies.Load(), Bytes: c.bytes.Load(), Packs: c.packs.Load(),
		Lost: c.lost.Load(), Displaced: c.displaced.Load()}
}

// Kept are bodies on their way into a pack.
type Kept struct {
	Body model.KeptBody

	pack *pack
}

// Await waits until the pack is durable; false: it never will be, or ctx has ended.
func (k *Kept) Await(ctx context.Context) bool {
	select {
	case <-k.pack.done:
		return k.pack.ok
	case <-ctx.Done():
		return false
	}
}

// Bytes is what they take until their pack is written.
func (k *Kept) Bytes() int64 { return int64(k.Body.Length) }

// Add takes what was read of a unit into a pack of its run; nil: it is not kept.
func (k *Keeper) Add(customer string, run bodies.Pack, entry bodies.Entry) *Kept {
	encoded, err := entry.Encode()
	if err != nil || len(encoded) > bodies.MaxEntry {
		k.counts.lost.Add(1)
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.config.Clock.Now().Before(k.rests) {
		k.counts.lost.Add(1)
		return nil
	}
	to := target{customer, run}
	p := k.open[to]
	if p != nil && len(p.gathered)+len(encoded) > bodies.MaxPack {
		k.shutLocked(p.pack)
		p = nil
	}
	if k.failures > 0 && k.trial != nil && (p == nil || p.pack != k.trial) {
		k.counts.lost.Add(1)
		return nil
	}
	if p == nil {
		p = &openPack{pack: &pack{Pack: run, target: to, full: make(chan struct{}),
			done: make(chan struct{})}}
		p.ID = k.config.IDs.New()
		k.open[to] = p
		if k.failures > 0 {
			k.trial = p.pack
		}
		k.running.Go(func() { k.write(p.pack) })
	}
	kept := &Kept{pack: p.pack, Body: model.KeptBody{Pack: p.ID, Offset: uint32(len(p.gathered)),
		Length: uint32(len(encoded)), Days: run.Days}}
	p.gathered = append(p.gathered, encoded...)
	k.counts.bodies.Add(1)
	return kept
}

// shutLocked lets a pack take no more.
func (k *Keeper) shutLocked(p *pack) {
	if open := k.open[p.target]; open != nil && open.pack == p {
		delete(k.open, p.target)
		p.data = open.gathered
		close(p.full)
	}
}

// write writes a pack once it is full, or its time is over.
func (k *Keeper) write(p *pack) {
	defer close(p.done)
	select {
	case <-p.full:
	case <-k.config.Clock.After(gather):
	case <-k.ctx.Done():
	}
	k.mu.Lock()
	k.shutLocked(p)
	data, tries := p.data, puts
	if k.trial == p {
		tries = 1
	}
	k.mu.Unlock()
	key := p.Key(p.target.customer)
	k.config.Point("fetcher.before_pack")
	err := k.put(key, data, tries)
	p.data = nil
	if k.note(p, key, err); err != nil {
		return
	}
	k.config.Point("fetcher.after_pack")
	p.ok = true
	k.counts.packs.Add(1)
	k.counts.bytes.Add(uint64(len(data)))
	k.running.Go(func() { k.watch(p.target.customer, int64(len(data))) })
}

// put writes a pack's bytes, within a time for each try.
func (k *Keeper) put(key blobstore.Key, data []byte, tries int) (err error) {
	for range tries {
		try, cancel := context.WithTimeout(k.ctx, putTime)
		_, err = k.config.Store.Put(try, key, bytes.NewReader(data))
		cancel()
		if err == nil || k.ctx.Err() != nil {
			break
		}
	}
	return err
}

// note notes whether a pack was written. After one that was not nothing is kept for a while. Those
// that were under way beside it, and failed with it, are one failure.
func (k *Keeper) note(p *pack, key blobstore.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trial == p {
		k.trial = nil
	}
	now := k.config.Clock.Now()
	switch {
	case err == nil:
		k.failures = 0
	case k.ctx.Err() == nil && !now.Before(k.rests): // the process does not end
		k.failures++
		rest := rests.After(k.failures)
		k.rests = now.Add(rest)
		k.config.Logger.Warn("fetcher: page bodies are not kept for a while: their pack cannot be "+
			"written", "pack", key.String(), "for", rest, "error", err)
	}
}

// Lose counts a unit whose bodies were to be kept, and whose pack was not written.
func (k *Keeper) Lose() {
	k.counts.bodies.Add(^uint64(0))
	k.counts.lost.Add(1)
}

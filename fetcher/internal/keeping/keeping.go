// Package keeping packs page bodies for storage (pkg/bodies). It gathers the bodies of a run for a
// moment, and writes each pack once and whole. A page record that names a pack waits until the pack
// is durable. The package also enforces each customer's quota. It does not decide which bodies are
// kept. If a pack cannot be written its bodies are dropped, but no page is lost.
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
	// gather is how long a pack waits for more bodies, and so the longest wait of a page record
	// before its pack is written. Hosts have two seconds of their pace out, so this delays none.
	gather = 500 * time.Millisecond
	// putTime bounds one attempt to write a pack; puts is the number of attempts.
	putTime = 15 * time.Second
	puts    = 2
	// maxCustomers bounds the customers whose bytes are remembered.
	maxCustomers = 4096
)

// rests are how long nothing is kept, by failed packs in a row. So page records do not wait for a
// store that is down. Then one trial pack is written, in one attempt. Until it succeeds, only its
// run's records wait, and no other body is kept.
var rests = retry.Backoff{First: 30 * time.Second, Most: 10 * time.Minute}

// Store is where packs are stored.
type Store interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	List(ctx context.Context, kind blobstore.Kind, owner string, next []byte) (blobstore.Page,
		error)
	Delete(ctx context.Context, key blobstore.Key) error
}

// Config configures a Keeper. All fields are required.
type Config struct {
	Store  Store
	IDs    ids.Source // safe for concurrent use
	Quota  int64      // bytes of a customer's packs
	Clock  clock.Clock
	Logger *slog.Logger
	// Point is called at kill points, for crash tests.
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
	failures int       // failed packs in a row
	trial    *pack     // shows whether the store is back; nil: none
	closed   bool
}

// target is what one open pack is for: the bodies of one run.
type target struct {
	customer string
	run      bodies.Pack // without an id
}

// pack is gathered until it is full or its time is over, and is then written.
type pack struct {
	bodies.Pack

	target target
	data   []byte        // set when full is closed
	full   chan struct{} // closed when it takes no more bodies
	done   chan struct{} // closed when it was written or given up
	ok     bool          // durable; set when done is closed
}

// openPack is a pack that is still gathered.
type openPack struct {
	*pack

	gathered []byte
}

// Counts says what was done since the start.
type Counts struct {
	Bodies    uint64 // units whose bodies are in written packs
	Bytes     uint64 // of written packs
	Packs     uint64 // written
	Lost      uint64 // units whose bodies should have been kept
	Displaced uint64 // packs removed for the quota
}

type counters struct{ bodies, bytes, packs, lost, displaced atomic.Uint64 }

// New makes a keeper. Close ends it.
func New(config Config) *Keeper {
	k := &Keeper{Codec: bodies.NewCodec(), config: config, open: map[target]*openPack{},
		tallies: newTallies()}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Close gives up unwritten packs and waits until all goroutines have ended.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// Counts returns the present counts. It is safe to call at any time.
func (k *Keeper) Counts() Counts {
	c := &k.counts
	return Counts{Bodies: c.bodies.Load(), Bytes: c.bytes.Load(), Packs: c.packs.Load(),
		Lost: c.lost.Load(), Displaced: c.displaced.Load()}
}

// Kept is a unit's bodies on their way into a pack.
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

// Bytes returns the memory they take until their pack is written.
func (k *Kept) Bytes() int64 { return int64(k.Body.Length) }

// Add adds a unit's bodies to a pack of its run; nil: they are not kept.
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

// shutLocked closes a pack to more bodies.
func (k *Keeper) shutLocked(p *pack) {
	if open := k.open[p.target]; open != nil && open.pack == p {
		delete(k.open, p.target)
		p.data = open.gathered
		close(p.full)
	}
}

// write writes a pack once it is full or its time is over.
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

// put writes a pack's bytes, with a time limit for each attempt.
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

// note records whether a pack was written. After a failure nothing is kept for a while. Packs that
// failed at the same time count as one failure.
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
	case k.ctx.Err() == nil && !now.Before(k.rests): // not during shutdown
		k.failures++
		rest := rests.After(k.failures)
		k.rests = now.Add(rest)
		k.config.Logger.Warn("fetcher: page bodies are not kept for a while: their pack cannot be "+
			"written", "pack", key.String(), "for", rest, "error", err)
	}
}

// Lose counts a unit whose pack was not written.
func (k *Keeper) Lose() {
	k.counts.bodies.Add(^uint64(0))
	k.counts.lost.Add(1)
}

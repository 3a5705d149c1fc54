package keeping

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// disk is a blob store that keeps only sizes and times.
type disk struct {
	mu    sync.Mutex
	packs []blobstore.Info // in the order of writing
	lists int
	hangs bool
}

func (d *disk) Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written,
	error) {
	n, err := io.Copy(io.Discard, from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hangs {
		<-ctx.Done()
		return blobstore.Written{}, ctx.Err()
	}
	d.packs = append(d.packs, blobstore.Info{Key: key, Bytes: n, Written: time.Now()})
	return blobstore.Written{Bytes: n}, err
}

func (d *disk) List(_ context.Context, _ blobstore.Kind, owner string,
	next []byte) (blobstore.Page, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists++
	var page blobstore.Page
	for i := len(d.packs) - 1; i >= 0; i-- { // in a useless order
		if d.packs[i].Key.Owner == owner && (i%2 == 0) == (next == nil) {
			page.Blobs = append(page.Blobs, d.packs[i])
		}
	}
	if next == nil {
		page.Next = []byte("more")
	}
	return page, nil
}

func (d *disk) Delete(_ context.Context, key blobstore.Key) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, info := range d.packs {
		if info.Key == key {
			d.packs = append(d.packs[:i:i], d.packs[i+1:]...)
			break
		}
	}
	return nil
}

// left returns the bytes of a customer's packs, and of its oldest pack.
func (d *disk) left(owner string) (bytes, oldest int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, info := range d.packs {
		if info.Key.Owner == owner {
			if bytes += info.Bytes; oldest == 0 {
				oldest = info.Bytes
			}
		}
	}
	return bytes, oldest
}

func keep(t *testing.T, quota int64, test func(k *Keeper, d *disk)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		d := &disk{}
		k := New(Config{Store: d, IDs: ids.Random{Now: time.Now}, Quota: quota,
			Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
			Point: func(string) {}})
		defer k.Close()
		test(k, d)
	})
}

var ofRun = bodies.Pack{Job: ids.ID{1}, Days: 1}

// entry returns an entry of about this many bytes.
func entry(bytes int) bodies.Entry {
	return bodies.Entry{Pages: []bodies.Page{{Packed: make([]byte, bytes)}}}
}

// A pack has no more than MaxPack bytes, and a unit with more than MaxEntry is not kept.
func TestPacksAreBounded(t *testing.T) {
	keep(t, 1<<40, func(k *Keeper, d *disk) {
		if k.Add("alice", ofRun, entry(bodies.MaxEntry)) != nil {
			t.Error("a unit that is too large is kept")
		}
		var kept []*Kept
		for range 5 {
			kept = append(kept, k.Add("alice", ofRun, entry(bodies.MaxEntry-100)))
		}
		kept = append(kept, k.Add("bob", ofRun, entry(1)))
		for i, one := range kept {
			if one == nil || !one.Await(context.Background()) {
				t.Fatalf("%d is not kept", i)
			}
		}
		for _, info := range d.packs {
			if info.Bytes > bodies.MaxPack {
				t.Errorf("a pack has %d bytes", info.Bytes)
			}
		}
		if c := k.Counts(); len(d.packs) != 4 || c.Packs != 4 || c.Bodies != 6 || c.Lost != 1 {
			t.Errorf("%d packs, %+v", len(d.packs), c)
		}
	})
}

// A customer's oldest packs make room, and nobody else's. Not every new pack causes a listing.
func TestQuota(t *testing.T) {
	const quota, size = 1 << 20, 10_000
	keep(t, quota, func(k *Keeper, d *disk) {
		if !k.Add("bob", ofRun, entry(size)).Await(context.Background()) {
			t.Fatal("nothing is kept")
		}
		for i := range 300 {
			if !k.Add("alice", ofRun, entry(size+i)).Await(context.Background()) {
				t.Fatalf("%d is not kept", i)
			}
			synctest.Wait()
			if bytes, _ := d.left("alice"); bytes > quota {
				t.Fatalf("%d bytes are kept", bytes)
			}
		}
		bytes, oldest := d.left("alice")
		if bytes < quota/100*(trimmed-2) || oldest < size+180 {
			t.Errorf("%d bytes are left, from the pack of %d on", bytes, oldest)
		}
		if bytes, _ := d.left("bob"); bytes == 0 {
			t.Error("bob's pack is gone")
		}
		if c := k.Counts(); c.Displaced < 190 || d.lists > 120 {
			t.Errorf("%d packs went, %d lists", c.Displaced, d.lists)
		}
	})
}

// A closed keeper takes nothing, and nobody waits for it.
func TestClose(t *testing.T) {
	keep(t, 1<<40, func(k *Keeper, _ *disk) {
		kept := k.Add("alice", ofRun, entry(1))
		k.Close()
		if kept.Await(context.Background()); k.Add("alice", ofRun, entry(1)) != nil {
			t.Error("taken after the end")
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if (&Kept{pack: &pack{done: make(chan struct{})}}).Await(ended) {
			t.Error("kept, although nobody waited")
		}
	})
}

// A store that hangs occasionally holds up the records of one run, ever more rarely. Once it is
// back everything is kept again.
func TestStoreThatHangs(t *testing.T) {
	keep(t, 1<<40, func(k *Keeper, d *disk) {
		other, at := ofRun, context.Background()
		other.Job = ids.ID{2}
		failed := func(name string, within time.Duration) {
			t.Helper()
			began := time.Now()
			kept := k.Add("alice", ofRun, entry(1))
			if kept == nil {
				t.Fatalf("%s: nothing is tried", name)
			}
			if name != "first" && k.Add("bob", other, entry(1)) != nil {
				t.Errorf("%s: a second pack is tried", name)
			}
			if kept.Await(at) || time.Since(began) > within {
				t.Errorf("%s: a record waits for %v", name, time.Since(began))
			}
			synctest.Wait()
			if k.Add("alice", ofRun, entry(1)) != nil {
				t.Errorf("%s: the next record waits, too", name)
			}
		}
		d.hangs = true
		failed("first", gather+puts*putTime)
		for n := 1; n < 7; n++ {
			clock.Pause(at, clock.System{}, rests.After(n)-time.Second)
			if k.Add("alice", ofRun, entry(1)) != nil {
				t.Errorf("something is kept before the rest %d is over", n)
			}
			clock.Pause(at, clock.System{}, time.Second)
			failed("trial", gather+putTime)
		}
		if d.hangs = false; rests.After(7) != rests.Most {
			t.Error("the rests have no end")
		}
		clock.Pause(at, clock.System{}, rests.Most)
		if kept := k.Add("alice", ofRun, entry(1)); kept == nil || !kept.Await(at) {
			t.Error("the store is back, and nothing is kept")
		}
		synctest.Wait()
		one, two := k.Add("alice", ofRun, entry(1)), k.Add("bob", other, entry(1))
		if one == nil || two == nil || !one.Await(at) || !two.Await(at) {
			t.Error("the store is back, and not all is kept")
		}
	})
}

package keeping

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/cache"
)

const (
	// lookEvery is how often all packs of a customer are listed, including other fetchers'.
	lookEvery = 10 * time.Minute
	// trimmed is the percentage of the quota down to which packs are removed once it is exceeded.
	// So not every new pack causes a listing.
	trimmed = 95
)

// tallies holds the tallies of the customers with the newest packs.
type tallies struct {
	mu        sync.Mutex
	customers *simplelru.LRU[string, *tally]
}

// tally is what is known of a customer's packs.
type tally struct {
	bytes   int64
	looked  time.Time // zero: never
	looking bool
}

func newTallies() *tallies {
	return &tallies{customers: cache.NewLRU[string, *tally](maxCustomers, nil)}
}

// add counts bytes written for a customer. It says whether the caller should list all of its packs
// and then call settle.
func (ts *tallies) add(customer string, written, quota int64, now time.Time) (t *tally,
	look bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, known := ts.customers.Get(customer)
	if !known {
		t = &tally{}
		ts.customers.Add(customer, t)
	}
	t.bytes += written
	look = !t.looking && (t.looked.IsZero() || now.Sub(t.looked) >= lookEvery || t.bytes > quota)
	t.looking = t.looking || look
	return t, look
}

// settle records that a customer's packs were listed, and the bytes left unless that failed.
func (ts *tallies) settle(t *tally, left int64, err error, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.looking, t.looked = false, now
	if err == nil {
		t.bytes = left
	}
}

// watch counts what was written for a customer. It lists all of the customer's packs at intervals,
// and when they may exceed the quota. Every fetcher does. So together they exceed the quota at most
// by what each writes between two listings.
func (k *Keeper) watch(customer string, written int64) {
	now := k.config.Clock.Now()
	t, look := k.tallies.add(customer, written, k.config.Quota, now)
	if !look {
		return
	}
	left, err := k.trim(customer)
	if err != nil && k.ctx.Err() == nil {
		k.config.Logger.Warn("fetcher: the packs of a customer cannot be looked at", "customer",
			customer, "error", err)
	}
	k.tallies.settle(t, left, err, now)
}

// trim removes a customer's oldest packs beyond its quota, and returns the bytes left.
func (k *Keeper) trim(customer string) (left int64, err error) {
	var packs []blobstore.Info
	for next := []byte(nil); ; {
		page, err := k.config.Store.List(k.ctx, blobstore.Bodies, customer, next)
		if err != nil {
			return 0, err
		}
		for _, info := range page.Blobs {
			left += info.Bytes
		}
		packs = append(packs, page.Blobs...)
		if next = page.Next; next == nil {
			break
		}
	}
	if left <= k.config.Quota {
		return left, nil
	}
	slices.SortFunc(packs, func(a, b blobstore.Info) int { return a.Written.Compare(b.Written) })
	for _, oldest := range packs {
		if left <= k.config.Quota/100*trimmed {
			break
		}
		if err := k.config.Store.Delete(k.ctx, oldest.Key); err != nil {
			return left, err
		}
		k.counts.displaced.Add(1)
		left -= oldest.Bytes
	}
	return left, nil
}

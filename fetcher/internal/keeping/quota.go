package keeping

import (
	"slices"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
)

const (
	// lookEvery is how often a customer's packs are looked at, other fetchers' among them.
	lookEvery = 10 * time.Minute
	// trimmed is the part of the quota, in percent, down to which packs go once it is exceeded. So
	// packs are not listed for each one that is written.
	trimmed = 95
)

// tally is what is known of a customer's packs. The keeper's lock guards it.
type tally struct {
	bytes   int64
	looked  time.Time // zero: never
	looking bool
}

// watch counts what was written for a customer. It looks at all of the customer's packs where they
// may be too many, and now and then. Each fetcher does. So all of them together are over the quota
// by no more than each writes between two looks.
func (k *Keeper) watch(customer string, written int64) {
	k.mu.Lock()
	t, known := k.customers.Get(customer)
	if !known {
		t = &tally{}
		k.customers.Add(customer, t)
	}
	t.bytes += written
	now := k.config.Clock.Now()
	look := !t.looking && (t.looked.IsZero() || now.Sub(t.looked) >= lookEvery ||
		t.bytes > k.config.Quota)
	t.looking = t.looking || look
	k.mu.Unlock()
	if !look {
		return
	}
	left, err := k.trim(customer)
	if err != nil && k.ctx.Err() == nil {
		k.config.Logger.Warn("fetcher: the packs of a customer cannot be looked at", "customer",
			customer, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t.looking, t.looked = false, now
	if err == nil {
		t.bytes = left
	}
}

// trim removes a customer's oldest packs beyond its quota, and returns the bytes that are left.
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

package blobstoretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
)

// mayDiffer is how far a server's clock may differ from the test's.
const mayDiffer = time.Minute

// testSweep: expired blobs go, and orphans after the grace. The rest is counted.
func testSweep(t *testing.T, s *blobstore.Store) {
	kind := blobstore.Kind{Name: small.Name, MaxBytes: 100, Lifetime: 10 * time.Hour}
	for _, owner := range []string{"alice", "bob"} {
		put(t, s, key(owner, "named"), make([]byte, 10))
		put(t, s, key(owner, "orphan"), make([]byte, 5))
	}
	put(t, s, key("bob", "more"), make([]byte, 7))
	asked := 0
	named := func(context.Context) (func(blobstore.Key) bool, error) {
		asked++
		return func(k blobstore.Key) bool { return k.ID != "orphan" }, nil
	}
	all := map[string]int64{"alice": 15, "bob": 22}
	left := map[string]int64{"alice": 10, "bob": 17}
	for _, c := range []struct {
		after            time.Duration
		named            func(context.Context) (func(blobstore.Key) bool, error)
		owners           map[string]int64
		expired, orphans int
	}{
		{after: time.Hour - mayDiffer, named: named, owners: all},
		{after: 5 * time.Hour, owners: all},
		{after: time.Hour + mayDiffer, named: named, owners: left, orphans: 2},
		{after: time.Hour + mayDiffer, named: named, owners: left},
		{after: 10*time.Hour - mayDiffer, named: named, owners: left},
		{after: 10*time.Hour + mayDiffer, named: named, owners: map[string]int64{}, expired: 3},
	} {
		tally, err := s.Sweep(t.Context(), kind, blobstore.Sweeping{Now: time.Now().Add(c.after),
			Grace: time.Hour, Named: c.named})
		if err != nil {
			t.Fatal(err)
		}
		var bytes, largest int64
		for _, held := range c.owners {
			bytes, largest = bytes+held, max(largest, held)
		}
		if !maps.Equal(tally.Owners, c.owners) || tally.Bytes != bytes ||
			tally.Largest() != largest || tally.Expired != c.expired ||
			tally.Orphans != c.orphans {
			t.Errorf("after %v: %+v, want %+v", c.after, tally, c)
		}
	}
	if asked != 5 {
		t.Errorf("it asked %d times what is named, want once a page", asked)
	}
}

// testSweepLifetimes: a blob may have a shorter lifetime than its kind, but not a longer one.
func testSweepLifetimes(t *testing.T, s *blobstore.Store) {
	kind := blobstore.Kind{Name: small.Name, MaxBytes: 100, Lifetime: 10 * time.Hour}
	put(t, s, key("alice", "short"), nil)
	put(t, s, key("alice", "usual"), nil)
	for _, c := range []struct {
		after         time.Duration
		left, expired int
	}{{time.Hour - mayDiffer, 2, 0}, {time.Hour + mayDiffer, 1, 1},
		{10*time.Hour + mayDiffer, 0, 1}} {
		tally, err := s.Sweep(t.Context(), kind, blobstore.Sweeping{Now: time.Now().Add(c.after),
			Lifetime: func(k blobstore.Key) time.Duration {
				if k.ID == "short" {
					return time.Hour
				}
				return 0
			}})
		if err != nil || tally.Blobs != c.left || tally.Expired != c.expired {
			t.Errorf("after %v: %+v, %v", c.after, tally, err)
		}
	}
}

// testSweepUnsure: while references are unknown, nothing is removed.
func testSweepUnsure(t *testing.T, s *blobstore.Store) {
	put(t, s, key("alice", "a"), nil)
	unsure := errors.New("no leader")
	_, err := s.Sweep(t.Context(), small, blobstore.Sweeping{Now: time.Now().Add(time.Hour),
		Named: func(context.Context) (func(blobstore.Key) bool, error) { return nil, unsure }})
	if !errors.Is(err, unsure) {
		t.Errorf("%v, want %v", err, unsure)
	}
	if found := all(t, s, small, ""); len(found) != 1 {
		t.Errorf("%v are left", found)
	}
}

// testSweepPages: removals from a page skip nothing on the next.
func testSweepPages(t *testing.T, s *blobstore.Store) {
	const blobs = 1100 // more than a page
	for i := range blobs {
		put(t, s, key("alice", fmt.Sprintf("%04d", i)), nil)
	}
	tally, err := s.Sweep(t.Context(), small, blobstore.Sweeping{Now: time.Now().Add(time.Hour),
		Named: func(context.Context) (func(blobstore.Key) bool, error) {
			return func(k blobstore.Key) bool { return k.ID >= "1000" }, nil
		}})
	if err != nil || tally.Orphans != 1000 || tally.Blobs != blobs-1000 {
		t.Errorf("%d gone and %d left: %v", tally.Orphans, tally.Blobs, err)
	}
}

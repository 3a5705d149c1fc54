package controlplane

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// TestPacksGoWithWhatTheyAreOf: packs expire by their own days, and are removed at once when their
// scraper or group is gone.
func TestPacksGoWithWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	blobs := &aged{Blobs: blobsIn(t, t.TempDir())}
	s := keeping(t, blobs, Backups{})
	customer, scraper := prepare(t, s, s.config)
	group := s.Client.View().Scraper(scraper).Group
	put := func(owner string, p bodies.Pack) {
		t.Helper()
		p.ID = s.config.IDs.New()
		if _, err := blobs.Put(patient(t), p.Key(owner), strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	put(customer, bodies.Pack{Group: group, Scraper: scraper, Job: ids.ID{1}, Days: 1})
	put(customer, bodies.Pack{Group: group, Scraper: scraper, Job: ids.ID{1}, Days: 3})
	put(customer, bodies.Pack{Group: group, Scraper: ids.ID{2}, Job: ids.ID{1}, Days: 3})
	put(customer, bodies.Pack{Group: ids.ID{2}, Scraper: scraper, Job: ids.ID{1}, Days: 3})
	put("bob", bodies.Pack{Group: group, Scraper: scraper, Job: ids.ID{1}, Days: 3})
	odd := blobstore.Key{Kind: blobstore.Bodies, Owner: customer, ID: "odd"}
	if _, err := blobs.Put(patient(t), odd, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		left  float64
	}{{time.Minute, 2}, {23 * time.Hour, 2}, {25 * time.Hour, 1}, {71 * time.Hour, 1},
		{73 * time.Hour, 0}} {
		blobs.by.Store(int64(c.after))
		if _, err := s.Blobs().Step(patient(t), work.Item{}); err != nil {
			t.Fatal(err)
		}
		if left, _ := gauge(t, s, "shoal_blob_objects", "bodies"); left != c.left {
			t.Errorf("after %v %v packs are left, want %v", c.after, left, c.left)
		}
	}
}

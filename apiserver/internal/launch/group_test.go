package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// picky is a store that fails this many times at addresses that contain a text.
type picky struct {
	Store
	at    string
	times atomic.Int64
}

func newPicky(store Store, at string, times int64) *picky {
	p := &picky{Store: store, at: at}
	p.times.Store(times)
	return p
}

type pickyWriter struct {
	rowstore.ListWriter
	store *picky
}

func (p *picky) CreateList(ctx context.Context, list ids.ID) (rowstore.ListWriter, error) {
	w, err := p.Store.CreateList(ctx, list)
	if err != nil {
		return nil, err
	}
	return pickyWriter{w, p}, nil
}

func (w pickyWriter) Add(ctx context.Context, url, canonical string) (bool, error) {
	if strings.Contains(url, w.store.at) && w.store.times.Add(-1) >= 0 {
		return false, errors.New("no such part")
	}
	return w.ListWriter.Add(ctx, url, canonical)
}

// A scraper whose list fails although the store works is tried again, then skipped. The others of
// its group are launched. A store that takes no list at all launches nothing.
func TestGroupOfWhichOneFails(t *testing.T) {
	for name, c := range map[string]struct {
		at            string
		times         int64
		jobs, skipped int
	}{
		"once":     {"broken.test", 1, 4, 0},
		"always":   {"broken.test", 100, 3, 1},
		"no store": {"", 100, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &dueRig{rig: newRig(t), t: t}
			r.Store = newPicky(r.Store, c.at, c.times)
			r.add("one", "https://one.test/", "")
			r.add("broken", "https://broken.test/", "")
			r.add("two", "https://two.test/", "")
			launched, err := r.StartGroup(t.Context(), r.caller(""), r.group, nil)
			if (err != nil) != (c.jobs == 0) || len(launched.Jobs) != c.jobs ||
				len(launched.Skipped) != c.skipped {
				t.Fatalf("%+v, %v", launched, err)
			}
			for _, s := range launched.Skipped {
				if s.Reason != client.SkipLimit {
					t.Errorf("it is skipped as %s", s.Reason)
				}
			}
			r.wantLists(t, c.jobs)
		})
	}
}

// A due scraper that fails on its own is not retried for ever. A failure of the store is.
func TestDueScraperThatFails(t *testing.T) {
	r := &dueRig{rig: newRig(t), t: t}
	store := newPicky(r.Store, "", 100)
	r.Store = store
	r.add("broken", "https://broken.test/", "0 0 * * *")
	broken := r.state.View().ScraperByName("alice", "broken").ID
	r.item = r.state.StartDue(t, broken)
	if _, err := r.do(Due(DueConfig{Launcher: r.Launcher})); err == nil {
		t.Fatal("it goes on without a store")
	}
	store.at = "broken.test"
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	if starts := r.state.View().Schedule(broken).Starts; len(starts) != 1 ||
		starts[0].Reason != client.SkipLimit {
		t.Errorf("%+v", starts)
	}
	r.wantLists(t, 0)
}

// hanging are hosts whose look-up never ends, except one.
type hanging struct{ anywhere }

func (hanging) CheckHost(ctx context.Context, _, host string) error {
	if host == "shop.test" {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Hanging hosts take time from others, which count as not asked rather than unreachable. A scraper
// that needs no host is launched all the same.
func TestGroupOfHostsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &dueRig{rig: newRig(t), t: t}
		r.Guard = hanging{}
		for n := range 5 * hostsAtOnce {
			r.add(fmt.Sprint("hangs", n), fmt.Sprintf("https://hangs%d.test/", n), "")
		}
		g := newGathering(r.Launcher, r.state.View(), "alice")
		g.within = 36 * time.Second // two hosts one after the other, and part of a third
		r.state.View().GroupScrapers(r.group, func(s *client.Scraper) bool {
			if g.add(s); s.Spec.Name == "shop" {
				g.runs[len(g.runs)-1].host = "" // as with a site
			}
			return true
		})
		if err := g.makeReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		count := map[client.SkipReason]int{}
		for _, s := range g.skipped {
			count[s.Reason]++
		}
		if asked := 2 * hostsAtOnce; count[client.SkipUnreachable] != asked ||
			count[client.SkipLimit] != 3*hostsAtOnce {
			t.Errorf("the reasons are %v", count)
		}
		if len(g.runs) != 1 || !g.runs[0].written {
			t.Errorf("%d are ready", len(g.runs))
		}
	})
}

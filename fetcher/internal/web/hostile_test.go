package web

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/browser"
	"shoal.dev/shoal/testkit/hostile"
)

const (
	hostileTime   = 500 * time.Millisecond // deadline of a fetch
	hostileOver   = time.Second            // how far it may exceed that
	hostileMemory = 64 << 20               // bytes, above what was in use before
)

func newHostileWeb(t *testing.T) (*hostile.Web, *egress.Client) {
	t.Helper()
	w, err := hostile.NewWeb()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, newEgress(t, egress.Config{Origins: w.Places})
}

// peak returns the peak memory in use during do. A fifth of it may be uncollected garbage.
func peak(do func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most := stats.HeapInuse+stats.StackInuse, uint64(0)
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return most - min(most, before)
		case <-ticker.C:
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapInuse+stats.StackInuse)
		}
	}
}

// TestHostileOrigins: whatever an origin does, its fetch and extraction end in time and with little
// memory, with a page or a coded error. The figures depend on the machine's load. So only `make
// bounds` checks the bounds, and takes every origin.
func TestHostileOrigins(t *testing.T) {
	measured, step := os.Getenv("SHOAL_BOUNDS_SUITE") != "", 5
	if measured {
		step = 1
	}
	w, client := newHostileWeb(t)
	if len(w.Origins) < 40 {
		t.Errorf("only %d origins", len(w.Origins))
	}
	transport := newTransport(client, Config{Timeout: hostileTime}, nil)
	extractor, err := extract.Compile(model.Recipe{Type: model.MultipleProducts,
		Fields: []model.Field{
			{Name: "text", Selector: "p", Kind: model.Text},
			{Name: "link", Selector: "div a[href], li > h1 + dd", Kind: model.Attr, Attr: "href"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(w.Origins); i += step {
		o := w.Origins[i]
		t.Run(o.Name, func(t *testing.T) {
			o.Prepare()
			defer o.Forget()
			var page *Page
			var err error
			var took time.Duration
			used := peak(func() {
				start := time.Now()
				page, err = transport.Fetch(t.Context(), Request{URL: w.URL(i)})
				if err == nil {
					_, err = extractor.Extract(extract.Page{URL: page.Final,
						ContentType: page.ContentType, Body: page.Body})
				}
				took = time.Since(start)
			})
			if page != nil {
				page.Release()
			}
			if fault.CodeOf(err) == fault.Internal && err != nil {
				t.Errorf("the error has no code: %v", err)
			}
			if took > hostileTime+hostileOver && measured {
				t.Errorf("took %v", took)
			}
			if used > hostileMemory && measured {
				t.Errorf("took %d MB of memory", used>>20)
			}
			t.Logf("%v, %d MB, %v", took.Round(time.Millisecond), used>>20, err)
		})
	}
}

// TestHostileOriginsKeepNobody: while every hostile origin is being fetched, and none has timed
// out, an honest one is fetched as usual.
func TestHostileOriginsKeepNobody(t *testing.T) {
	w, client := newHostileWeb(t)
	transport := newTransport(client, Config{Timeout: 30 * time.Second}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var fetches sync.WaitGroup
	for i := range w.Origins {
		fetches.Go(func() {
			page, err := transport.Fetch(ctx, Request{URL: w.URL(i)})
			if err == nil {
				page.Release()
			} else if failed := (*Failure)(nil); !errors.As(err, &failed) &&
				!errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", w.Origins[i].Name, err)
			}
		})
	}
	for range w.Origins {
		<-w.Accepted
	}
	for range 100 {
		page, err := transport.Fetch(t.Context(), Request{URL: "http://" + hostile.Honest + "/"})
		if err != nil {
			t.Fatalf("an honest page: %v", err)
		}
		page.Release()
	}
	cancel()
	fetches.Wait()
}

// TestHostileOriginsInTheBrowser: whatever an origin does to a browser, its page ends in time with
// a page or a coded error. Honest pages beside it load as usual. Times are checked as in
// TestHostileOrigins.
func TestHostileOriginsInTheBrowser(t *testing.T) {
	path := browser.Path(t)
	w, client := newHostileWeb(t)
	const deadline, beside = 6 * time.Second, 3
	b, err := chromium.Open(t.Context(),
		chromium.Config{Path: path, Client: client, Pages: beside + 2}) // and one for a newcomer
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	hasty, patient := newTransport(client, Config{Timeout: deadline}, b),
		newTransport(client, Config{Timeout: time.Minute}, b)
	honest := func() {
		ask := Request{URL: "http://" + hostile.Honest + "/", Tier: model.Render, Caller: "honest"}
		page, err := patient.Fetch(t.Context(), ask)
		// a browser killed for another page's excess takes this page with it: the fetcher retries,
		// and each hostile page kills at most one
		for range w.Origins {
			if failed := (*Failure)(nil); errors.As(err, &failed) && failed.Retry {
				page, err = patient.Fetch(t.Context(), ask)
			}
		}
		if err != nil {
			t.Errorf("an honest page: %v", err)
			return
		}
		if !strings.Contains(string(page.Body), "honest") {
			t.Errorf("an honest page is %.100q", page.Body)
		}
		page.Release()
	}
	honest() // starts the browser
	measured, step := os.Getenv("SHOAL_BOUNDS_SUITE") != "", 10
	if measured {
		step = 1
	}
	var next, left atomic.Int64
	left.Store(beside)
	var fetches sync.WaitGroup
	for range beside {
		fetches.Go(func() {
			defer left.Add(-1)
			for {
				i := int(next.Add(int64(step))) - step
				if i >= len(w.Origins) {
					return
				}
				o := w.Origins[i]
				o.Prepare()
				start := time.Now()
				page, err := hasty.Fetch(t.Context(),
					Request{URL: w.URL(i), Tier: model.Render, Caller: "hostile"})
				took := time.Since(start)
				if err == nil {
					page.Release()
				} else if failed := (*Failure)(nil); !errors.As(err, &failed) {
					t.Errorf("%s: the error has no code: %v", o.Name, err)
				}
				if took > deadline+hostileOver && measured {
					t.Errorf("%s took %v", o.Name, took)
				}
				t.Logf("%s: %v, %v", o.Name, took.Round(time.Millisecond), err)
			}
		})
	}
	pages := 0
	for ; left.Load() > 0; pages++ {
		honest()
	}
	fetches.Wait()
	if honest(); pages == 0 {
		t.Error("no honest page was loaded meanwhile")
	}
}

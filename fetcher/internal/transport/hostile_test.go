package transport

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/hostile"
)

const (
	hostileTime   = 500 * time.Millisecond // deadline of a fetch
	hostileOver   = time.Second            // what it may take beyond
	hostileMemory = 64 << 20               // bytes, beyond what was in use before
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

// peak is the most memory in use while something is done.
func peak(do func()) uint64 {
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

// TestHostileOrigins: whatever an origin does, its fetch and extraction end in time, in little memory, with a page or a
// coded error.
func TestHostileOrigins(t *testing.T) {
	w, client := newHostileWeb(t)
	if len(w.Origins) < 40 {
		t.Errorf("only %d origins", len(w.Origins))
	}
	transport := New(client, Config{Timeout: hostileTime})
	extractor, err := extract.Compile(model.Recipe{Type: model.MultipleProducts, Fields: []model.Field{
		{Name: "text", Selector: "p", Kind: model.Text}, {Name: "link", Selector: "div a[href], li > h1 + dd", Kind: model.Attr, Attr: "href"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range w.Origins {
		t.Run(o.Name, func(t *testing.T) {
			o.Prepare()
			var page *Page
			var err error
			var took time.Duration
			used := peak(func() {
				start := time.Now()
				page, err = transport.Fetch(t.Context(), Request{URL: w.URL(i)})
				if err == nil {
					_, err = extractor.Extract(extract.Page{URL: page.FinalURL, ContentType: page.ContentType, Body: page.Body})
				}
				took = time.Since(start)
			})
			if page != nil {
				page.Release()
			}
			if fault.CodeOf(err) == fault.Internal && err != nil {
				t.Errorf("the error has no code: %v", err)
			}
			if took > hostileTime+hostileOver {
				t.Errorf("took %v", took)
			}
			if used > hostileMemory && !testing.Short() { // the race detector, which comes with -short, needs more
				t.Errorf("took %d MB of memory", used>>20)
			}
			t.Logf("%v, %d MB, %v", took.Round(time.Millisecond), used>>20, err)
		})
	}
}

// TestHostileOriginsKeepNobody: while every hostile origin is being fetched, and none is given up yet, an honest one is
// fetched as ever.
func TestHostileOriginsKeepNobody(t *testing.T) {
	w, client := newHostileWeb(t)
	transport := New(client, Config{Timeout: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var fetches sync.WaitGroup
	for i := range w.Origins {
		fetches.Go(func() {
			page, err := transport.Fetch(ctx, Request{URL: w.URL(i)})
			if err == nil {
				page.Release()
			} else if failed := (*Error)(nil); !errors.As(err, &failed) && !errors.Is(err, context.Canceled) {
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

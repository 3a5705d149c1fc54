package sites_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

var siteLinks = flag.Int("site-links", 30_000,
	"links of the site of TestLargestSite; a night takes 1,000,000")

// weighing is a row store that records the largest part that it gets. At the last part it measures
// the memory in use while its caller waits.
type weighing struct {
	rowstore.Store
	ofPart uint64 // largest part, bytes
	mu     sync.Mutex
	memory uint64 // largest measurement, bytes
}

func (w *weighing) PutSiteLinks(ctx context.Context, version ids.ID,
	links []rowstore.SiteLink) error {
	text := 0
	for _, l := range links {
		text += len(l.URL) + len(l.Title) + len(l.Curl)
	}
	w.ofPart = max(w.ofPart, uint64(text))
	if n := len(links); n > 0 && int(links[n-1].Seq) == *siteLinks-1 {
		w.weigh()
	}
	return w.Store.PutSiteLinks(ctx, version, links)
}

func (w *weighing) weigh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory = max(w.memory, inUse())
}

// TestLargestSite puts a site as a JSON body, reads it and runs it. It logs time and additional
// memory. The put takes at most 64 MiB, garbage included. The memory in use grows with hashes of
// the links, not with the body.
func TestLargestSite(t *testing.T) {
	store := &weighing{Store: apitest.NewStore(t)}
	r := newRigOn(t, store)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(),
		Amount: 1_000_000_000})
	const text = 320 // bytes of a title: 1,000,000 links are a body of 400 MB
	took := func(what string, do func()) (most uint64) {
		began, memory := time.Now(), watchMemory()
		do()
		most = memory()
		t.Logf("%s: %v, %d MiB of memory", what, time.Since(began).Round(time.Millisecond),
			most>>20)
		return most
	}
	before := inUse()
	most := took("put", func() {
		body, sender := io.Pipe()
		go func() {
			_, _ = fmt.Fprintf(sender, `{"name":"s","scraperRef":%q,"links":[`, r.scraper)
			for n := range *siteLinks {
				if n > 0 {
					_, _ = io.WriteString(sender, ",")
				}
				_, _ = fmt.Fprintf(sender, `{"url":"https://shop-%d.test/a/page/%d","title":"%0*d"}`,
					n%1_000, n, text, n)
			}
			store.weigh() // nearly everything has arrived
			_, _ = io.WriteString(sender, "]}")
			_ = sender.Close() // it never fails
		}()
		request, err := http.NewRequestWithContext(t.Context(), "PUT", r.URL+"/api/scraper/site",
			body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "large")
		request.Header.Set("Authorization", "Bearer "+r.Secrets[apitest.User])
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%d %s, %v", answer.StatusCode, whole, err)
		}
	})
	grown := max(store.memory, before) - before
	t.Logf("in use of that: %d KiB at most", grown>>10)
	if allowed := uint64(4<<20 + 20**siteLinks); grown > allowed || most > 64<<20 {
		t.Errorf("the put takes %d KiB of memory, and has %d in use, more than %d", most>>10,
			grown>>10, allowed>>10)
	}
	if allowed := uint64(1<<20 + launch.MaxLinkText); store.ofPart > allowed {
		t.Errorf("the row store gets %d bytes at once, more than %d", store.ofPart, allowed)
	}
	site := r.Client.View().SiteOf(r.scraper)
	if int(site.Links) != *siteLinks {
		t.Fatalf("the site has %d links", site.Links)
	}
	links := "GET /api/scraper/site/" + site.ID.String() + "/links?"
	for name, query := range map[string]string{"first page": "",
		"last page": "page=100000000&size=1000", "page by title": "sortField=title&page=5",
		"filter": escaped(`filters={"url":{"endsWith":"/999"}}`), "search": "q=page/2999"} {
		took(name, func() {
			r.Run(t, apitest.Scenario{Name: name, As: apitest.Reader, Do: links + query,
				Status: 200})
		})
	}
	took("run", func() {
		r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Status: 200,
			Do: "POST /api/scraper/" + r.scraper.String() + "/run"})
	})
	if job := r.Client.View().OpenJobsOf(r.scraper); len(job) != 1 ||
		int(job[0].Links) != *siteLinks {
		t.Errorf("the run is %+v", job)
	}
}

// inUse is the heap in use without garbage. Pools are emptied by the second collection.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	// HeapAlloc would count what a busy machine's other goroutines have allocated since.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// watchMemory starts recording the peak of memory use. most returns the increase since then.
func watchMemory() (most func() uint64) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, peak, done := inUse(), atomic.Uint64{}, make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for ticks := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ticks.C:
				peak.Store(max(peak.Load(), heap()))
			case <-done:
				ticks.Stop()
				return
			}
		}
	})
	return func() uint64 {
		close(done)
		watcher.Wait()
		return max(peak.Load(), before) - before
	}
}

package sites_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

var siteLinks = flag.Int("site-links", 3_000,
	"links of the site of TestLargestSite; a night takes 1,000,000")

// TestLargestSite puts a site as a JSON body, reads it and runs it. The log says how long that
// takes, and how much memory more than before.
func TestLargestSite(t *testing.T) {
	r := newRig(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(),
		Amount: 1_000_000_000})
	const text = 320 // bytes of a title: 1,000,000 links are a body of 400 MB
	took := func(what string, do func()) {
		began, memory := time.Now(), watchMemory()
		do()
		t.Logf("%s: %v, %d MiB of memory", what, time.Since(began).Round(time.Millisecond),
			memory()>>20)
	}
	took("put", func() {
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

// watchMemory starts recording the peak of memory use. most returns the increase since then.
func watchMemory() (most func() uint64) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	runtime.GC()
	before, peak, done := heap(), atomic.Uint64{}, make(chan struct{})
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

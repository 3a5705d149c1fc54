package sites_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/storetest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/heap"
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
	w.memory = max(w.memory, heap.InUse())
}

// body is the form of a site's body.
type body struct {
	media, query, head, between, tail string
	writeLink                         func(to io.Writer, n int)
}

const largeText = 320 // bytes of text besides the address: 1,000,000 links are a body of 400 MB

// bodiesOf are the forms of a body for a scraper's site.
func bodiesOf(scraper ids.ID) []body {
	object := func(to io.Writer, n int) {
		_, _ = fmt.Fprintf(to, `{"url":"https://shop-%d.test/a/page/%d","title":"%0*d"}`, n%1_000, n,
			largeText, n)
	}
	address := func(to io.Writer, n int) {
		_, _ = fmt.Fprintf(to, "https://shop-%d.test/a/page/%0*d", n%1_000, largeText, n)
	}
	query := "?name=s&scraperRef=" + scraper.String()
	return []body{
		{"application/json", "", fmt.Sprintf(`{"name":"s","scraperRef":%q,"links":[`, scraper), ",",
			"]}", object},
		{"application/x-ndjson", query, "", "\n", "\n", object},
		{"text/uri-list", query, "# all\r\n", "\r\n", "\r\n", address},
	}
}

// TestLargestSite puts a site in each form on each row store, then reads and runs it. It logs time
// and additional memory.
func TestLargestSite(t *testing.T) {
	storetest.RunOnEach(t, func(t *testing.T, on rowstore.Store) {
		store := &weighing{Store: on}
		r := newRigOn(t, store)
		r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(),
			Amount: 1_000_000_000})
		for _, b := range bodiesOf(r.scraper) {
			r.putLarge(t, store, &b)
		}
		r.readLarge(t)
		measure(t, "run", func() {
			r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Status: 200,
				Do: "POST /api/scraper/" + r.scraper.String() + "/run"})
		})
		if job := r.Client.View().OpenJobsOf(r.scraper); len(job) != 1 ||
			int(job[0].Links) != *siteLinks {
			t.Errorf("the run is %+v", job)
		}
	})
}

// measure logs time and additional memory.
func measure(t *testing.T, what string, do func()) (most uint64) {
	t.Helper()
	began, memory := time.Now(), heap.Watch()
	do()
	most = memory()
	t.Logf("%s: %v, %d MiB of memory", what, time.Since(began).Round(time.Millisecond), most>>20)
	return most
}

// putLarge puts the site. That takes at most 64 MiB, garbage included. The memory in use grows with
// hashes of the links, not with the body.
func (r *rig) putLarge(t *testing.T, store *weighing, b *body) {
	t.Helper()
	store.ofPart, store.memory = 0, 0
	before := heap.InUse()
	most := measure(t, "put of "+b.media, func() {
		text, sender := io.Pipe()
		go func() {
			to := bufio.NewWriter(sender)
			_, _ = io.WriteString(to, b.head)
			for n := range *siteLinks {
				if n > 0 {
					_, _ = io.WriteString(to, b.between)
				}
				b.writeLink(to, n)
			}
			store.weigh() // nearly everything has arrived
			_, _ = io.WriteString(to, b.tail)
			_, _ = to.Flush(), sender.Close() // the reader learns of errors
		}()
		request, err := http.NewRequestWithContext(t.Context(), "PUT",
			r.URL+"/api/scraper/site"+b.query, text)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", b.media)
		request.Header.Set("Idempotency-Key", b.media)
		request.Header.Set("Authorization", "Bearer "+r.Secrets[apitest.User])
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %d %s, %v", b.media, answer.StatusCode, whole, err)
		}
	})
	grown := max(store.memory, before) - before
	t.Logf("in use of that: %d KiB at most", grown>>10)
	if allowed := uint64(4<<20 + 20**siteLinks); grown > allowed || most > 64<<20 {
		t.Errorf("the put of %s takes %d KiB of memory, and has %d in use, more than %d", b.media,
			most>>10, grown>>10, allowed>>10)
	}
	if allowed := uint64(1<<20 + launch.MaxLinkText); store.ofPart > allowed {
		t.Errorf("the row store gets %d bytes at once, more than %d", store.ofPart, allowed)
	}
	if site := r.Client.View().SiteOf(r.scraper); int(site.Links) != *siteLinks {
		t.Fatalf("%s: the site has %d links", b.media, site.Links)
	}
}

// readLarge reads pages of the site.
func (r *rig) readLarge(t *testing.T) {
	t.Helper()
	links := "GET /api/scraper/site/" + r.Client.View().SiteOf(r.scraper).ID.String() + "/links?"
	for name, query := range map[string]string{"first page": "",
		"last page": "page=100000000&size=1000", "page by title": "sortField=title&page=5",
		"filter": escaped(`filters={"url":{"endsWith":"/999"}}`), "search": "q=page/2999"} {
		measure(t, name, func() {
			r.Run(t, apitest.Scenario{Name: name, As: apitest.Reader, Do: links + query,
				Status: 200})
		})
	}
}

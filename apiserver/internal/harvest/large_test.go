package harvest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/sitemap"
	"shoal.dev/shoal/apiserver/internal/storetest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/heap"
)

var largeEntries = flag.Int("harvest-entries", 5_000,
	"addresses that TestLargestHarvest takes from a file; a night takes 500,000 from one of 50 MB")

// largeAddress is an address of 82 bytes: 500,001 entries nearly fill a file.
func largeAddress(n int) string { return fmt.Sprintf("http://a.test/%068d", n) }

// TestLargestHarvest harvests a file of the greatest size on each row store. The file has as many
// addresses as a harvest takes, or one more, which is left out. The harvest takes at most 80 MiB,
// garbage included, mostly for hashes of the addresses. A file that was kept would add 50 MiB.
func TestLargestHarvest(t *testing.T) {
	storetest.RunOnEach(t, func(t *testing.T, store rowstore.Store) {
		for _, beyond := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d beyond", beyond), func(t *testing.T) {
				harvestLargest(t, store, *largeEntries+beyond)
			})
		}
	})
}

func harvestLargest(t *testing.T, store rowstore.Store, entries int) {
	r := newRigOn(t, store, map[string]string{"a.test/robots.txt": "Sitemap: /large.xml"})
	size := sitemap.MaxBytes * *largeEntries / client.MaxHarvestCap
	r.large = func(to io.Writer) { writeLarge(to, entries, size) }
	id := r.ask("http://a.test/", uint32(*largeEntries))
	began, memory := time.Now(), heap.Watch()
	h := r.finish(id)
	most := memory()
	t.Logf("%d addresses of a file of %d bytes: %v, %d MiB of memory", h.Count, size,
		time.Since(began).Round(time.Millisecond), most>>20)
	if h.State != client.HarvestDone || int(h.Count) != *largeEntries || most > 80<<20 {
		t.Errorf("%+v, %d KiB of memory", h, most>>10)
	}
	r.wantAsked("a.test/robots.txt", "a.test/large.xml")
	if n := checkLarge(t, store, id); n != *largeEntries {
		t.Errorf("%d addresses are stored", n)
	}
}

// writeLarge writes a sitemap of a size, filled up with blanks. An error means that the client is
// gone.
func writeLarge(to io.Writer, entries, size int) {
	const begin, end = "<urlset>", "</urlset>"
	out, left := bufio.NewWriter(to), size-len(begin)-len(end)
	_, _ = out.WriteString(begin)
	for n := range entries {
		entry := "<url><loc>" + largeAddress(n) + "</loc></url>"
		_, _ = out.WriteString(entry)
		left -= len(entry)
	}
	_, _ = out.WriteString(strings.Repeat(" ", left))
	_, _ = out.WriteString(end)
	_ = out.Flush()
}

// checkLarge counts the addresses of a journal. They must be those of the file, in order.
func checkLarge(t *testing.T, store rowstore.Store, id ids.ID) (n int) {
	t.Helper()
	for after := int64(0); ; {
		docs, last, err := store.Batches(t.Context(), id, after, batchRows)
		if err != nil {
			t.Fatal(err)
		}
		if len(docs) == 0 {
			return n
		}
		for _, doc := range docs {
			var e row
			if err := json.Unmarshal(doc, &e); err != nil {
				t.Fatal(err)
			}
			if e.URL == "" {
				continue
			}
			if want := largeAddress(n); e.URL != want {
				t.Fatalf("address %d is %s, want %s", n, e.URL, want)
			}
			n++
		}
		after = last
	}
}

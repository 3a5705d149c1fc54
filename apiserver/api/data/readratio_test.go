package data_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/storetest"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

var (
	ratioRows   = flag.Int("ratio-rows", 3_000, "rows that TestReadsWithCategoriesAndShares reads")
	ratioServer = flag.Int("ratio-server", 0,
		"process of a ClickHouse on this machine, whose processor time counts, too")
	walkRows = flag.Int("walk-rows", 3_000, "rows that TestSortedWalk reads; a night takes 1,000,000")
)

// TestReadsWithCategoriesAndShares: a reader of a shared group gets by categories what the owner
// gets by the same filter. It logs processor and wall-clock time of both. ClickHouse's share counts
// with -ratio-server only.
func TestReadsWithCategoriesAndShares(t *testing.T) { onStores(t, compareReads) }

// onStores runs a test on SQLite, and on ClickHouse if CLICKHOUSE_URL is set.
var onStores = storetest.RunOnEach

// fill stores rows rows in a new run.
func (r *rig) fill(t *testing.T, rows int) {
	t.Helper()
	job := rowstore.Job{ID: r.IDs.New(), Customer: "alice", Group: r.group, Scraper: r.shop,
		Started: 1}
	for from := 0; from < rows; from += 10_000 {
		var pages []rowstore.PageWrite
		for seq := from; seq < min(from+10_000, rows); seq++ {
			row := fmt.Appendf(nil, `{"title":"Product %d","price":"%d.99","sku":"SKU-%d",`+
				`"inStock":%t,"description":%q,"_jobId":%q}`, seq%5000, seq%500, seq, seq%3 == 0,
				strings.Repeat(fmt.Sprintf("words %05x ", seq*2654435761%100_000), 25), job.ID)
			pages = append(pages, rowstore.PageWrite{Job: job, Page: &model.Page{Job: job.ID,
				Unit: model.Unit{Seq: uint32(seq)}, Fetch: r.IDs.New(), Last: true, At: 1,
				Outcome: model.Delivered, Status: 200, URL: "https://x.test/", Quantity: 1,
				PriceRow: model.Plain.PriceRow(), Rows: [][]byte{row}}})
		}
		if _, err := r.store.PutPages(t.Context(), pages); err != nil {
			t.Fatal(err)
		}
	}
}

func compareReads(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.group = r.NewGroup(t, "alice", "many")
	r.share(t)
	cheap, first := `{"price":{"lt":250}}`, `{"title":{"startsWith":"product 1"}}`
	r.save(t, "cheap", cheap)
	r.save(t, "first", first)
	r.save(t, "all", `{"price":{"exists":true}}`)
	r.fill(t, *ratioRows)
	t.Logf("%d rows are stored", *ratioRows)
	for _, c := range []struct{ name, filter, categories string }{
		{"all", "", ""},
		{"a category", "&" + filters(cheap), "&categories=cheap"},
		{"two", "&" + filters(`{"$or":[`+cheap+`,`+first+`]}`), "&categories=cheap,first"},
		{"one of all", "&" + filters(`{"price":{"exists":true}}`), "&categories=all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := r.compare(t, c.name, r.walk(apitest.Reader, c.filter),
				r.walk(apitest.Other, c.categories))
			whole := c.filter == "" || c.categories == "&categories=all"
			if rows == 0 || whole && rows != *ratioRows {
				t.Errorf("%d rows of %d", rows, *ratioRows)
			}
		})
	}
}

// compare reads the same rows in two ways, alternating page by page, so that both meet the same
// load. The first way alternates, too, because the second finds the rows in memory.
func (r *rig) compare(t *testing.T, name string, ways ...*walk) (rows int) {
	t.Helper()
	var used, clock [2]time.Duration
	var ratios []float64
	for first := 0; ; first = 1 - first {
		var pages [2][]byte
		var took [2]time.Duration
		for _, i := range []int{first, 1 - first} {
			before, began := processor(t), time.Now()
			pages[i] = ways[i].page(t)
			took[i] = time.Since(began)
			used[i] += processor(t) - before
		}
		n, shared := bytes.Count(pages[0], []byte(`"_jobId"`)),
			bytes.Count(pages[1], []byte(`"_jobId"`))
		if n != shared {
			t.Fatalf("%s: a page has %d rows, and %d by the category", name, n, shared)
		} else if n == 0 {
			break
		}
		rows += n
		clock[0], clock[1] = clock[0]+took[0], clock[1]+took[1]
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	slices.Sort(ratios)
	t.Logf("%s: %d rows in %v of the processor, and %v, %.2f times that; by the clock in %v and %v, "+
		"%.2f times that, %.2f in the middle of %d pairs", name, rows,
		used[0].Round(time.Millisecond), used[1].Round(time.Millisecond),
		float64(used[1])/float64(used[0]), clock[0].Round(time.Millisecond),
		clock[1].Round(time.Millisecond), float64(clock[1])/float64(clock[0]),
		ratios[len(ratios)/2], len(ratios))
	return rows
}

// processor is the processor time of this process, which is both server and client, and of the
// process ratioServer.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	own := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	if *ratioServer == 0 {
		return own
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", *ratioServer))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(stat), ") ") // after the name, which may contain spaces
	var user, system int64                          // in hundredths of a second
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(behind)[11:13], " "), "%d %d", &user,
		&system); err != nil {
		t.Fatal(err)
	}
	return own + time.Duration(user+system)*10*time.Millisecond
}

// next matches the cursor at the end of a page.
var next = regexp.MustCompile(`"nextCursor":"([^"]+)","hasMore":true}$`)

// walk is a read by cursor with 1,000 rows per page.
type walk struct {
	rig      *rig
	as, path string
	cursor   string
	over     bool
}

// walk begins a read of the group's rows.
func (r *rig) walk(as, query string) *walk {
	return &walk{rig: r, as: as, path: readPath[len("GET "):] + "?limit=1000&groupId=" +
		r.group.String() + query}
}

// page reads the next page; nil after the last.
func (w *walk) page(t *testing.T) []byte {
	t.Helper()
	if w.over {
		return nil
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		w.rig.URL+w.path+"&cursor="+w.cursor, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.rig.Secrets[w.as])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %.300s: %v", w.path, response.StatusCode, body, err)
	}
	found := next.FindSubmatch(body[max(len(body)-2_000, 0):])
	if w.over = found == nil; !w.over {
		w.cursor = string(found[1])
	}
	return body
}

// TestSortedWalk reads sorted rows to their end, page by page. Each comes once and in order. It
// logs the time.
func TestSortedWalk(t *testing.T) {
	onStores(t, func(t *testing.T, store rowstore.Store) {
		r := startOn(t, store)
		r.group = r.NewGroup(t, "alice", "many")
		r.fill(t, *walkRows)
		for _, sort := range []string{"price", "sku,desc"} {
			began, pages, last, seen := time.Now(), 0, "", make(map[string]bool, *walkRows)
			used := processor(t)
			var first, longest time.Duration
			walk := r.walk(apitest.Reader, "&fields=price,sku&sort="+sort)
			for body := walk.page(t); body != nil; body = walk.page(t) {
				took := time.Since(began)
				if pages++; pages == 1 {
					first = took
				}
				longest, began = max(longest, took), time.Now()
				last = r.inOrder(t, body, sort, last, seen)
			}
			if len(seen) != *walkRows {
				t.Errorf("by %s: %d rows of %d", sort, len(seen), *walkRows)
			}
			t.Logf("by %s: %d rows on %d pages, %v of this process; the first took %v, the "+
				"longest %v", sort, len(seen), pages, processor(t)-used, first, longest)
		}
	})
}

// inOrder checks a page against the last value of the page before, and returns its own last value.
func (r *rig) inOrder(t *testing.T, body []byte, sort, last string, seen map[string]bool) string {
	t.Helper()
	var page struct{ Items []struct{ Price, SKU string } }
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Items {
		if seen[row.SKU] {
			t.Fatalf("row %s comes twice", row.SKU)
		}
		seen[row.SKU] = true
		value := fmt.Sprintf("%9s", row.Price)
		wrong := value < last
		if sort == "sku,desc" {
			value = row.SKU
			wrong = last != "" && value > last
		}
		if wrong {
			t.Fatalf("by %s: %s comes behind %s", sort, value, last)
		}
		last = value
	}
	return last
}

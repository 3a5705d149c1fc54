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
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

var (
	ratioRows   = flag.Int("ratio-rows", 3_000, "rows that TestReadsWithCategoriesAndShares reads")
	ratioRounds = flag.Int("ratio-rounds", 1, "how often it reads them each way")
	ratioServer = flag.Int("ratio-server", 0,
		"process of a ClickHouse on this machine, whose processor time counts, too")
	walkRows = flag.Int("walk-rows", 3_000, "rows that TestSortedWalk reads; a night takes 1,000,000")
)

// TestReadsWithCategoriesAndShares: who a group is shared with reads by its categories what the
// owner reads by the same filter. What both take at least is logged, of the processor and by the
// clock: what ClickHouse takes, where CLICKHOUSE_URL names one, counts with -ratio-server only.
func TestReadsWithCategoriesAndShares(t *testing.T) { onStores(t, compareReads) }

// onStores runs a test on SQLite, and on ClickHouse where CLICKHOUSE_URL names one.
func onStores(t *testing.T, test func(*testing.T, rowstore.Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, apitest.NewStore(t)) })
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		return
	}
	server, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url, Node: "test",
		Database: "test_" + ids.Random{Now: time.Now}.New().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	t.Run("clickhouse", func(t *testing.T) { test(t, server) })
}

// fill stores so many rows of a run of its own.
func (r *rig) fill(t *testing.T, rows int) {
	t.Helper()
	job := rowstore.Job{ID: r.IDs.New(), Customer: "alice", Group: r.group, Scraper: r.shop,
		Started: 1}
	for from := 0; from < rows; from += 1_000 {
		var pages []rowstore.PageWrite
		for seq := from; seq < min(from+1_000, rows); seq++ {
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
	ways := []struct{ name, as, query string }{
		{"owner, all", apitest.Reader, ""},
		{"shared, all", apitest.Other, ""},
		{"owner, filter", apitest.Reader, "&" + filters(cheap)},
		{"shared, category", apitest.Other, "&categories=cheap"},
		{"owner, nested filter", apitest.Reader, "&" + filters(`{"$or":[`+cheap+`,`+first+`]}`)},
		{"shared, two categories", apitest.Other, "&categories=cheap,first"},
		{"owner, filter of all", apitest.Reader, "&" + filters(`{"price":{"exists":true}}`)},
		{"shared, category of all", apitest.Other, "&categories=all"},
	}
	times, clocks := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
	rows := make([]int, len(ways))
	for round := range *ratioRounds {
		for i := range ways {
			if round%2 == 1 { // what comes second finds the rows in memory
				i = len(ways) - 1 - i
			}
			way := ways[i]
			used, began := processor(t), time.Now()
			rows[i] = 0
			r.eachPage(t, way.as, readPath[len("GET "):]+"?limit=1000&groupId="+
				r.group.String()+way.query, func(body []byte) {
				rows[i] += bytes.Count(body, []byte(`"_jobId"`))
			})
			times[i] = append(times[i], processor(t)-used)
			clocks[i] = append(clocks[i], time.Since(began))
		}
	}
	for i := 0; i < len(ways); i += 2 {
		if rows[i] != rows[i+1] || rows[i] == 0 {
			t.Errorf("%s: %d rows, %s: %d", ways[i].name, rows[i], ways[i+1].name, rows[i+1])
		}
		ratio := func(of [][]time.Duration) string {
			own, theirs := slices.Min(of[i]), slices.Min(of[i+1])
			return fmt.Sprintf("%v and %v, %.2f times that", own.Round(time.Millisecond),
				theirs.Round(time.Millisecond), float64(theirs)/float64(own))
		}
		t.Logf("%s and %s: %d rows in %s; by the clock in %s", ways[i].name, ways[i+1].name,
			rows[i], ratio(times), ratio(clocks))
	}
	if rows[0] != *ratioRows || rows[6] != *ratioRows {
		t.Errorf("%d and %d rows of %d", rows[0], rows[6], *ratioRows)
	}
}

// processor is how long this process, which is server and client, has worked, and the one of
// ratioServer.
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
	_, behind, _ := strings.Cut(string(stat), ") ") // behind the name, which may have blanks
	var user, system int64                          // in hundredths of a second
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(behind)[11:13], " "), "%d %d", &user,
		&system); err != nil {
		t.Fatal(err)
	}
	return own + time.Duration(user+system)*10*time.Millisecond
}

// next finds the cursor at the end of a page.
var next = regexp.MustCompile(`"nextCursor":"([^"]+)","hasMore":true}$`)

// eachPage reads pages by cursor to their end.
func (r *rig) eachPage(t *testing.T, as, path string, visit func(body []byte)) {
	t.Helper()
	for cursor := ""; ; {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			r.URL+path+"&cursor="+cursor, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+r.Secrets[as])
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %.300s: %v", path, response.StatusCode, body, err)
		}
		visit(body)
		found := next.FindSubmatch(body[max(len(body)-2_000, 0):])
		if found == nil {
			return
		}
		cursor = string(found[1])
	}
}

// TestSortedWalk reads rows by a field to their end, page by page. Each comes once and in order.
// The log says how long that took.
func TestSortedWalk(t *testing.T) {
	onStores(t, func(t *testing.T, store rowstore.Store) {
		r := startOn(t, store)
		r.group = r.NewGroup(t, "alice", "many")
		r.fill(t, *walkRows)
		for _, sort := range []string{"price", "sku,desc"} {
			began, pages, last, seen := time.Now(), 0, "", make(map[string]bool, *walkRows)
			used := processor(t)
			var first, longest time.Duration
			r.eachPage(t, apitest.Reader, readPath[len("GET "):]+"?limit=1000&fields=price,sku"+
				"&groupId="+r.group.String()+"&sort="+sort, func(body []byte) {
				took := time.Since(began)
				if pages++; pages == 1 {
					first = took
				}
				longest, began = max(longest, took), time.Now()
				last = r.inOrder(t, body, sort, last, seen)
			})
			if len(seen) != *walkRows {
				t.Errorf("by %s: %d rows of %d", sort, len(seen), *walkRows)
			}
			t.Logf("by %s: %d rows on %d pages, %v of this process; the first took %v, the "+
				"longest %v", sort, len(seen), pages, processor(t)-used, first, longest)
		}
	})
}

// inOrder holds a page against the last value of the one before, and answers its own last value.
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

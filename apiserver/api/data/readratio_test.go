package data_test

import (
	"bytes"
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
)

// TestReadsWithCategoriesAndShares: who a group is shared with reads by its categories what the
// owner reads by the same filter. What both take of the processor at least is logged. ClickHouse is read, too, where
// CLICKHOUSE_URL names one.
func TestReadsWithCategoriesAndShares(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { compareReads(t, apitest.NewStore(t)) })
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
	t.Run("clickhouse", func(t *testing.T) { compareReads(t, server) })
}

func compareReads(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.group = r.NewGroup(t, "alice", "many")
	r.share(t)
	cheap, first := `{"price":{"lt":250}}`, `{"title":{"startsWith":"product 1"}}`
	r.save(t, "cheap", cheap)
	r.save(t, "first", first)
	r.save(t, "all", `{"price":{"exists":true}}`)
	job := rowstore.Job{ID: r.IDs.New(), Customer: "alice", Group: r.group, Scraper: r.shop,
		Started: 1}
	for from := 0; from < *ratioRows; from += 1_000 {
		var pages []rowstore.PageWrite
		for seq := from; seq < min(from+1_000, *ratioRows); seq++ {
			row := fmt.Appendf(nil, `{"title":"Product %d","price":"%d.99","sku":"SKU-%d",`+
				`"inStock":%t,"description":%q,"_jobId":%q}`, seq%5000, seq%500, seq, seq%3 == 0,
				strings.Repeat(fmt.Sprintf("words %05x ", seq*2654435761%100_000), 25), job.ID)
			pages = append(pages, rowstore.PageWrite{Job: job, Page: &model.Page{Job: job.ID,
				Unit: model.Unit{Seq: uint32(seq)}, Fetch: r.IDs.New(), Last: true, At: 1,
				Outcome: model.Delivered, Status: 200, URL: "https://x.test/", Quantity: 1,
				PriceRow: model.Plain.PriceRow(), Rows: [][]byte{row}}})
		}
		if _, err := store.PutPages(t.Context(), pages); err != nil {
			t.Fatal(err)
		}
	}
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
	times := make([][]time.Duration, len(ways))
	rows := make([]int, len(ways))
	for round := range *ratioRounds {
		for i := range ways {
			if round%2 == 1 { // what comes second finds the rows in memory
				i = len(ways) - 1 - i
			}
			way := ways[i]
			began := processor(t)
			rows[i] = r.count(t, way.as, readPath[len("GET "):]+"?limit=1000&groupId="+
				r.group.String()+way.query)
			times[i] = append(times[i], processor(t)-began)
		}
	}
	for i := 0; i < len(ways); i += 2 {
		if rows[i] != rows[i+1] || rows[i] == 0 {
			t.Errorf("%s: %d rows, %s: %d", ways[i].name, rows[i], ways[i+1].name, rows[i+1])
		}
		own, theirs := slices.Min(times[i]), slices.Min(times[i+1])
		t.Logf("%s: %d rows in %v; %s: %v, %.2f times that", ways[i].name, rows[i],
			own.Round(time.Millisecond), ways[i+1].name, theirs.Round(time.Millisecond),
			float64(theirs)/float64(own))
	}
	if rows[0] != *ratioRows || rows[6] != *ratioRows {
		t.Errorf("%d and %d rows of %d", rows[0], rows[6], *ratioRows)
	}
}

// processor is how long this process, which is server and client, has worked.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// next finds the cursor at the end of a page.
var next = regexp.MustCompile(`"nextCursor":"([^"]+)","hasMore":true}$`)

// count reads pages by cursor to their end, and counts the rows.
func (r *rig) count(t *testing.T, as, path string) (rows int) {
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
		rows += bytes.Count(body, []byte(`"_jobId"`))
		found := next.FindSubmatch(body[max(len(body)-2_000, 0):])
		if found == nil {
			return rows
		}
		cursor = string(found[1])
	}
}

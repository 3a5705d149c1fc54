package clickhouse_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// batch makes pages of one row, as the run of a list brings them.
func batch(source *ids.Sequence, job rowstore.Job, from, count int) []rowstore.PageWrite {
	pages := make([]rowstore.PageWrite, count)
	for i := range pages {
		seq := from + i
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
		row := fmt.Sprintf(`{"title":"Product %d","price":"%d.99","sku":"SKU-%d","brand":"Brand %d","rating":%d.5,`+
			`"inStock":%v,"description":%q,"_sourceUrl":%q,"_scrapedAt":"2026-01-31T12:00:00.000Z","_jobId":%q,`+
			`"_scraperJobStatusId":%q,"_scraperId":%q}`, seq%5000, seq%500, seq, seq%97, seq%5,
			seq%3 == 0,
			strings.Repeat(fmt.Sprintf("words %x ", seq*2654435761%100_000), 10), url, job.ID,
			job.ID, job.Scraper)
		pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{
			Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(),
			Outcome: model.Delivered, Status: 200,
			URL: url, PriceRow: "tier:plain", Quantity: 1,
			Tries: []model.Try{{Status: 200, Millis: 40}}, Bytes: 20_000,
			Millis: 41, At: 1_700_000_000_000_000 + int64(seq), Last: true,
			Rows: [][]byte{[]byte(row)},
		}}
	}
	return pages
}

func openB(b *testing.B, db string) *clickhouse.Store {
	store := open(b, clickhouse.Config{Database: db})
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// BenchmarkPutPages measures one page record with one row, and its size on the server's disk once
// merged.
func BenchmarkPutPages(b *testing.B) {
	for _, size := range []int{1, 500, 2_000, 20_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			db, source := database(b), &ids.Sequence{}
			store := openB(b, db)
			job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
				Started: 1}
			before := serverCPU(b)
			for seq := 0; seq < b.N; seq += size {
				b.StopTimer()
				pages := batch(source, job, seq, min(size, b.N-seq))
				b.StartTimer()
				if _, err := store.PutPages(context.Background(), pages); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((serverCPU(b)-before)/time.Microsecond)/float64(b.N),
				"server-µs/op")
			b.StopTimer()
			b.ReportMetric(onDisk(b, db)/float64(b.N), "disk-bytes/op")
		})
	}
}

// onDisk returns how many bytes a database's rows take once their parts are merged.
func onDisk(b *testing.B, db string) float64 {
	query(b, "OPTIMIZE TABLE `"+db+"`.weeks FINAL")
	size, err := strconv.ParseFloat(query(b, "SELECT sum(bytes_on_disk) FROM system.parts WHERE "+
		"active AND database = '"+db+
		"' AND table = 'weeks'"), 64)
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// serverCPU returns the processor time that the server has used, if $CLICKHOUSE_PIDFILE names its
// process. On a shared machine it says more than elapsed time.
func serverCPU(b *testing.B) time.Duration {
	pid, err := os.ReadFile(os.Getenv("CLICKHOUSE_PIDFILE"))
	if err != nil {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	var user, system int64
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of 1/100 s
}

var benchRows = flag.Int("bench-rows", 2_000_000, "rows of the group that BenchmarkReads reads")

// BenchmarkReads reads a group of 20 jobs. Its first line is the time of storing the rows.
func BenchmarkReads(b *testing.B) {
	store, source := openB(b, database(b)), &ids.Sequence{}
	group, scraper := source.New(), source.New()
	var jobs []ids.ID
	began := time.Now()
	const size, jobCount = 20_000, 20
	for range jobCount {
		job := rowstore.Job{ID: source.New(), Group: group, Scraper: scraper,
			Started: 1_700_000_000_000_000}
		jobs = append(jobs, job.ID)
		for from := 0; from < *benchRows/jobCount; from += size {
			if _, err := store.PutPages(b.Context(),
				batch(source, job, len(jobs)*1_000_000+from,
					min(size, *benchRows/jobCount-from))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Logf("%d rows stored in %v", *benchRows, time.Since(began).Round(time.Millisecond))
	for len(jobs) < 10_000 {
		jobs = append(jobs, source.New())
	}
	all := rowstore.Scope{Group: group}
	horizon, err := store.Horizon(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	middle := func() int64 {
		var after int64
		for range 3 {
			_, last, err := store.Scan(b.Context(),
				rowstore.ScanQuery{Scope: all, After: max(after, horizon/2), Upto: horizon,
					Limit: 1000})
			if err != nil {
				b.Fatal(err)
			}
			after = last
		}
		return after
	}()
	node := func(text string) filter.Node {
		if text == "" {
			return nil
		}
		n, err := filter.Parse([]byte(text))
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	run := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			before := serverCPU(b)
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((serverCPU(b)-before)/time.Microsecond)/1000/float64(b.N),
				"server-ms/op")
		})
	}
	for _, f := range []struct{ name, filter string }{
		{"all", ``},
		{"number equal", `{"price":123.99}`},
		{"text equal", `{"sku":"SKU-3000123"}`},
		{"in", `{"brand":{"in":["Brand 1","Brand 2","Brand 3"]}}`},
		{"range", `{"rating":{"gte":3,"lt":4}}`},
		{"not", `{"inStock":{"ne":true}}`},
		{"contains", `{"title":{"contains":"product 49"}}`},
		{"contains in long text", `{"description":{"contains":"fff"}}`},
		{"regex", `{"title":{"regex":"^Product 1[0-9]{3}$"}}`},
		{"nested",
			`{"$or":[{"$and":[{"price":{"gt":490}},{"brand":"Brand 7"}]},{"$nor":[{"rating":{"lt":4}},{"inStock":true}]}]}`},
		{"nothing found", `{"sku":"none"}`},
	} {
		n := node(f.filter)
		run("page/"+f.name, func() error {
			_, err := store.Rows(b.Context(), rowstore.RowsQuery{Scope: all, Filter: n, Limit: 100})
			return err
		})
		run("count/"+f.name, func() error {
			_, err := store.Count(b.Context(), all, n)
			return err
		})
	}
	run("page/sorted by number", func() error {
		_, err := store.Rows(b.Context(),
			rowstore.RowsQuery{Scope: all,
				Sort: []rowstore.Sort{{Field: "price", Descending: true}}, Limit: 100})
		return err
	})
	run("page/sorted by text", func() error {
		_, err := store.Rows(b.Context(),
			rowstore.RowsQuery{Scope: all, Sort: []rowstore.Sort{{Field: "title"}}, Limit: 100})
		return err
	})
	run("page/deep", func() error {
		_, err := store.Rows(b.Context(),
			rowstore.RowsQuery{Scope: all, Offset: 99_900, Limit: 100})
		return err
	})
	many := rowstore.Scope{Group: group, Jobs: jobs, Without: jobs[5_000:]}
	run("page/10000 jobs", func() error {
		_, err := store.Rows(b.Context(),
			rowstore.RowsQuery{Scope: many, Filter: node(`{"brand":"Brand 1"}`), Limit: 100})
		return err
	})
	for name, after := range map[string]int64{"first": 0, "middle": middle} {
		run("cursor/"+name, func() error {
			_, _, err := store.Scan(b.Context(),
				rowstore.ScanQuery{Scope: all, After: after, Upto: horizon, Limit: 100})
			return err
		})
		run("cursor/filtered "+name, func() error {
			_, _, err := store.Scan(b.Context(),
				rowstore.ScanQuery{Scope: all, Filter: node(`{"brand":"Brand 1"}`), After: after,
					Upto: horizon, Limit: 100})
			return err
		})
	}
	for _, f := range []struct{ name, filter string }{
		{"filtered", `{"price":{"lt":250}}`}, // leaves half of the rows
		{"mostly", `{"price":{"lt":450}}`},
		{"seldom", `{"brand":"Brand 1"}`},
	} {
		q := rowstore.ScanQuery{Scope: all, Filter: node(f.filter), After: middle, Upto: horizon,
			Limit: 1_000, Bytes: 1 << 20}
		run("cursor/"+f.name, func() error { _, _, err := store.Scan(b.Context(), q); return err })
	}
	run("horizon", func() error { _, err := store.Horizon(b.Context()); return err })
	run("unreached", func() error {
		_, err := store.Count(b.Context(), rowstore.Scope{Group: scraper}, nil)
		return err
	})
}

// BenchmarkOrder reads a group of one job in the order of a number and of a text.
func BenchmarkOrder(b *testing.B) {
	store, source := openB(b, database(b)), &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
		Started: 1_700_000_000_000_000}
	const size = 20_000
	for from := 0; from < *benchRows; from += size {
		if _, err := store.PutPages(b.Context(),
			batch(source, job, from, min(size, *benchRows-from))); err != nil {
			b.Fatal(err)
		}
	}
	rowstoretest.BenchOrder(b, store, rowstore.Scope{Group: job.Group}, "price", "title")
}

// BenchmarkIntake measures one link.
func BenchmarkIntake(b *testing.B) {
	store, source := openB(b, database(b)), &ids.Sequence{}
	w, err := store.CreateList(context.Background(), source.New())
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", i%1000, i)
		if _, err := w.Add(context.Background(), url, url); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Finish(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// The history that BenchmarkPast reads.
var (
	benchPast     = flag.Int("bench-past", 10_000, "runs of the history")
	benchPastEach = flag.Int("bench-past-each", 1_000, "runs of a customer")
)

func BenchmarkPast(b *testing.B) {
	store := open(b, clickhouse.Config{Database: database(b)})
	defer func() { _ = store.Close() }()
	rowstoretest.BenchPast(b, store, *benchPast, *benchPastEach)
}

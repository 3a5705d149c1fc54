package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// Rows measures the row stores.
type Rows struct {
	Rows          int    `help:"Rows to store." default:"200000"`
	Batch         int    `help:"Pages per write, each with one row." default:"2000"`
	Reads         int    `help:"Reads of each kind." default:"30"`
	ClickhouseURL string `help:"ClickHouse to measure beside SQLite: http://HOST:PORT/. The benchmark creates its own database there and removes it." env:"CLICKHOUSE_URL" placeholder:"URL" secret:"url"`
}

// Help returns the help text.
func (*Rows) Help() string {
	return `Pages of one row are stored as ingest stores them, with their page records. Then the rows are read as customers read them:
filtered, counted, sorted, by cursor. SQLite is always measured, ClickHouse if --clickhouse-url or CLICKHOUSE_URL is set.

Example: CLICKHOUSE_URL=http://127.0.0.1:8123/ shoal bench rows --rows 2000000`
}

// Measure measures the stores.
func (m *Rows) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"rows": m.Rows, "batch": m.Batch,
		"reads": m.Reads}); err != nil {
		return err
	}
	dir, err := on.directory("rows")
	if err != nil {
		return err
	}
	embedded, err := sqlite.Open(sqlite.Config{Dir: filepath.Join(dir, "rows")})
	if err != nil {
		return err
	}
	if err := errors.Join(m.store(ctx, on, "SQLite", embedded, report),
		embedded.Close()); err != nil {
		return err
	}
	if m.ClickhouseURL == "" {
		report.note("ClickHouse was not measured: neither --clickhouse-url nor " +
			"CLICKHOUSE_URL names one")
		return nil
	}
	database := "bench_" + ids.Random{Now: time.Now}.New().String()
	server, err := clickhouse.Open(ctx,
		clickhouse.Config{URL: m.ClickhouseURL, Database: database, Node: "bench"})
	if err != nil {
		return fmt.Errorf("--clickhouse-url: %w", err)
	}
	err = m.store(ctx, on, "ClickHouse", server, report)
	return errors.Join(err, server.Close(),
		dropDatabase(context.WithoutCancel(ctx), m.ClickhouseURL, database))
}

// store measures one store.
func (m *Rows) store(ctx context.Context, on *Bench, name string, store rowstore.Store,
	report *Report) error {
	on.Say("rows: %s takes in %d rows", name, m.Rows)
	source := ids.Random{Now: time.Now}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
		Started: time.Now().UnixMicro()}
	writes := &histogram{}
	var took, used time.Duration // of the writes, without making the pages
	for from := 0; from < m.Rows; from += m.Batch {
		pages := rowPages(source, job, from, min(m.Batch, m.Rows-from))
		before, err := ownCPU()
		if err != nil {
			return err
		}
		begun := time.Now()
		if _, err := store.PutPages(ctx, pages); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		writes.add(time.Since(begun))
		took += time.Since(begun)
		after, err := ownCPU()
		if err != nil {
			return err
		}
		used += after - before
	}
	table := report.table(fmt.Sprintf("%s, ingest, pages of one row, %d in a write:", name,
		m.Batch), "rows", "rows/s",
		"CPU here a row, µs", "write p50, ms", "write p99, ms")
	table.add(thousands(fmt.Sprint(m.Rows)), float64(m.Rows)/took.Seconds(),
		micros(used)/float64(m.Rows),
		millis(writes.quantile(0.5)), millis(writes.quantile(0.99)))
	return m.reads(ctx, on, name, store, job, report)
}

// rowFilters are filters that customers use.
func rowFilters() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"all", ""},
		{"number equal", `{"price":123.99}`},
		{"text equal, one row", `{"sku":"SKU-123"}`},
		{"one of three", `{"brand":{"in":["Brand 1","Brand 2","Brand 3"]}}`},
		{"range", `{"rating":{"gte":3,"lt":4}}`},
		{"contains", `{"title":{"contains":"product 49"}}`},
		{"regular expression", `{"title":{"regex":"^Product 1[0-9]{3}$"}}`},
		{"nested",
			`{"$or":[{"$and":[{"price":{"gt":490}},{"brand":"Brand 7"}]},{"$nor":[{"rating":{"lt":4}},{"inStock":true}]}]}`},
		{"nothing found", `{"sku":"none"}`},
	}
}

// rowRead is one kind of read.
type rowRead struct {
	name string
	read func(ctx context.Context) error
}

func (m *Rows) reads(ctx context.Context, on *Bench, name string, store rowstore.Store,
	job rowstore.Job,
	report *Report) error {
	reads, err := rowReads(ctx, store, rowstore.Scope{Group: job.Group})
	if err != nil {
		return err
	}
	table := report.table(fmt.Sprintf("%s, reads of %s rows, one at a time:", name,
		thousands(fmt.Sprint(m.Rows))), "read",
		"p50, ms", "p99, ms", "longest, ms")
	for _, r := range reads {
		on.Say("rows: %s, %s", name, r.name)
		h := &histogram{}
		for range m.Reads {
			begun := time.Now()
			if err := r.read(ctx); err != nil {
				return fmt.Errorf("%s, %s: %w", name, r.name, err)
			}
			h.add(time.Since(begun))
		}
		p99 := millis(h.quantile(0.99))
		if m.Reads < 100 {
			p99 = math.NaN()
		}
		table.add(r.name, millis(h.quantile(0.5)), p99, millis(h.longest))
	}
	return nil
}

func rowReads(ctx context.Context, store rowstore.Store, scope rowstore.Scope) ([]rowRead, error) {
	var reads []rowRead
	for _, f := range rowFilters() {
		var node filter.Node
		if f.text != "" {
			var err error
			if node, err = filter.Parse([]byte(f.text)); err != nil {
				return nil, err
			}
		}
		reads = append(reads, rowRead{"100 newest: " + f.name, func(ctx context.Context) error {
			_, err := store.Rows(ctx, rowstore.RowsQuery{Scope: scope, Filter: node, Limit: 100})
			return err
		}}, rowRead{"count: " + f.name, func(ctx context.Context) error {
			_, err := store.Count(ctx, scope, node)
			return err
		}})
	}
	horizon, err := store.Horizon(ctx)
	if err != nil {
		return nil, err
	}
	sorted := rowstore.RowsQuery{Scope: scope,
		Sort: []rowstore.Sort{{Field: "price", Descending: true}}, Limit: 100}
	return append(reads, rowRead{"100 sorted by a number", func(ctx context.Context) error {
		_, err := store.Rows(ctx, sorted)
		return err
	}}, rowRead{"1,000 by cursor", func(ctx context.Context) error {
		_, _, err := store.Scan(ctx, rowstore.ScanQuery{Scope: scope, Upto: horizon, Limit: 1000})
		return err
	}}), nil
}

// rowPages are pages of one row each, like those of a list run.
func rowPages(source ids.Source, job rowstore.Job, from, count int) []rowstore.PageWrite {
	pages := make([]rowstore.PageWrite, count)
	for i := range pages {
		seq := from + i
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
		row := fmt.Sprintf(`{"title":"Product %d","price":"%d.99","sku":"SKU-%d","brand":"Brand %d","rating":%d.5,`+
			`"inStock":%v,"description":%q,"_sourceUrl":%q,"_scrapedAt":"2026-01-31T12:00:00.000Z","_jobId":%q}`, seq%5000,
			seq%500, seq, seq%97, seq%5, seq%3 == 0,
			strings.Repeat(fmt.Sprintf("words %x ", seq*2654435761%100_000), 10), url,
			job.ID)
		pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{
			Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(),
			Outcome: model.Delivered, Status: 200,
			URL: url, PriceRow: model.Plain.PriceRow(), Quantity: 1,
			Tries: []model.Try{{Status: 200, Millis: 40}}, Bytes: 20_000,
			Millis: 41, At: job.Started + int64(seq), Last: true, Rows: [][]byte{[]byte(row)},
		}}
	}
	return pages
}

// dropDatabase removes the measure's ClickHouse database.
func dropDatabase(ctx context.Context, server, database string) error {
	return postQuery(ctx, server, "DROP DATABASE IF EXISTS "+database)
}

package ingest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// uploaded is a test setup into which files are uploaded.
type uploaded struct {
	t       *testing.T
	clock   *clock.Manual
	ids     ids.Source
	client  *clienttest.Client
	store   rowstore.Store
	blobs   *blobstore.Store
	group   ids.ID
	scraper ids.ID // zero before the first file
	name    string // of a new scraper
	point   func(name string)
	disk    *telemetry.Disk
	failed  error             // of the last step of a merge
	noted   map[ids.ID][]byte // by match: which runs it reads
}

// starter makes a test setup on one engine of the row store.
type starter func(t *testing.T) *uploaded

// onEachStore runs a test on SQLite, and on ClickHouse if a server is given. The nightly run has
// one under the race detector.
func onEachStore(t *testing.T, test func(t *testing.T, start starter)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newUploaded) })
	t.Run("clickhouse", func(t *testing.T) {
		server := os.Getenv("CLICKHOUSE_URL")
		if server == "" {
			t.Skip("CLICKHOUSE_URL is not set")
		}
		test(t, func(t *testing.T) *uploaded { return newUploadedOn(t, openClickHouse(t, server)) })
	})
}

// openClickHouse opens a database for this test alone. Its data goes with the server.
func openClickHouse(t *testing.T, server string) rowstore.Store {
	t.Helper()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server,
		Database: "test_" + rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newUploaded(t *testing.T) *uploaded {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return newUploadedOn(t, store)
}

func newUploadedOn(t *testing.T, store rowstore.Store) *uploaded {
	t.Helper()
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	u := &uploaded{t: t, clock: at, ids: ids.Random{Now: at.Now}, client: clienttest.New(t, at),
		store: store, name: "file", point: func(string) {}}
	var err error
	if u.blobs, err = blobstore.OpenDirectory(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.store.Close(); err != nil {
			t.Error(err)
		}
		if err := u.blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	u.client.Must(t, client.OpenCustomer{Customer: "ann", Entry: u.ids.New()})
	u.group = u.ids.New()
	u.client.Must(t, client.PutGroup{Create: true, ID: u.group, Customer: "ann", Name: "g"})
	return u
}

// upload begins an upload of a file.
func (u *uploaded) upload(format, file string) ids.ID {
	u.t.Helper()
	begin := client.BeginImport{Job: u.ids.New(), Customer: "ann", Scraper: u.scraper,
		Format: format, Bytes: int64(len(file)), Heavy: format == "xlsx"}
	if u.scraper.IsZero() {
		u.scraper, begin.Scraper = u.ids.New(), ids.ID{}
		begin.NewScraper = &client.PutScraper{Create: true, ID: u.scraper, Customer: "ann",
			Group: u.group, Spec: model.Scraper{Name: u.name, Type: model.File}}
	}
	if _, err := u.blobs.Put(u.t.Context(), keyOf("ann", begin.Job),
		strings.NewReader(file)); err != nil {
		u.t.Fatal(err)
	}
	u.client.Must(u.t, begin)
	u.clock.Advance(time.Second)
	return begin.Job
}

// step makes one step of an upload; died says that point panicked.
func (u *uploaded) step(job ids.ID) (end work.End, died bool) {
	u.t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := Import(ImportConfig{Client: u.client, Store: u.store,
		History: client.NewHistory(u.store), Files: u.blobs, IDs: u.ids, Clock: u.clock,
		Dir: u.t.TempDir(), Point: u.point})
	outcome, err := kind.Step(u.t.Context(), work.Item{ID: job, Kind: work.Import,
		Customer: "ann"})
	if err != nil {
		u.t.Error(err)
	}
	return outcome.End, false
}

// whole imports a file to its end.
func (u *uploaded) whole(format, file string) ids.ID {
	u.t.Helper()
	job := u.upload(format, file)
	if end, _ := u.step(job); end != work.Ended {
		u.t.Fatalf("%v", end)
	}
	return job
}

// remove removes the hidden rows.
func (u *uploaded) remove() {
	u.t.Helper()
	kind := Removal(RemovalConfig{Client: u.client, Store: u.store,
		History: client.NewHistory(u.store), Clock: u.clock})
	if _, err := kind.Step(u.t.Context(), work.Item{Kind: work.Remove}); err != nil {
		u.t.Fatal(err)
	}
}

// shown returns the values of column a in all visible rows, in order.
func (u *uploaded) shown() (values []string) {
	u.t.Helper()
	return u.read(client.Shown(u.client.View(), u.group, ids.ID{}))
}

func (u *uploaded) read(scope rowstore.Scope) (values []string) {
	u.t.Helper()
	for after := int64(0); ; {
		docs, last, err := u.store.Scan(u.t.Context(), rowstore.ScanQuery{Scope: scope,
			After: after, Upto: math.MaxInt64, Limit: 1_000})
		if err != nil {
			u.t.Fatal(err)
		}
		for _, doc := range docs {
			var row struct {
				A   string `json:"a"`
				Job string `json:"_jobId"`
				URL any    `json:"_sourceUrl"`
			}
			if err := json.Unmarshal(doc, &row); err != nil || row.Job == "" || row.URL != nil {
				u.t.Fatalf("%s: %v", doc, err)
			}
			values = append(values, row.A)
		}
		if after = last; last == math.MaxInt64 {
			return values
		}
	}
}

// column returns a CSV file of one column with the numbers from one value to another.
func column(from, to int) string {
	var b strings.Builder
	b.WriteString("a\n")
	for n := from; n < to; n++ {
		fmt.Fprintf(&b, "%d\n", n)
	}
	return b.String()
}

// wants checks that the numbers from one value to another are shown.
func (u *uploaded) wants(when string, from, to int) {
	u.t.Helper()
	values := u.shown()
	if len(values) != to-from {
		u.t.Fatalf("%s: %d rows are shown, want %d", when, len(values), to-from)
	}
	for i, value := range values {
		if value != fmt.Sprint(from+i) {
			u.t.Fatalf("%s: row %d is %q", when, i, value)
		}
	}
}

// TestImportIsKilledAnywhere kills an import at each of its points. Until it ends the old file is
// shown, and then the new one. Nothing is shown twice or left behind.
func TestImportIsKilledAnywhere(t *testing.T) {
	onEachStore(t, importIsKilledAnywhere)
}

func importIsKilledAnywhere(t *testing.T, start starter) {
	for dies := 1; ; dies++ {
		u := start(t)
		u.whole("csv", column(0, 3))
		job := u.upload("csv", column(10, 10+4_500))
		at, left := "", dies
		u.point = func(name string) {
			if left--; left == 0 {
				at = name
				panic(name)
			}
		}
		_, died := u.step(job)
		if !died {
			break
		}
		if ended := u.client.View().Job(job).Closed; ended != (at == "work.import.after_end") {
			t.Errorf("%s: ended %v", at, ended)
		} else if !ended {
			u.wants(at, 0, 3)
		}
		u.step(job)
		u.wants(at, 10, 10+4_500)
		u.remove()
		u.wants(at+", removed", 10, 10+4_500)
		if all := u.read(rowstore.Scope{Group: u.group}); len(all) != 4_500 {
			t.Errorf("%s: %d rows are stored", at, len(all))
		}
		if view := u.client.View(); view.Import(job) != nil || view.Job(job).Items != 4_500 {
			t.Errorf("%s: %+v", at, view.Job(job))
		}
		page, err := u.blobs.List(t.Context(), blobstore.Uploads, "", nil)
		if err != nil || len(page.Blobs) != 0 {
			t.Errorf("%s: %d files are left, %v", at, len(page.Blobs), err)
		}
	}
}

// Two owners at once store each row once. So does an owner that was paused until another file had
// replaced its own.
func TestTwoImporters(t *testing.T) {
	onEachStore(t, twoImporters)
}

func twoImporters(t *testing.T, start starter) {
	u := start(t)
	job := u.upload("csv", column(0, 9_000))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { u.step(job) })
	}
	both.Wait()
	u.wants("two at once", 0, 9_000)

	late := u.upload("csv", column(0, 5_000))
	paused, on := make(chan struct{}), make(chan struct{})
	first := true
	u.point = func(name string) {
		if name == "work.import.before_put" && first {
			first = false
			close(paused)
			<-on
		}
	}
	both.Go(func() { u.step(late) })
	<-paused
	slow := u.point
	u.point = func(string) {}
	u.step(late)
	u.wants("beside one that is paused", 0, 5_000)
	u.whole("csv", column(7, 9))
	u.remove()
	u.point = slow
	close(on)
	both.Wait()
	u.wants("after it", 7, 9)
	if all := u.read(rowstore.Scope{Group: u.group}); len(all) != 2 {
		t.Errorf("%d rows are stored", len(all))
	}
}

// An upload that is stopped, fails, or belongs to a deleted scraper leaves no row, and the previous
// file stays.
func TestImportsThatEndEarly(t *testing.T) {
	onEachStore(t, importsThatEndEarly)
}

func importsThatEndEarly(t *testing.T, start starter) {
	for name, end := range map[string]func(u *uploaded, job ids.ID){
		"stopped": func(u *uploaded, job ids.ID) {
			u.client.Must(u.t, client.StopRun{Customer: "ann", Job: job})
		},
		"its file is gone": func(u *uploaded, job ids.ID) {
			if err := u.blobs.Delete(u.t.Context(), keyOf("ann", job)); err != nil {
				u.t.Fatal(err)
			}
			panic("dies")
		},
		"another version began it": func(u *uploaded, job ids.ID) {
			page := &model.Page{Job: job, Unit: model.Unit{Seq: 2}, Fetch: u.ids.New(), Last: true,
				Outcome: model.Delivered, Rows: [][]byte{[]byte(`{"a":1}`)}}
			if _, err := u.store.PutPages(u.t.Context(), []rowstore.PageWrite{{Page: page,
				Job: rowstore.Job{ID: job, Customer: "ann", Group: u.group, Scraper: u.scraper,
					Started: u.clock.Now().UnixMicro()}}}); err != nil {
				u.t.Fatal(err)
			}
			panic("dies")
		},
		"a row is broken": nil,
	} {
		t.Run(name, func(t *testing.T) {
			u := start(t)
			u.whole("csv", column(0, 3))
			file := column(10, 10+6_000)
			if end == nil {
				file += "\"1\n"
			}
			job := u.upload("csv", file)
			puts := 0
			u.point = func(point string) {
				if point == "work.import.after_put" {
					if puts++; puts == 2 && end != nil {
						end(u, job)
					}
				}
			}
			if _, died := u.step(job); died {
				u.step(job)
			}
			ended := u.client.View().Job(job)
			if !ended.Closed || ended.Items != 0 ||
				ended.Unlisted() != (name == "stopped") || ended.Message == "" != ended.Unlisted() {
				t.Errorf("%+v", ended)
			}
			u.wants(name, 0, 3)
			u.remove()
			u.wants(name+", removed", 0, 3)
			if all := u.read(rowstore.Scope{Group: u.group}); len(all) != 3 {
				t.Errorf("%d rows are stored", len(all))
			}
			sum, err := u.store.Recount(t.Context(), job)
			if err != nil || sum.Items != 0 {
				t.Errorf("%+v, %v", sum, err)
			}
			u.point = func(string) {}
			u.whole("csv", column(20, 22))
			u.wants("the next file", 20, 22)
		})
	}
}

// A sealed run whose file is gone is still complete: a restore has reopened it.
func TestSealedImportNeedsNoFile(t *testing.T) {
	onEachStore(t, sealedImportNeedsNoFile)
}

func sealedImportNeedsNoFile(t *testing.T, start starter) {
	u := start(t)
	job := u.upload("csv", column(0, 10))
	u.point = func(name string) {
		if name == "work.import.after_seal" {
			panic(name)
		}
	}
	if _, died := u.step(job); !died {
		t.Fatal("it did not die")
	}
	if err := u.blobs.Delete(t.Context(), keyOf("ann", job)); err != nil {
		t.Fatal(err)
	}
	u.point = func(string) {}
	u.step(job)
	u.wants("sealed", 0, 10)
	if ended := u.client.View().Job(job); ended.State != model.Completed || ended.Items != 10 {
		t.Errorf("%+v", ended)
	}
}

// The file alone decides where batches end; a file without rows fails.
func TestBatchesOfAFile(t *testing.T) {
	wide := func(rows int) string {
		return "a,b\n" + strings.Repeat("1,"+strings.Repeat("x", 24_986)+"\n", rows) // 25,003 bytes
	}
	for _, c := range []struct {
		name, file string
		batches    uint64
	}{
		{"one row", column(0, 1), 1}, {"2,000 rows", column(0, 2_000), 1},
		{"2,001 rows", column(0, 2_001), 2}, {"40 wide rows", wide(40), 1},
		{"41 wide rows", wide(41), 2}, {"header only", "a\n", 0}, {"empty", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUploaded(t)
			job := u.whole("csv", c.file)
			sum, err := u.store.Recount(t.Context(), job)
			if err != nil || sum.Delivered != c.batches {
				t.Errorf("%d batches, want %d: %v", sum.Delivered, c.batches, err)
			}
			ended := u.client.View().Job(job)
			if failed := ended.State == model.Failed; failed != (c.batches == 0) ||
				failed != strings.HasPrefix(ended.Message, "nothing was imported") {
				t.Errorf("%+v", ended)
			}
		})
	}
}

// The newest files of a scraper are shown, as many as it keeps.
func TestScraperKeepsSeveralFiles(t *testing.T) {
	onEachStore(t, scraperKeepsSeveralFiles)
}

func scraperKeepsSeveralFiles(t *testing.T, start starter) {
	u := start(t)
	u.whole("csv", column(0, 1))
	u.client.Must(t, client.PutRetention{Customer: "ann", Scraper: u.scraper, Count: 2})
	u.whole("csv", column(1, 2))
	u.wants("two", 0, 2)
	u.whole("csv", column(2, 3))
	u.wants("three", 1, 3)
	u.client.Must(t, client.PutRetention{Customer: "ann", Scraper: u.scraper})
	u.whole("csv", column(3, 4))
	u.wants("one again", 3, 4)
}

// The oldest heavy upload goes first, and all wait while disks are short of room.
func TestHeavyUploadsWait(t *testing.T) {
	u := newUploaded(t)
	first := u.upload("xlsx", "no spreadsheet")
	u.scraper = ids.ID{}
	u.group = u.ids.New()
	u.client.Must(t, client.PutGroup{Create: true, ID: u.group, Customer: "ann", Name: "h"})
	second := u.upload("xlsx", "no spreadsheet")
	if end, _ := u.step(second); end != work.Rested {
		t.Errorf("the second: %v", end)
	}
	u.client.Short(t, "voter-1")
	if end, _ := u.step(first); end != work.Rested {
		t.Errorf("without room: %v", end)
	}
	u.client.Short(t, "")
	for _, job := range []ids.ID{first, second} {
		if end, _ := u.step(job); end != work.Ended ||
			u.client.View().Job(job).State != model.Failed {
			t.Errorf("%s: %v", job, end)
		}
	}
}

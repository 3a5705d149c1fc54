package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// TestLanesAlternate: while both lanes have turns waiting, they alternate.
func TestLanesAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{pages: make(chan *turn), bulk: make(chan *turn), quit: make(chan struct{}),
			ended: make(chan struct{})}
		var order []byte
		submit := func(lane chan *turn, name byte) {
			go func() {
				err := w.bare(context.Background(), lane,
					func() error { order = append(order, name); return nil })
				if err != nil {
					t.Error(err)
				}
			}()
		}
		for range 6 {
			submit(w.bulk, 'b')
		}
		for range 3 {
			submit(w.pages, 'p')
		}
		synctest.Wait() // all of them wait for their turn
		go w.run()
		synctest.Wait()
		if got := string(order); got != "pbpbpbbbb" {
			t.Errorf("turns: %s", got)
		}
		close(w.quit)
		<-w.ended
	})
}

func TestWaitEndsWithContext(t *testing.T) {
	store := openStore(t)
	begun, release := make(chan struct{}), make(chan struct{})
	held := make(chan error)
	go func() {
		held <- store.writer.bare(context.Background(), store.writer.bulk,
			func() error { close(begun); <-release; return nil })
	}()
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.PutPages(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
}

// TestFailedTurn: a turn that fails leaves nothing behind, and the next one works.
func TestFailedTurn(t *testing.T) {
	store := openStore(t)
	job := rowstore.Job{ID: ids.ID{1}, Group: ids.ID{2}}
	page := func(seq uint32, row string) rowstore.PageWrite {
		return rowstore.PageWrite{Job: job,
			Page: &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Outcome: model.Delivered,
				Rows: [][]byte{[]byte(row)}}}
	}
	boom := errors.New("boom")
	b := batch{store: store, w: store.writer, pages: []rowstore.PageWrite{page(0, `{"lost":1}`)},
		receipts: make([]*model.Receipt, 1),
		groups:   []group{{job: job, pages: []int{0}}}}
	err := store.writer.do(t.Context(), store.writer.pages,
		func() error { return errors.Join(b.write(), boom) })
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if _, err := store.PutPages(t.Context(),
		[]rowstore.PageWrite{page(0, `{"kept":1}`)}); err != nil {
		t.Fatal(err)
	}
	docs, _, err := store.Scan(t.Context(),
		rowstore.ScanQuery{Scope: rowstore.Scope{Group: job.Group}, Upto: 1 << 62, Limit: 10})
	if err != nil || len(docs) != 1 || string(docs[0]) != `{"kept":1}` {
		t.Fatalf("rows %s, %v", docs, err)
	}
}

func TestSeqOutOfRange(t *testing.T) {
	store := openStore(t)
	_, err := store.PutPages(t.Context(),
		[]rowstore.PageWrite{{Page: &model.Page{Unit: model.Unit{Seq: 1 << 31}}}})
	if err == nil {
		t.Fatal("a seq that does not fit was stored")
	}
}

func TestClosed(t *testing.T) {
	store := openStore(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutPages(t.Context(), nil); !errors.Is(err, errClosed) {
		t.Errorf("write: %v", err)
	}
	if _, err := store.Horizon(t.Context()); err == nil {
		t.Error("a closed store can be read")
	}
	if err := store.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// TestReopen: a closed store leaves one file, which opens again with everything in it. A newer
// schema is refused.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space & 100%?#")
	store, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := createList(t, store, ids.ID{1})
	if _, err := w.Add(t.Context(), "https://a.test/", "https://a.test/"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, []string{"rows.db"}) {
		t.Errorf("files: %v", names)
	}
	if store, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	links, err := store.Links(t.Context(), ids.ID{1}, 0, 10)
	if err != nil || len(links) != 1 {
		t.Fatalf("links %v, %v", links, err)
	}
	err = store.writer.do(t.Context(), store.writer.bulk, func() error {
		_, err := store.writer.exec(`INSERT INTO migrations VALUES (9999)`)
		return err
	})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "schema version 9999") {
		t.Fatalf("a newer schema: %v", err)
	}
}

func TestColumns(t *testing.T) {
	store := openStore(t)
	job, record, row := rowstoretest.Columns()
	for table, columns := range map[string][]string{"jobs": job, "pages": record, "rows": row} {
		for _, column := range columns {
			var n int
			err := store.reads.QueryRow(`SELECT count(*) FROM pragma_table_info(?) WHERE name = ?`,
				table, column).Scan(&n)
			if err != nil || n == 0 {
				t.Errorf("table %s has no column %s: %v", table, column, err)
			}
		}
	}
}

// TestPanicOfAWriteIsItsCallers: a write that panics is undone and panics in its caller, with the
// original stack. The writer goes on.
func TestPanicOfAWriteIsItsCallers(t *testing.T) {
	store := openStore(t)
	caught := reading.Catch(func() {
		_ = store.writer.do(t.Context(), store.writer.pages, func() error {
			if _, err := store.writer.exec(`UPDATE horizon SET place = place + 5`); err != nil {
				t.Error(err)
			}
			panic("a row's")
		})
	})
	if caught == nil || caught.Value != "a row's" ||
		!strings.Contains(string(caught.Stack), "TestPanicOfAWriteIsItsCallers") {
		t.Fatalf("%v", caught)
	}
	if _, err := store.PutPages(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var place int64
	if err := store.writer.query(func(rows *sql.Rows) error { return rows.Scan(&place) },
		`SELECT place FROM horizon`); err != nil || place != 0 {
		t.Errorf("place %d, %v: not undone", place, err)
	}
}

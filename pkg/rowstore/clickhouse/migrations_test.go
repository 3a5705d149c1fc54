package clickhouse

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// config returns the configuration of a database of the test's own.
func config(t *testing.T) Config {
	t.Helper()
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("CLICKHOUSE_URL is not set")
		}
		t.Skip("CLICKHOUSE_URL is not set")
	}
	return Config{URL: url, Database: "test_" + rand.Text(), Node: "test"}
}

// openLast opens a store that drops its database when the test ends.
func openLast(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec(context.Background(), callTimeout,
			"DROP DATABASE `"+s.db+"`"); err != nil {
			t.Error(err)
		}
		_ = s.Close()
	})
	return s
}

// TestMigrateStored: the newest schema reads what the first one stored, and indexes it.
func TestMigrateStored(t *testing.T) {
	c := config(t)
	newest := migrations
	migrations = newest[:1]
	defer func() { migrations = newest }()
	old, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	source := &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
		Started: 1_700_000_000_000_000}
	put := func(s *Store, seq uint32, row string) {
		page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: source.New(),
			Outcome: model.Delivered, Last: true,
			Rows: [][]byte{[]byte(row)}}
		if _, err := s.PutPages(t.Context(),
			[]rowstore.PageWrite{{Job: job, Page: page}}); err != nil {
			t.Fatal(err)
		}
	}
	put(old, 1, `{"n":1}`)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	migrations = newest
	s := openLast(t, c)
	for _, statement := range newest[1] { // like a process that another one overtakes
		if err := s.exec(t.Context(), removeTimeout,
			strings.ReplaceAll(statement, "DB.", s.table(""))); err != nil {
			t.Fatal(err)
		}
	}
	put(s, 2, `{"n":2}`)
	docs, _, err := s.Scan(t.Context(),
		rowstore.ScanQuery{Scope: rowstore.Scope{Group: job.Group}, Upto: 1 << 62, Limit: 10})
	if diff := cmp.Diff([]json.RawMessage{json.RawMessage(`{"n":1}`), json.RawMessage(`{"n":2}`)},
		docs); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	indexes, err := read(t.Context(), s,
		`SELECT count() FROM system.data_skipping_indices WHERE name = 'place' AND database = `+
			text(s.db),
		func(rows driver.Rows) (n uint64, err error) { return n, rows.Scan(&n) })
	if err != nil || indexes[0] != 1 {
		t.Errorf("%d indexes of places, %v", indexes, err)
	}
}

// TestBreakLock: the lock of a dead process holds until it is old. Then one of those who wait
// breaks it.
func TestBreakLock(t *testing.T) {
	s := openLast(t, config(t))
	if err := s.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), 2*lockPause)
	defer cancel()
	if err := s.lock(ended); err == nil {
		t.Fatal("the lock was taken twice")
	}
	if err := s.breakLock(t.Context(), -time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

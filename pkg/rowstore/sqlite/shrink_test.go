package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// fill stores a sealed old run of some megabytes, and a young one.
func fill(t *testing.T, s *Store) (old, young rowstore.Job) {
	t.Helper()
	source := &ids.Sequence{}
	row := []byte(`{"text":"` + strings.Repeat("x", 2000) + `"}`)
	for i, job := range []*rowstore.Job{&old, &young} {
		*job = rowstore.Job{ID: source.New(), Customer: "ann", Group: source.New(),
			Scraper: source.New(), Started: int64(i) * 1e15}
		for seq := range uint32(20 - 15*i) {
			page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: source.New(),
				Outcome: model.Delivered, URL: fmt.Sprintf("http://a.test/%d", seq)}
			for range 100 {
				page.Rows = append(page.Rows, row)
			}
			if _, err := s.PutPages(t.Context(),
				[]rowstore.PageWrite{{Job: *job, Page: page}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Seal(t.Context(), job.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	return old, young
}

// expireOld expires the old run, and returns the file's size before and after.
func expireOld(t *testing.T, s *Store, old, young rowstore.Job) (before, after int64) {
	t.Helper()
	path := filepath.Join(s.dir, "rows.db")
	size := func() int64 {
		if err := s.writer.bare(t.Context(), s.writer.bulk, func() error {
			return s.writer.query(func(*sql.Rows) error { return nil },
				`PRAGMA wal_checkpoint(TRUNCATE)`)
		}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before = size()
	cut := time.UnixMicro(young.Started)
	if err := s.Condense(t.Context(), old.ID, rowstore.Recount{Delivered: 20}, cut); err != nil {
		t.Fatal(err)
	}
	if err := s.Expire(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	return before, size()
}

// TestFileShrinks: the space of expired rows goes back to the disk, and the rest is whole.
func TestFileShrinks(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	old, young := fill(t, s)
	before, after := expireOld(t, s, old, young)
	if after > before/2 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
	checkWhole(t, s, young)
}

func checkWhole(t *testing.T, s *Store, young rowstore.Job) {
	t.Helper()
	rows, err := s.Count(t.Context(), rowstore.Scope{Group: young.Group}, nil)
	if err != nil || rows != 500 {
		t.Errorf("%d rows of the young run, %v", rows, err)
	}
	var says string
	err = s.loop.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&says)
	if err != nil || says != "ok" {
		t.Errorf("the file is %q, %v", says, err)
	}
}

// TestOlderFileShrinks: a file of an earlier release is rewritten when it is opened.
func TestOlderFileShrinks(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	old, young := fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, "rows.db"), "auto_vacuum(NONE)"))
	if err == nil {
		_, err = db.ExecContext(context.Background(), `VACUUM`)
	}
	var mode int
	if err == nil {
		err = db.QueryRowContext(context.Background(), `PRAGMA auto_vacuum`).Scan(&mode)
	}
	if err != nil || mode != 0 {
		t.Fatalf("a file that cannot shrink: %d, %v", mode, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if before, after := expireOld(t, s, old, young); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
	checkWhole(t, s, young)
}

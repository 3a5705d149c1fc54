package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// What the child of a crash test is told: its store's directory, and at which point, passed how
// many times, it dies.
const (
	crashDir   = "SHOAL_TEST_CRASH_DIR"
	crashPoint = "SHOAL_TEST_CRASH_POINT"
	crashAfter = "SHOAL_TEST_CRASH_AFTER"
)

func crashJob() rowstore.Job {
	return rowstore.Job{ID: ids.ID{1}, Group: ids.ID{2}, Scraper: ids.ID{3}}
}

func crashPage(seq int) rowstore.PageWrite {
	job := crashJob()
	page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}, Outcome: model.Delivered,
		PriceRow: "tier:plain", Quantity: 1}
	for n := range seq % 4 {
		page.Rows = append(page.Rows, fmt.Appendf(nil, `{"seq":%d,"n":%d}`, seq, n))
	}
	return rowstore.PageWrite{Job: job, Page: page}
}

const crashListLinks = 10_000

func crashList(n int) ids.ID { return ids.ID{4, byte(n >> 8), byte(n)} }

// TestMain lets the test binary also serve as the child.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		child := crashChild
		if copied := os.Getenv(crashCopy); copied != "" {
			child = func(dir string) error { return placeUntilDeath(copied, dir) }
		}
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// crashChild stores pages and lists until it dies, and prints what was acknowledged.
func crashChild(dir string) error {
	ctx := context.Background()
	left, err := strconv.Atoi(os.Getenv(crashAfter))
	if err != nil {
		return err
	}
	store, err := sqlite.Open(sqlite.Config{Dir: dir, Point: func(name string) {
		if name != os.Getenv(crashPoint) {
			return
		}
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		var batch []rowstore.PageWrite
		for seq := range 10 {
			batch = append(batch, crashPage(round*10+seq))
		}
		if _, err := store.PutPages(ctx, batch); err != nil {
			return err
		}
		fmt.Println("pages", round)
		w, err := store.CreateList(ctx, crashList(round))
		if err != nil {
			return err
		}
		for n := range crashListLinks {
			url := fmt.Sprint("https://a.test/", n)
			if _, err := w.Add(ctx, url, url); err != nil {
				return err
			}
		}
		if _, err := w.Finish(ctx); err != nil {
			return err
		}
		fmt.Println("list", round)
	}
}

// TestKill kills the process at every point: what was acknowledged is there, whole, and nothing is
// there by half.
func TestKill(t *testing.T) {
	for _, point := range []string{"rowstore.before_commit", "rowstore.after_commit"} {
		for after := range 9 {
			t.Run(fmt.Sprint(point, after), func(t *testing.T) {
				dir := t.TempDir()
				child := exec.CommandContext(t.Context(), os.Args[0])
				child.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point,
					fmt.Sprint(crashAfter, "=", after))
				out, err := child.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) ||
					exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child did not die at its point: %v", err)
				}
				checkCrashed(t, open(t, dir), strings.Count(string(out), "pages"),
					strings.Count(string(out), "list"))
			})
		}
	}
}

// checkCrashed compares a store with the numbers of acknowledged rounds; one more round may be
// there, whole.
func checkCrashed(t *testing.T, store *sqlite.Store, pages, lists int) {
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	var units, want int
	err := store.EachRecord(t.Context(), crashJob().ID, func(r rowstore.Record) error {
		if int(r.Unit.Seq) != units {
			t.Errorf("unit %v is out of turn", r.Unit)
		}
		want += units % 4
		units++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if units != 10*pages && units != 10*(pages+1) {
		t.Errorf("%d units after %d acknowledged batches", units, pages)
	}
	docs, _, err := store.Scan(t.Context(),
		rowstore.ScanQuery{Scope: rowstore.Scope{Group: crashJob().Group}, Upto: 1 << 62,
			Limit: 1000})
	if err != nil || len(docs) != want {
		t.Errorf("%d rows of %d units, want %d: %v", len(docs), units, want, err)
	}
	seen := map[string]bool{}
	for _, doc := range docs {
		if seen[string(doc)] || !json.Valid(doc) {
			t.Errorf("row %s is doubled or broken", doc)
		}
		seen[string(doc)] = true
	}
	infos, err := store.AllLists(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	finished := 0
	for _, info := range infos {
		if !info.Finished {
			continue
		}
		finished++
		links, err := store.Links(t.Context(), info.ID, 0, crashListLinks+1)
		if err != nil || len(links) != crashListLinks {
			t.Errorf("finished list with %d links, %v", len(links), err)
		}
	}
	if finished != lists && finished != lists+1 || len(infos) > finished+1 {
		t.Errorf("%d lists, %d finished, after %d acknowledged", len(infos), finished, lists)
	}
	// The store still works: the same pages again are repeats, and the next one is new.
	receipts, err := store.PutPages(t.Context(),
		[]rowstore.PageWrite{crashPage(0), crashPage(100_003)})
	if err != nil || receipts[0] == nil || receipts[1].Items != 3 {
		t.Errorf("receipts %v, %v", receipts, err)
	}
}

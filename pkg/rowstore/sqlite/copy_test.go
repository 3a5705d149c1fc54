package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// putWide stores a page with a row of 4 KB.
func putWide(t *testing.T, store *sqlite.Store, seq int) {
	t.Helper()
	page := crashPage(seq)
	page.Page.Rows = [][]byte{fmt.Appendf(nil, `{"seq":%d,"text":%q}`, seq,
		strings.Repeat("x", 4<<10))}
	if _, err := store.PutPages(t.Context(), []rowstore.PageWrite{page}); err != nil {
		t.Fatal(err)
	}
}

// copyOf returns a copy of a store with that many wide pages.
func copyOf(t *testing.T, pages int) []byte {
	t.Helper()
	store := open(t, t.TempDir())
	defer closeStore(t, store)
	for seq := range pages {
		putWide(t, store, seq)
	}
	var copied bytes.Buffer
	if err := store.Copy(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	return copied.Bytes()
}

func closeStore(t *testing.T, store *sqlite.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// countWide counts the pages of a store, each of which needs its row.
func countWide(t *testing.T, store *sqlite.Store) (pages int) {
	t.Helper()
	err := store.EachRecord(t.Context(), crashJob().ID, func(r rowstore.Record) error {
		if int(r.Unit.Seq) != pages || r.Items != 1 {
			t.Errorf("record %d is %+v", pages, r)
		}
		pages++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Count(t.Context(), rowstore.Scope{Group: crashJob().Group}, nil)
	if err != nil || int(rows) != pages {
		t.Errorf("%d rows of %d pages: %v", rows, pages, err)
	}
	return pages
}

// busy is a writer during whose writes a store takes pages.
type busy struct {
	t     *testing.T
	store *sqlite.Store
	next  int
	bytes.Buffer
}

func (b *busy) Write(data []byte) (int, error) {
	for range 20 {
		putWide(b.t, b.store, b.next)
		b.next++
	}
	return b.Buffer.Write(data)
}

// TestACopyIsOfOneMoment copies a store that is written to all the while.
func TestACopyIsOfOneMoment(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	defer closeStore(t, store)
	const before = 300
	for seq := range before {
		putWide(t, store, seq)
	}
	size, err := store.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied := &busy{t: t, store: store, next: before}
	if err := store.Copy(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if int64(copied.Len()) != size || copied.next < before+60 {
		t.Errorf("%d bytes of %d, %d pages meanwhile", copied.Len(), size, copied.next-before)
	}
	dir := t.TempDir()
	if err := sqlite.Place(t.Context(), copied, dir, nil); err != nil {
		t.Fatal(err)
	}
	placed := open(t, dir)
	defer closeStore(t, placed)
	if pages := countWide(t, placed); pages != before {
		t.Errorf("the copy has %d pages, want %d", pages, before)
	}
	putWide(t, placed, before) // it works on
	if pages := countWide(t, store); pages != copied.next {
		t.Errorf("the store has %d pages, want %d", pages, copied.next)
	}
}

var errFull = errors.New("the disk is full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestACopyThatFailsIsTold(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	defer closeStore(t, store)
	if err := store.Copy(t.Context(), fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Copy(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it: %v", err)
	}
	if err := store.Copy(t.Context(), io.Discard); err != nil {
		t.Errorf("the next copy: %v", err)
	}
}

// TestOnlyAWholeCopyIsPlaced: a copy that is cut off or damaged leaves nothing, and none replaces a
// store or meets an old log.
func TestOnlyAWholeCopyIsPlaced(t *testing.T) {
	t.Parallel()
	whole := copyOf(t, 40)
	damaged := bytes.Clone(whole)
	copy(damaged[len(damaged)/2:], bytes.Repeat([]byte{0x5a}, 16<<10))
	bad := map[string][]byte{"nothing": nil, "text": []byte("a row store, really"),
		"damaged": damaged}
	for _, cut := range []int{1, 100, 8 << 10, len(whole) / 2, len(whole) - 8<<10, len(whole) - 1} {
		bad[fmt.Sprint("cut at ", cut)] = whole[:cut]
	}
	for name, copied := range bad {
		dir := t.TempDir()
		if err := sqlite.Place(t.Context(), bytes.NewReader(copied), dir, nil); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left, %v", name, left, err)
		}
	}
	for _, name := range []string{"rows.db", "rows.db-wal", "rows.db-shm"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sqlite.Place(t.Context(), bytes.NewReader(whole), dir, nil); err == nil {
			t.Errorf("%s is replaced", name)
		}
		if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
			t.Errorf("%s is %q, %v", name, old, err)
		}
	}
}

// crashCopy names the copy that a child places until it dies.
const crashCopy = "SHOAL_TEST_CRASH_COPY"

func placeUntilDeath(copied, dir string) error {
	file, err := os.Open(copied)
	if err != nil {
		return err
	}
	return sqlite.Place(context.Background(), file, dir, func(name string) {
		if name == os.Getenv(crashPoint) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
}

// TestKillWhilePlaced: after a kill there is no store, or the whole one.
func TestKillWhilePlaced(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, copyOf(t, 40), 0o600); err != nil {
		t.Fatal(err)
	}
	for point, pages := range map[string]int{"rowstore.before_place": 0,
		"rowstore.after_place": 40} {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point,
			crashCopy+"="+whole)
		var exit *exec.ExitError
		if err := child.Run(); !errors.As(err, &exit) ||
			exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child did not die at %s: %v", point, err)
		}
		store := open(t, dir)
		if got := countWide(t, store); got != pages {
			t.Errorf("%s: %d pages, want %d", point, got, pages)
		}
		closeStore(t, store)
		left, err := filepath.Glob(filepath.Join(dir, "*.part"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left, %v", point, left, err)
		}
	}
}

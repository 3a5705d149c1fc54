package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// scans counts the reads of rows of a store.
type scans struct {
	rowstore.Store
	count, rows int
}

func (s *scans) Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error) {
	s.count++
	docs, last, err := s.Store.Scan(ctx, q)
	s.rows += len(docs)
	return docs, last, err
}

// A node sorts the rows of a merge once, however many turns it takes: later turns read no rows of
// the runs. The files kept between turns are unlinked, and none is open once the merge ends.
func TestMergesSortOnce(t *testing.T) {
	u := newUploaded(t)
	var left, right []string
	for n := range 3*importedRows + 10 {
		left = append(left, fmt.Sprintf(`{"title":"%06d","a":"1"}`, n))
		right = append(right, fmt.Sprintf(`{"title":"%06d","b":"2"}`, n))
	}
	one, two := u.run(left...), u.run(right...)
	begun := u.begin(one, two)
	store, dir := &scans{Store: u.store}, t.TempDir()
	kind := Merge(ImportConfig{Client: u.client, Store: store, History: client.NewHistory(u.store),
		IDs: u.ids, Clock: u.clock, Dir: dir, Point: func(name string) {
			if name == "work.merge.after_put" {
				u.clock.Advance(turnTime)
			}
		}})
	var sorted, turns int
	for end := work.Rested; end == work.Rested && turns < 9; turns++ {
		outcome, err := kind.Step(t.Context(), work.Item{ID: begun.Job, Kind: work.Merge,
			Customer: "ann", Args: client.AppendMerge(nil, []ids.ID{one, two})})
		if err != nil {
			t.Fatal(err)
		}
		if end = outcome.End; turns == 0 {
			sorted = store.count
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("turn %d leaves %v, %v", turns, names, err)
		}
	}
	if turns != 3 || sorted == 0 || store.count != sorted {
		t.Errorf("%d turns, %d reads of rows, of which %d in the first", turns, store.count, sorted)
	}
	rows := u.enriched()[:1000]
	if rows[0] != left[0][:len(left[0])-1]+`,"b":"2"}` || !slices.IsSorted(rows) {
		t.Errorf("it begins with %s", rows[0])
	}
	count, err := u.store.Count(t.Context(), client.Shown(u.client.View(), begun.Group, ids.ID{}),
		nil)
	if err != nil || count != 3*importedRows+10 {
		t.Errorf("%d rows, %v", count, err)
	}
}

// Rows of a run that is deleted between two turns are no longer merged.
func TestMergesForgetDeletedRuns(t *testing.T) {
	u := newUploaded(t)
	var left, right []string
	for n := range 3*importedRows + 10 {
		left = append(left, fmt.Sprintf(`{"title":"%06d","a":"1"}`, n))
		right = append(right, fmt.Sprintf(`{"title":"%06d","b":"2"}`, n))
	}
	one, two := u.run(left...), u.run(right...)
	begun := u.begin(one, two)
	kind := Merge(ImportConfig{Client: u.client, Store: u.store,
		History: client.NewHistory(u.store), IDs: u.ids, Clock: u.clock, Dir: t.TempDir(),
		Point: func(name string) {
			if name == "work.merge.after_put" {
				u.clock.Advance(turnTime)
			}
		}})
	step := func() work.End {
		t.Helper()
		outcome, err := kind.Step(t.Context(), work.Item{ID: begun.Job, Kind: work.Merge,
			Customer: "ann", Args: client.AppendMerge(nil, []ids.ID{one, two})})
		if err != nil {
			t.Fatal(err)
		}
		return outcome.End
	}
	if end := step(); end != work.Rested {
		t.Fatalf("%v", end)
	}
	if err := u.store.DeleteJob(t.Context(), two, false); err != nil {
		t.Fatal(err)
	}
	if end := step(); end != work.Ended {
		t.Errorf("%v", end)
	}
	if job := u.client.View().Job(begun.Job); job.State != model.Failed ||
		job.Message != lost(two).Error() {
		t.Errorf("%+v", job)
	}
}

// Kept remainders are bounded in number, in time, and by the room on the disk.
func TestKeptRemainders(t *testing.T) {
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	source := ids.Random{Now: at.Now}
	s := newRemainders(at)
	made := func() *remainder {
		rows, err := newSorter(t.TempDir(), nil, 1<<10, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return &remainder{rows: rows}
	}
	closed := func(one *remainder) bool { return errors.Is(one.rows.Close(), os.ErrClosed) }
	one, two, three := made(), made(), made()
	first, second, third := source.New(), source.New(), source.New()
	if !s.keep(first, one) || !s.keep(second, two) || s.keep(third, three) || s.keep(first, three) {
		t.Error("not the first two are kept")
	}
	if s.takeOut(first) != one || s.takeOut(first) != nil || s.takeOut(third) != nil {
		t.Error("not what was kept is taken, once")
	}
	if !s.keep(first, one) {
		t.Error("what was taken is not kept again")
	}
	s.dropAll()
	if s.takeOut(second) != nil || !closed(one) || !closed(two) {
		t.Error("on a disk that is short something is kept")
	}
	if !s.keep(third, three) {
		t.Error("there is no room after all went")
	}
	at.Advance(keptFor - 1)
	if s.sweep(); s.takeOut(third) != three || !s.keep(third, three) {
		t.Error("one whose time is not over is gone")
	}
	at.Advance(keptFor)
	s.sweep()
	if s.takeOut(third) != nil || !closed(three) {
		t.Error("one that no turn takes is kept")
	}
}

// Matches with one catalogue share its index. When another catalogue takes its place, it goes.
func TestKeptIndexes(t *testing.T) {
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	source := ids.Random{Now: at.Now}
	s := newRemainders(at)
	catalogue, item, index := source.New(), source.New(), &match.Index{}
	left := &remainder{matched: &matching{catalogue: catalogue, index: index}}
	if !s.keep(item, left) || s.shareIndex(catalogue) != index || s.takeOut(item) != left {
		t.Error("the index is not shared, or its owner has lost it")
	}
	if !s.keep(item, left) || s.shareIndex(source.New()) != nil || s.takeOut(item) != nil {
		t.Error("there are indexes of two catalogues")
	}
}

// A pause in the middle releases memory, and changes neither the rows nor their order.
func TestSorterIsPaused(t *testing.T) {
	const rows = 3_000
	s, err := newSorter(t.TempDir(), nil, 4<<10, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var want, got []string
	for n := range rows {
		key, doc := fmt.Sprintf("%03d", n*7919%500), strings.Repeat("x", n%300)+fmt.Sprint(n)
		want = append(want, fmt.Sprintf("%s %d %05d %s", key, n%3, n, doc))
		if err := s.Add(key, uint32(n%3), []byte(fmt.Sprintf("%05d %s", n, doc))); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for pauses := 0; len(got) < rows; pauses++ {
		if pauses > rows {
			t.Fatalf("%d rows after %d pauses", len(got), pauses)
		}
		err := s.Each(func(key string, place uint32, doc []byte) error {
			if got = append(got, fmt.Sprintf("%s %d %s", key, place, doc)); len(got)%100 == 0 {
				return errTurn
			}
			return nil
		})
		if err != nil && !errors.Is(err, errTurn) {
			t.Fatal(err)
		}
		if s.Pause(); s.left != nil {
			t.Fatal("rows are held")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d rows in another order", len(got))
	}
}

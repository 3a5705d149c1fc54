package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// run imports a complete run of JSON Lines, with its own scraper.
func (u *uploaded) run(lines ...string) ids.ID {
	u.t.Helper()
	u.scraper = ids.ID{}
	u.name = fmt.Sprint("file ", u.ids.New())
	return u.whole("jsonl", strings.Join(lines, "\n"))
}

// begin begins a merge.
func (u *uploaded) begin(runs ...ids.ID) client.BegunResult {
	u.t.Helper()
	begun := u.client.Must(u.t, client.BeginResult{Job: u.ids.New(), Customer: "ann",
		Group: u.group, Made: client.Enriched, Kind: work.Merge, NewGroup: u.ids.New(),
		NewScraper: u.ids.New(), Args: client.AppendMerge(nil, runs)}).(client.BegunResult)
	u.clock.Advance(time.Second)
	return begun
}

// stepMerge makes one step of a merge; died says that point panicked.
func (u *uploaded) stepMerge(job ids.ID, runs ...ids.ID) (end work.End, died bool) {
	u.t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := Merge(ImportConfig{Client: u.client, Store: u.store,
		History: client.NewHistory(u.store), IDs: u.ids, Clock: u.clock, Dir: u.t.TempDir(),
		Disk: u.disk, Point: u.point})
	outcome, err := kind.Step(u.t.Context(), work.Item{ID: job, Kind: work.Merge,
		Customer: "ann", Args: client.AppendMerge(nil, runs)})
	if u.failed = err; err != nil && !errors.Is(err, errNoRoom) {
		u.t.Error(err)
	}
	return outcome.End, false
}

// enriched returns the rows of the sibling, without the server's fields.
func (u *uploaded) enriched() (rows []string) {
	u.t.Helper()
	view := u.client.View()
	sibling := view.Sibling(u.group, client.Enriched)
	docs, err := u.store.Rows(u.t.Context(), rowstore.RowsQuery{Limit: 1000,
		Scope: client.Shown(view, sibling.ID, ids.ID{}),
		Sort:  []rowstore.Sort{{Field: "title"}}})
	if err != nil {
		u.t.Fatal(err)
	}
	for _, doc := range docs {
		text, _, _ := strings.Cut(string(doc), `,"_scrapedAt"`)
		rows = append(rows, text+"}")
	}
	return rows
}

// Rows with equal titles become one, with the first run's fields, and missing ones from the others.
// A title in only one run makes no row.
func TestMerge(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		u := start(t)
		one := u.run(`{"title":" 4006381333931 ","price":"1","name":""}`,
			`{"title":"4006381333931","price":"9","late":"x"}`, `{"title":"alone","price":"2"}`,
			`{"price":"3"}`, `{"title":"both","a":"1"}`)
		two := u.run(`{"title":"4006381333931","price":"2","name":"pen","stock":"7"}`,
			`{"title":"other"}`, `{"title":"","a":"2"}`, `{"title":"both","a":"2","b":"2"}`)
		three := u.run(`{"b":"3","c":"3","title":"both"}`)
		begun := u.begin(one, two, three)
		if end, _ := u.stepMerge(begun.Job, one, two, three); end != work.Ended {
			t.Fatalf("%v", end)
		}
		want := []string{`{"title":" 4006381333931 ","price":"1","name":"pen","stock":"7"}`,
			`{"title":"both","a":"1","b":"2","c":"3"}`}
		slices.Sort(want)
		got := u.enriched()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s", got)
		}
		if job := u.client.View().Job(begun.Job); job.State != model.Completed || job.Items != 2 {
			t.Errorf("%+v", job)
		}
		// A new merge replaces the result, and one without any row does not.
		again := u.begin(two, three)
		u.stepMerge(again.Job, two, three)
		if got := u.enriched(); !slices.Equal(got, []string{
			`{"title":"both","a":"2","b":"2","c":"3"}`}) {
			t.Errorf("then %s", got)
		}
		alone := u.run(`{"title":"x"}`)
		none := u.begin(three, alone)
		u.stepMerge(none.Job, three, alone)
		if job := u.client.View().Job(none.Job); job.State != model.Failed ||
			job.Message != nothingMerged || len(u.enriched()) != 1 {
			t.Errorf("%+v", job)
		}
	})
}

// Numbers become their text; other values that are not strings do not count as titles.
func TestTitles(t *testing.T) {
	for doc, want := range map[string]string{
		`{"title":"a"}`: "a", `{"title":" a b "}`: "a b", `{"title":4006381333931}`: "4006381333931",
		`{"title":-1.50}`: "-1.50", `{"title":null}`: "", `{"title":true}`: "", `{"title":[1]}`: "",
		`{"title":{"a":1}}`: "", `{}`: "", `{"Title":"a"}`: "", `{"title":" "}`: "",
	} {
		if got, err := textOf([]byte(doc), titleField); got != want || err != nil {
			t.Errorf("%s: %q %v", doc, got, err)
		}
	}
	if _, err := textOf([]byte("{"), titleField); err == nil {
		t.Error("what is no JSON has a title")
	}
}

// A merge that is killed at any point, and done by two owners at once, makes the same rows once.
func TestMergeIsKilled(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, at := range []string{"work.merge.before_put", "work.merge.after_put",
			"work.merge.after_seal", "work.merge.after_end"} {
			for nth := range 2 {
				t.Run(fmt.Sprint(at, nth), func(t *testing.T) {
					u := start(t)
					var left, right []string
					for n := range importedRows + 10 {
						left = append(left, fmt.Sprintf(`{"title":"%06d","a":"1"}`, n))
						right = append(right, fmt.Sprintf(`{"title":"%06d","b":"2"}`, n))
					}
					one, two := u.run(left...), u.run(right...)
					begun := u.begin(one, two)
					seen := 0
					u.point = func(name string) {
						if name == at {
							if seen++; seen > nth {
								panic(name)
							}
						}
					}
					_, died := u.stepMerge(begun.Job, one, two)
					if u.point = func(string) {}; died {
						u.stepMerge(begun.Job, one, two)
					}
					u.stepMerge(begun.Job, one, two) // late
					job := u.client.View().Job(begun.Job)
					if job.State != model.Completed || job.Items != importedRows+10 {
						t.Fatalf("%+v", job)
					}
					count, err := u.store.Count(t.Context(), client.Shown(u.client.View(),
						begun.Group, ids.ID{}), nil)
					if err != nil || count != importedRows+10 {
						t.Errorf("%d rows, %v", count, err)
					}
				})
			}
		}
	})
}

// A run that lost rows is not merged from the rest.
func TestMergeOfLostRows(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		u := start(t)
		one, two := u.run(`{"title":"x"}`), u.run(`{"title":"x"}`)
		begun := u.begin(one, two)
		if err := u.store.DeleteJob(t.Context(), two, false); err != nil {
			t.Fatal(err)
		}
		u.stepMerge(begun.Job, one, two)
		if job := u.client.View().Job(begun.Job); job.State != model.Failed ||
			!strings.Contains(job.Message, two.String()) {
			t.Errorf("%+v", job)
		}
		u.point = func(string) {}
		stopped := u.begin(one, two)
		u.client.Must(t, client.StopRun{Customer: "ann", Scraper: stopped.Scraper})
		u.stepMerge(stopped.Job, one, two)
		if job := u.client.View().Job(stopped.Job); job.State != model.Stopped {
			t.Errorf("%+v", job)
		}
	})
}

// More rows than memory holds are sorted, each once; equal keys keep their order.
func TestSorter(t *testing.T) {
	const rows, memory = 300_000, 1 << 20
	dir := t.TempDir()
	s, err := newSorter(dir, nil, memory, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	doc := strings.Repeat("x", 300)
	for n := range rows {
		text := fmt.Appendf(nil, "%d %s", n, doc)
		if err := s.Add(fmt.Sprintf("%05d", n*7919%50_000), uint32(n%3), text); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.parts) < 50 {
		t.Errorf("%d parts", len(s.parts))
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	last, lastN, seen, most := sorted{}, -1, 0, uint64(0)
	err = s.Each(func(key string, place uint32, doc []byte) error {
		var n int
		if _, err := fmt.Sscan(string(doc), &n); err != nil {
			return err
		}
		now := sorted{key: key, place: place}
		if order := inOrder(last, now); order > 0 || order == 0 && n < lastN {
			t.Fatalf("%v %d after %v %d", now, n, last, lastN)
		}
		if last, lastN, seen = now, n, seen+1; seen%50_000 == 0 {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc)
		}
		return nil
	})
	if err != nil || seen != rows {
		t.Errorf("%d rows, %v", seen, err)
	}
	if held := int64(most) - int64(before.HeapAlloc); held > 8<<20 {
		t.Errorf("%d bytes are held of %d", held, rows*len(doc))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The size on disk is bounded.
func TestSorterIsBounded(t *testing.T) {
	s, err := newSorter(t.TempDir(), nil, 1<<10, 10<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := 0; err == nil && n < 100; n++ {
		err = s.Add("key", 0, make([]byte, 1000))
	}
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// A long merge ends its step in the middle, so that others get their turn. Whoever continues,
// killed or not, makes the same rows once.
func TestMergesTakeTurns(t *testing.T) {
	u := newUploaded(t)
	var left, right []string
	for n := range 3*importedRows + 10 {
		left = append(left, fmt.Sprintf(`{"title":"%06d","a":"1"}`, n))
		right = append(right, fmt.Sprintf(`{"title":"%06d","b":"2"}`, n))
	}
	one, two := u.run(left...), u.run(right...)
	begun := u.begin(one, two)
	u.point = func(name string) {
		if name == "work.merge.after_put" {
			u.clock.Advance(turnTime)
		}
	}
	turns := 0
	for end := work.Rested; end == work.Rested && turns < 9; turns++ {
		end, _ = u.stepMerge(begun.Job, one, two)
	}
	if turns != 3 {
		t.Errorf("%d turns of two batches each and one that ends it", turns)
	}
	if job := u.client.View().Job(begun.Job); job.State != model.Completed ||
		job.Items != 3*importedRows+10 {
		t.Errorf("%+v", job)
	}
	count, err := u.store.Count(t.Context(), client.Shown(u.client.View(), begun.Group, ids.ID{}),
		nil)
	if err != nil || count != 3*importedRows+10 {
		t.Errorf("%d rows, %v", count, err)
	}
}

// A merge leaves the floor of the disk free, before it begins and in the middle. That is a failure,
// reported to operators. It continues once there is room, and gives the same result.
func TestMergeWaitsForRoom(t *testing.T) {
	for looks := range 2 {
		t.Run(fmt.Sprint(looks), func(t *testing.T) {
			u := newUploaded(t)
			one, two := u.run(`{"title":"x"}`), u.run(`{"title":"x","a":1}`)
			left := looks
			u.disk = &telemetry.Disk{Floor: telemetry.NewFloor(100),
				Free: func(string) (uint64, bool) {
					if left--; left < 0 {
						return 99, true
					}
					return 200, true
				}}
			begun := u.begin(one, two)
			u.stepMerge(begun.Job, one, two)
			if !errors.Is(u.failed, errNoRoom) {
				t.Errorf("on a disk without room: %v", u.failed)
			}
			if job := u.client.View().Job(begun.Job); job.Closed || job.Items != 0 {
				t.Errorf("%+v", job)
			}
			left = 100
			u.stepMerge(begun.Job, one, two)
			if job := u.client.View().Job(begun.Job); job.State != model.Completed ||
				job.Items != 1 {
				t.Errorf("once there is room: %+v", job)
			}
		})
	}
}

// A merged row is bounded like any row, and the members of an object keep their order.
func TestMergedRows(t *testing.T) {
	m := merging{put: func([]byte) error { return nil }}
	value := strings.Repeat("x", mergedBytes/2)
	for run := range 2 {
		doc := fmt.Sprintf(`{"title":"t","f%d":"%s","_rowId":"1"}`, run, value)
		if err := m.addRow("t", uint32(run), []byte(doc)); (err != nil) != (run == 1) {
			t.Errorf("run %d: %v", run, err)
		}
	}
	values := map[string]json.RawMessage{}
	var names []string
	text := `{"b":1,"a":{"x":[null]},"ü\"":""}`
	err := eachField([]byte(text), func(name string, value json.RawMessage) error {
		names = append(names, name)
		values[name] = slices.Clone(value)
		return nil
	})
	if got := string(appendObject(nil, names, values)); err != nil || got != text {
		t.Errorf("%s %v of %v", got, err, slices.Sorted(maps.Keys(values)))
	}
}

package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// memory is a row store with only rows: those of a job, at places equal to their numbers.
type memory struct {
	rowstore.Reads
	rows map[ids.ID][]json.RawMessage
}

func (m *memory) Scan(_ context.Context, q rowstore.ScanQuery) (docs []json.RawMessage,
	last int64, err error) {
	size := 0
	rows := m.rows[q.Scope.Jobs[0]]
	for at := q.After; at < int64(len(rows)); at++ {
		if q.Full(len(docs), size) {
			return docs, at, nil
		}
		docs, size = append(docs, rows[at]), size+len(rows[at])
	}
	return docs, q.Upto, nil
}

// fataler is a test, or one try of a property.
type fataler interface {
	Helper()
	Fatal(...any)
}

// runs makes two runs with rows in the given order, page of them per page.
func runs(page int, from, to []string) Runs {
	store := &memory{rows: map[ids.ID][]json.RawMessage{}}
	for side, rows := range [][]string{from, to} {
		job := ids.ID{byte(side), 9}
		for n, row := range rows {
			id := model.RowID{Job: job, Unit: model.Unit{Seq: uint32(n / page)},
				Place: uint32(n % page)}
			store.rows[job] = append(store.rows[job], fmt.Appendf(nil, `%s,"_rowId":"%s"}`,
				strings.TrimSuffix(row, "}"), id))
		}
	}
	return Runs{Store: store, Rows: int64(len(from)), Upto: 1 << 40,
		From: rowstore.Scope{Jobs: []ids.ID{{0, 9}}}, To: rowstore.Scope{Jobs: []ids.ID{{1, 9}}}}
}

// readAll reads all changes, at most most at a time, resuming by place each time.
func readAll(t fataler, r Runs, most int) (all []Change) {
	t.Helper()
	for at, more := (Place{}), true; more; {
		var found []Change
		var err error
		found, at, more, err = r.Read(at).Next(context.Background(), most, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 && more {
			t.Fatal("a page without changes that says that there are more")
		}
		all = append(all, found...)
	}
	return all
}

// told formats changes: the sign, and the rows without the server's members.
func told(changes []Change) (texts []string) {
	plain := func(doc json.RawMessage) string {
		row, _, _ := strings.Cut(string(doc), `,"_rowId"`)
		return strings.TrimPrefix(row, "{")
	}
	for _, c := range changes {
		texts = append(texts, fmt.Sprint(c.Kind, " ", plain(c.Before), " > ", plain(c.After), " ",
			c.Fields))
	}
	return texts
}

// Rows removed since they were counted are not reported as changes.
func TestRowsThatGo(t *testing.T) {
	rows := []string{`{"k":1}`, `{"k":2}`}
	for _, gone := range []func(r *Runs){
		func(r *Runs) { r.Rows++ },
		func(r *Runs) { r.NewerRows = int64(len(rows)) + 1 },
	} {
		r := runs(1, rows, rows)
		gone(&r)
		if sums, err := r.Sum(t.Context()); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%+v, %v", sums, err)
		}
	}
}

func TestChanges(t *testing.T) {
	row := func(text string) string { return "{" + text + "}" }
	for _, c := range []struct {
		name        string
		from, to    string // rows, separated by blanks
		key, fields []string
		want        []string
		unchanged   uint64
	}{
		{"equal", `"k":1,"v":2 "k":2,"v":2`, `"v":2,"k":1 "k":2,"v":2`, nil, nil, nil, 2},
		{"by position", `"v":1 "v":2 "v":3`, `"v":1 "v":4`, nil, nil,
			[]string{`CHANGED "v":2 > "v":4 [v]`, `REMOVED "v":3 >  []`}, 1},
		{"by key in another order", `"k":1,"v":1 "k":2,"v":2 "k":3,"v":3`,
			`"k":3,"v":3 "k":2,"v":9 "k":4,"v":4`, []string{"k"}, nil,
			[]string{`CHANGED "k":2,"v":2 > "k":2,"v":9 [v]`, `ADDED  > "k":4,"v":4 []`,
				`REMOVED "k":1,"v":1 >  []`}, 1},
		{"equal rows of a key first", `"k":1,"v":1 "k":1,"v":2`, `"k":1,"v":3 "k":1,"v":1`,
			[]string{"k"}, nil, []string{`CHANGED "k":1,"v":2 > "k":1,"v":3 [v]`}, 1},
		{"the same row twice", `"k":1,"v":1`, `"k":1,"v":1 "k":1,"v":1`, []string{"k"}, nil,
			[]string{`ADDED  > "k":1,"v":1 []`}, 1},
		{"two members", `"a":1,"b":2,"v":1 "a":12,"b":3`, `"a":1,"b":2,"v":2 "a":1,"b":23`,
			[]string{"a", "b"}, nil, []string{`CHANGED "a":1,"b":2,"v":1 > "a":1,"b":2,"v":2 [v]`,
				`ADDED  > "a":1,"b":23 []`, `REMOVED "a":12,"b":3 >  []`}, 0},
		{"null is not there", `"k":1,"v":null "k":2,"v":1`, `"k":1 "k":2,"v":null`, []string{"k"},
			nil, []string{`CHANGED "k":2,"v":1 > "k":2,"v":null [v]`}, 1},
		{"without its key a row goes by position", `"v":1 "k":2,"v":2`, `"v":9 "k":2,"v":2`,
			[]string{"k"}, nil, []string{`CHANGED "v":1 > "v":9 [v]`}, 1},
		{"only some fields", `"k":1,"v":1,"w":1`, `"k":1,"v":1,"w":2`, []string{"k"},
			[]string{"v"}, nil, 1},
		{"the server's do not count", `"k":1,"_scrapedAt":1`, `"k":1,"_scrapedAt":2`,
			[]string{"k"}, nil, nil, 1},
		{"unless they are asked for", `"k":1,"_finalUrl":1`, `"k":1,"_finalUrl":2`,
			[]string{"k"}, []string{"_finalUrl"},
			[]string{`CHANGED "k":1,"_finalUrl":1 > "k":1,"_finalUrl":2 [_finalUrl]`}, 0},
		{"nothing before", ``, `"k":1`, nil, nil, []string{`ADDED  > "k":1 []`}, 0},
		{"nothing after", `"k":1`, ``, nil, nil, []string{`REMOVED "k":1 >  []`}, 0},
	} {
		sides := [2][]string{}
		for i, text := range []string{c.from, c.to} {
			for _, part := range strings.Fields(text) {
				sides[i] = append(sides[i], row(part))
			}
		}
		r := runs(2, sides[0], sides[1])
		r.Key, r.Fields = c.key, c.fields
		if got := told(readAll(t, r, 100)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		sums, err := r.Sum(t.Context())
		if err != nil || sums.Unchanged != c.unchanged {
			t.Errorf("%s: %+v, %v", c.name, sums, err)
		}
	}
}

// Rows match by their page's address and place, in whatever order pages were stored.
func TestAddresses(t *testing.T) {
	from := []string{`{"v":1,"_sourceUrl":"a"}`, `{"v":2,"_sourceUrl":"b"}`}
	to := []string{`{"v":2,"_sourceUrl":"b"}`, `{"v":3,"_sourceUrl":"a"}`}
	r := runs(1, from, to)
	want := []string{`CHANGED "v":1,"_sourceUrl":"a" > "v":3,"_sourceUrl":"a" [v]`}
	if got := told(readAll(t, r, 9)); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if key, err := r.LikelyKey(t.Context()); key != "" || err != nil {
		t.Errorf("a page has one row, and the key is %q, %v", key, err)
	}
}

func TestLikelyKey(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"id":1,"SKU":"a" "id":2,"SKU":"b"`, `"id":1,"SKU":"a"`, "SKU"},
		{`"id":1,"sku":"a" "id":2,"sku":"a"`, `"id":1,"sku":"a"`, "id"},
		{`"id":1,"product_url":"a" "id":null,"product_url":"b"`, `"product_url":"a"`,
			"product_url"},
		{`"id":1 "id":2`, `"x":1 "x":2`, ""},
		{`"id":"" "id":1`, `"id":1 "id":2`, ""},
		{`"title":1 "title":2`, `"title":1`, ""},
		{``, `"id":1`, ""},
	} {
		sides := [2][]string{}
		for i, text := range []string{c.from, c.to} {
			for _, part := range strings.Fields(text) {
				sides[i] = append(sides[i], "{"+part+"}")
			}
		}
		key, err := runs(9, sides[0], sides[1]).LikelyKey(t.Context())
		if key != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.from, key, err, c.want)
		}
	}
}

// For any rows, order, parts and pages, the changes are those of a model. The model is a few lines
// long and holds everything in memory.
func TestChangesAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf(`{"k":%d,"v":%d}`, rapid.IntRange(0, 5).Draw(t, "k"),
				rapid.IntRange(0, 3).Draw(t, "v"))
		})
		from := rapid.SliceOfN(row, 0, 20).Draw(t, "from")
		to := rapid.SliceOfN(row, 0, 20).Draw(t, "to")
		r := runs(3, from, to)
		r.Key, r.PartRows = []string{"k"}, rapid.Int64Range(1, 30).Draw(t, "part")
		changes := readAll(t, r, rapid.IntRange(1, 9).Draw(t, "most"))
		want, sums := modelOf(from, to)
		got := told(changes)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if counted, err := r.Sum(context.Background()); err != nil || counted != sums {
			t.Fatalf("%+v, %v, want %+v", counted, err, sums)
		}
		of := rapid.SliceOfNDistinct(rapid.SampledFrom([]Kind{Added, Removed, Changed}), 0, 3,
			rapid.ID[Kind]).Draw(t, "of")
		inParts(t, r, of, changes, sums)
	})
}

// modelOf compares rows of the form {"k":…,"v":…}.
func modelOf(from, to []string) (changes []string, sums Sums) {
	from, to = slices.Clone(from), slices.Clone(to)
	plain := func(row string) string { return strings.Trim(row, "{}") }
	for i := 0; i < len(to); {
		if at := slices.Index(from, to[i]); at >= 0 {
			from, to = slices.Delete(from, at, at+1), slices.Delete(to, i, i+1)
			sums.Unchanged++
			continue
		}
		i++
	}
	for _, row := range to {
		at := slices.IndexFunc(from, func(old string) bool { return old[:6] == row[:6] })
		if at < 0 {
			changes = append(changes, fmt.Sprint(Added, "  > ", plain(row), " []"))
			sums.Added++
			continue
		}
		changes = append(changes, fmt.Sprint(Changed, " ", plain(from[at]), " > ", plain(row),
			" [v]"))
		from = slices.Delete(from, at, at+1)
		sums.Changed++
	}
	for _, row := range from {
		changes = append(changes, fmt.Sprint(Removed, " ", plain(row), " >  []"))
		sums.Removed++
	}
	return changes, sums
}

// A kept reader resumes like a new one, and reads no row of the newer run twice.
func TestReadersAreKept(t *testing.T) {
	var from, to []string
	for n := range 40 {
		from = append(from, fmt.Sprintf(`{"k":%d,"v":1}`, n))
		to = append(to, fmt.Sprintf(`{"k":%d,"v":%d}`, n, n%3))
	}
	r := runs(1, from, to)
	r.Key = []string{"k"}
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	k, of := NewKept(now), []string{"a", "b"}
	want := told(readAll(t, r, 100))
	first, sums, err := r.Begin(t.Context())
	if summed, sumErr := r.Sum(t.Context()); err != nil || sumErr != nil || sums != summed {
		t.Fatalf("%+v, %v, want %+v, %v", sums, err, summed, sumErr)
	}
	var got []string
	reader := first
	for {
		found, at, more, err := reader.Next(t.Context(), 7, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, told(found)...); !more {
			break
		}
		k.Keep(of, at, reader)
		if other := k.Read([]string{"a\x00b"}, r, at); other == reader {
			t.Fatal("another's comparison goes on")
		}
		fewer := r
		fewer.NewerRows--
		if other := k.Read(of, fewer, at); other == reader {
			t.Fatal("a comparison goes on although rows have gone")
		}
		if reader = k.Read(of, r, at); reader != first {
			t.Fatal("a comparison begins anew")
		}
		if again := k.Read(of, r, at); again == reader {
			t.Fatal("two calls have one reader")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Only a few readers are kept, and only for a while.
func TestKeptIsBounded(t *testing.T) {
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	k, r := NewKept(now), runs(1, nil, nil)
	readers := make([]*Reader, keptReaders+1)
	for n := range readers {
		readers[n] = r.Read(Place{})
		k.Keep([]string{"a"}, Place{Done: n + 1}, readers[n])
	}
	if len(k.all) != keptReaders {
		t.Errorf("%d readers are kept", len(k.all))
	}
	if got := k.Read([]string{"a"}, r, Place{Done: 1}); got == readers[0] {
		t.Error("the one that waited longest is still there")
	}
	now.Advance(keptFor)
	if got := k.Read([]string{"a"}, r, Place{Done: 2}); got != readers[1] {
		t.Error("a reader is gone too early")
	}
	now.Advance(1)
	if got := k.Read([]string{"a"}, r, Place{Done: 3}); got == readers[2] || len(k.all) != 0 {
		t.Errorf("a reader waits too long; %d are left", len(k.all))
	}
}

// A member of the key that no row has is reported, whichever run lacks it. A member that some row
// has is not, and without rows none is.
func TestKeysThatNoRowHas(t *testing.T) {
	for _, c := range []struct {
		from, to []string
		key      []string
		want     string
	}{
		{[]string{`{"k":1}`}, []string{`{"k":1}`}, []string{"k", "skuu"}, "skuu"},
		{[]string{`{"k":null}`}, []string{`{"v":1}`}, []string{"k"}, "k"},
		{[]string{`{"k":1}`}, []string{`{"v":1}`}, []string{"k"}, ""},
		{[]string{`{"v":1}`}, []string{`{"v":1}`, `{"k":1}`}, []string{"k"}, ""},
		{nil, nil, []string{"k"}, ""},
	} {
		r := runs(1, c.from, c.to)
		r.Key = c.key
		_, err := r.Sum(t.Context())
		_, _, _, readErr := r.Read(Place{}).Next(t.Context(), 9, 1<<20)
		for _, err := range []error{err, readErr} {
			if (err == nil) != (c.want == "") ||
				err != nil && !strings.Contains(err.Error(), `"`+c.want+`"`) {
				t.Errorf("%v > %v by %v: %v", c.from, c.to, c.key, err)
			}
		}
	}
}

// If more rows share a key than the table can hold, the comparison is refused and says so.
func TestTableIsBounded(t *testing.T) {
	full := &table{entries: make([]entry, maxTable-1)}
	if err := full.add(hashed{}, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := full.add(hashed{}, 0, 0); fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("a row more than the table has room for: %v", err)
	}
}

// BenchmarkSum measures a comparison of many rows.
func BenchmarkSum(b *testing.B) {
	const rows = 100_000
	sides := [2][]string{}
	for i := range rows {
		for side := range sides {
			sides[side] = append(sides[side], fmt.Sprintf(
				`{"sku":"A%d","price":%d,"title":"A thing that a shop sells, number %d"}`, i,
				i+side*(i%10/9), i))
		}
	}
	r := runs(1_000, sides[0], sides[1])
	r.Key = []string{"sku"}
	b.ReportAllocs()
	for b.Loop() {
		if sums, err := r.Sum(b.Context()); err != nil || sums.Changed != rows/10 {
			b.Fatal(sums, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*rows), "ns/row")
}

// inParts checks that the parts together report all changes.
func inParts(t *rapid.T, r Runs, of []Kind, changes []Change, want Sums) {
	wanted := slices.DeleteFunc(slices.Clone(changes),
		func(c Change) bool { return !slices.Contains(of, c.Kind) })
	var found []Change
	var sums Sums
	for part := range r.Parts() {
		counted, err := r.Part(context.Background(), part, of, func(c *Change) bool {
			found = append(found, *c)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		sums.Add(counted)
	}
	if sums != want || !reflect.DeepEqual(told(found), told(wanted)) ||
		sums.Of(of) != (len(wanted) > 0) {
		t.Fatalf("in parts: %+v, %q, want %+v, %q", sums, told(found), want, told(wanted))
	}
}

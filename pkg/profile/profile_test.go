package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sumOf sums up rows.
func sumOf(rows ...string) *Sums {
	s := &Sums{}
	for _, row := range rows {
		s.Add([]byte(row))
	}
	return s
}

// told returns what sums say of each field.
func told(s *Sums) map[string]string {
	texts := map[string]string{}
	for _, f := range s.Fields {
		distinct, exact := f.Distinct()
		texts[f.Name] = fmt.Sprint(f.Kinds, f.Min, f.Max, f.Sum, f.Length, distinct, exact,
			f.Histogram())
		if f.Kinds[Boolean] > 0 {
			texts[f.Name] += fmt.Sprint(" ", f.truths)
		}
	}
	return texts
}

func TestSums(t *testing.T) {
	got := sumOf(
		`{"title":"A","price":"12.50","stock":3,"sale":true,"_sourceUrl":"x","none":null}`,
		`{"title":"B","price":"-1","stock":1e999,"sale":false,"tags":["a"],"more":{"a":1}}`,
		`{"price":"ask","title":"A","title":"C","stock":-0.5}`, `{}`)
	want := map[string]string{
		"title": "[3 0 0 0 0 0] 0 0 0 3 2 true []",
		"price": "[1 2 0 0 0 0] -1 12.5 11.5 10 3 true [{-1.03125 -1 1} {12.5 12.75 1}]",
		"stock": fmt.Sprint("[0 0 3 0 0 0] -0.5 ", math.MaxFloat64, " ", math.MaxFloat64,
			" 0 3 true [{-0.515625 -0.5 1} {3 3.0625 1} {", math.Ldexp(63, 1018), " ",
			math.MaxFloat64, " 1}]"),
		"sale": "[0 0 0 2 0 0] 0 0 0 0 2 true [] {1 false}",
		"tags": "[0 0 0 0 0 1] 0 0 0 0 1 true []",
		"more": "[0 0 0 0 1 0] 0 0 0 0 1 true []",
	}
	if diff := cmp.Diff(want, told(got)); diff != "" || got.Rows != 4 || got.More {
		t.Errorf("%d rows, %s", got.Rows, diff)
	}
	if f := got.Fields[0]; f.Filled() != 3 || f.Kinds[Text] != 3 {
		t.Errorf("%+v", f)
	}
}

// TestSumsMerge: however rows are divided, in whatever order their sums merge, encoded or not, the
// result is that of summing all rows. The same holds for keys in several spellings, and keys that
// occur twice.
func TestSumsMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.Custom(func(t *rapid.T) string {
			members := rapid.SliceOfN(rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`, `"\u0061"`,
				`"b" `, ` "c"`, `"_d"`}), 0, 4).Draw(t, "members")
			for i, name := range members {
				members[i] = fmt.Sprintf("%s:%s", name, rapid.SampledFrom([]string{`"x"`, `"1"`,
					`2`, `-3`, `null`, `true`, `false`, `[1]`, `{}`}).Draw(t, "value"))
			}
			return "{" + strings.Join(members, ",") + "}"
		})
		parts := rapid.SliceOfN(rapid.SliceOfN(row, 0, 5), 0, 5).Draw(t, "parts")
		whole, merged := sumOf(slices.Concat(parts...)...), &Sums{}
		order := rapid.Permutation(parts).Draw(t, "order")
		for _, part := range order {
			read, err := Decode(sumOf(part...).Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			merged.Merge(read)
		}
		if diff := cmp.Diff(told(whole), told(merged)); diff != "" || whole.Rows != merged.Rows {
			t.Fatal(diff)
		}
	})
}

// secondVersion encodes {"sale":true}, {"sale":false} in the second version.
const secondVersion = "\x02\x02\x00\x01\x04sale\x88\x02\x02)v\vu\x12ջ@\x82\xe6\x16\x03\xbe\x1b\xe7C"

// TestSumsWithoutTruths: an older program did not count the booleans that are true. Nor does a sum
// know their number if it includes that program's.
func TestSumsWithoutTruths(t *testing.T) {
	read, err := Decode([]byte(secondVersion))
	if err != nil {
		t.Fatal(err)
	}
	merged := sumOf(`{"sale":true}`)
	merged.Merge(read)
	for want, s := range map[string]*Sums{
		"[0 0 0 2 0 0] 0 0 0 0 2 true [] {0 true}": read,
		"[0 0 0 3 0 0] 0 0 0 0 2 true [] {1 true}": merged} {
		if got := told(s)["sale"]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		again, err := Decode(s.Append(nil))
		if err != nil || !again.Fields[0].truths.unknown {
			t.Errorf("read back: %+v, %v", again, err)
		}
	}
}

// TestReset: reused sums are like new ones, whatever they held.
func TestReset(t *testing.T) {
	used, rows := &Sums{}, []string{`{"a":1,"b":"x"}`, `{"c":[],"a":2}`, `{}`,
		`{"b":"y","a":"z","d":true,"c":3}`, `{"a":7}`}
	for range 3 {
		for n := range rows {
			used.Reset()
			for _, row := range rows[n:] {
				used.Add([]byte(row))
			}
			fresh := sumOf(rows[n:]...)
			if string(used.Append(nil)) != string(fresh.Append(nil)) {
				t.Fatalf("from row %d: %v, want %v", n, told(used), told(fresh))
			}
		}
	}
}

// TestDistinct: many distinct values are counted within the stated error, on one page or many.
func TestDistinct(t *testing.T) {
	for _, c := range []struct{ values, page int }{{1_024, 1}, {1_024, 1_024}, {256, 256},
		{50_000, 1}, {50_000, 2_000}, {50_000, 50_000}} {
		whole, page := &Sums{}, &Sums{}
		for n := range c.values {
			page.Add(fmt.Appendf(nil, `{"a":"value %d"}`, n))
			if page.Rows < uint64(c.page) && n+1 < c.values {
				continue
			}
			read, err := Decode(page.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			whole.Merge(read)
			page = &Sums{}
		}
		got, exact := whole.Fields[0].Distinct()
		off := math.Abs(float64(got)/float64(c.values) - 1)
		if off > 0.1 || exact && off > 0 || !exact && c.page == 1 && c.values <= heldHashes {
			t.Errorf("%d values, %d to a page: %d, exact %v", c.values, c.page, got, exact)
		}
	}
}

// TestDistinctIsAtMostAll: an estimate never exceeds the number of values.
func TestDistinctIsAtMostAll(t *testing.T) {
	const values = 2_000
	for try := range 20 {
		s := &Sums{}
		for n := range values {
			s.Add(fmt.Appendf(nil, `{"a":"value %d of %d"}`, n, try))
		}
		if got, exact := s.Fields[0].Distinct(); got > values || exact {
			t.Errorf("%d different ones of %d values, exact %v", got, values, exact)
		}
	}
}

// TestSumsAreBounded: sums stay within their bounds, whatever the rows hold.
func TestSumsAreBounded(t *testing.T) {
	s := &Sums{}
	for n := range 300 {
		var row strings.Builder
		row.WriteString(`{"` + strings.Repeat("x", MaxName+1) + `":1`)
		for field := range MaxFields + 1 {
			fmt.Fprintf(&row, `,"%0*d":%d`, MaxName, field, n)
		}
		s.Add([]byte(row.String() + "}"))
	}
	encoded := s.Append(nil)
	if len(s.Fields) != MaxFields || !s.More || len(encoded) > 250<<10 {
		t.Errorf("%d fields, more: %v, %d bytes", len(s.Fields), s.More, len(encoded))
	}
	if read, err := Decode(encoded); err != nil || !read.More || len(read.Fields) != MaxFields {
		t.Errorf("read back: %v", err)
	}
}

// TestPagesAreEncoded: the sums of a page fit its record, and merge to those of the whole run. Only
// estimates of distinct values are less exact the more fields there are.
func TestPagesAreEncoded(t *testing.T) {
	for fields, off := range map[int]float64{1: 0.15, 12: 0.15, 60: 0.6, 100: 0.6} {
		whole, merged, page := &Sums{}, &Sums{}, &Sums{}
		for n := range 2_000 {
			row := `{"_":0`
			for field := range fields {
				row += fmt.Sprintf(`,"field %d":"%d of %d"`, field, n, field)
			}
			whole.Add([]byte(row + "}"))
			if page.Add([]byte(row + "}")); page.Rows < 100 {
				continue
			}
			encoded := page.EncodePage()
			read, err := Decode(encoded)
			if err != nil || len(encoded) > pageBytes {
				t.Fatalf("%d fields: %d bytes, %v", fields, len(encoded), err)
			}
			merged.Merge(read)
			page.Reset()
		}
		for n, f := range merged.Fields {
			want := whole.Fields[n]
			distinct, _ := f.Distinct()
			if f.Name != want.Name || f.Kinds != want.Kinds || f.Length != want.Length ||
				math.Abs(float64(distinct)/2_000-1) > off {
				t.Errorf("%d fields: %+v with %d values, want %+v", fields, f, distinct, want)
				break
			}
		}
		if merged.Rows != whole.Rows || len(merged.Fields) != fields {
			t.Errorf("%d fields: %d rows, %d fields", fields, merged.Rows, len(merged.Fields))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(sumOf(`{"a":1,"b":"x"}`, `{"a":2}`).Append(nil))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if s, err := Decode(data); err == nil {
			(&Sums{}).Merge(s) // it must not panic
		}
	})
}

// BenchmarkPage measures the sums of a page, and the bytes that they add to its record.
func BenchmarkPage(b *testing.B) {
	row := []byte(`{"title":"A thing","price":"12.00","sku":"A-1","inStock":true,"image":"/a.png"}`)
	b.ReportAllocs()
	size, s := 0, Sums{}
	for b.Loop() {
		s.Reset()
		s.Add(row)
		size = len(s.Append(nil))
	}
	b.ReportMetric(float64(size), "bytes/page")
}

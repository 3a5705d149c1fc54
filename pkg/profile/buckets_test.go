package profile

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// numbered returns the sums of rows with one number each.
func numbered(numbers ...float64) *Sums {
	s := &Sums{}
	for _, n := range numbers {
		s.Add(fmt.Appendf(nil, `{"n":%v}`, n))
	}
	return s
}

func TestHistogram(t *testing.T) {
	var even []float64
	for n := range 1_000 {
		even = append(even, float64(n)+1)
	}
	for _, c := range []struct {
		numbers []float64
		want    []Bucket
	}{
		{nil, nil},
		{[]float64{7.3, 7.3, 7.3}, []Bucket{{7.3, 7.3, 3}}},
		{[]float64{0, 0}, []Bucket{{0, 0, 2}}},
		{[]float64{5, 1, 4, 1, 0}, []Bucket{{0, 0, 1}, {1, 1.03125, 2}, {4, 4.125, 1},
			{5, 5.125, 1}}},
		{even[:24], []Bucket{{1, 2, 1}, {2, 4, 2}, {4, 8, 4}, {8, 16, 8}, {16, 32, 9}}},
		{[]float64{-2, math.Copysign(0, -1), 0, 5e-324, -5e-324}, []Bucket{{-2.0625, -2, 1},
			{0, 0, 1}, {0, 0, 3}}},
		{even, []Bucket{{1, 1.5, 1}, {2, 3, 1}, {3, 4, 1}, {4, 6, 2}, {6, 8, 2}, {8, 12, 4},
			{12, 16, 4}, {16, 24, 8}, {24, 32, 8}, {32, 48, 16}, {48, 64, 16}, {64, 96, 32},
			{96, 128, 32}, {128, 192, 64}, {192, 256, 64}, {256, 384, 128}, {384, 512, 128},
			{512, 768, 256}, {768, 1024, 233}}},
		{[]float64{math.MaxFloat64, -math.MaxFloat64}, []Bucket{
			{-math.MaxFloat64, -math.Ldexp(63, 1018), 1},
			{math.Ldexp(63, 1018), math.MaxFloat64, 1}}},
	} {
		var got []Bucket
		if s := numbered(c.numbers...); len(s.Fields) > 0 {
			got = s.Fields[0].Histogram()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.numbers[:min(5, len(c.numbers))], diff)
		}
	}
}

// TestHistogramsMerge: however numbers are divided, in whatever order their sums merge, encoded or
// not, the buckets are the same. Each bucket counts the numbers in its range.
func TestHistogramsMerge(t *testing.T) {
	number := rapid.OneOf(rapid.SampledFrom([]float64{0, 1, -1, 2.5}), rapid.Float64Range(1, 40),
		rapid.Float64Range(-1e300, 1e300))
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(number, 0, 50), 1, 6).Draw(t, "parts")
		all := slices.Concat(parts...)
		if len(all) == 0 {
			return
		}
		merged := &Sums{}
		for _, part := range rapid.Permutation(parts).Draw(t, "order") {
			sums := numbered(part...)
			if rapid.Bool().Draw(t, "encoded") {
				read, err := Decode(sums.Append(nil))
				if err != nil {
					t.Fatal(err)
				}
				sums = read
			}
			merged.Merge(sums)
		}
		want, got := numbered(all...).Fields[0].Histogram(), merged.Fields[0].Histogram()
		if diff := cmp.Diff(want, got); diff != "" || len(got) > MaxBuckets {
			t.Fatalf("%d buckets: %s", len(got), diff)
		}
		for n, b := range got {
			held := uint64(0)
			for _, x := range all {
				if x == b.From && (x >= 0 || b.From == b.To) || b.From < x && x < b.To ||
					x == b.To && x < 0 {
					held++
				}
			}
			if n > 0 && b.From < got[n-1].To || held != b.Count && b.From != 0 && b.To != 0 {
				t.Fatalf("%+v has %d", b, held)
			}
		}
	})
}

// TestSumsWithoutBuckets: sums in the first version's encoding can be read. If their numbers
// differ, they have no buckets, and neither has a sum that they merge into.
func TestSumsWithoutBuckets(t *testing.T) {
	read, err := Decode([]byte(firstVersion))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"one":  "[0 0 2 0 0 0] 3 3 6 0 1 true [{3 3 2}]",
		"many": "[0 0 2 0 0 0] 3 4 7 0 2 true []",
		"text": "[1 0 0 0 0 0] 0 0 0 1 1 true []"}
	if diff := cmp.Diff(want, told(read)); diff != "" {
		t.Error(diff)
	}
	rows := []string{`{"one":4,"many":4,"text":"x"}`, `{"many":7}`}
	for _, order := range [][]*Sums{{read, sumOf(rows...)}, {sumOf(rows...), read}} {
		merged := &Sums{}
		for _, one := range order {
			merged.Merge(one)
		}
		again, err := Decode(merged.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(told(merged), told(again)); diff != "" {
			t.Error(diff)
		}
		for _, f := range again.Fields {
			if h := f.Histogram(); f.Name == "one" && len(h) != 2 || f.Name != "one" && h != nil {
				t.Errorf("%s: %v", f.Name, h)
			}
		}
	}
}

// TestBucketsOfManyFields: pages with many fields keep fewer buckets for each, with all numbers.
func TestBucketsOfManyFields(t *testing.T) {
	const fields = 200
	s := &Sums{}
	for n := range 50 {
		row := `{"f":0`
		for field := range fields {
			row += fmt.Sprintf(`,"%d":%g`, field, math.Pow(-3, float64(n)))
		}
		s.Add([]byte(row + "}"))
	}
	size := len(s.Append(nil))
	read, err := Decode(s.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range read.Fields[1:] {
		if h := f.Histogram(); len(h) > fewBuckets || len(h) < 2 || size > 150_000 ||
			len(s.Fields[n+1].buckets.counts) < MaxBuckets/2 {
			t.Fatalf("%d bytes, %v of %v", size, h, s.Fields[n+1].buckets)
		}
	}
}

// BenchmarkPageOfNumbers measures the sums of a page whose rows have numbers.
func BenchmarkPageOfNumbers(b *testing.B) {
	var rows [][]byte
	for n := range 24 {
		rows = append(rows, fmt.Appendf(nil, `{"title":"A thing %d","price":"%d.50","stock":%d}`,
			n, 10+n, n*n))
	}
	b.ReportAllocs()
	size, s := 0, Sums{}
	for b.Loop() {
		s.Reset()
		for _, row := range rows {
			s.Add(row)
		}
		size = len(s.Append(nil))
	}
	b.ReportMetric(float64(size), "bytes/page")
}

// firstVersion encodes {"one":3,"many":3,"text":"x"}, {"one":3,"many":4} in the first version.
const firstVersion = "\x01\x02\x00\x03\x03one\x84\x02\x00\x00\x00\x00\x00\x00\b@\x01\xf0t\x94~" +
	"\x1e\xdc$s\x04many\x04\x02\x00\x00\x00\x00\x00\x00\b@\x00\x00\x00\x00\x00\x00\x10@\x00\x00" +
	"\x00\x00\x00\x00\x1c@\x02\xf0t\x94~\x1e\xdc$s?\x80\xcf\x7f\x02\x11\x89\xe2\x04text\x81\x01" +
	"\x01\x01}\xd4\x0e\x8fJT\xc5\xbb"

package measure

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQuantiles compares the histogram with the values themselves.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var values []time.Duration
	one, other := &histogram{}, &histogram{}
	for i := range 20_000 {
		value := time.Duration(random.Int64N(1 << (1 + random.IntN(62))))
		values = append(values, value)
		if i%3 == 0 {
			other.add(value)
		} else {
			one.add(value)
		}
	}
	one.merge(other)
	slices.Sort(values)
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		exact, got := values[int(q*float64(len(values)))-1], one.quantile(q)
		if got < exact || float64(got) > float64(exact)*(1+1.0/subBuckets)+1 {
			t.Errorf("quantile %g is %d, exactly %d", q, got, exact)
		}
	}
	if one.n != 20_000 || one.longest != values[len(values)-1] {
		t.Errorf("%d values, the longest %v", one.n, one.longest)
	}
	if empty := (&histogram{}).quantile(0.99); empty != 0 {
		t.Errorf("nothing at all took %v", empty)
	}
}

func TestBuckets(t *testing.T) {
	last := -1
	for _, value := range []uint64{0, 1, 127, 128, 255, 256, 257, 258, 1 << 20, 1<<20 + 1<<13,
		1<<63 - 1} {
		bucket := bucketOf(value)
		if upperOf(bucket) < value || bucket < last || bucket > 0 && upperOf(bucket-1) >= value {
			t.Errorf("%d is in bucket %d, up to %d", value, bucket, upperOf(bucket))
		}
		last = bucket
	}
}

func TestFigures(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 12345678: "12,345,678", -1234.5: "-1,234",
		123.4: "123", 12.34: "12.3",
		1.234: "1.23", 0.00123: "0.0012", 3: "3"} {
		if got := figure(value); got != want {
			t.Errorf("%g is written %q, want %q", value, got, want)
		}
	}
}

// TestTheReportCanBeRead: columns are aligned, and aims say whether they are met.
func TestTheReportCanBeRead(t *testing.T) {
	r := NewReport("test", "v1", "shoal bench test")
	r.table("Times:", "case", "ms").add("a long name", 1.5)
	r.atMost("this", 1, 2, "ms")
	r.atMost("that", 3, 2, "ms")
	r.atMostAt(scale{4000, 50_000, "hosts"}, "few", 1, 2, "MB")
	r.atMostAt(scale{4000, 50_000, "hosts"}, "too much for few", 3, 2, "MB")
	r.atMostAt(scale{50_000, 50_000, "hosts"}, "all", 1, 2, "MB")
	for _, want := range []string{"| case        |   ms |\n|-------------|-----:|\n| a long " +
		"name | 1.50 |\n", "aim met: this: 1 ms, at most 2",
		"aim NOT met: that", "shoal bench test\n",
		"- aim not judged: few: at most 2 MB is for 50,000 hosts, not for 4,000\n",
		"aim NOT met: too much for few", "aim met: all"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("%q is not in\n%s", want, r.Text())
		}
	}
}

// TestFailedCallsMissAnAim: failed calls are fast, but they are not answers.
func TestFailedCallsMissAnAim(t *testing.T) {
	r := NewReport("test", "v1", "shoal bench test")
	l := newLatencies()
	l.tellFailed(r, "Alone")
	if len(r.Aims) != 0 {
		t.Errorf("none failed: %+v", r.Aims)
	}
	l.failed["wallet: status 401"], l.failed["keys: status 401"] = 2, 1
	l.tellFailed(r, "Alone")
	if len(r.Aims) != 1 || r.Aims[0].Met || r.Aims[0].Measured != 3 || len(r.Notes) != 2 {
		t.Errorf("%+v, %q", r.Aims, r.Notes)
	}
}

//go:build !race

package allocs_test

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/testkit/allocs"
)

// recorder is a test that records what is reported to it.
type recorder struct {
	testing.TB
	told []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

var kept []*int

func allocate(n int) func() {
	return func() {
		kept = kept[:0]
		for range n {
			kept = append(kept, new(int))
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		recorded float64
		told     string
	}{{10, ""}, {9, "each page pays"}, {11, "smaller number"}, {9.8, ""}} {
		each := func(r *recorder) { allocs.Check(r, "ten", c.recorded, allocate(10)) }
		many := func(r *recorder) { allocs.CheckEach(r, "ten", c.recorded, 1000, allocate(10_000)) }
		kept = make([]*int, 0, 10_000)
		for _, check := range []func(*recorder){each, many} {
			r := &recorder{TB: t}
			check(r)
			if said := strings.Join(r.told, "\n"); (said == "") != (c.told == "") ||
				!strings.Contains(said, c.told) {
				t.Errorf("recorded %g: %q, want %q", c.recorded, said, c.told)
			}
		}
	}
}

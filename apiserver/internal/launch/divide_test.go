package launch

import (
	"math"
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// divided makes a member from its page price, its last run's charge and its number of links.
func divided(page, past int64, links uint32) member {
	return member{page: page, past: past, run: client.GroupRun{Scraper: ids.ID{1}, Links: links}}
}

// A cap is divided completely except for rounding, and each remaining run gets a page.
func TestDivide(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		runs []member
		want []int64 // parts of the remaining runs
	}{
		"equal":    {1_001, []member{divided(150, 0, 1), divided(150, 0, 1)}, []int64{500, 500}},
		"by links": {700, []member{divided(100, 0, 4), divided(100, 0, 1)}, []int64{500, 200}},
		"by what it was": {700, []member{divided(100, 400, 1), divided(100, 100, 9)},
			[]int64{500, 200}},
		"a page each": {250, []member{divided(150, 0, 1), divided(150, 0, 1), divided(75, 0, 1)},
			[]int64{166, 83}},
		"none":    {149, []member{divided(150, 0, 1)}, nil},
		"nothing": {0, []member{divided(150, 0, 1), divided(0, 0, 5)}, []int64{0}},
		"largest": {math.MaxInt64, []member{divided(1, math.MaxInt64, 1),
			divided(1, math.MaxInt64, math.MaxUint32)}, []int64{math.MaxInt64 / 2,
			math.MaxInt64 / 2}},
	} {
		g := &gathering{runs: slices.Clone(c.runs)}
		g.leaveOut(&c.most)
		g.divide(&c.most)
		sum := int64(0)
		for i, m := range g.runs {
			if part := *m.run.MaxCharge; part < m.page || len(c.want) != len(g.runs) ||
				part != c.want[i] {
				t.Errorf("%s: run %d of %d may cost %d, want %v", name, i, len(g.runs), part, c.want)
			}
			sum += *g.runs[i].run.MaxCharge
		}
		if sum > c.most || len(g.runs) != len(c.want) ||
			len(g.skipped) != len(c.runs)-len(c.want) {
			t.Errorf("%s: %d runs for %d of %d, %d skipped", name, len(g.runs), sum, c.most,
				len(g.skipped))
		}
	}
	// Two free requests pay for exactly two first pages.
	some, most := &gathering{free: 2}, int64(200)
	for range 5 {
		m := divided(150, 0, 1)
		m.free = true
		some.runs = append(some.runs, m)
	}
	some.leaveOut(&most)
	if some.divide(&most); len(some.runs) != 3 || len(some.skipped) != 2 ||
		*some.runs[0].run.MaxCharge != 16 || *some.runs[2].run.MaxCharge != 166 {
		t.Errorf("with free requests: %+v", some.runs)
	}
	g := &gathering{runs: []member{divided(150, 0, 1)}}
	g.leaveOut(nil)
	if g.divide(nil); len(g.runs) != 1 || g.runs[0].run.MaxCharge != nil {
		t.Error("a cap without one")
	}
}

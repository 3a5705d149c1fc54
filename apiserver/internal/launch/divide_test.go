package launch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
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

// runPages launches a run of a scraper, delivers this many pages, and closes it.
func (r *dueRig) runPages(scraper ids.ID, pages uint32) {
	r.t.Helper()
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(), Links: pages, Tiers: model.TiersOf(model.Plain)}
	r.state.Must(r.t, run)
	for seq := range pages {
		r.state.Dispatch(r.t, run.Job, seq)
		page := model.Receipt{Job: run.Job, Unit: model.Unit{Seq: seq}, Last: true,
			Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1, Items: 1}
		if err := r.state.Settle(r.t.Context(), []model.Receipt{page}, nil); err != nil {
			r.t.Fatal(err)
		}
	}
	r.state.CloseRun(r.t, run.Job)
}

// A cap is divided alike, wherever the scrapers' last runs are: the state keeps a few of them.
func TestDivideByRunsThatLeftTheState(t *testing.T) {
	const scrapers, most = 12, int64(1_000_000)
	divided := func(kept int) map[string]int64 {
		r := &dueRig{rig: newRig(t), t: t}
		r.state.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(),
			Amount: 10 * most})
		for n := range scrapers {
			name := fmt.Sprint("s", n)
			r.add(name, "https://shop.test/", "")
			r.runPages(r.state.View().ScraperByName("alice", name).ID, uint32(n+1))
		}
		archive := &rowstoretest.Archive{}
		r.History = client.NewHistory(archive)
		r.state.Archive(t, archive, kept)
		cap := most
		if _, err := r.StartGroup(t.Context(), r.caller(""), r.group, &cap); err != nil {
			t.Fatal(err)
		}
		parts := map[string]int64{}
		for _, job := range r.state.View().OpenJobsOfCustomer("alice") {
			parts[r.state.View().Scraper(job.Scraper).Spec.Name] = *job.MaxCharge
		}
		return parts
	}
	want := divided(scrapers)
	if len(want) != scrapers+1 || want["s11"] < 2*want["s5"]-want["shop"] {
		t.Errorf("the parts are %v", want)
	}
	for _, kept := range []int{0, 3} {
		if got := divided(kept); !maps.Equal(want, got) {
			t.Errorf("with %d runs in the state the parts are %v, want %v", kept, got, want)
		}
	}
}

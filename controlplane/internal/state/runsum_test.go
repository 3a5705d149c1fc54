package state

import (
	"bytes"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestDigestsCoverRuns changes each part of a run's sets. Every change gives another digest, and a
// restored state has the digest of the saved one.
func TestDigestsCoverRuns(t *testing.T) {
	changes := map[string]func(*Run){
		"nothing":             func(*Run) {},
		"another closed seq":  func(r *Run) { *r = *runOf(101) },
		"one more closed seq": func(r *Run) { r.Close(200) },
		"the same, closed":    func(r *Run) { r.Close(9) },
		"begun start":         func(r *Run) { begun(r, func(c *Chain) { c.Start++ }) },
		"begun seq":           func(r *Run) { r.SetAside(10, *r.TakeUp(8)) },
		"begun address":       func(r *Run) { begun(r, func(c *Chain) { c.From.URL += "0" }) },
		"out number":          func(r *Run) { r.Out[9].Number++ },
		"out attempt":         func(r *Run) { r.Out[9].Attempt++ },
		"out tiers":           func(r *Run) { r.Out[9].Tiers++ },
		"out grant":           func(r *Run) { r.Out[9].Grant++ },
		"out free":            func(r *Run) { r.Out[9].Free++ },
		"out price":           func(r *Run) { r.Out[9].Price++ },
		"out start":           func(r *Run) { r.Out[9].Start++ },
		"out domain":          func(r *Run) { r.Out[9].Domain++ },
		"out limited":         func(r *Run) { r.Out[9].Limited = true },
		"out unbilled":        func(r *Run) { r.Out[9].Unbilled = true },
		"out read":            func(r *Run) { r.Out[9].Read = nil },
		"out read's day":      func(r *Run) { r.Out[9].Read.Day++ },
		"out read's domain":   func(r *Run) { r.Out[9].Read.Domain++ },
		"out page":            func(r *Run) { r.Out[9].From.Page++ },
		"out address":         func(r *Run) { r.Out[9].From.URL = "https://b.example/3" },
		"out seen":            func(r *Run) { r.Out[9].From.Seen[1]++ },
		"out seen as rows": func(r *Run) {
			r.Out[9].From.Seen, r.Out[9].From.KnownRows = []uint64{1}, []uint64{2, 3}
		},
		"out rendered":        func(r *Run) { r.Out[9].From.Rendered = true },
		"out without a chain": func(r *Run) { r.Out[9].From = nil },
		"out, set aside": func(r *Run) {
			r.SetAside(9, r.Out[9].Chain)
			delete(r.Out, 9)
		},
	}
	by := map[uint64]string{}
	for name, change := range changes {
		s := NewStore()
		run := runOf(100)
		change(run)
		s.runs[run.Job] = run
		s.digest()
		sum := s.Digests()[0].Sum
		if other, there := by[sum]; there {
			t.Errorf("%q has the digest of %q", name, other)
		}
		by[sum] = name

		var saved bytes.Buffer
		if err := s.Snapshot().Write(&saved); err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(&saved)
		if err != nil {
			t.Fatal(err)
		}
		restored.digest()
		digests := restored.Digests()
		if got := digests[len(digests)-1].Sum; got != sum {
			t.Errorf("%q: restored, the digest is %x, not %x", name, got, sum)
		}
	}
}

// runOf is a run with a closed seq, seq 8, which is set aside, and seq 9, which is out.
func runOf(closed uint32) *Run {
	chain := func() Chain {
		return Chain{Start: 3, Domain: 1, From: &model.Continuation{Page: 3,
			URL: "https://a.example/3", Seen: []uint64{1, 2}, KnownRows: []uint64{3}}}
	}
	run := NewRun(ids.ID{1})
	run.Close(closed)
	run.SetAside(8, chain())
	run.Out[9] = &Out{Chain: chain(), Number: 7, Attempt: 1, Tiers: 1, Grant: 2, Free: 1,
		Price: 150, Read: &Read{Day: 1, Domain: 2}}
	return run
}

// begun changes what is set aside of seq 8.
func begun(r *Run, change func(*Chain)) {
	chain := r.TakeUp(8)
	change(chain)
	r.SetAside(8, *chain)
}

// TestDigestsHaveTheirForm: whoever changes what a digest sums gives it another DigestForm. Nodes
// whose digests have different forms would call each other's state wrong.
func TestDigestsHaveTheirForm(t *testing.T) {
	s := NewStore()
	s.sum += s.summer.record(&walletsTable.kind, &Wallet{Customer: "a", Available: 1})
	s.runs[ids.ID{1}] = runOf(100)
	s.digest()
	type form struct {
		number int
		sum    uint64
	}
	got := form{DigestForm, s.Digests()[len(s.Digests())-1].Sum}
	if want := (form{1, 3112113558064593530}); got != want {
		t.Errorf("the digest is %+v, want %+v", got, want)
	}
}

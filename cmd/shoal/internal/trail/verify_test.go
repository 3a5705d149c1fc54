package trail

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// chain extends a trail by n entries of a generation.
func chain(r *rand.Rand, before []*Entry, generation byte, n int) []*Entry {
	trail := slices.Clone(before)
	for range n {
		e := &Entry{Generation: ids.ID{generation}, Number: uint64(len(trail) + 1),
			Index: uint64(len(trail)*3 + 7), At: r.Int64N(1 << 40), Action: "svc_x",
			Actor:    Actor{Subject: "root", Admin: true, Address: "192.0.2.1"},
			Customer: fmt.Sprint("c", r.IntN(9)),
			Changes: []Change{{Table: "customers", Record: "a",
				After: fmt.Sprintf(`{"n":%d}`, r.Uint64())}}}
		trail = append(trail, follow(e, trail))
	}
	return trail
}

// follow chains an entry to the end of a trail.
func follow(e *Entry, trail []*Entry) *Entry {
	if n := len(trail); n > 0 {
		e.Before = trail[n-1].Stated
	}
	e.Stated = e.Sum()
	return e
}

// restore keeps the first kept entries of a trail, and adds a restore and n entries.
func restore(r *rand.Rand, trail []*Entry, generation byte, kept, n int) []*Entry {
	left := trail[len(trail)-1]
	e := &Entry{Generation: ids.ID{generation}, Number: uint64(kept + 1), Action: "restored",
		Restored: &Mark{left.Generation, left.Number, left.Stated}}
	path := slices.Clone(trail[:kept])
	return chain(r, append(path, follow(e, path)), generation, n)
}

func verify(trail []*Entry, known *Head) Report {
	v := NewVerifier(known)
	for _, e := range trail {
		v.Add(e)
	}
	return v.Finish()
}

func headOf(trail []*Entry) *Head {
	last := trail[len(trail)-1]
	return &Head{last.Number, last.Stated}
}

// damaged is a copy of an entry with one change.
func damaged(r *rand.Rand, e *Entry) *Entry {
	other := *e
	other.Changes = slices.Clone(e.Changes)
	switch r.IntN(10) {
	case 0:
		other.Generation[5]++
	case 1:
		other.Number += 1 + r.Uint64N(1<<r.IntN(64))
	case 2:
		other.Number--
	case 3:
		other.Before[r.IntN(32)] ^= 1
	case 4:
		other.At++
	case 5:
		other.Actor.Subject = "nobody"
	case 6:
		other.Actor.Admin = !e.Actor.Admin
	case 7:
		other.Customer += "x"
	case 8:
		other.Stated[r.IntN(32)] ^= 1
	default:
		other.More++
	}
	return &other
}

// told returns a report's findings in short form.
func told(report Report) string {
	var found []string
	for _, f := range report.Findings {
		found = append(found, fmt.Sprintf("%s %d-%d", f.Kind, f.Number, f.Upto))
	}
	return strings.Join(found, ", ")
}

// Any single damage to a trail is found at its number, and nothing else is.
func TestEachDamageIsNamed(t *testing.T) {
	for seed := range uint64(4_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		trail := chain(r, nil, 1, 3+r.IntN(40))
		for g := byte(2); r.IntN(3) == 0; g++ {
			trail = restore(r, trail, g, 1+r.IntN(len(trail)-1), 2+r.IntN(20))
		}
		n := len(trail)
		at := r.IntN(n) // the number is one more
		what, want, mutated := "", "", slices.Clone(trail)
		var known *Head
		switch r.IntN(8) {
		case 0:
			what = "nothing"
			known = headOf(trail[:at+1])
		case 1:
			upto := at + r.IntN(n-at)
			mutated = slices.Delete(mutated, at, upto+1)
			what, want = "drop", fmt.Sprintf("gap %d-%d", at+1, upto+1)
			known = headOf(trail)
		case 2:
			mutated[at] = damaged(r, trail[at])
			what, want = "change", fmt.Sprintf("changed %d-%d", at+1, at+1)
		case 3:
			mutated = slices.Insert(mutated, at+1+r.IntN(n-at), trail[at])
			what, want = "repeat", fmt.Sprintf("order %d-%d", at+1, at+1)
		case 4:
			at = r.IntN(n - 1)
			mutated[at], mutated[at+1] = trail[at+1], trail[at]
			what, want = "swap", fmt.Sprintf("order %d-%d", at+1, at+1)
		case 5: // a part is replaced with a fork's, and then it continues unchanged
			at = r.IntN(n - 1)
			upto := at + r.IntN(n-1-at) // the last replaced entry
			fork := chain(r, trail[:at], 9, n-at)
			fork[at] = follow(&Entry{Generation: generation(trail, at), Number: uint64(at + 1),
				Action: "another"}, trail[:at])
			fork = chain(r, fork[:at+1], fork[at].Generation[0], n-at)
			copy(mutated[at:upto+1], fork[at:upto+1])
			what, want = "splice", fmt.Sprintf("forked %d-%d", upto+2, upto+2)
		case 6: // a fork is appended
			at = 1 + r.IntN(n-1)
			fork := chain(r, trail[:at], generation(trail, at)[0], 1+r.IntN(n))
			mutated = append(mutated, fork[at:]...)
			what, want = "fork", fmt.Sprintf("forked %d-%d", at+1, min(len(fork), n+1))
		case 7: // its end was rewritten
			at = r.IntN(n)
			known = headOf(trail)
			mutated = chain(r, trail[:at], generation(trail, at)[0], n-at+r.IntN(3))
			what, want = "rewrite", fmt.Sprintf("forked %d-%d", n, n)
		}
		report := verify(mutated, known)
		last := fmt.Sprintf("gap %d-%d", at+1, n)
		if report.Known == Unsure && (what == "rewrite" || what == "drop" && want == last) {
			want = "" // an earlier restore has left such a number behind
		}
		if got := told(report); got != want {
			t.Fatalf("seed %d, %s at %d of %d: %s, want %s", seed, what, at+1, n, got, want)
		}
		if what == "nothing" && (report.Known != Kept || report.Last != uint64(n) ||
			report.Head != trail[n-1].Stated) {
			t.Fatalf("seed %d: %+v", seed, report)
		}
		for _, f := range report.Findings {
			if s := f.Sentence(); strings.Count(s, ".") != 1 || !strings.HasSuffix(s, ".") ||
				!strings.Contains(s, fmt.Sprint(f.Number)) {
				t.Fatalf("%+v: %s", f, s)
			}
		}
	}
}

// generation is the generation in which a trail continues after its first entries.
func generation(trail []*Entry, behind int) ids.ID {
	return trail[max(behind, 1)-1].Generation
}

// A restore is reported, but not as a fault. That holds for the path that the API reads, and for a
// file that includes what was left behind.
func TestRestores(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		old := chain(r, nil, 1, 2+r.IntN(30))
		kept := r.IntN(len(old))
		path := restore(r, old, 2, kept, r.IntN(30))
		both := append(slices.Clone(old), path[kept:]...)
		left, left0 := *headOf(old), old[len(old)-1]
		for name, trail := range map[string][]*Entry{"path": path, "both": both} {
			report := verify(trail, &left)
			if told(report) != "" || report.Known != Behind || report.LeftAt != uint64(kept+1) ||
				len(report.Restores) != 1 || report.Restores[0].Number != uint64(kept+1) ||
				report.Restores[0].Left.Hash != left.Hash ||
				report.Last != uint64(len(path)) {
				t.Fatalf("seed %d, %s: %s, %+v", seed, name, told(report), report)
			}
			if report := verify(trail, headOf(path)); report.Known != Kept {
				t.Fatalf("seed %d, %s: the newest entry is not known: %+v", seed, name, report)
			}
		}
		inner := &Head{old[0].Number, old[0].Stated}
		if report := verify(both, inner); kept == 0 && report.Known != Behind ||
			kept > 0 && report.Known != Kept {
			t.Fatalf("seed %d: %+v", seed, report)
		}
		if report := verify(path, inner); kept == 0 && report.Known != Unsure ||
			report.LeftAt > 1 {
			t.Fatalf("seed %d: %+v", seed, report)
		}
		// Without the restore's entry it is a fork.
		without := slices.Delete(slices.Clone(both), len(old), len(old)+1)
		if len(path) > kept+1 {
			if got := told(verify(without, nil)); !strings.HasPrefix(got, "forked") &&
				!strings.HasPrefix(got, "gap") {
				t.Fatalf("seed %d: %s", seed, got)
			}
		}
		// A restore that names another end than the existing one does not belong to this trail.
		other := *path[kept]
		other.Restored = &Mark{left0.Generation, left.Number, Hash{1}}
		other.Stated = other.Sum()
		forged := append(slices.Clone(old), &other)
		if got, want := told(verify(forged, nil)), fmt.Sprintf("forked %d-%d", kept+1,
			kept+1); got != want {
			t.Fatalf("seed %d: %s, want %s", seed, got, want)
		}
	}
}

// A generation that no restore begins belongs to a fork.
func TestAGenerationWithoutARestore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	trail := chain(r, chain(r, nil, 1, 4), 2, 3)
	if got := told(verify(trail, nil)); got != "forked 5-5" {
		t.Error(got)
	}
}

// Much damage is neither overlooked nor fills the memory.
func TestManyDamages(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		trail := chain(r, nil, 1, 60)
		mutated := slices.Clone(trail)
		for range 2 + r.IntN(20) {
			at := r.IntN(len(mutated) - 1)
			switch r.IntN(4) {
			case 0:
				mutated = slices.Delete(mutated, at, at+1)
			case 1:
				mutated[at] = damaged(r, mutated[at])
			case 2:
				mutated = slices.Insert(mutated, r.IntN(len(mutated)), mutated[at])
			case 3:
				mutated[at], mutated[at+1] = mutated[at+1], mutated[at]
			}
		}
		same := slices.EqualFunc(mutated, trail, func(a, b *Entry) bool {
			return a.Sum() == b.Sum() && a.Stated == b.Stated
		})
		if report := verify(mutated, headOf(trail)); (told(report) == "") != same {
			t.Fatalf("seed %d: %s of %+v", seed, told(report), report)
		}
	}
	r := rand.New(rand.NewPCG(1, 4))
	long := chain(r, nil, 1, 3*maxGaps+2*maxPending)
	var holes []*Entry
	for i, e := range long {
		switch {
		case i >= 3*maxGaps:
			holes = append(holes, damaged(r, e))
		case i%3 > 0:
			holes = append(holes, e)
		}
	}
	v := NewVerifier(nil)
	for _, e := range holes {
		v.Add(e)
	}
	report := v.Finish()
	if len(v.gaps) > maxGaps || len(v.pending) > maxPending ||
		len(report.Findings) > maxFindings || report.More == 0 {
		t.Errorf("%d gaps, %d findings and %d more", len(v.gaps), len(report.Findings),
			report.More)
	}
}

func TestAnEmptyTrail(t *testing.T) {
	if report := verify(nil, nil); told(report) != "" || report.Entries != 0 {
		t.Errorf("%+v", report)
	}
	if got := told(verify(nil, &Head{3, Hash{1}})); got != "gap 1-3" {
		t.Error(got)
	}
}

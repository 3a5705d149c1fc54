package trail

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is a kind of fault in a trail.
type Kind string

// The kinds of faults.
const (
	Gap     Kind = "gap"     // entries are missing
	Changed Kind = "changed" // an entry was altered
	Forked  Kind = "forked"  // entries belong to another trail
	Order   Kind = "order"   // entries are repeated or misplaced
)

// Finding is a fault of the entries from Number to Upto.
type Finding struct {
	Kind         Kind
	Number, Upto uint64
	after        uint64 // of Order: the entry that they follow; 0: they are repeated
	known        bool   // of Gap and Forked: only the previously known head reveals it
}

// Restore is a restore that the trail contains. It is not a fault.
type Restore struct {
	Number uint64 // of the restore's entry
	Left   Mark   // the newest entry that it left behind
}

// Head is the newest entry of a trail, as noted earlier.
type Head struct {
	Number uint64
	Hash   Hash
}

// Fate is what happened to a previously known head.
type Fate int

// The fates of a head.
const (
	Unasked Fate = iota
	Kept
	Behind // a restore left it behind
	Unsure // a restore may have left it behind: the trail alone cannot tell
	Lost   // a finding says why
)

// Report is the result of a verification.
type Report struct {
	Entries     uint64
	First, Last uint64 // numbers, 0 for an empty trail
	Head        Hash
	Findings    []Finding // by number, maxFindings at most
	More        uint64    // findings beyond maxFindings
	Restores    []Restore // the first ones, maxRestores at most
	Known       Fate
	LeftAt      uint64 // of Behind and Unsure: the number of the restore
}

// Bounds of what a Verifier remembers.
const (
	maxFindings = 1_000
	maxRestores = 1_000
	maxGaps     = 1_000
	maxPending  = 1_000
	// remembered is how many entries can be recognized as repeats or forks; 80 bytes each.
	remembered = 1 << 20
)

// seen is an entry that was read.
type seen struct{ hash, before Hash }

// Verifier reads a trail in order, one entry at a time. Its memory is bounded.
type Verifier struct {
	report  Report
	known   *Head
	last    *Entry // the newest unaltered entry
	hash    Hash   // of last
	seen    map[uint64]seen
	pending []uint64 // numbers claimed by altered entries after last
	gaps    []span
	loose   bool // the entry before was altered, so that nothing says what follows it
}

type span struct{ from, upto uint64 }

// NewVerifier makes a verifier. known is a previously known head of the trail, nil for none.
func NewVerifier(known *Head) *Verifier {
	return &Verifier{known: known, seen: map[uint64]seen{}}
}

// Add reads the next entry.
func (v *Verifier) Add(e *Entry) {
	v.report.Entries++
	hash := e.Sum()
	if hash != e.Stated {
		if v.pending = append(v.pending, e.Number); len(v.pending) == maxPending {
			v.judgePending(0)
		}
		return
	}
	last := v.lastNumber()
	switch {
	case e.Number > last:
		v.goOn(e, hash)
	case e.Restored != nil && v.leads(e):
		v.judgePending(0)
		for n := e.Number; n <= last; n++ {
			delete(v.seen, n)
		}
		if v.report.Known == Kept && v.known.Number >= e.Number {
			v.report.Known, v.report.LeftAt = Behind, e.Number
		}
		v.accept(e, hash)
	default:
		v.judgePending(0)
		v.late(e, hash)
	}
}

func (v *Verifier) lastNumber() uint64 {
	if v.last == nil {
		return 0
	}
	return v.last.Number
}

// leads says whether a restore takes the trail back from its newest entry to an earlier one.
func (v *Verifier) leads(e *Entry) bool {
	back, ok := v.seen[e.Number-1]
	return v.last.Generation == e.Restored.Generation && v.last.Number == e.Restored.Number &&
		v.hash == e.Restored.Hash && e.Generation != v.last.Generation &&
		(ok && back.hash == e.Before || e.Number == 1 && e.Before == Hash{})
}

// goOn adds an unaltered entry whose number is higher than all before.
func (v *Verifier) goOn(e *Entry, hash Hash) {
	last := v.lastNumber()
	direct := len(v.pending) == 0 && e.Number == last+1 && !v.loose
	v.judgePending(e.Number)
	switch {
	case !direct:
	case e.Before != v.hash:
		v.find(Finding{Kind: Forked, Number: e.Number, Upto: e.Number})
	case v.last != nil && e.Generation != v.last.Generation && e.Restored == nil:
		v.find(Finding{Kind: Forked, Number: e.Number, Upto: e.Number})
	}
	v.accept(e, hash)
}

func (v *Verifier) accept(e *Entry, hash Hash) {
	if v.report.First == 0 {
		v.report.First = e.Number
	}
	if e.Restored != nil && len(v.report.Restores) < maxRestores {
		v.report.Restores = append(v.report.Restores, Restore{e.Number, *e.Restored})
	}
	v.last, v.hash, v.loose = e, hash, false
	v.note(e, hash)
	if e.Number > remembered {
		delete(v.seen, e.Number-remembered)
	}
}

// note remembers an entry of the trail.
func (v *Verifier) note(e *Entry, hash Hash) {
	v.seen[e.Number] = seen{hash, e.Before}
	if v.known != nil && *v.known == (Head{e.Number, hash}) {
		v.report.Known = Kept
	}
}

// judgePending decides which entries between the last unaltered one and the next were altered, and
// which are missing. next is 0 if none follows.
//
// An altered entry may claim any number. If nothing is missing, its position gives its number;
// otherwise its claim does, if it fits.
func (v *Verifier) judgePending(next uint64) {
	last := v.lastNumber()
	if next == 0 {
		next = last + uint64(len(v.pending)) + 1
		if len(v.pending) > 0 {
			v.last, v.loose = &Entry{Number: next - 1}, true
		}
	}
	free := span{last + 1, next - 1}
	exact := next-last-1 == uint64(len(v.pending))
	for i, claimed := range v.pending {
		left := uint64(len(v.pending) - i - 1)
		place := claimed
		if exact || claimed < free.from || claimed > free.upto || free.upto-claimed < left {
			place = free.from
		}
		if place > free.upto || next-last-1 < uint64(len(v.pending)) {
			v.find(Finding{Kind: Changed, Number: claimed, Upto: claimed})
			continue
		}
		v.miss(span{free.from, place - 1})
		v.find(Finding{Kind: Changed, Number: place, Upto: place})
		free.from = place + 1
	}
	v.miss(free)
	v.pending = v.pending[:0]
}

// miss notes a gap; its entries may still come late.
func (v *Verifier) miss(s span) {
	if s.from > s.upto {
		return
	}
	if len(v.gaps) == maxGaps {
		v.find(Finding{Kind: Gap, Number: v.gaps[0].from, Upto: v.gaps[0].upto})
		v.gaps = v.gaps[1:]
	}
	v.gaps = append(v.gaps, s)
}

// late adds an entry that comes after one with a higher or equal number.
func (v *Verifier) late(e *Entry, hash Hash) {
	was, known := v.seen[e.Number]
	gap := slices.IndexFunc(v.gaps, func(s span) bool {
		return s.from <= e.Number && e.Number <= s.upto
	})
	before, knownBefore := v.seen[e.Number-1]
	next, knownNext := v.seen[e.Number+1]
	switch {
	case known && was.hash == hash:
		v.find(Finding{Kind: Order, Number: e.Number, Upto: e.Number})
	case gap >= 0 && (!knownBefore || before.hash == e.Before) && (!knownNext ||
		next.before == hash):
		s := v.gaps[gap]
		v.gaps = slices.Delete(v.gaps, gap, gap+1)
		v.miss(span{s.from, e.Number - 1})
		v.miss(span{e.Number + 1, s.upto})
		v.note(e, hash)
		v.find(Finding{Kind: Order, Number: e.Number, Upto: e.Number, after: v.last.Number})
	case !known && gap < 0 && v.last.Number-e.Number >= remembered:
		v.find(Finding{Kind: Order, Number: e.Number, Upto: e.Number, after: v.last.Number})
	default:
		v.find(Finding{Kind: Forked, Number: e.Number, Upto: e.Number})
	}
}

// find records a finding, and merges it with the one directly before it.
func (v *Verifier) find(f Finding) {
	if n := len(v.report.Findings); n > 0 {
		before := &v.report.Findings[n-1]
		if before.Kind == f.Kind && before.Upto+1 == f.Number && !f.known &&
			(before.after == 0) == (f.after == 0) {
			before.Upto = f.Upto
			return
		}
	}
	if len(v.report.Findings) == maxFindings {
		v.report.More++
		return
	}
	v.report.Findings = append(v.report.Findings, f)
}

// Finish returns the report. Nothing may be added afterwards.
func (v *Verifier) Finish() Report {
	v.judgePending(0)
	for _, s := range v.gaps {
		v.find(Finding{Kind: Gap, Number: s.from, Upto: s.upto})
	}
	v.report.Last, v.report.Head = v.lastNumber(), v.hash
	v.lookForKnown()
	slices.SortStableFunc(v.report.Findings, func(a, b Finding) int {
		return cmp.Compare(a.Number, b.Number)
	})
	return v.report
}

// lookForKnown determines the fate of the known head.
func (v *Verifier) lookForKnown() {
	if v.known == nil || v.report.Known != Unasked {
		return
	}
	for _, r := range v.report.Restores {
		switch {
		case r.Left.Number == v.known.Number && r.Left.Hash == v.known.Hash:
			v.report.Known, v.report.LeftAt = Behind, r.Number
			return
		case r.Number <= v.known.Number && v.known.Number < r.Left.Number:
			v.report.Known, v.report.LeftAt = Unsure, r.Number
		}
	}
	if v.report.Known == Unsure {
		return
	}
	v.report.Known = Lost
	if v.known.Number > v.report.Last {
		v.find(Finding{Kind: Gap, Number: v.report.Last + 1, Upto: v.known.Number, known: true})
		return
	}
	if slices.ContainsFunc(v.report.Findings, func(f Finding) bool {
		return f.Number <= v.known.Number && v.known.Number <= f.Upto
	}) {
		return // already reported
	}
	v.find(Finding{Kind: Forked, Number: v.known.Number, Upto: v.known.Number, known: true})
}

// Sentence describes a finding for a person.
func (f Finding) Sentence() string {
	entries, are, were, stand := fmt.Sprintf("Entry %d", f.Number), "is", "was", "stands"
	if f.Upto > f.Number {
		entries, are = fmt.Sprintf("Entries %d to %d", f.Number, f.Upto), "are"
		were, stand = "were", "stand"
	}
	switch {
	case f.Kind == Gap && f.known:
		return fmt.Sprintf("%s %s missing: the trail ends before the head that you know.", entries,
			are)
	case f.Kind == Gap:
		return fmt.Sprintf("%s %s missing.", entries, are)
	case f.Kind == Changed:
		return fmt.Sprintf("%s %s changed: the hash is that of another text.", entries, were)
	case f.Kind == Forked && f.known:
		return fmt.Sprintf("%s %s not the one that you know: it or one before was replaced.",
			entries, are)
	case f.Kind == Forked:
		return fmt.Sprintf("%s %s of another trail: the entry before, as it stands here, is not "+
			"the one that is named.", entries, are)
	case f.after == 0:
		return fmt.Sprintf("%s %s twice.", entries, stand)
	}
	return fmt.Sprintf("%s %s not in place, but behind entry %d.", entries, are, f.after)
}

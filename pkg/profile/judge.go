package profile

import (
	"fmt"
	"math"
	"slices"
)

// Bounds of a judgement.
const (
	// FewestBefore is the fewest earlier runs needed for a judgement: fewer do not show the usual.
	FewestBefore = 3
	// MostBefore is the most earlier runs that are considered.
	MostBefore = 10
	// fewestValues is the fewest values of a field in a run to compare more than their number.
	fewestValues = 10
)

// Aspect is the respect in which a run is odd.
type Aspect string

// The aspects.
const (
	RowCount   Aspect = "ROW_COUNT"
	FillRate   Aspect = "FILL_RATE"
	Types      Aspect = "TYPES"
	Values     Aspect = "VALUES"
	TextLength Aspect = "TEXT_LENGTH"
	Variety    Aspect = "VARIETY"
)

// Values lists the aspects for the API's enums.
func (Aspect) Values() []string {
	return []string{string(RowCount), string(FillRate), string(Types), string(Values),
		string(TextLength), string(Variety)}
}

// Oddity is a respect in which a run differs from earlier ones. Field is "" for a RowCount.
type Oddity struct {
	Aspect Aspect
	Field  string
	Text   string // why, in words
}

// Deviations from the range of earlier runs that are always allowed. More is allowed by the width
// of that range, and by chance with few values. Rates are shares of 1; the others are logarithms,
// so that half is as far away as double.
const (
	freeRows    = 0.45 // a factor of 1.6
	freeRate    = 0.2
	freeMean    = 0.8 // a factor of 2.2
	freeLength  = 0.5 // a factor of 1.6
	freeVariety = 1.1 // a factor of 3
	// freeFall is the factor to which small shares may fall. It is not a logarithm.
	freeFall = 3
	// chance is how many standard deviations count as chance
	chance = 4
)

// Judge returns in what a run differs from the sound runs before it; nil: in nothing, or there are
// too few of them. It compares with the range of all of them. An odd one among them may hide a
// similar fault, but never makes one up.
func Judge(run *Sums, before []*Sums) []Oddity {
	if len(before) < FewestBefore {
		return nil
	}
	before = before[:min(len(before), MostBefore)]
	var odd []Oddity
	rows := usualOf(before, func(s *Sums) (float64, bool) { return logOf(float64(s.Rows)), true })
	if rows.leaves(logOf(float64(run.Rows)), freeRows, chance/math.Sqrt(1+math.Exp(rows.low))) {
		noun := "rows"
		if run.Rows == 1 {
			noun = "row"
		}
		odd = append(odd, Oddity{RowCount, "", fmt.Sprintf("%d %s, where the last runs had %s",
			run.Rows, noun, rows.inWords(countOf, "%.0f"))})
	}
	if run.Rows == 0 {
		return odd
	}
	for _, name := range namesOf(run, before) {
		j := judging{run: run, before: before, name: name, other: len(odd) > 0 &&
			odd[0].Aspect == RowCount}
		odd = append(odd, j.field()...)
	}
	return odd
}

// namesOf returns the fields of all runs, each once: those of run first.
func namesOf(run *Sums, before []*Sums) (names []string) {
	seen := map[string]struct{}{}
	for _, s := range slices.Concat([]*Sums{run}, before) {
		for _, f := range s.Fields {
			if _, known := seen[f.Name]; !known {
				seen[f.Name] = struct{}{}
				names = append(names, f.Name)
			}
		}
	}
	return names[:min(len(names), MaxFields)]
}

// judging is the judgement of one field.
type judging struct {
	run    *Sums
	before []*Sums
	name   string
	other  bool // the run has another number of values, and so another variety
}

// of returns the field in sums, or an empty one if it is missing.
func (j *judging) of(s *Sums) *Field {
	for _, f := range s.Fields {
		if f.Name == j.name {
			return f
		}
	}
	return &Field{Name: j.name}
}

func (j *judging) field() (odd []Oddity) {
	add := func(aspect Aspect, format string, args ...any) {
		odd = append(odd, Oddity{aspect, j.name, fmt.Sprintf(format, args...)})
	}
	now := j.of(j.run)
	fill := usualOf(j.before, func(s *Sums) (float64, bool) {
		return share(j.of(s).Filled(), s.Rows), s.Rows > 0
	})
	rate := share(now.Filled(), j.run.Rows)
	if fill.leavesShare(rate, j.run.Rows) || fill.falls(rate, j.run.Rows) {
		add(FillRate, "%s of the rows have a value, where it was %s", percent(rate),
			fill.inPercent())
		j.other = true
	}
	if now.Filled() < fewestValues {
		return odd
	}
	if text := j.types(now); text != "" {
		add(Types, "%s", text)
		return odd // which changes all other aspects, too
	}
	if text := j.truths(now); text != "" {
		add(Values, "%s", text)
	}
	few := chance / math.Sqrt(float64(now.Filled()))
	if mean, is := meanOf(now); is {
		usual := j.usual(meanOf)
		if usual.leaves(mean, freeMean, few) {
			add(Values, "the numbers are %s in the mean, where they were %s", shown(mean),
				span(shown(usual.low), shown(usual.high)))
		}
	} else if length, is := lengthOf(now); is {
		usual := j.usual(lengthOf)
		if usual.leaves(length, freeLength, few) {
			add(TextLength, "texts have %.0f bytes in the mean, where they had %s",
				countOf(length), usual.inWords(countOf, "%.0f"))
		}
	}
	variety := j.usual(varietyOf)
	if _, exact := now.Distinct(); !exact { // an estimate is as good as its hashes are many
		few = max(few, chance/math.Sqrt(float64(len(now.values.hashes))))
	}
	if various, _ := varietyOf(now); !j.other && variety.leaves(various, freeVariety, few) {
		add(Variety, "%.0f different values in 100, where there were %s",
			100*math.Exp(various), variety.inWords(
				func(v float64) float64 { return 100 * math.Exp(v) }, "%.0f"))
	}
	return odd
}

// types says which kind of values has another share than before; "": none has.
func (j *judging) types(now *Field) string {
	for _, kind := range [...]struct {
		noun string
		of   func(f *Field) uint64
	}{
		{"numbers", (*Field).Numbers},
		{"texts", func(f *Field) uint64 { return f.Kinds[Text] + f.Kinds[Numeric] }},
		{"booleans", func(f *Field) uint64 { return f.Kinds[Boolean] }},
		{"objects", func(f *Field) uint64 { return f.Kinds[Object] }},
		{"arrays", func(f *Field) uint64 { return f.Kinds[Array] }},
	} {
		usual := j.usual(func(f *Field) (float64, bool) {
			return share(kind.of(f), f.Filled()), true
		})
		if part := share(kind.of(now), now.Filled()); usual.leavesShare(part, now.Filled()) {
			return fmt.Sprintf("%s of the values are %s, where it was %s", percent(part), kind.noun,
				usual.inPercent())
		}
	}
	return ""
}

// truths says that another share of the booleans is true than before; "": it is not so.
func (j *judging) truths(now *Field) string {
	usual, booleans := j.usual(truthOf), now.Kinds[Boolean]
	part, is := truthOf(now)
	if !is || !usual.leavesShare(part, booleans) && !usual.falls(part, booleans) &&
		!usual.opposite().falls(1-part, booleans) {
		return ""
	}
	return fmt.Sprintf("%s of the booleans are true, where it was %s", percent(part),
		usual.inPercent())
}

// truthOf returns the share of a field's booleans that are true.
func truthOf(f *Field) (float64, bool) {
	booleans := f.Kinds[Boolean]
	return share(f.truths.count, booleans), booleans >= fewestValues && !f.truths.unknown
}

// usual returns the usual range for a field, from runs with enough values.
func (j *judging) usual(of func(f *Field) (float64, bool)) usual {
	return usualOf(j.before, func(s *Sums) (float64, bool) {
		f := j.of(s)
		if f.Filled() < fewestValues {
			return 0, false
		}
		return of(f)
	})
}

// usual is the range of a quantity over some runs.
type usual struct {
	low, high float64
	runs      int
}

// inWords writes the range, in the unit that of gives.
func (u usual) inWords(of func(float64) float64, format string) string {
	return span(fmt.Sprintf(format, of(u.low)), fmt.Sprintf(format, of(u.high)))
}

// span writes a range of which both ends may look the same.
func span(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}

// countOf is what logOf was made of.
func countOf(log float64) float64 { return math.Exp(log) - 1 }

// inPercent writes a range of shares.
func (u usual) inPercent() string { return span(percent(u.low), percent(u.high)) }

// percent writes a share. Of small shares and small rests it gives a decimal.
func percent(share float64) string {
	if rest := min(share, 1-share); rest > 0 && rest < 0.02 {
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

func usualOf(before []*Sums, of func(s *Sums) (float64, bool)) (u usual) {
	for _, s := range before {
		value, is := of(s)
		if !is {
			continue
		}
		if u.runs == 0 {
			u.low, u.high = value, value
		}
		u.low, u.high, u.runs = min(u.low, value), max(u.high, value), u.runs+1
	}
	return u
}

func (u usual) middle() float64 { return (u.low + u.high) / 2 }

// leaves reports whether a value is outside the range by more than free, the range's own width, and
// chance.
func (u usual) leaves(value, free, chance float64) bool {
	if u.runs < FewestBefore {
		return false
	}
	room := max(free, u.high-u.low, chance)
	return value < u.low-room || value > u.high+room
}

// leavesShare reports whether a share of so many values is outside the range.
func (u usual) leavesShare(part float64, of uint64) bool {
	return u.leaves(part, freeRate, chance*deviation(u.middle(), of))
}

// falls reports whether a share of so many values is far below the range, however small that is. It
// may be so by freeFall, by the factor between the range's ends, and by chance.
func (u usual) falls(part float64, of uint64) bool {
	return u.runs >= FewestBefore && part*max(freeFall, u.high/u.low) < u.low &&
		part < u.low-chance*deviation(u.low, of)
}

// opposite returns the range of what is missing to 1.
func (u usual) opposite() usual { return usual{low: 1 - u.high, high: 1 - u.low, runs: u.runs} }

func share(part, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return min(float64(part)/float64(of), 1)
}

// deviation returns the standard deviation of a share of that many values.
func deviation(share float64, of uint64) float64 {
	return math.Sqrt(share*(1-share)/float64(max(of, 1))) + 1/float64(max(of, 1))
}

func logOf(number float64) float64 { return math.Log(1 + number) }

// meanOf returns the size of a field's mean, if most of its values are numbers.
func meanOf(f *Field) (float64, bool) {
	numbers := f.Numbers()
	if 2*numbers < f.Filled() || numbers == 0 {
		return 0, false
	}
	mean := f.Sum / float64(numbers)
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return 0, false
	}
	return math.Copysign(math.Log(1+100*math.Abs(mean)), mean), true
}

// shown formats a result of meanOf as a number.
func shown(size float64) string {
	return fmt.Sprintf("%.4g", math.Copysign((math.Exp(math.Abs(size))-1)/100, size))
}

// lengthOf returns the mean length of a field's texts.
func lengthOf(f *Field) (float64, bool) {
	texts := f.Kinds[Text] + f.Kinds[Numeric]
	if texts == 0 {
		return 0, false
	}
	return logOf(float64(f.Length) / float64(texts)), true
}

// varietyOf returns the share of distinct values among a field's values.
func varietyOf(f *Field) (float64, bool) {
	distinct, _ := f.Distinct()
	return math.Log(max(share(distinct, f.Filled()), 1e-9)), true
}

package amount

import "strings"

// multiply applies the factor after a number, given the text behind the next number. It returns the
// text after the factor. A short factor may begin a range. Then a currency has to be beside the
// number, or another factor at the upper end: $10k-$20k, but not 18k - $500.
func (c *candidate) multiply(before, after, end string) (rest string) {
	power, rest, sure := powerOf(after)
	if !sure && power > 0 && isRange(rest) {
		_, _, sure = powerOf(end)
		sure = sure || isBeside(before, "")
	}
	if c.vague = !sure || !c.shift(power); !c.vague {
		c.power = power
	}
	return rest
}

// lowOf returns the number that a range sign joins to the next one; nil: none does.
func lowOf(found []candidate, next candidate) *candidate {
	if last := len(found) - 1; last >= 0 && found[last].upper == next.start {
		return &found[last]
	}
	return nil
}

// withoutCurrency removes a currency from the beginning of the text between two numbers.
func withoutCurrency(gap string) string {
	gap = strings.TrimLeft(gap, " ")
	_, end := spellingAfter(gap)
	return gap[end:]
}

// isLakh reports whether an L after rupees means 100,000 of them: ₹12 L, ₹10–15 L.
func (r Reader) isLakh(low *candidate, before, after string) bool {
	word, ok := strings.CutPrefix(strings.TrimLeft(after, " "), "L")
	if !ok || isWord(firstRune(word)) {
		return false
	}
	if s, _ := beside(before, false); s != nil {
		return r.code(s) == "INR"
	}
	return low != nil && low.code == "INR"
}

// link finds the ranges among the numbers of a text. Each end gets what only the other one says:
// its currency, its unit, and a word such as k or ct.
func (r Reader) link(found []candidate) {
	for i := len(found) - 2; i >= 0; i-- {
		low, high := &found[i], &found[i+1]
		if low.upper != high.start {
			continue
		}
		r.share(low, high)
		a, b := *low, *high
		if a.unit == "" {
			a.unit = b.unit
		}
		switch {
		case a.spelling == nil:
			a.spelling, a.code = b.spelling, b.code
		case b.spelling == nil:
			b.spelling, b.code = a.spelling, a.code
		}
		if a.linked = !a.vague && !b.vague && r.isLess(a, b); a.linked {
			*low, *high = a, b
		}
	}
}

// share gives the lower end of a range the word that only the upper one has, as in 10–20k or 50–99
// ct. It does not where the range would fall: 500–1k. If that leaves doubts, both ends are vague.
func (r Reader) share(low, high *candidate) {
	scaled := *low
	switch {
	case low.vague: // 500m - 2 Mrd. €, but not 18k - $500
		high.vague = high.vague || high.power > 0
	case low.power != 0 || high.power == 0 && !high.vague,
		high.power < 0 && low.spelling != nil: // 1 € – 99 ct
	case high.vague || !scaled.shift(high.power):
		low.vague = !r.isLess(*high, *low)
		high.vague = high.vague || low.vague
	case r.isLess(*high, scaled):
	case low.spelling != nil && high.spelling != nil: // $1 - $2 million
		low.vague, high.vague = true, true
	default:
		scaled.power = high.power
		*low = scaled
	}
}

// isDayOfMonth reports whether an apparent range is a date: 25-09.
func isDayOfMonth(text string, found []candidate) bool {
	return len(found) == 2 && found[0].upper == found[1].start && found[0].spelling == nil &&
		found[1].spelling == nil && text[found[1].start] == '0' &&
		found[1].end == found[1].start+2
}

// isLess compares amounts.
func (r Reader) isLess(a, b candidate) bool {
	left, _, _ := strings.Cut(r.amount(a), ".")
	right, _, _ := strings.Cut(r.amount(b), ".")
	if len(left) != len(right) {
		return len(left) < len(right)
	}
	return r.amount(a) < r.amount(b)
}

// isRange reports whether two numbers are separated only by a range sign and currencies.
func isRange(gap string) bool {
	for _, sign := range []string{"–", "-", "~", "〜", "～", "to", "bis", "à", "até", "до", "do",
		"till", "tot", "から", "al", "a"} {
		before, after, ok := strings.Cut(gap, sign)
		if !ok {
			continue
		}
		for _, side := range []string{before, after} {
			side = strings.Trim(side, " ")
			if s, end := spellingAfter(side); s != nil {
				side = strings.Trim(side[end:], " .")
			}
			ok = ok && side == ""
		}
		if ok {
			return true
		}
	}
	return false
}

package amount

import (
	"strings"
	"unicode"
)

// Quantity returns the number in a text as JSON, "" if there is none, several or an ambiguous one.
// If whole is set, a comma or point before three digits separates thousands.
func (r Reader) Quantity(text string, whole bool) string {
	if !hasDigit(text) || hasPower(text) {
		return ""
	}
	text = plain(text)
	n, ok := nextNumber(text, 0)
	if !ok || n.whole == "" || hasDigit(text[n.end:]) {
		return ""
	}
	before, after := text[:n.start], text[n.end:]
	if isPart(before) || hasFactor(after, false) || isOdd(candidate{number: n}, before, after) {
		return ""
	}
	if n.sign != 0 && !whole && r.place.decimal == 0 {
		return ""
	}
	amount := n.json(!whole && n.sign == r.place.decimal)
	if isNegative(before) && strings.Trim(amount, "0.") != "" {
		return "-" + amount
	}
	return amount
}

// hasPower reports whether raised digits follow a digit directly: 10⁶, or a note.
func hasPower(text string) bool {
	last := ' '
	for _, r := range text {
		if raisedDigit(r) >= 0 && unicode.IsDigit(last) {
			return true
		}
		last = r
	}
	return false
}

// Count returns the first whole number of a text, "" if there is none or it has a factor.
func Count(text string) string {
	if !hasDigit(text) {
		return ""
	}
	text = plain(text)
	for n, ok := nextNumber(text, 0); ok; n, ok = nextNumber(text, n.end) {
		if n.whole == "" || n.fraction != "" && n.sign == 0 {
			continue
		}
		if hasFactor(text[n.end:], false) {
			return ""
		}
		return n.json(false)
	}
	return ""
}

package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// join takes the digits after a number as its cents, if a space, a sign or a currency is in
// between: 119. 95, 19:90 kr, 5€50 or 5 € 99 ct. A factor may be there, too: 1tr2, 2k5. If they may
// also be a separate number, as in $12 99, the amount is in doubt.
func (c *candidate) join(text string, last int, next number) bool {
	if c.whole == "" || c.fraction != "" && c.sign == 0 {
		return false
	}
	gap, cents := text[c.end:next.start], text[next.start:next.end]
	if gap == " " && !isDigit(rune(cents[0])) { // 12 .99
		gap, cents = " "+cents[:1], cents[1:]
	}
	if strings.Trim(cents, "0123456789") != "" {
		return false
	}
	if (gap == "k" || gap == "tr") && c.fraction == "" && len(cents) <= 3 {
		c.end, c.fraction, c.power = next.end, cents, powers[gap]
		c.vague = !c.shift(c.power)
		return true
	}
	after := text[next.end:]
	digits := c.joinParts(text[last:c.start], gap, cents, after)
	if digits == 0 && c.isJoint(text[:c.start], last, gap, cents, after) {
		digits = 2
	}
	if digits == 0 {
		return false
	}
	if c.sign != 0 {
		c.whole, c.sign = c.whole+c.fraction, 0
	}
	c.end, c.fraction = next.end, strings.Repeat("0", digits-len(cents))+cents
	return true
}

// joinParts looks for parts of a currency after an amount, and notes a currency in the gap. It
// returns their digits: 2 for 5 € 99 ct, 3 for 5 KD 250 fils. 0: none.
func (c *candidate) joinParts(before, gap, parts, after string) (digits int) {
	sign := withoutAnd(strings.Trim(gap, " "))
	named, _ := spellingBefore(strings.TrimRight(before, " "))
	if sign != "" {
		named = spellings[sign]
	}
	if named == nil {
		return 0
	}
	digits, _, ok := candidate{number: number{whole: parts}}.minorAfter(after, named.code)
	if !ok || digits < len(parts) {
		return 0
	}
	if sign != "" {
		c.spelling = named
	}
	return digits
}

// isJoint reports whether digits are the cents of the number before them, given the gap. It notes a
// currency in the gap, and doubts.
func (c *candidate) isJoint(before string, last int, gap, cents, after string) bool {
	left, from := spellingBefore(strings.TrimRight(before[last:], " "))
	rest := strings.TrimLeft(after, " *.-–")
	right, end := spellingAfter(rest)
	sign := withoutAnd(strings.Trim(gap, " "))
	middle := spellings[sign]
	alone := strings.Trim(before, " ") == ""
	switch {
	case len(cents) != 2:
		return false
	case gap == ". " || gap == ", " || gap == " ." || gap == " ,":
		return rest == "" || right != nil || left != nil ||
			strings.Contains(rest, c.whole+sign+cents) // 5. 99 … 5.99
	case gap == ":":
		return right != nil || left != nil && rest == "" || strings.HasPrefix(after, ":-")
	case sign == "":
		c.doubt = strings.Trim(gap, " ") == "" &&
			(alone && right != nil && !right.weak && end == len(rest) ||
				rest == "" && left != nil && !left.weak && last+from == 0)
		return c.doubt
	case middle == nil || left != nil || !unicode.Is(unicode.Sc, firstRune(sign)) ||
		utf8.RuneCountInString(sign) != 1:
		return false
	}
	spaced := !strings.HasPrefix(gap, sign)
	if rest != "" && (gap != sign || isWord(firstRune(rest)) || isShare("", rest)) ||
		spaced && !alone {
		return false
	}
	c.spelling, c.doubt = middle, spaced
	return true
}

// ands are the words between an amount and its hundredths.
var ands = wordset.Of("and und et y e og och en i и")

// withoutAnd removes a final joining word from the text between two numbers.
func withoutAnd(gap string) string {
	at := strings.LastIndexByte(gap, ' ') + 1
	if ands[strings.ToLower(gap[at:])] {
		return strings.TrimRight(gap[:at], " ")
	}
	return gap
}

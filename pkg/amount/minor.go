package amount

import (
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// minors are words for hundredths of a currency after a number. A lone p is one, too, if it touches
// one or two digits.
var minors = wordset.Of("¢ ct cts cent cents centime centimes centavo centavos céntimo céntimos " +
	"cêntimo cêntimos centesimi pence " +
	"öre øre коп копеек копейки копійок groszy grosze haléřů")

// isMinor reports whether the text after an amount makes it hundredths: 99 ct, 50p.
func (c candidate) isMinor(after string) bool {
	word := strings.TrimLeft(after, " ")
	end := strings.IndexFunc(word, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(word)
	}
	if end == 0 && firstRune(word) == '¢' {
		end = utf8.RuneLen('¢')
	}
	name := strings.ToLower(word[:end])
	if name == "p" {
		return word == after && c.fraction == "" && len(c.whole) <= 2
	}
	return minors[name]
}

// divide moves a number's point two places to the left. It fails if the point is uncertain.
func (n *number) divide() bool {
	if n.sign != 0 || len(n.fraction)+2 > maxFraction {
		return false
	}
	whole := strings.Repeat("0", max(0, 3-len(n.whole))) + n.whole
	n.whole, n.fraction = whole[:len(whole)-2], whole[len(whole)-2:]+n.fraction
	return true
}

// isScaledBefore reports whether the word before a number multiplies it, as in Lakh 1.5.
func isScaledBefore(before string) bool {
	word := strings.TrimRight(before, " .")
	from := strings.LastIndexFunc(word, func(r rune) bool { return !isWord(r) })
	name := strings.ToLower(word[from+1:])
	return utf8.RuneCountInString(name) > 2 && powers[name] > 0
}

package filter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseNumber parses text that is a number: an optional sign, decimal digits, optionally a point
// with more digits, and optionally an exponent. It accepts nothing else around it, and nothing
// beyond a 64-bit float.
func ParseNumber(text string) (float64, bool) {
	if number, ok := parseShort(text); ok {
		return number, true
	}
	if !numeric(text) {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil
}

// mostShort is the most bytes of a short number: a float64 has so many digits exactly.
const mostShort = 15

// powers are those of ten that a short number is divided by. Quotients of exact numbers are rounded
// once, as strconv rounds them.
var powers = [mostShort]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14}

// parseShort parses digits with at most one point between them. Most numbers are so, and nothing
// needs to look at them twice. False: the text is another number, or none.
func parseShort(text string) (float64, bool) {
	if text == "" || len(text) > mostShort {
		return 0, false
	}
	whole, point := uint64(0), -1
	for n := range len(text) {
		switch c := text[n]; {
		case '0' <= c && c <= '9':
			whole = whole*10 + uint64(c-'0')
		case c == '.' && point < 0 && n > 0 && n < len(text)-1:
			point = n
		default:
			return 0, false
		}
	}
	if point < 0 {
		return float64(whole), true
	}
	return float64(whole) / powers[len(text)-1-point], true
}

func numeric(text string) bool {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	text, ok := skipDigits(text)
	if !ok {
		return false
	}
	if text != "" && text[0] == '.' {
		if text, ok = skipDigits(text[1:]); !ok {
			return false
		}
	}
	if text == "" || text[0] != 'e' && text[0] != 'E' {
		return text == ""
	}
	text = text[1:]
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	text, ok = skipDigits(text)
	return ok && text == ""
}

// skipDigits cuts off leading digits; ok reports that there was one.
func skipDigits(text string) (rest string, ok bool) {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return text[n:], n > 0
}

// Fold maps texts that differ only in case to one form, by Unicode's simple folding. RE2 uses the
// same folding for (?i).
func Fold(text string) string {
	for i := range len(text) { // most text is folded already, and checking bytes is faster
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return text[:i] + strings.Map(foldRune, text[i:])
		}
	}
	return text
}

// foldRune returns the least rune of r's folding orbit. For ASCII it returns the lower-case letter,
// so that common text stays unchanged.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if least < utf8.RuneSelf {
		return foldRune(least)
	}
	return least
}

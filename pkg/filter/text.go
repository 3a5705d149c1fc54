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
	if !numeric(text) {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil
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

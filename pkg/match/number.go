package match

import "strings"

// Number is a trade number with a valid check digit, as the 14 digits of a GTIN.
type Number uint64

// isbnPrefix is the GTIN prefix of books.
const isbnPrefix = 978

// ParseNumber parses a GTIN of 8, 12, 13 or 14 digits, or an ISBN of 10 or 13. Eleven digits are a
// UPC of twelve, stored as a number and so without its zero. It ignores spaces and hyphens between
// digits. It is false if the check digit is wrong. It is also false for numbers
// that identify no product: zeros, and numbers for internal use by shops and coupons.
func ParseNumber(text string) (Number, bool) {
	var digits [14]byte
	n := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case c == ' ' || c == '-' || c == '\t':
			continue
		case n == len(digits):
			return 0, false
		case c >= '0' && c <= '9':
			digits[n] = c - '0'
		case (c == 'X' || c == 'x') && n == 9 && strings.TrimSpace(text[i+1:]) == "":
			digits[n] = 10
		default:
			return 0, false
		}
		n++
	}
	switch n {
	case 10:
		return ofISBN(digits[:10])
	case 8, 11, 12, 13, 14:
		return ofDigits(digits[:n])
	}
	return 0, false
}

// ofISBN returns the trade number for a book's ten digits. The last one may be 10.
func ofISBN(digits []byte) (Number, bool) {
	sum := 0
	for i, d := range digits {
		sum += (10 - i) * int(d)
	}
	if sum%11 != 0 {
		return 0, false
	}
	value := uint64(isbnPrefix)
	for _, d := range digits[:9] {
		value = value*10 + uint64(d)
	}
	if value == isbnPrefix*1_000_000_000 {
		return 0, false
	}
	return Number(value*10 + checkDigit(value)), true
}

// checkDigit returns the check digit for the digits before it.
func checkDigit(value uint64) uint64 {
	sum, weight := uint64(0), uint64(3)
	for ; value > 0; value /= 10 {
		sum += weight * (value % 10)
		weight = 4 - weight
	}
	return (10 - sum%10) % 10
}

func ofDigits(digits []byte) (Number, bool) {
	value := uint64(0)
	for _, d := range digits {
		if d > 9 {
			return 0, false
		}
		value = value*10 + uint64(d)
	}
	if checkDigit(value/10) != value%10 || restricted(value, len(digits)) {
		return 0, false
	}
	return Number(value), true
}

// restricted reports whether a number has a prefix that identifies no product worldwide. Such
// prefixes belong to shops, companies and coupons (GS1 General Specifications 1.4).
func restricted(value uint64, digits int) bool {
	if digits == 8 {
		first := value / 10_000_000
		return value == 0 || first == 0 || first == 2
	}
	prefix := value / 10_000_000_000 % 1_000 // the first three digits of thirteen
	switch {
	case value%10_000_000_000_000 < 10:
		return true
	case prefix >= 20 && prefix <= 29, prefix >= 40 && prefix <= 59,
		prefix >= 200 && prefix <= 299, prefix >= 980 && prefix <= 999:
		return true
	}
	return false
}

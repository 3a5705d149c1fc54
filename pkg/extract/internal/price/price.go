// Package price owns how shops write amounts of money: it reads 1.299,00 €, $1,299.00 or CHF 12.– into an amount and a
// currency. It converts nothing.
package price

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Price is an amount as it was found.
type Price struct {
	Amount   string // valid JSON: digits, and with a fraction a dot and digits
	Currency string // ISO 4217; "" when the text does not say which
}

// maxText bounds what is looked at, in bytes: a price is short.
const maxText = 200

// maxDigits bounds an amount: more digits are a number of something else.
const maxDigits = 15

// symbols are what stands beside amounts; longer ones come first. A sign that several currencies share says nothing: the
// page's own currency may.
var symbols = []struct{ text, currency string }{
	{"US$", "USD"}, {"C$", "CAD"}, {"CA$", "CAD"}, {"A$", "AUD"}, {"AU$", "AUD"}, {"NZ$", "NZD"}, {"HK$", "HKD"},
	{"S$", "SGD"}, {"R$", "BRL"}, {"MX$", "MXN"}, {"NT$", "TWD"}, {"€", "EUR"}, {"£", "GBP"}, {"₹", "INR"}, {"₽", "RUB"},
	{"₺", "TRY"}, {"₩", "KRW"}, {"₴", "UAH"}, {"₪", "ILS"}, {"฿", "THB"}, {"₫", "VND"}, {"₱", "PHP"}, {"zł", "PLN"},
	{"Kč", "CZK"}, {"Ft", "HUF"}, {"лв", "BGN"}, {"lei", "RON"}, {"Fr.", "CHF"}, {"руб.", "RUB"}, {"грн", "UAH"}, {"円", "JPY"}, {"원", "KRW"},
	{"Rp", "IDR"}, {"$", ""}, {"¥", ""}, {"￥", ""}, {"元", ""}, {"kr", ""}, {"Rs", ""},
}

// codes are the currencies that shops write as codes.
var codes = []string{
	"EUR", "USD", "GBP", "CHF", "JPY", "CNY", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON",
	"BGN", "TRY", "RUB", "UAH", "INR", "BRL", "MXN", "ARS", "CLP", "COP", "PEN", "ZAR", "KRW", "SGD", "HKD", "TWD", "THB",
	"IDR", "MYR", "PHP", "VND", "ILS", "AED", "SAR", "QAR", "KWD", "BHD", "EGP", "MAD", "NGN", "KES", "PKR", "BDT",
}

// IsCode says whether text is a currency's code.
func IsCode(text string) bool {
	for _, code := range codes {
		if text == code {
			return true
		}
	}
	return false
}

// Parse reads the first amount of a text. ok is false when there is none.
func Parse(text string) (p Price, ok bool) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	start := strings.IndexFunc(text, isDigit)
	if start < 0 {
		return p, false
	}
	end := numberEnd(text[start:]) + start
	p.Amount = amount(text[start:end])
	if p.Amount == "" {
		return p, false
	}
	p.Currency, _ = currency(text[:start], text[end:])
	return p, true
}

// Is says whether a text is a price and nothing else: an amount with a currency beside it, and hardly a word more.
func Is(text string) bool {
	start := strings.IndexFunc(text, isDigit)
	if start < 0 || len(text) > 40 {
		return false
	}
	end := numberEnd(text[start:]) + start
	before, after := text[:start], text[end:]
	if _, found := currency(before, after); !found || amount(text[start:end]) == "" {
		return false
	}
	letters := 0
	for _, r := range before + after {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters <= 12 && strings.IndexFunc(after, isDigit) < 0
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// numberEnd is where the number that s begins with ends: digits, with signs and single spaces between groups of them.
func numberEnd(s string) int {
	end := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case isDigit(r):
			end = i + size
		case strings.ContainsRune(".,'’", r):
		case r == ' ' || r == '\u00a0' || r == '\u202f':
			if !groupFollows(s[i+size:]) {
				return end
			}
		default:
			return end
		}
		i += size
	}
	return end
}

// groupFollows says whether s begins with three digits and no fourth.
func groupFollows(s string) bool {
	n := 0
	for n < len(s) && isDigit(rune(s[n])) {
		n++
	}
	return n == 3
}

// amount is the number in the form of JSON, "" when it is none. Of two signs the last one begins the fraction. A single
// sign before exactly three digits stands between thousands, unless nothing but a zero comes before it.
func amount(s string) string {
	sign := strings.LastIndexAny(s, ".,")
	whole, fraction := s, ""
	if sign >= 0 {
		alone := strings.Count(s, s[sign:sign+1]) == 1
		rest := s[sign+1:]
		if alone && (len(rest) != 3 || s[:sign] == "0" || strings.ContainsAny(s[:sign], ".,'’")) {
			whole, fraction = s[:sign], rest
		}
	}
	whole, fraction = digitsOf(whole), digitsOf(fraction)
	if len(whole)+len(fraction) > maxDigits || whole == "" {
		return ""
	}
	whole = strings.TrimLeft(whole[:len(whole)-1], "0") + whole[len(whole)-1:]
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if isDigit(r) {
			return r
		}
		return -1
	}, s)
}

// near is how far from its amount a currency may stand, in bytes.
const near = 12

// currency finds the sign or the code that stands next to an amount.
func currency(before, after string) (code string, found bool) {
	if cut := len(before) - near; cut > 0 {
		before = before[cut:]
	}
	if len(after) > near {
		after = after[:near]
	}
	for _, side := range []string{after, before} {
		for _, code := range codes {
			if hasWord(side, code) {
				return code, true
			}
		}
	}
	for _, side := range []string{before, after} {
		for _, symbol := range symbols {
			word := symbol.text[0]|0x20 >= 'a' && symbol.text[0]|0x20 <= 'z'
			if word && hasWord(side, symbol.text) || !word && strings.Contains(side, symbol.text) {
				return symbol.currency, true
			}
		}
	}
	return "", false
}

// hasWord says whether a word stands in s by itself.
func hasWord(s, word string) bool {
	at := strings.Index(s, word)
	if at < 0 {
		return false
	}
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
	}
	return !letter(at-1) && !letter(at+len(word))
}

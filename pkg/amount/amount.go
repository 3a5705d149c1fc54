// Package amount reads amounts of money and other numbers as pages write them: 1.299,00 €,
// $1,299.00, CHF 12.– or KWD 12.500. It is the only reader of numbers in texts. It converts
// nothing, and would rather find nothing than a wrong amount.
//
// In money, a single comma or point before exactly three digits separates thousands, since money
// has no thousandths. But it begins a fraction after a lone zero, and in currencies with a thousand
// parts (CLDR). It also does in prices of fuel and electricity, which have fractions of cents. With
// a thousand parts, a comma means what it does in the page's language or the currency's country. So
// 12,500 TND is a fraction, but not 12,500 KWD. A word after an amount may multiply it (12k, 3 Mio.
// €, 2 lakh) or divide it (99 ct, 500 millimes). Percentages, and factors with several meanings
// such as a billion or a lone m, make no amount. For a range, the lower amount is read. What only
// one end says counts for both: 10-20K USD, 50–99 ct. Of several amounts, the first one with a
// currency counts. It must not be a unit price, as in (5,98 €/kg), or one of several payments, as
// in 3 x 5 €. A word that marks today's price takes precedence. Two digits after an amount are its
// cents if they are raised ($12⁹⁹) or nothing else is there (12 € 99). For other numbers, the
// page's language decides what a comma and a point mean.
package amount

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Price is an amount as found in a text.
type Price struct {
	Amount   string // valid JSON: digits, and for a fraction a dot and digits
	Max      string // upper end of a range; "": no range
	Currency string // ISO 4217; "" if the text does not say
	Negative bool   // with a minus before it
	Sole     bool   // the text has no other number, nor digits that may be one
	Named    bool   // a currency is beside it, or a sign shared by several
	Today    bool   // a word before it marks it, and no other, as today's
}

// Reader reads the numbers of one page. The zero Reader assumes nothing about it.
type Reader struct {
	place   place
	guesses bool // guess the currency of a shared sign
	machine bool // a comma separates thousands, whatever the language
}

// NewReader reads texts in a language, a tag of BCP 47; "" if unknown. A sign shared by several
// currencies means that of the language's country, or else the usual one.
func NewReader(lang string) Reader { return Reader{place: placeOf(lang), guesses: true} }

// WithCurrency returns the reader for a page that states its currency, a code of ISO 4217. It
// ignores anything else.
func (r Reader) WithCurrency(code string) Reader {
	if IsCode(code) {
		r.place.currency = code
	}
	return r
}

// Machine returns a reader for machine-written numbers: a point begins a fraction.
func Machine() Reader { return Reader{place: place{decimal: '.'}, machine: true} }

// Parse reads the amount of a text without any context. ok is false if there is none.
func Parse(text string) (Price, bool) { return Reader{}.Parse(text) }

// candidate is a number in a text that may be its amount.
type candidate struct {
	number
	spelling *spelling
	code     string
	unit     string // for a unit price; "": not one
	upper    int    // where the number begins that a range sign joins to it; 0: none
	linked   bool   // the next candidate is the upper end of its range
	power    int    // of ten, by which a word after it has multiplied it
	vague    bool   // a word after it makes it another amount, uncertain which
	doubt    bool   // its cents may be a separate number
	today    bool   // a word before it marks it as today's
}

// Parse reads the amount of a text. ok is false if there is none.
func (r Reader) Parse(text string) (p Price, ok bool) {
	if !hasDigit(text) {
		if isFree(text) {
			return Price{Amount: "0", Sole: true}, true
		}
		return p, false
	}
	cut := len(text) > maxText && hasDigit(text[maxText:])
	text = plain(text)
	var room [maxNumbers]candidate
	found, numbers := r.candidates(text, room[:0])
	best, todays := -1, 0
	for i, c := range found {
		if best < 0 || c.rank() > found[best].rank() {
			best = i
		}
		if c.today {
			todays++
		}
	}
	if best < 0 {
		return p, false
	}
	c := found[best]
	p = Price{Amount: r.amount(c), Currency: c.code, Sole: numbers == 1 && !cut && !c.doubt,
		Named: c.spelling != nil, Today: c.today && todays == 1}
	if c.linked && best+1 < len(found) {
		p.Max = r.amount(found[best+1])
	}
	if c.spelling == nil {
		p.Currency = r.Currency(text[:c.start] + " " + text[c.end:])
	}
	// a dash before a point may stand for a zero: -,75 €, Fr. -.75
	p.Negative = isNegative(text[:c.start]) && text[c.start] != ',' &&
		(text[c.start] != '.' || p.Currency != "CHF")
	return p, true
}

// rank orders the amounts of a text: today's, one with a currency, a unit price, then a mere
// number.
func (c candidate) rank() int {
	switch {
	case c.spelling == nil:
		return 0
	case c.unit != "":
		return 1
	case c.today:
		return 3
	}
	return 2
}

// candidates appends the numbers of a plain text that may be amounts to found. numbers is the
// number of all numbers in the text.
func (r Reader) candidates(text string, found []candidate) (list []candidate, numbers int) {
	last := 0 // end of the previous number
	for n, ok := nextNumber(text, 0); ok && numbers < maxNumbers; numbers++ {
		c := candidate{number: n}
		next, more := nextNumber(text, n.end)
		if more && c.join(text, last, next) {
			next, more = nextNumber(text, c.end)
		}
		until, end := len(text), ""
		if more {
			until, end = next.start, text[next.end:]
		}
		before, after := text[last:c.start], text[c.end:until]
		low := lowOf(found, c)
		if low != nil {
			before = withoutCurrency(before) // it is the lower end's
		}
		if r.isLakh(low, before, after) {
			after = "lakh" + strings.TrimLeft(after, " ")[1:]
		}
		if c.isFactored(after) {
			after = c.multiply(before, after, end)
		}
		if c.whole != "" && !isShare(before, after) && !isScaledBefore(before) &&
			!isOdd(c, before, after) && !isOther(before) {
			r.name(&c, before, ownPart(text, after, next, more))
			if last > 0 && isPartly(before) {
				c.unit = "?"
				found = withoutTimes(found, last)
			}
			if c.spelling == nil {
				after = r.divide(&c, after)
			}
			if c.spelling != nil || !isPart(before) && !isMoment(text, c.number) {
				if more && isRange(after) {
					c.upper = next.start
				}
				c.today = isToday(before) && !c.isZero()
				found = append(found, c)
			}
		}
		last, n, ok = c.end, next, more
	}
	r.link(found)
	found = slices.DeleteFunc(found, func(c candidate) bool { return c.vague })
	if isDayOfMonth(text, found) {
		return nil, numbers
	}
	return found, numbers
}

// isFactored reports whether the text after an amount multiplies it, and is not its currency.
func (c candidate) isFactored(after string) bool {
	s, _ := spellingAfter(strings.TrimLeft(after, " "))
	return s == nil && hasFactor(after, true)
}

// ownPart cuts from the text after a number what belongs to the next number. That is what follows a
// dash (50 - $2.00), and a currency that touches only the next number (size 5 $10).
func ownPart(text, after string, next number, more bool) string {
	if !more {
		return after
	}
	after, _, _ = strings.Cut(after, " -")
	after, _, _ = strings.Cut(after, " –")
	if s, from := spellingBefore(after); s != nil && from > 0 && len(after) > 1 &&
		strings.HasSuffix(text[:next.start], after) {
		if own, _ := spellingAfter(strings.TrimLeft(text[next.end:], between)); own == nil {
			return after[:from]
		}
	}
	return after
}

// isPart reports whether a number follows a Latin letter directly, as in a name: X100.
func isPart(before string) bool {
	return unicode.Is(unicode.Latin, lastRune(before))
}

// name finds the currency next to a number, and the unit that it is the price of.
func (r Reader) name(c *candidate, before, after string) {
	left, rest := beside(before, false)
	right, unit := beside(after, true)
	if !isRange(after) { // 12 € a 15 €
		c.unit = unitOf(unit)
	}
	if left == nil && right == nil && c.spelling == nil {
		return
	}
	if left != nil && left.of != nil {
		if further, _ := beside(rest, false); further != nil && further.of == nil {
			left = further
		}
	}
	for _, s := range []*spelling{left, right, c.spelling} {
		if s != nil && (c.spelling == nil || c.spelling.of != nil && s.of == nil) {
			c.spelling = s
		}
	}
	if c.spelling.of != nil {
		if further, _ := beside(unit, true); further != nil {
			c.spelling = further
		}
	}
	c.code = r.code(c.spelling)
}

// between are the characters that may separate an amount and its currency.
const between = " :.,-–*'=~("

// beside returns the currency at the near end of the text before or after a number, and the rest of
// that text. nil: none.
func beside(text string, after bool) (s *spelling, rest string) {
	for trimmed := text; trimmed != ""; {
		r, size := utf8.DecodeRuneInString(trimmed)
		if !after {
			r, size = utf8.DecodeLastRuneInString(trimmed)
		}
		if r != ' ' { // no currency begins or ends with a space
			if after {
				if s, end := spellingAfter(trimmed); s != nil {
					return s, trimmed[end:]
				}
			} else if s, from := spellingBefore(trimmed); s != nil {
				return s, trimmed[:from]
			}
		}
		if !strings.ContainsRune(between, r) {
			break
		}
		if after {
			trimmed = trimmed[size:]
		} else {
			trimmed = trimmed[:len(trimmed)-size]
		}
	}
	return nil, text
}

// code returns the currency that a spelling means on this page.
func (r Reader) code(s *spelling) string {
	switch {
	case s.of == nil:
		return s.code
	case r.place.currency != "" && slices.Contains(s.of, r.place.currency):
		return r.place.currency
	case r.guesses && s.of[0] != "-", len(s.of) == 1:
		return s.of[0]
	}
	return ""
}

// Currency returns the currency that a text names on its own, "" if that is not certain.
func (r Reader) Currency(text string) string {
	text = plain(text)
	shared := ""
	for at := 0; at < len(text); {
		first, size := utf8.DecodeRuneInString(text[at:])
		if !isWord(first) && !unicode.Is(unicode.Sc, first) {
			at += size
			continue
		}
		s, end := spellingAfter(text[at:])
		switch {
		case s == nil || s.weak && len(text) > end:
			end = size
			for at+end < len(text) && isWord(first) && isWord(firstRune(text[at+end:])) {
				end += len(string(firstRune(text[at+end:])))
			}
		case s.of == nil:
			return s.code
		case shared == "":
			shared = r.code(s)
		}
		at += end
	}
	return shared
}

// amount returns a candidate's number as JSON.
func (r Reader) amount(c candidate) string {
	if c.sign == 0 {
		return c.json(true)
	}
	code := c.code
	if code == "" {
		code = r.place.currency
	}
	switch {
	case r.machine:
		return c.json(c.sign == '.')
	case code != "" && hasMils(code):
		return c.json(c.sign == '.' || c.sign == r.place.decimal ||
			c.sign == decimalOf(code) && !r.place.abroad(code))
	}
	return c.json(fuels[c.unit] && len(c.whole) == 1)
}

// isNegative reports whether a text ends with a minus directly before a number, or before its
// currency.
func isNegative(before string) bool {
	if s, from := spellingBefore(strings.TrimRight(before, " ")); s != nil {
		before = before[:from]
	}
	rest := strings.TrimRight(before, "-–")
	if rest == before {
		return false
	}
	if s, from := spellingBefore(rest); s != nil { // €-5
		rest = rest[:from]
	}
	return rest == "" || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, ":")
}

// fuels are units of goods whose prices have fractions of cents.
var fuels = wordset.Of("l liter litre litro litr л gal gallon kwh")

// unitOf returns the unit of a unit price: the text after it begins with / or per. "": none.
func unitOf(after string) string {
	after = strings.TrimLeft(after, " ")
	for _, per := range []string{"/", "per ", "je ", "pro ", "par ", "por ", "za ", "a ", "à "} {
		rest, ok := strings.CutPrefix(after, per)
		if !ok {
			continue
		}
		if rest = strings.TrimLeft(rest, " 0123456789"); strings.HasPrefix(rest, "vista") {
			continue // that means paid at once
		}
		end := strings.IndexFunc(rest,
			func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return "?"
		}
		return strings.ToLower(rest[:end])
	}
	return ""
}

// fromWords stand before prices that have a colon and a dash for cents.
var fromWords = wordset.Of("från fra fr nu nå ab from kun pris ord rek")

// isDashed reports whether a sign and a dash for cents, and perhaps a star, follow a number. A
// point does not count: 1.- is also the first of a list. Nor does a colon behind a word: Step 1:-.
func isDashed(before, after string) bool {
	dash, ok := strings.CutPrefix(after, ",")
	if !ok {
		word := strings.Trim(strings.ToLower(before), " .:")
		dash, ok = strings.CutPrefix(after, ":")
		ok = ok && (word == "" || fromWords[word])
	}
	rest := strings.TrimLeft(dash, "-–—=")
	return ok && rest != dash && strings.Trim(rest, " *") == ""
}

// Is reports whether a text is a price and hardly anything else. A currency is beside the amount,
// or a dash stands for its cents (129,-).
func Is(text string) bool {
	if len(text) > 60 || !hasDigit(text) {
		return false
	}
	text = plain(text)
	n, ok := nextNumber(text, 0)
	c := candidate{number: n}
	if next, more := nextNumber(text, n.end); more &&
		(!c.join(text, 0, next) || hasDigit(text[c.end:])) {
		return false
	}
	before, after := text[:c.start], text[c.end:]
	if !ok || c.whole == "" || c.vague || utf8.RuneCountInString(text) > 40 ||
		isShare(before, after) {
		return false
	}
	letters := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if letters > 12 {
		return false
	}
	if isDashed(before, after) {
		_, ok = Parse(text)
		return ok
	}
	Reader{}.name(&c, before, after)
	return c.spelling != nil && (!c.spelling.weak || len(c.fraction) == 2) && !c.isFactored(after)
}

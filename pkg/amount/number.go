package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Numbers as people write them. If there are both commas and points, the later sign begins the
// fraction. A sign that repeats separates groups. Spaces and apostrophes separate groups of three
// digits. A single comma or point before exactly three digits may be either: the caller decides.

const (
	maxText     = 200 // bytes read of a text: a price is short
	maxWhole    = 15  // digits before the fraction: longer numbers are not amounts
	maxFraction = 20  // digits of a fraction
	maxNumbers  = 16  // numbers read of a text
)

// number is a number in a text.
type number struct {
	start, end int // in the text
	whole      string
	fraction   string
	// the sign before the last digits if it may also separate thousands; 0 if there is none
	sign byte
}

// json returns the number as JSON. fraction says that three digits after a sign are a fraction.
func (n number) json(fraction bool) string {
	whole, rest := n.whole, n.fraction
	if n.sign != 0 && !fraction {
		whole, rest = whole+rest, ""
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if rest == "" {
		return whole
	}
	return whole + "." + rest
}

// hasDigit reports whether a text has a digit of any script.
func hasDigit(text string) bool {
	for _, r := range text {
		if isDigit(r) || r > unicode.MaxASCII && unicode.IsDigit(r) {
			return true
		}
	}
	return false
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func digitAt(s string, i int) bool { return i >= 0 && i < len(s) && isDigit(rune(s[i])) }

// digitsAt counts the digits of s from i on.
func digitsAt(s string, i int) int {
	n := 0
	for digitAt(s, i+n) {
		n++
	}
	return n
}

// nextNumber finds the first number of a plain text from an offset on. An unreadable one, such as a
// date, gets no digits.
func nextNumber(s string, from int) (n number, ok bool) {
	for n.start = from; !digitAt(s, n.start); n.start++ {
		if n.start >= len(s) {
			return n, false
		}
	}
	n.end = n.start
	spaced := false // with spaces or apostrophes
	signs := 0
	for n.end < len(s) {
		switch c := s[n.end]; {
		case isDigit(rune(c)):
			n.end++
			continue
		case (c == '.' || c == ',') && digitAt(s, n.end+1):
			signs++
			n.end++
			continue
		case (c == ' ' || c == '\'') && signs == 0 && digitsAt(s, n.end+1) == 3 &&
			isGroup(s[n.start:n.end]):
			spaced = true
			n.end++
			continue
		}
		break
	}
	n.read(s[n.start:n.end], spaced)
	bare := strings.TrimRight(s[from:n.start], ".,")
	switch points := n.start - from - len(bare); {
	case points == 0 || !startsFraction(bare):
	case signs == 0 && !spaced:
		n.start, n.whole, n.fraction = from+len(bare), "0", n.whole
	case points > 1: // $..75,333
		n.whole, n.fraction, n.sign = "", "", 0
	}
	return n, true
}

// isZero reports whether a number is zero.
func (n number) isZero() bool { return strings.Trim(n.whole+n.fraction, "0") == "" }

// isGroup reports whether a group of three digits may follow a number.
func isGroup(s string) bool {
	last := s[strings.LastIndexAny(s, " '")+1:]
	return len(last) == 3 || len(last) < 3 && len(last) == len(s)
}

// startsFraction reports whether a point or comma after a text begins a number: .75, but not No.75.
// A dash may stand for the zero: -,75.
func startsFraction(before string) bool {
	if dashed := strings.TrimRight(before, "-–"); dashed != before {
		s, _ := spellingBefore(dashed)
		return s != nil || startsFraction(dashed)
	}
	r, size := utf8.DecodeLastRuneInString(before)
	return size == 0 || unicode.IsSpace(r) || unicode.Is(unicode.Sc, r) || r == '(' || r == ':'
}

// read parses a number: digits with commas and points, and with spaces or apostrophes between
// groups.
func (n *number) read(raw string, spaced bool) {
	if spaced {
		raw = strings.NewReplacer(" ", "", "'", "").Replace(raw)
	}
	last := strings.LastIndexAny(raw, ".,")
	switch {
	case last < 0:
		n.whole = raw
	case strings.Count(raw, raw[last:last+1]) > 1: // only groups
		if !inGroups(raw, raw[last]) {
			return
		}
		n.whole = strings.ReplaceAll(raw, raw[last:last+1], "")
	default:
		whole, other := raw[:last], '.'+','-raw[last]
		n.whole, n.fraction = strings.ReplaceAll(whole, string(other), ""), raw[last+1:]
		switch {
		case n.whole != whole && !inGroups(whole, other):
			n.whole, n.fraction = "", ""
		case n.whole == whole && len(n.fraction) == 3 && len(whole) <= 3 && whole[0] != '0' &&
			!spaced:
			n.sign = raw[last]
		}
	}
	if len(n.whole) > maxWhole || len(n.fraction) > maxFraction {
		n.whole, n.fraction, n.sign = "", "", 0
	}
}

// inGroups reports whether a sign separates thousands or, as in India, the last thousand and
// hundreds before it.
func inGroups(s string, sign byte) bool {
	groups := strings.Split(s, string(sign))
	last := len(groups) - 1
	thousands, hundreds := true, sign == ','
	for i, group := range groups {
		thousands = thousands && (len(group) == 3 || i == 0 && len(group) < 3)
		hundreds = hundreds &&
			(len(group) == 2 || i == 0 && len(group) < 3 || i == last && len(group) == 3)
	}
	return (thousands || hundreds) && len(groups[last]) == 3 && groups[0] != "" && groups[0] != "0"
}

// factors are words that multiply the number before them.
var factors = wordset.Of("k m mn mio mrd mld mln mlrd mil bn b tsd thousand million millions " +
	"billion billions millionen milliarden " +
	"tausend lakh lakhs crore crores cr тыс млн млрд тис tys mill miljoner miljoen miljard " +
	"milhões milhão millón millones " +
	"milioni miliardi milyon milyar juta jt ribu rb triệu tr tỷ nghìn")

// powers are the powers of ten of unambiguous factors. A billion has nine zeros or twelve, and m
// may be a metre.
var powers = map[string]int{"k": 3, "tsd": 3, "thousand": 3, "tausend": 3, "тыс": 3, "тис": 3,
	"tys": 3, "ribu": 3, "rb": 3, "nghìn": 3,
	"lakh": 5, "lakhs": 5, "mn": 6, "mio": 6, "mln": 6, "million": 6, "millions": 6, "millionen": 6,
	"млн": 6, "miljoner": 6,
	"miljoen": 6, "milhões": 6, "milhão": 6, "millón": 6, "millones": 6, "milioni": 6, "milyon": 6,
	"juta": 6, "jt": 6, "triệu": 6, "tr": 6,
	"crore": 7, "crores": 7, "cr": 7, "bn": 9, "mrd": 9, "mld": 9, "mlrd": 9, "milliarden": 9,
	"млрд": 9, "miljard": 9, "miliardi": 9,
	"milyar": 9, "tỷ": 9}

// powerOf returns the power of ten of the factor at the beginning of the text after a number, and
// the rest. It is not sure of a short word before anything but a currency: 18k gold, 5 mn walk.
func powerOf(after string) (power int, rest string, sure bool) {
	word := strings.TrimLeft(after, " ")
	end := len(firstWord(word))
	name, rest := strings.ToLower(word[:end]), strings.TrimPrefix(word[end:], ".")
	if (name == "k" || name == "tr") && len(word) < len(after) { // 12 k
		return 0, rest, false
	}
	s, _ := spellingAfter(strings.TrimLeft(rest, " "))
	return powers[name], rest, powers[name] > 0 &&
		(s != nil || utf8.RuneCountInString(name) > 2 || strings.Trim(rest, " ") == "")
}

// firstWord returns the letters at the beginning of a text, with their marks.
func firstWord(text string) string {
	end := strings.IndexFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) })
	if end < 0 {
		return text
	}
	return text[:end]
}

// shift moves a number's point to the right, or to the left if places is negative. It fails if the
// point is uncertain or the number gets too long.
func (n *number) shift(places int) bool {
	if n.sign != 0 || len(n.whole)+places > maxWhole || len(n.fraction)-places > maxFraction {
		return false
	}
	whole := strings.Repeat("0", max(0, 1-places-len(n.whole))) + n.whole
	digits := whole + n.fraction + strings.Repeat("0", max(0, places-len(n.fraction)))
	n.whole, n.fraction = digits[:len(whole)+places], digits[len(whole)+places:]
	return true
}

const (
	hanFactors = "万萬億亿만억천"    // directly after a number, whatever follows them
	kiloUnits  = "克米瓦卡帕赫焦伏欧字" // units that 千 may precede as kilo
)

// hasFactor reports whether the text after a number multiplies it. If money is false, 5 m means
// metres, and 2 tr floors.
func hasFactor(after string, money bool) bool {
	word := strings.TrimLeft(after, " ")
	if word == "" {
		return false
	}
	r, size := utf8.DecodeRuneInString(word)
	if strings.ContainsRune(hanFactors, r) || r == '千' &&
		!strings.ContainsRune(kiloUnits, firstRune(word[size:])) {
		return true
	}
	end := len(firstWord(word))
	if unicode.Is(unicode.No, firstRune(word[end:])) { // m²
		return false
	}
	name := word[:end]
	lower := strings.ToLower(name)
	switch spaced := len(word) < len(after); lower {
	case "m":
		return money || !spaced
	case "tr":
		return name == lower && (money || !spaced) // 12 TR is meant as lira
	}
	return factors[lower]
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// shares are words for a percentage.
var shares = wordset.Of("percent prozent procent pct pourcent procenta procento процентов процента " +
	"процент")

// sharePhrases are percentages in two words.
var sharePhrases = []string{"per cent", "pour cent", "por ciento", "por cento", "per cento"}

// isShare reports whether a number is a percentage: 40 %, or %40 as in Turkey.
func isShare(before, after string) bool {
	after = strings.TrimLeft(after, " ")
	for _, phrase := range sharePhrases {
		if len(after) >= len(phrase) && strings.EqualFold(after[:len(phrase)], phrase) {
			return true
		}
	}
	if strings.HasPrefix(after, "%") || strings.HasPrefix(after, "‰") ||
		strings.HasSuffix(before, "%") &&
			startsFraction(before[:len(before)-1]) {
		return true
	}
	word, _, _ := strings.Cut(after, " ")
	return len(word) <= 24 && shares[strings.ToLower(strings.Trim(word, ".,;:!"))]
}

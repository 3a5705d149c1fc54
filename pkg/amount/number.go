package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Numbers as people write them. Of a comma and a point, the later one begins the fraction, and what
// comes more than once stands between groups. Spaces and apostrophes stand between groups of three
// digits. A single comma or point before exactly three digits may be either: its caller decides.

const (
	maxText     = 200 // bytes of a text that are looked at: a price is short
	maxWhole    = 15  // digits before the fraction: more are a number of something else
	maxFraction = 20  // digits of a fraction
	maxNumbers  = 16  // numbers of a text that are looked at
)

// number is one of a text.
type number struct {
	start, end int // in the text
	whole      string
	fraction   string
	// what stands before the last digits where it may as well stand between thousands; 0 if nothing
	// does
	sign byte
}

// json is the number in the form of JSON. fraction says what the three digits behind a sign are.
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

// hasDigit says whether a text has a digit of any script.
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

// digitsAt counts the digits that s has from i on.
func digitsAt(s string, i int) int {
	n := 0
	for digitAt(s, i+n) {
		n++
	}
	return n
}

// nextNumber finds the first number of a plain text from an offset on. What looks like one but
// cannot be read, such as a date, has no digits.
func nextNumber(s string, from int) (n number, ok bool) {
	for n.start = from; !digitAt(s, n.start); n.start++ {
		if n.start >= len(s) {
			return n, false
		}
	}
	n.end = n.start
	spaced := false // by spaces or apostrophes
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

// isZero says whether nothing of a number counts.
func (n number) isZero() bool { return strings.Trim(n.whole+n.fraction, "0") == "" }

// isGroup says whether a number may go on with a group of three digits.
func isGroup(s string) bool {
	last := s[strings.LastIndexAny(s, " '")+1:]
	return len(last) == 3 || len(last) < 3 && len(last) == len(s)
}

// startsFraction says whether a point or comma behind a text begins a number: .75, but not No.75. A
// dash may stand for the zero: -,75.
func startsFraction(before string) bool {
	if dashed := strings.TrimRight(before, "-–"); dashed != before {
		s, _ := spellingBefore(dashed)
		return s != nil || startsFraction(dashed)
	}
	r, size := utf8.DecodeLastRuneInString(before)
	return size == 0 || unicode.IsSpace(r) || unicode.Is(unicode.Sc, r) || r == '(' || r == ':'
}

// read takes a number apart: digits with commas and points, and with spaces or apostrophes between
// groups.
func (n *number) read(raw string, spaced bool) {
	if spaced {
		raw = strings.NewReplacer(" ", "", "'", "").Replace(raw)
	}
	last := strings.LastIndexAny(raw, ".,")
	switch {
	case last < 0:
		n.whole = raw
	case strings.Count(raw, raw[last:last+1]) > 1: // nothing but groups
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

// inGroups says whether a sign stands between thousands, or as in India behind a thousand and each
// hundred of it.
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
	"milioni miliardi milyon milyar juta jt ribu rb triệu tỷ nghìn")

// powers are the powers of ten of factors that mean but one. A billion has nine zeros or twelve, m
// may be a metre.
var powers = map[string]int{"k": 3, "tsd": 3, "thousand": 3, "tausend": 3, "тыс": 3, "тис": 3,
	"tys": 3, "ribu": 3, "rb": 3, "nghìn": 3,
	"lakh": 5, "lakhs": 5, "mn": 6, "mio": 6, "mln": 6, "million": 6, "millions": 6, "millionen": 6,
	"млн": 6, "miljoner": 6,
	"miljoen": 6, "milhões": 6, "milhão": 6, "millón": 6, "millones": 6, "milioni": 6, "milyon": 6,
	"juta": 6, "jt": 6, "triệu": 6,
	"crore": 7, "crores": 7, "cr": 7, "bn": 9, "mrd": 9, "mld": 9, "mlrd": 9, "milliarden": 9,
	"млрд": 9, "miljard": 9, "miliardi": 9,
	"milyar": 9, "tỷ": 9}

// powerOf is the power of ten that begins what stands behind a number, and what is left of that; 0
// where nothing is certain.
func powerOf(after string) (power int, rest string) {
	word := strings.TrimLeft(after, " ")
	end := strings.IndexFunc(word,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) })
	if end < 0 {
		end = len(word)
	}
	name, rest := strings.ToLower(word[:end]), strings.TrimPrefix(word[end:], ".")
	if name == "k" && len(word) < len(after) { // 12 k
		return 0, after
	}
	if s, _ := spellingAfter(strings.TrimLeft(rest, " ")); s == nil &&
		utf8.RuneCountInString(name) < 3 && strings.Trim(rest, " ") != "" {
		return 0, after // 18k gold, 5 mn walk
	}
	return powers[name], rest
}

// multiply moves a number's point to the right. It fails where the point is uncertain or the number
// gets too long.
func (n *number) multiply(power int) bool {
	if n.sign != 0 || len(n.whole)+power > maxWhole {
		return false
	}
	digits := n.fraction + strings.Repeat("0", max(0, power-len(n.fraction)))
	n.whole, n.fraction = n.whole+digits[:power], digits[power:]
	return true
}

const (
	hanFactors = "万萬億亿만억천"    // written right behind a number, with anything behind them
	kiloUnits  = "克米瓦卡帕赫焦伏欧字" // which 千 makes units of
)

// hasFactor says whether a number is multiplied by what follows it. Of other things than money, 5 m
// are metres.
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
	end := strings.IndexFunc(word,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) })
	switch {
	case end < 0:
		end = len(word)
	case unicode.Is(unicode.No, firstRune(word[end:])): // m²
		return false
	}
	if end == 0 || end > 20 || !money && len(word) < len(after) &&
		strings.EqualFold(word[:end], "m") {
		return false
	}
	return factors[strings.ToLower(word[:end])]
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

// isShare says whether a number is a percentage: 40 %, or %40 as in Turkey.
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

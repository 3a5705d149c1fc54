package amount

import (
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Words for parts of a currency after a number.
var (
	// hundredths are the usual parts.
	hundredths = wordset.Of("¢ ct cts cent cents centime centimes centavo centavos céntimo " +
		"céntimos centésimo centésimos cêntimo cêntimos centesimi senttiä snt senti pence öre øre " +
		"rappen коп копеек копейка копейки копійок копійки тиын groszy grosze haléřů haléře " +
		"halierov bani стотинки stotinki kuruş qəpik თეთრი paise paisa halala halalas هللة " +
		"piastres piasters قرش agorot אגורות sen satang สตางค์ pesewas")
	// thousandths are the parts of dinars and of Oman's rial.
	thousandths = wordset.Of("millime millimes مليم مليمات baisa baiza بيسة")
	// fils are thousandths of dinars, but hundredths of the dirham.
	fils = wordset.Of("fils فلس فلسا فلوس")
)

// minorAfter returns how many digits the parts of a currency have that the text after a number
// names, and the rest: 2 for 99 ct. 0 digits: uncertain. ok is false if the text names none. A lone
// p or c counts if it touches one or two digits. code is the currency as far as known.
func (c candidate) minorAfter(after, code string) (digits int, rest string, ok bool) {
	word := strings.TrimLeft(after, " ")
	end := len(firstWord(word))
	if end == 0 && firstRune(word) == '¢' {
		end = utf8.RuneLen('¢')
	}
	name, rest := strings.ToLower(word[:end]), word[end:]
	switch {
	case name == "p" || word[:end] == "c": // but 20C is a temperature
		return 2, rest, word == after && c.fraction == "" && len(c.whole) <= 2
	case thousandths[name], fils[name] && hasMils(code):
		return 3, rest, true
	case fils[name] && code != "AED":
		return 0, rest, true
	}
	return 2, rest, hundredths[name] || fils[name]
}

// divide moves an amount's point to the left if the text after it names parts of a currency. It
// returns the text after that word.
func (r Reader) divide(c *candidate, after string) (rest string) {
	digits, rest, ok := c.minorAfter(after, r.place.currency)
	if !ok {
		return after
	}
	c.vague = c.vague || digits == 0 || !c.shift(-digits)
	c.power -= digits
	return rest
}

// isScaledBefore reports whether the word before a number multiplies it, as in Lakh 1.5.
func isScaledBefore(before string) bool {
	word := strings.TrimRight(before, " .")
	from := strings.LastIndexFunc(word, func(r rune) bool { return !isWord(r) })
	name := strings.ToLower(word[from+1:])
	return utf8.RuneCountInString(name) > 2 && powers[name] > 0
}

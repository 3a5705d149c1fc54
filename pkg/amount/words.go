package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Words that tell what a number is.
var (
	// savings come before a discount.
	savings = wordset.Of("save saved saves saving savings spare sparen ersparnis gespart " +
		"économisez ahorra ahorras risparmi bespaar spar besparelse oszczędzasz")
	// todays come before today's price, next to an old one.
	todays = wordset.Of("now jetzt nun maintenant ahora agora adesso ora nu nå teraz сейчас тепер nyní")
	// months come before a day or a year.
	months = wordset.Of("january february march april june july august september october november " +
		"december jan feb mar apr jun jul aug sep sept oct nov dec januar februar märz juni juli " +
		"oktober dezember janvier février avril juin juillet août septembre octobre novembre " +
		"décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre " +
		"diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre")
	// gratis are the words for a price of zero.
	gratis = wordset.Of("free gratis kostenlos umsonst gratuit gratuito gratuita grátis бесплатно " +
		"безкоштовно ücretsiz darmo ilmainen ingyenes zdarma δωρεάν 無料 免费 免費 무료")
	// thresholds mark a number as a minimum order.
	thresholds = []string{"orders", "order over", "min. order", "minimum order", "мин. заказ",
		"минимальный заказ", "mindestbestellwert"}
)

// isFree reports whether a text without digits is just a word for a price of zero.
func isFree(text string) bool {
	if len(text) > 40 {
		return false
	}
	return gratis[strings.ToLower(strings.TrimFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) }))]
}

// wordBefore returns the last word of the text before a number, in lower case.
func wordBefore(before string) string {
	word := strings.TrimRightFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })
	from := strings.LastIndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
	_, size := utf8.DecodeRuneInString(word[max(from, 0):])
	if from < 0 {
		size = 0
	}
	return strings.ToLower(word[max(from, 0)+size:])
}

// isOther reports whether the text before a number says that it is not a price: Save $5, orders of
// $49, July 2004.
func isOther(before string) bool {
	word := wordBefore(before)
	if savings[word] {
		return true
	}
	text := strings.ToLower(before)
	for _, threshold := range thresholds {
		if strings.Contains(text, threshold) {
			return true
		}
	}
	return months[word] && strings.Trim(text[strings.LastIndex(text, word)+len(word):], " .,") == ""
}

// isToday reports whether a price is today's: Was $120 Now $60.
func isToday(before string) bool {
	if s, from := spellingBefore(strings.TrimRight(before, " ")); s != nil {
		before = before[:from]
	}
	return todays[wordBefore(before)]
}

// Words for prices that are paid several times: 3 x 33,33 €, 4 payments of $5.
var (
	timesWords = wordset.Of("x × * mal fois veces vezes volte keer payments installments " +
		"instalments raten rate rates cuotas parcelas mensualités termijnen mensilità " +
		"платежа платежей")
	ofWords = wordset.Of("de di da a à of von je por van zu по")
)

// isPartly reports whether the text between two numbers makes the second a part of a price, or a
// unit price: 1 kg = 5 €.
func isPartly(between string) bool {
	between = strings.TrimRight(between, " ")
	if s, from := spellingBefore(between); s != nil {
		between = strings.TrimRight(between[:from], " ")
	}
	if strings.HasSuffix(between, "=") {
		return true
	}
	words := strings.Fields(strings.ToLower(between))
	return (len(words) == 1 || len(words) == 2 && ofWords[words[1]]) && timesWords[words[0]]
}

// withoutTimes removes the number that ends at an offset, if it is only a count of payments.
func withoutTimes(found []candidate, at int) []candidate {
	if last := len(found) - 1; last >= 0 && found[last].end == at && found[last].spelling == nil {
		return found[:last]
	}
	return found
}

// isMoment reports whether a number is a date or a time: 25.12., 12.30 Uhr.
func isMoment(text string, n number) bool {
	after := strings.ToLower(text[n.end:])
	if word := strings.TrimLeft(after, " "); strings.HasPrefix(word, "uhr") {
		return true
	}
	day, month, ok := strings.Cut(text[n.start:n.end], ".")
	return ok && len(day) <= 2 && len(month) == 2 && (len(day) == 1 || day <= "31") &&
		month <= "12" && (after == "." || strings.HasPrefix(after, ". "))
}

// isOdd reports whether a sign beside a number changes it: 12½, 10⁶, 12^500.
func isOdd(c candidate, before, after string) bool {
	r := firstRune(after)
	return r == '^' || strings.HasSuffix(before, "^") ||
		'¼' <= r && r <= '¾' || '⅐' <= r && r <= '⅞' ||
		raisedDigit(r) >= 0 && c.whole == "10" && c.fraction == ""
}

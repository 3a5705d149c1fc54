package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/wordset"
)

// Words that say what a number is.
var (
	// savings stand before what is taken off a price.
	savings = wordset.Of("save saved saves saving savings spare sparen ersparnis gespart " +
		"économisez ahorra ahorras risparmi bespaar spar besparelse oszczędzasz")
	// todays stand before the price of today, where one of yesterday stands there, too.
	todays = wordset.Of("now jetzt nun maintenant ahora agora adesso ora nu nå teraz сейчас тепер nyní")
	// months stand before a day or a year.
	months = wordset.Of("january february march april june july august september october november " +
		"december jan feb mar apr jun jul aug sep sept oct nov dec januar februar märz juni juli " +
		"oktober dezember janvier février avril juin juillet août septembre octobre novembre " +
		"décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre " +
		"diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre")
	// gratis are the words for no price at all.
	gratis = wordset.Of("free gratis kostenlos umsonst gratuit gratuito gratuita grátis бесплатно " +
		"безкоштовно ücretsiz darmo ilmainen ingyenes zdarma δωρεάν 無料 免费 免費 무료")
	// thresholds say that a number is the least of an order.
	thresholds = []string{"orders", "order over", "min. order", "minimum order", "мин. заказ",
		"минимальный заказ", "mindestbestellwert"}
)

// isFree says whether a text without digits is the word for no price, and nothing else.
func isFree(text string) bool {
	if len(text) > 40 {
		return false
	}
	return gratis[strings.ToLower(strings.TrimFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) }))]
}

// wordBefore is the last word of what stands before a number, in small letters.
func wordBefore(before string) string {
	word := strings.TrimRightFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })
	from := strings.LastIndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
	_, size := utf8.DecodeRuneInString(word[max(from, 0):])
	if from < 0 {
		size = 0
	}
	return strings.ToLower(word[max(from, 0)+size:])
}

// isOther says whether what stands before a number makes it none of a price: Save $5, orders of
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

// isToday says whether a price is that of today: Was $120 Now $60.
func isToday(before string) bool {
	if s, from := spellingBefore(strings.TrimRight(before, " ")); s != nil {
		before = before[:from]
	}
	return todays[wordBefore(before)]
}

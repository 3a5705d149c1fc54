package aiconf

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Numbers in texts. A text holds a number if it holds exactly one; what stands around it may be words, currencies and
// units, but no factor such as k or Mio. Separators are told apart like this:
//
//   - Spaces and apostrophes separate thousands, where groups of three digits follow.
//   - Of a comma and a point, the later one is the decimal point; one that comes more than once separates thousands.
//   - A single one with other than three digits behind it, or after a lone zero, is the decimal point.
//   - A single one with three digits behind it is ambiguous. A machine wrote a point for decimals and a comma for
//     thousands. In text, the page's language decides, except that money has no three decimals; without a language the
//     text says nothing. Where a whole number is wanted, it separates thousands.

var (
	digits  = regexp.MustCompile(`[0-9](?:[0-9]|[.,][0-9]|[ \x{a0}\x{202f}\x{2009}'’][0-9]{3}(?:[^0-9]|$))*`)
	factors = regexp.MustCompile(`^\s?(?i:k|m|mn|mio|mrd|bn|b|tsd|thousand|million|billion|millionen|tausend)\b`)
)

// commaLanguages write a comma before decimals.
var commaLanguages = map[string]bool{"de": true, "fr": true, "es": true, "it": true, "nl": true, "pt": true, "da": true,
	"sv": true, "nb": true, "no": true, "nn": true, "fi": true, "pl": true, "cs": true, "sk": true, "hu": true, "ro": true,
	"bg": true, "hr": true, "sl": true, "sr": true, "el": true, "tr": true, "ru": true, "uk": true, "id": true, "et": true,
	"lv": true, "lt": true, "is": true, "ca": true, "vi": true}

// pointLanguages write a point.
var pointLanguages = map[string]bool{"en": true, "ja": true, "zh": true, "ko": true, "he": true, "th": true, "hi": true}

// number is the number in a text as JSON, "" if it holds none, several or an ambiguous one. lang is the page's language,
// "" for text that a machine wrote for machines.
func number(text string, f form, machine bool, lang string) string {
	text = strings.TrimSpace(text)
	at := digits.FindStringIndex(text)
	if at == nil {
		return ""
	}
	raw := text[at[0]:at[1]]
	for raw != "" && !unicode.IsDigit(rune(raw[len(raw)-1])) { // the pattern looks one character ahead
		_, size := utf8.DecodeLastRuneInString(raw)
		raw = raw[:len(raw)-size]
	}
	before, after := text[:at[0]], text[at[0]+len(raw):]
	if strings.IndexFunc(before+after, unicode.IsDigit) >= 0 || factors.MatchString(after) || endsInLetter(before) {
		return ""
	}
	sign := ""
	if trimmed := strings.TrimRight(before, " €$£¥"); strings.HasSuffix(trimmed, "-") || strings.HasSuffix(trimmed, "−") {
		if rest := strings.TrimRight(trimmed, "-−"); rest == "" || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, ":") {
			sign = "-"
		}
	}
	whole, fraction, ok := split(raw, f, machine, lang)
	if !ok {
		return ""
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// endsInLetter says whether a number stands right behind a letter, as in a product's name: X100.
func endsInLetter(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) && !strings.HasSuffix(s, "EUR") && !strings.HasSuffix(s, "USD") && !strings.HasSuffix(s, "CHF") &&
		!strings.HasSuffix(s, "GBP")
}

// split tells the digits before the decimal point from those behind it.
func split(raw string, f form, machine bool, lang string) (whole, fraction string, ok bool) {
	joined := strings.Map(func(r rune) rune {
		if r == '.' || r == ',' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, raw)
	grouped := joined != raw // by spaces or apostrophes
	points, commas := strings.Count(joined, "."), strings.Count(joined, ",")
	last := strings.LastIndexAny(joined, ".,")
	switch {
	case points+commas == 0:
		return joined, "", true
	case points > 0 && commas > 0:
		whole, fraction = joined[:last], joined[last+1:]
		if min(points, commas) > 1 || strings.Count(joined[last:], joined[last:last+1]) > 1 || strings.Count(joined, joined[last:last+1]) > 1 {
			return "", "", false
		}
		return bare(whole), fraction, inThousands(whole)
	case points+commas > 1:
		return bare(joined), "", inThousands(joined)
	}
	whole, fraction = joined[:last], joined[last+1:]
	if grouped || len(fraction) != 3 || len(whole) > 3 || whole == "0" {
		return whole, fraction, true
	}
	decimal, known := isDecimal(joined[last], f, machine, lang)
	if decimal {
		return whole, fraction, known
	}
	return whole + fraction, "", known
}

// isDecimal decides about a single separator before three digits.
func isDecimal(separator byte, f form, machine bool, lang string) (decimal, known bool) {
	if f == count {
		return false, true
	}
	if machine {
		return separator == '.', true
	}
	if f == money {
		return false, true
	}
	lang, _, _ = strings.Cut(strings.ToLower(lang), "-")
	switch {
	case commaLanguages[lang]:
		return separator == ',', true
	case pointLanguages[lang]:
		return separator == '.', true
	}
	return false, false
}

func bare(s string) string { return strings.NewReplacer(".", "", ",", "").Replace(s) }

// inThousands says whether all groups but the first have three digits.
func inThousands(s string) bool {
	groups := strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == ',' })
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && len(groups) > 1 && len(g) > 3 {
			return false
		}
	}
	return true
}

// symbols are currencies as texts write them; what several countries write is decided by the page's language.
var symbols = []struct{ symbol, currency string }{
	{"R$", "BRL"}, {"A$", "AUD"}, {"AU$", "AUD"}, {"C$", "CAD"}, {"CA$", "CAD"}, {"NZ$", "NZD"}, {"HK$", "HKD"}, {"US$", "USD"},
	{"€", "EUR"}, {"£", "GBP"}, {"zł", "PLN"}, {"Kč", "CZK"}, {"₹", "INR"}, {"₩", "KRW"}, {"₺", "TRY"}, {"Ft", "HUF"}, {"₽", "RUB"},
	{"₴", "UAH"}, {"₪", "ILS"}, {"฿", "THB"}, {"₫", "VND"}, {"lei", "RON"}, {"Fr.", "CHF"}, {"元", "CNY"},
}

var (
	isoCode = regexp.MustCompile(`\b[A-Z]{3}\b`)
	isoSet  = codes("AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW KWD MAD MXN " +
		"MYR NGN NOK NZD PEN PHP PKR PLN RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD UYU VND ZAR")
)

func codes(list string) map[string]bool {
	set := map[string]bool{}
	for c := range strings.FieldsSeq(list) {
		set[c] = true
	}
	return set
}

// currencyOf is the currency in a text as an ISO code, "" if it names none for certain.
func currencyOf(text, lang string) string {
	text = strings.TrimSpace(text)
	for _, found := range isoCode.FindAllString(strings.ToUpper(text), 4) {
		if isoSet[found] && (strings.Contains(text, found) || len(text) == 3) {
			return found
		}
	}
	for _, s := range symbols {
		if strings.Contains(text, s.symbol) {
			return s.currency
		}
	}
	language, region, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(lang, "_", "-")), "-")
	switch {
	case strings.Contains(text, "$"):
		if c := map[string]string{"ca": "CAD", "au": "AUD", "nz": "NZD", "sg": "SGD", "mx": "MXN"}[region]; c != "" {
			return c
		}
		return "USD"
	case strings.Contains(text, "¥"):
		return map[string]string{"ja": "JPY", "zh": "CNY"}[language]
	case strings.HasSuffix(strings.ToLower(text), "kr") || strings.HasSuffix(strings.ToLower(text), "kr."):
		return map[string]string{"sv": "SEK", "da": "DKK", "nb": "NOK", "no": "NOK", "nn": "NOK", "is": "ISK"}[language]
	}
	return ""
}

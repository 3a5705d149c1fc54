package web

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// alphabets are the non-ASCII letters of languages in Latin script. Each letter has its share of
// all letters in running text, in hundredths of a percent.
var alphabets = []struct {
	encoding string
	letters  map[rune]float64
}{
	{western, map[rune]float64{'é': 200, 'à': 50, 'è': 30, 'ê': 22, 'ç': 9, 'û': 6, 'ù': 6, 'ô': 5,
		'î': 5, 'â': 5, 'œ': 2, 'ë': 1, 'ï': 1}},
	{western, map[rune]float64{'ü': 100, 'ä': 58, 'ö': 44, 'ß': 30}},
	{western, map[rune]float64{'ó': 83, 'í': 73, 'á': 50, 'é': 43, 'ñ': 31, 'ú': 17, 'ü': 1,
		'¿': 10, '¡': 10}},
	{western, map[rune]float64{'ã': 73, 'ç': 53, 'ê': 45, 'é': 34, 'ó': 30, 'á': 40, 'í': 20,
		'ú': 20, 'õ': 20, 'â': 20, 'ô': 10, 'à': 7}},
	{western, map[rune]float64{'à': 64, 'è': 26, 'ù': 17, 'ì': 10, 'ò': 10, 'é': 3}},
	{western, map[rune]float64{'à': 40, 'é': 35, 'ó': 35, 'è': 25, 'í': 25, 'ò': 15, 'ç': 10,
		'ú': 10, 'ü': 2, 'ï': 3}},
	{western, map[rune]float64{'ä': 180, 'å': 134, 'ö': 130, 'é': 2}},
	{western, map[rune]float64{'å': 120, 'ø': 90, 'æ': 80, 'é': 2}},
	{western, map[rune]float64{'ð': 440, 'á': 180, 'í': 160, 'þ': 145, 'ó': 99, 'æ': 87, 'ö': 78,
		'é': 65, 'ú': 61, 'ý': 23}},
	{western, map[rune]float64{'ä': 150, 'õ': 90, 'ü': 60, 'ö': 20}},
	{central, map[rune]float64{'í': 164, 'ě': 122, 'ý': 100, 'á': 180, 'ž': 72, 'š': 69, 'é': 63,
		'č': 46, 'ř': 38, 'ů': 20, 'ú': 5, 'ó': 2, 'ň': 2, 'ť': 1, 'ď': 1}},
	{central, map[rune]float64{'ł': 211, 'ó': 114, 'ę': 104, 'ś': 81, 'ć': 74, 'ą': 95, 'ż': 71,
		'ń': 36, 'ź': 8}},
	{central, map[rune]float64{'é': 390, 'á': 340, 'ó': 110, 'ö': 100, 'ő': 90, 'í': 60, 'ü': 60,
		'ú': 30, 'ű': 20}},
	{central, map[rune]float64{'á': 190, 'č': 100, 'ý': 100, 'é': 90, 'í': 90, 'š': 80, 'ť': 80,
		'ú': 80, 'ž': 70, 'ľ': 40, 'ä': 20, 'ň': 20, 'ô': 20, 'ď': 20, 'ó': 10, 'ĺ': 2, 'ŕ': 2}},
	{central, map[rune]float64{'č': 140, 'š': 100, 'ž': 70, 'ć': 50, 'đ': 20}},
	{central, map[rune]float64{'ă': 250, 'ş': 110, 'ţ': 100, 'î': 100, 'â': 60}},
	{baltic, map[rune]float64{'ė': 160, 'ų': 140, 'š': 130, 'į': 70, 'ž': 80, 'ą': 65,
		'č': 45, 'ū': 50, 'ę': 25}},
	{baltic, map[rune]float64{'ā': 390, 'ī': 170, 'ē': 170, 'š': 100, 'ū': 60, 'ņ': 50, 'ļ': 35,
		'ž': 30, 'ķ': 15, 'ģ': 12, 'č': 10}},
	{turkish, map[rune]float64{'ı': 510, 'ü': 190, 'ş': 180, 'ç': 120, 'ğ': 110, 'ö': 80, 'â': 2,
		'î': 1}},
}

// Encodings of Latin script. The two Central European ones agree on most letters.
const (
	western    = "windows-1252"
	central    = "windows-1250"
	isoCentral = "iso-8859-2"
	turkish    = "windows-1254"
	baltic     = "windows-1257"
	latin9     = "iso-8859-15" // western, with eight signs replaced
)

// Likelihoods of non-ASCII characters outside the alphabet.
const (
	likelySign    = 1e-2 // quotes, dashes, currencies
	likelyForeign = 3e-4 // letters of other alphabets, and signs within words
	likelyControl = 1e-5
	// westernLead is by how much, as a logarithm, another encoding must be likelier than
	// windows-1252.
	westernLead = 3.0
)

// guessLatin returns the encoding under which a text is likeliest in one of its Latin-script
// languages. Signs alone do not count as letters.
func guessLatin(text []byte) string {
	letters := lettersOnly(text)
	best, most := western, math.Inf(-1)
	for _, name := range [...]string{western, central, isoCentral, turkish, baltic} {
		if name != western && decode(name, letters) == decode(western, letters) {
			continue
		}
		seen := countSeen(decode(name, text))
		for _, a := range alphabets {
			if a.encoding != name && (a.encoding != central || name != isoCentral) {
				continue
			}
			likely := likelihood(seen, a.letters)
			if name == western {
				likely += westernLead
			}
			if likely > most {
				best, most = name, likely
			}
		}
	}
	if best == western && isLatin9(text) {
		return latin9
	}
	return best
}

// isLatin9 says whether ¤ beside a number or ½ within a word, as read by windows-1252, must be € or
// œ. Nobody writes prices in ¤.
func isLatin9(text []byte) bool {
	before, found := rune(' '), false
	read := []rune(decode(western, text))
	for i, r := range read {
		after := ' '
		if i+1 < len(read) {
			after = read[i+1]
		}
		switch {
		case text[i] >= 0x80 && text[i] < 0xa0: // iso-8859-15 has only controls there
			return false
		case r == '¤' && (unicode.IsDigit(before) || unicode.IsDigit(after)),
			r == '½' && unicode.IsLetter(before) && unicode.IsLetter(after):
			found = true
		}
		if !unicode.IsSpace(r) {
			before = r
		}
	}
	return found
}

// lettersOnly returns the bytes that are letters in all of these encodings.
func lettersOnly(text []byte) []byte {
	var letters []byte
	for _, b := range text {
		if b >= 0xc0 {
			letters = append(letters, b)
		}
	}
	return letters
}

// Pseudo-characters for groups of characters that count alike; no encoding decodes to them.
const (
	sign rune = -1 - iota
	foreign
	control
	unit // of area or volume, in any language
)

// countSeen counts the non-ASCII letters in lower case, and other characters by kind.
func countSeen(text string) map[rune]int {
	seen := map[rune]int{}
	before := ' '
	for i, r := range text {
		if r >= utf8.RuneSelf {
			after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if kind := kindOf(before, r, after); kind != unit {
				seen[kind]++
			}
		}
		before = r
	}
	return seen
}

// kindOf returns what a character between two others counts as.
func kindOf(before, r, after rune) rune {
	inWord := unicode.IsLetter(before) && unicode.IsLetter(after)
	switch {
	case r == utf8.RuneError || unicode.IsControl(r):
		return control
	case before == 'm' && (r == '²' || r == '³'):
		return unit
	case r == '¿' || r == '¡':
		return r
	case r == 'º' || r == 'ª' || !unicode.IsLetter(r):
		if inWord && !strings.ContainsRune("\u00a0\u00ad’–—·", r) {
			return foreign
		}
		return sign
	case unicode.IsDigit(before) || unicode.IsDigit(after), unicode.IsUpper(r) &&
		unicode.IsLower(before):
		return foreign // it may be £
	}
	return unicode.ToLower(r)
}

// likelihood returns the logarithm of the characters' likelihood in a language.
func likelihood(seen map[rune]int, letters map[rune]float64) float64 {
	all := 0.0
	for _, share := range letters {
		all += share
	}
	sum := 0.0
	for r, n := range seen {
		likely := likelyForeign
		switch share, ok := letters[r]; {
		case ok:
			likely = share / all
		case r == sign, r == '¿', r == '¡':
			likely = likelySign
		case r == control:
			likely = likelyControl
		}
		sum += float64(n) * math.Log(likely)
	}
	return sum
}

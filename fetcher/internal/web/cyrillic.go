package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// caseless are encodings of languages without capitals. A few Cyrillic words may look like them.
var caseless = map[string]bool{"windows-1255": true, "windows-1256": true, "iso-8859-6": true,
	"windows-874": true, "shift_jis": true, "euc-jp": true, "gbk": true, "big5": true,
	"euc-kr": true}

// titledCyrillic returns the encoding under which a text is only Cyrillic words, or "". One word
// must have three or more letters with a capital. A heading of one word tells no more.
func titledCyrillic(text []byte) string {
	for _, name := range [...]string{"windows-1251", "koi8-r"} {
		read, titled := decode(name, text), false
		odd := strings.ContainsFunc(read, isOdd)
		words := strings.FieldsFuncSeq(read, func(r rune) bool { return !unicode.IsLetter(r) })
		for word := range words {
			fits, titles := spellsCyrillic([]rune(word))
			odd, titled = odd || !fits, titled || titles
		}
		if titled && !odd {
			return name
		}
	}
	return ""
}

// isOdd says whether a character is neither a letter nor a usual sign between words.
func isOdd(r rune) bool {
	return r >= utf8.RuneSelf && !unicode.IsLetter(r) &&
		!strings.ContainsRune("\u00a0\u00ad«»„“”’–—…№·•©®™§°€", r)
}

// spellsCyrillic says whether a non-empty word is ASCII, or Cyrillic in lower case, capitals or
// title case. titles is true for a title-case word of three or more letters.
func spellsCyrillic(word []rune) (fits, titles bool) {
	cyrillic, upper := 0, 0 // letters, and capitals after the first character
	for i, r := range word {
		if unicode.Is(unicode.Cyrillic, r) {
			cyrillic++
		} else if r >= utf8.RuneSelf {
			return false, false
		}
		if i > 0 && unicode.IsUpper(r) {
			upper++
		}
	}
	capital, behind := unicode.IsUpper(word[0]), len(word)-1
	switch {
	case cyrillic == 0:
		return true, false
	case cyrillic < len(word):
		return false, false
	case upper == 0:
		return true, capital && behind > 1
	}
	return capital && upper == behind, false
}

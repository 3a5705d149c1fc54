package match

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold appends text in lower case and without accents, with equivalent signs unified. It reads at
// most MaxText bytes.
func fold(to []byte, text string) []byte {
	if len(text) > MaxText {
		cut := MaxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return foldRunes(append(to, "  "...)[:len(to)], text)
		}
	}
	for i := range len(text) {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// foldRunes is fold for text that is not all ASCII.
func foldRunes(to []byte, text string) []byte {
	for _, r := range norm.NFKD.String(text) {
		switch r = unicode.ToLower(r); {
		case unicode.Is(unicode.Mn, r):
		case folded[r] != "":
			to = append(to, folded[r]...)
		default:
			to = utf8.AppendRune(to, r)
		}
	}
	return to
}

// folded maps letters and signs that have no decomposition.
var folded = map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d",
	'ð': "d", 'þ': "th", 'ı': "i", '×': "x", '″': `"`, '“': `"`, '”': `"`, '’': "'", '′': "'",
	'–': "-", '—': "-", '‑': "-", '−': "-", '·': " ", '®': " ", '™': " ", '©': " "}

package web

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// How much of a non-UTF-8 text is searched for its encoding, in bytes.
const (
	declaredWithin = 64 << 10
	guessedFrom    = 16 << 10 // from the first non-ASCII character
)

// declaration matches the name of a page's encoding in a meta element or the first line of XML.
var declaration = regexp.MustCompile(`(?i)(?:<meta\s[^>]*charset|^\s*<\?xml\s[^>]*encoding)\s*=\s*["']?\s*([\w:.-]+)`)

// undeclared returns the encoding of non-UTF-8 text without one in its header and first kilobyte.
// That is one declared further down, or guessed from the characters, or windows-1252.
func undeclared(body []byte) (encoding.Encoding, string) {
	if found := declaration.FindSubmatch(body[:min(len(body), declaredWithin)]); found != nil {
		switch e, name := charset.Lookup(string(found[1])); {
		case strings.HasPrefix(name, "utf-16"): // it could not have been read as ASCII
			return charset.Lookup("utf-8")
		case e != nil:
			return e, name
		}
	}
	return charset.Lookup(guess(body))
}

// Frequent characters of running text and of shops.
const (
	cyrillic    = "оеаинтсрвлкмдпуя"
	japanese    = "のにはをたがでてとしれさいうなかっるりますもらこくきあそよせコメンスルトラーリクドイシプタレ、。品料円税込商価格無在庫日本"
	simplified  = "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要出也得里后自以会家可下而过天去能对小多，。品价格元购物车登录首页产新手机加入服务分类件数量网日电话关"
	traditional = "的一是了我不人在他有這個上們來到時大地為子中你說生國年著就那和要出也得裡後自以會家可下而過天去能對小多，。品價格元購物車登錄首頁產新手機加入服務分類件數量網日電話關"
)

// languages are encodings with the typical characters of their language, and the least share of
// those among all non-ASCII characters.
var languages = []struct {
	encoding string
	typical  func(r rune) bool
	share    float64
}{
	{"windows-1251", among(cyrillic), 0.6},
	{"koi8-r", among(cyrillic), 0.6},
	{"iso-8859-5", among(cyrillic), 0.6},
	{"ibm866", among(cyrillic), 0.6},
	{"x-mac-cyrillic", among(cyrillic), 0.6},
	{"windows-1253", among("αοιετσνηυρπκμλςάίόέή"), 0.6},
	{"windows-1255", among("יוהלארמתבשנ"), 0.55},
	{"windows-1256", among("اليمنوترب"), 0.5},
	{"iso-8859-6", among("اليمنوترب"), 0.5},
	{"windows-874", among("านรกอเงมยลวดทตส่้ี"), 0.55},
	{"shift_jis", among(japanese), 0.25},
	{"euc-jp", among(japanese), 0.25},
	{"gbk", among(simplified), 0.1},
	{"big5", among(traditional), 0.1},
	// half of a Chinese text would pass, too
	{"euc-kr", func(r rune) bool { return r >= '가' && r <= '힣' }, 0.85},
}

func among(frequent string) func(r rune) bool {
	return func(r rune) bool { return strings.ContainsRune(frequent, r) }
}

// guess returns the encoding under which a text has the most typical characters of a language. It
// is utf-8 if only a few bytes are broken. It is a Latin-script encoding if nothing fits, or if
// non-ASCII characters stand alone, as accents do.
func guess(body []byte) string {
	start := 0
	for start < len(body) && body[start] < utf8.RuneSelf {
		start++
	}
	start = max(start-2, 0) // include a number before a sign
	text := body[start:min(len(body), start+guessedFrom)]
	whole, broken := countUTF8(text)
	if whole > broken {
		return "utf-8"
	}
	if !standsTogether(text) {
		return guessLatin(text)
	}
	best, most := "", 1.0
	for _, l := range languages {
		if share := typicalShare(decode(l.encoding, text), l.typical); share > most*l.share {
			best, most = l.encoding, share/l.share
		}
	}
	if best == "" || caseless[best] {
		if named := titledCyrillic(text); named != "" {
			return named
		}
	}
	if best == "" {
		return guessLatin(text)
	}
	return best
}

// decode decodes a text by a web encoding; "" if that fails.
func decode(name string, text []byte) string {
	e, _ := charset.Lookup(name)
	decoded, _, err := transform.Bytes(e.NewDecoder(), text)
	if err != nil {
		return ""
	}
	return string(decoded)
}

// countUTF8 counts the non-ASCII characters, and the bytes that are not part of any.
func countUTF8(text []byte) (whole, broken int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			broken++
		case size > 1:
			whole++
		}
		text = text[size:]
	}
	return whole, broken
}

// standsTogether says whether non-ASCII bytes come in runs.
func standsTogether(text []byte) bool {
	bytes, runs := 0, 0
	for i, b := range text {
		if b < utf8.RuneSelf {
			continue
		}
		if bytes++; i == 0 || text[i-1] < utf8.RuneSelf {
			runs++
		}
	}
	return 2*bytes >= 3*runs
}

// typicalShare returns the share of typical characters among the non-ASCII ones; 0 if too many
// could not be decoded.
func typicalShare(text string, typical func(r rune) bool) float64 {
	hits, all, broken := 0, 0, 0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			continue
		case r == utf8.RuneError:
			broken++
		case typical(r):
			hits++
		}
		all++
	}
	if 50*broken > all+49 { // tolerate a broken page and a cut last character
		return 0
	}
	return float64(hits) / float64(max(all, 1))
}

package web

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// Where text that is no UTF-8 is looked at for its encoding, in bytes.
const (
	declaredWithin = 64 << 10
	guessedFrom    = 16 << 10 // from the first character that is not ASCII
)

// declaration is what names a page's encoding: a meta element, or the first line of XML.
var declaration = regexp.MustCompile(`(?i)(?:<meta\s[^>]*charset|^\s*<\?xml\s[^>]*encoding)\s*=\s*["']?\s*([\w:.-]+)`)

// undeclared is the encoding of text that is no UTF-8 and says nothing in its header and its first
// kilobyte. It is what the text declares further down, or what its characters look like, or
// windows-1252.
func undeclared(body []byte) (encoding.Encoding, string) {
	if found := declaration.FindSubmatch(body[:min(len(body), declaredWithin)]); found != nil {
		switch e, name := charset.Lookup(string(found[1])); {
		case strings.HasPrefix(name, "utf-16"): // it would not have been read
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

// languages are encodings with what is typical of the language written in them, and its least share
// of all characters beyond ASCII.
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
	// half of Chinese looks so, too
	{"euc-kr", func(r rune) bool { return r >= '가' && r <= '힣' }, 0.85},
}

func among(frequent string) func(r rune) bool {
	return func(r rune) bool { return strings.ContainsRune(frequent, r) }
}

// guess names the encoding under which a text has most of what is typical of a language. It is
// utf-8 where only a few bytes are broken. It is one of Latin script where nothing fits, or where
// what is not ASCII stands alone, as accents do.
func guess(body []byte) string {
	start := 0
	for start < len(body) && body[start] < utf8.RuneSelf {
		start++
	}
	start = max(start-2, 0) // a number that a sign stands behind
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

// decode is a text as an encoding of the web reads it, "" if that cannot.
func decode(name string, text []byte) string {
	e, _ := charset.Lookup(name)
	decoded, _, err := transform.Bytes(e.NewDecoder(), text)
	if err != nil {
		return ""
	}
	return string(decoded)
}

// countUTF8 counts the characters beyond ASCII, and the bytes that are part of none.
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

// standsTogether says whether bytes beyond ASCII come in runs.
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

// typicalShare is the share of typical characters among all beyond ASCII; 0 where the decoder met
// what it could not read.
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
	if 50*broken > all+49 { // a page may be broken itself, and the sample ends within a character
		return 0
	}
	return float64(hits) / float64(max(all, 1))
}

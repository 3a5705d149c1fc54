package web

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestToUTF8(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, test := range map[string]struct{ body, contentType, want string }{
		"utf-8 by header":       {"é", "text/html; charset=utf-8", "é"},
		"utf-8 in odd spelling": {"é", `Text/HTML; Charset="UTF8"`, "é"},
		"latin-1 by header":     {"\xe9", "text/html; charset=iso-8859-1", "é"},
		"header goes before meta": {`<meta charset="utf-8">` + "\xe9",
			"text/html; charset=iso-8859-1", `<meta charset="utf-8">é`},
		"header over valid utf-8": {"\xc3\x90", "text/html; charset=windows-1251", "Гђ"},
		"latin-2 by meta": {`<meta charset="iso-8859-2">` + "\xb1", "text/html",
			`<meta charset="iso-8859-2">ą`},
		"meta http-equiv":         {`<meta http-equiv=content-type content="text/html; charset=shift_jis">` + "\x93\xfa", "text/html", `<meta http-equiv=content-type content="text/html; charset=shift_jis">日`},
		"utf-8 undeclared":        {"é", "text/html", "é"},
		"utf-8 undeclared, late":  {long + "é", "", long + "é"},
		"windows-1252 undeclared": {"\x80", "text/html", "€"},
		"byte order mark":         {"\xef\xbb\xbfé", "text/html; charset=iso-8859-1", "é"},
		"mark and broken utf-8":   {"\xef\xbb\xbf\xff", "text/html", "\ufffd"},
		"utf-16 by mark":          {"\xff\xfea\x00b\x00", "text/html", "ab"},
		"little-endian, unmarked": {"<\x00p\x00>\x00a\x00\xe9\x00", "text/html", "<p>aé"},
		"big-endian, unmarked":    {"\x00<\x00p\x00>\x00a\x00\xe9", "", "<p>aé"},
		"unmarked, but declared": {"<\x00p\x00>\x00a\x00", "text/html; charset=utf-8",
			"<\x00p\x00>\x00a\x00"},
		"UTF-32, which nobody reads": {"<\x00\x00\x00p\x00\x00\x00", "text/html",
			"<\x00\x00\x00p\x00\x00\x00"},
		"iso-2022-jp in ASCII": {"\x1b$BF|\x1b(B", "text/html; charset=iso-2022-jp", "日"},
		"broken utf-8":         {"a\xffb", "text/html; charset=utf-8", "a\ufffdb"},
		"unknown charset":      {"é", "text/html; charset=klingon", "é"},
		"unknown, then meta": {`<meta charset="koi8-r">` + "\xc1",
			"text/html; charset=none", `<meta charset="koi8-r">а`},
		"windows without a dash": {"\xa3", "text/html; charset=windows1250", "Ł"},
		"win for windows":        {"\xa3", "text/html; charset=win-1250", "Ł"},
		"a type with a slip":     {"\xe1", "text/html; charset=iso-8859-2; charset", "á"},
		"no semicolon":           {"\xe0", "text/html charset=windows-1251", "а"},
		"a comma":                {"\xe0", "text/html, charset=windows-1251", "а"},
		"spaces around equals":   {"\xe0", "text/html; charset = windows-1251", "а"},
		"one quote":              {"\xe0", `text/html; charset="windows-1251`, "а"},
		"single quotes":          {"\xe0", `text/html; charset='windows-1251'`, "а"},
		"semicolon at the end":   {"\xe0", "text/html; charset=windows-1251;", "а"},
		"two semicolons":         {"\xe0", "text/html;; charset=windows-1251", "а"},
		"two charsets": {"\xe0", "text/html; charset=windows-1251; charset=utf-8",
			"а"},
		"unknown, then another":    {"\xe0", "text/html; charset=x; charset=windows-1251", "а"},
		"utf8 with a slip":         {"é\xff", "text/html; charset=utf8;", "é\ufffd"},
		"utf-8 in single quotes":   {"é\xff", "text/html; charset='utf-8'", "é\ufffd"},
		"a colon for equals":       {"\xe0", "text/html; charset: windows-1251", "а"},
		"another parameter":        {"é", "text/html; x-charset-of=koi8-r", "é"},
		"broken header":            {"é", "text/html; charset", "é"},
		"json":                     {"\"\xe9\"", "application/json; charset=latin1", "\"é\""},
		"xml":                      {"\xe9", "application/rss+xml; charset=latin1", "é"},
		"no text":                  {"\xe9\xff", "image/png", "\xe9\xff"},
		"nothing":                  {"", "text/html; charset=utf-16", ""},
		"ASCII, whatever declared": {"abc", "text/html; charset=koi8-r", "abc"},
	} {
		got, err := toUTF8([]byte(test.body), test.contentType)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func FuzzToUTF8(f *testing.F) {
	f.Add([]byte("<meta charset=utf-16>\xff"), "text/html")
	f.Add([]byte("\x1b$B\xff"), "text/html; charset=iso-2022-jp")
	f.Add([]byte("\xfe\xff\xd8\x00"), "")
	f.Add([]byte("~{\xff"), "text/plain; charset=hz-gb-2312")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got, err := toUTF8(body, contentType)
		if err == nil && isText(contentType) && !utf8.Valid(got) {
			t.Errorf("%q, %q became %q", body, contentType, got)
		}
	})
}

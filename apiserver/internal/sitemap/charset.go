package sitemap

import (
	"bufio"
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// decode reads a file as UTF-8. Its bytes take precedence over its declaration, and that over the
// answer's header, since many servers send a default.
func decode(in *bufio.Reader, header string) *bufio.Reader {
	head, _ := in.Peek(headBytes) // whatever there is
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // cannot fail: peeked
		return in
	}
	order := unicode.BigEndian
	switch {
	case bytes.HasPrefix(head, []byte("\xfe\xff")) || bytes.HasPrefix(head, []byte("\x00<")):
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("<\x00")):
		order = unicode.LittleEndian
	default:
		if coding := declaredCoding(head, header); coding != nil {
			return bufio.NewReaderSize(transform.NewReader(in, coding.NewDecoder()), headBytes)
		}
		return in
	}
	marked := unicode.UTF16(order, unicode.UseBOM)
	return bufio.NewReaderSize(transform.NewReader(in, marked.NewDecoder()), headBytes)
}

// declaredCoding is the encoding that a file or its header declares; nil: UTF-8, or as good.
func declaredCoding(head []byte, header string) encoding.Encoding {
	if isUTF8(head) {
		return nil
	}
	for _, label := range [...]string{declaration(head), headerLabel(header)} {
		coding, name := charset.Lookup(label)
		switch {
		case coding == nil:
		case name == "utf-8", name == "replacement", strings.HasPrefix(name, "utf-16"):
			return nil // UTF-16 would have shown in the bytes
		default:
			return coding
		}
	}
	return nil
}

// isUTF8 says whether the head has characters beyond ASCII, all in UTF-8.
func isUTF8(head []byte) bool {
	wide := false
	for len(head) > 0 {
		c, size := utf8.DecodeRune(head)
		if c == utf8.RuneError && size <= 1 {
			return wide && !utf8.FullRune(head)
		}
		wide = wide || size > 1
		head = head[size:]
	}
	return wide
}

// declaration is the encoding in an XML declaration, "" if there is none.
func declaration(head []byte) string {
	if !bytes.HasPrefix(head, []byte("<?xml")) {
		return ""
	}
	end := bytes.Index(head, []byte("?>"))
	if end < 0 {
		return ""
	}
	return labelBehind(string(head[:end]), "encoding")
}

// headerLabel is the encoding in a Content-Type, "" if there is none.
func headerLabel(contentType string) string {
	return labelBehind(strings.ToLower(contentType), "charset")
}

// labelBehind is the value of the first name="value" in a text, quoted or not.
func labelBehind(text, name string) string {
	_, rest, found := strings.Cut(text, name)
	rest = strings.TrimLeft(rest, " \t\r\n")
	if !found || !strings.HasPrefix(rest, "=") {
		return ""
	}
	rest = strings.TrimLeft(rest[1:], " \t\r\n\"'")
	if end := strings.IndexAny(rest, " \t\r\n\"';,?"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

package web

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"

	"shoal.dev/shoal/pkg/fault"
)

// toUTF8 converts text to UTF-8 as browsers do: by byte order mark, header, meta element, then a
// guess from the text. Text that is UTF-8 stays in place; other text becomes a new slice. Non-text
// and undecodable bodies are returned as they are.
func toUTF8(body []byte, contentType string) ([]byte, error) {
	if len(body) == 0 || !isText(contentType) {
		return body, nil
	}
	mark := []byte("\ufeff")
	body, marked := bytes.CutPrefix(body, mark)
	valid := utf8.Valid(body)
	if valid && (marked || contentType == "text/html; charset=utf-8") {
		return body, nil
	}
	declared := headerCharset(contentType)
	if order := unmarkedUTF16(body); declared == "" && order != "" {
		declared, valid = order, false
	}
	if valid && (declared == "utf-8" || isPlainASCII(body)) {
		return body, nil
	}
	encoding, name, certain := charset.DetermineEncoding(body, "text/html; charset="+declared)
	// Windows-1252 is also the fallback guess, made from the first kilobyte.
	if valid && (name == "utf-8" || name == "windows-1252" && !certain) {
		return body, nil
	}
	if !certain && (name == "utf-8" || name == "windows-1252") {
		encoding, name = undeclared(body)
	}
	if marked || name == "utf-8" {
		return bytes.ToValidUTF8(body, []byte("\ufffd")), nil
	}
	text, _, err := transform.Bytes(encoding.NewDecoder(), body)
	if err != nil {
		return body, fault.Wrap(fault.PageUnparsable, fmt.Errorf("%s: %w", name, err),
			"The page's characters cannot be read.")
	}
	return bytes.TrimPrefix(text, mark), nil
}

// unmarkedUTF16 returns the byte order of UTF-16 that begins with ASCII without a mark, or "". Text
// in other encodings has no NUL.
func unmarkedUTF16(body []byte) string {
	const units = 4
	if len(body) < 2*units {
		return ""
	}
	little, big := true, true
	for i := 0; i < 2*units; i += 2 {
		big = big && body[i] == 0 && body[i+1] != 0
		little = little && body[i] != 0 && body[i+1] == 0
	}
	switch {
	case little:
		return "utf-16le"
	case big:
		return "utf-16be"
	}
	return ""
}

// isText says whether a body may be text. A body without a type may be.
func isText(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || strings.HasPrefix(media, "text/") ||
		strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "json") ||
		strings.HasSuffix(media, "javascript")
}

// windowsLabel returns the standard label of a Windows encoding spelled like win-1250 or
// windows1250.
func windowsLabel(label string) string {
	number := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(label, "win"), "dows"), "-_ ")
	if !strings.HasPrefix(label, "win") {
		return ""
	}
	return "windows-" + number
}

// headerCharset returns the encoding that a Content-Type declares, even if it is malformed; "" if
// it names no known one.
func headerCharset(contentType string) string {
	rest := strings.ToLower(contentType)
	for {
		var found bool
		if _, rest, found = strings.Cut(rest, "charset"); !found {
			return ""
		}
		label := strings.TrimLeft(rest, " \t")
		if label == "" || label[0] != '=' && label[0] != ':' {
			continue
		}
		label = strings.TrimLeft(label[1:], " \t\"'")
		if end := strings.IndexAny(label, " \t\"';,"); end >= 0 {
			label = label[:end]
		}
		for _, spelling := range [...]string{label, windowsLabel(label)} {
			if _, name := charset.Lookup(spelling); name != "" {
				return name
			}
		}
	}
}

// isPlainASCII says whether all web encodings read the bytes alike: ASCII without the NUL of UTF-16
// and the escapes of ISO-2022-JP.
func isPlainASCII(body []byte) bool {
	for _, b := range body {
		if b >= 0x80 {
			return false
		}
	}
	return bytes.IndexByte(body, 0) < 0 && bytes.IndexByte(body, 0x1b) < 0
}

// Package scraped has the form in which agents get scraped texts (specification 2.8, decision 50).
// Each text is marked as data, and says where it was scraped. The package knows no operation.
package scraped

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/utf8text"
)

// maxContent is how many characters of a scraped text agents get (decision 50).
const maxContent = 2_000

// Text is a text that came from a page.
type Text struct {
	Type      string `json:"type"` // scraped
	Content   string `json:"content"`
	Origin    string `json:"origin"`
	Truncated bool   `json:"truncated"`
}

var errNotARow = errors.New("scraped: a stored row is no JSON object")

// Clean removes characters that hide or reorder others from a page's text or a member's name. It
// keeps at most this many characters; cut says whether there were more.
func Clean(text string, most int) (cleaned string, cut bool) { return clean(text, most) }

// originKey is the member in which a part of a row says where the row was scraped.
const originKey = "_origin"

// KeepOrigin puts the row's _sourceUrl into a part of its members, for WriteRow, which takes it out
// again. The part may lack _sourceUrl. Both are valid JSON objects.
func KeepOrigin(part, row json.RawMessage) json.RawMessage {
	for m := rowstore.MembersOf(row); m.Next(); {
		if m.Key != "_sourceUrl" {
			continue
		}
		kept := []byte(`{"` + originKey + `":` + m.Value)
		if rest := bytes.TrimSpace(part)[1:]; bytes.TrimSpace(rest)[0] != '}' {
			return append(append(kept, ','), rest...)
		}
		return append(kept, '}')
	}
	return part
}

// WriteRow writes a row with its texts marked. Their origin is the row's _sourceUrl, or that of
// KeepOrigin, or else origin. Members that begin with _ are the server's and stay as they are.
// The result may be much longer.
func WriteRow(to io.Writer, row json.RawMessage, origin string) error {
	s := sanitizer{out: bufio.NewWriter(to), origin: origin}
	m := rowstore.MembersOf(row)
	for m.Next() {
		if m.Key == "_sourceUrl" || m.Key == originKey {
			s.origin, _ = rowstore.TextOf(m.Value)
		}
	}
	if !m.Whole() {
		return errNotARow
	}
	s.write("{")
	separator, shown := "", names{}
	for m = rowstore.MembersOf(row); m.Next(); {
		if m.Key == originKey {
			continue
		}
		s.write(separator)
		separator = ","
		s.name(m.Key, shown)
		if model.IsServerKey(m.Key) {
			s.write(m.Value)
			continue
		}
		if err := s.value(m.Value); err != nil {
			return err
		}
	}
	s.write("}")
	return s.out.Flush()
}

// WriteValue writes a JSON value with all its texts marked as scraped from origin.
func WriteValue(to io.Writer, value json.RawMessage, origin string) error {
	s := sanitizer{out: bufio.NewWriter(to), origin: origin}
	if err := s.value(string(value)); err != nil {
		return err
	}
	return s.out.Flush()
}

// sanitizer writes one row. Write errors show at Flush.
type sanitizer struct {
	out    *bufio.Writer
	origin string
}

func (s *sanitizer) write(text string) { _, _ = s.out.WriteString(text) }

// encode writes a value as JSON.
func (s *sanitizer) encode(value any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)  // an agent pays for each character
	_ = encoder.Encode(value)     // cannot fail: only texts, booleans and null
	text.Truncate(text.Len() - 1) // the line's end
	_, _ = s.out.Write(text.Bytes())
}

// maxName is how many characters of a member's name agents get. A page may have chosen it.
const maxName = 256

// names are those that an object has shown. Each has the number to try next for an equal one, so
// that a page's many equal names take no longer than others.
type names map[string]int

// cleaned follows a name that was cleaned, so that it does not pass for another one.
const cleaned = " (cleaned)"

// name writes a member's name. A page may have chosen it, to pass for another member, for which
// agents would take its value. So a name that was cleaned says so, and none is shown twice.
func (s *sanitizer) name(name string, shown names) {
	clean, _ := clean(name, maxName)
	if clean != name {
		clean += cleaned
	}
	if model.IsServerKey(clean) && !model.IsServerKey(name) {
		clean = "." + clean
	}
	free := clean
	for shown[free] > 0 {
		shown[clean]++
		free = fmt.Sprintf("%s (%d)", clean, shown[clean])
	}
	shown[free] = 1
	s.encode(free)
	s.write(":")
}

func (s *sanitizer) text(text string) {
	content, cut := clean(text, maxContent)
	s.encode(Text{"scraped", content, s.origin, cut})
}

// value writes a value with its texts marked, token by token, so it may nest at any depth.
func (s *sanitizer) value(value string) error {
	in := json.NewDecoder(strings.NewReader(value))
	in.UseNumber()
	var inside []nesting
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("scraped: a value is no JSON: %w", err)
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			inside = inside[:len(inside)-1]
			s.write(delim.String())
			continue
		}
		named := false // the token is a member's name
		if n := len(inside); n > 0 {
			named = inside[n-1].writeSeparator(s)
		}
		switch token := token.(type) {
		case json.Delim:
			inside = append(inside, nesting{object: token == '{', shown: names{}})
			s.write(token.String())
		case string:
			if named {
				s.name(token, inside[len(inside)-1].shown)
			} else {
				s.text(token)
			}
		case json.Number:
			s.write(token.String())
		default:
			s.encode(token)
		}
	}
}

// nesting is the position in an object or array.
type nesting struct {
	object bool
	tokens int
	shown  names
}

// writeSeparator writes what precedes the next token, and says whether that is a member's name.
func (p *nesting) writeSeparator(s *sanitizer) (name bool) {
	name = p.object && p.tokens%2 == 0
	if p.tokens > 0 && (name || !p.object) {
		s.write(",")
	}
	p.tokens++
	return name
}

// clean is the part of a text that agents get, at most this many characters; cut: not all of it.
func clean(text string, most int) (clean string, cut bool) {
	var out strings.Builder
	n := 0
	for _, c := range text {
		if utf8text.HidesInText(c) {
			continue
		}
		if n == most {
			return out.String(), true
		}
		out.WriteRune(c)
		n++
	}
	return out.String(), false
}

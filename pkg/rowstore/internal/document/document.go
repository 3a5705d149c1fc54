// Package document reads the members of a stored row one after the other, without decoding what
// nobody asks for. What a value is to a filter it leaves to the engines: package filter defines it.
package document

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Members goes through the members of a document, which is valid JSON. Of any other text it finds
// some or none.
type Members struct {
	Key   string // decoded
	Value string // as it is written in the document

	doc   string
	at    int
	key   int  // where the member begins, with its key
	colon int  // behind the colon that follows the key
	plain bool // the value is a string without escapes
	begun bool
	whole bool
}

// Of is before the first member of a document. It keeps the document, and so do Key and Value.
func Of(doc string) Members { return Members{doc: doc} }

// Next goes on to the next member; false: there is none.
func (m *Members) Next() bool {
	if !m.begun {
		m.begun = true
		if !m.skip('{') {
			return false
		}
		if m.skip('}') {
			m.whole = true
			return false
		}
	} else if !m.skip(',') {
		m.whole = m.skip('}')
		return false
	}
	if m.space(); m.at == len(m.doc) || m.doc[m.at] != '"' {
		return false
	}
	m.key = m.at
	plain, ok := m.text()
	if !ok {
		return false
	}
	key := m.doc[m.key:m.at]
	if m.Key = key[1 : len(key)-1]; !plain || !utf8.ValidString(m.Key) {
		m.Key, _ = Text(key)
	}
	if !m.skip(':') {
		return false
	}
	m.colon = m.at
	m.Value, ok = m.value()
	return ok
}

// Written is the member's key as it is written in the document, up to its colon.
func (m *Members) Written() string { return m.doc[m.key:m.colon] }

// NextAs goes on to the next member if its key is written as that of another document's, which
// Written told. It is the same key then, and Key is not set. False: it is not, or there is white
// space before it, and nothing has changed.
func (m *Members) NextAs(written string) bool {
	at, before := m.at, byte(',')
	if !m.begun {
		before = '{'
	}
	if at == len(m.doc) || m.doc[at] != before || !strings.HasPrefix(m.doc[at+1:], written) {
		return false
	}
	m.at = at + 1 + len(written)
	value, ok := m.value()
	if !ok {
		m.at = at
		return false
	}
	m.key, m.colon, m.begun, m.Value = at+1, at+1+len(written), true, value
	return true
}

// IsPlain says whether the value is a string that stands between its quotes as it is. Then it has
// no quotes itself, no backslashes and no control characters.
func (m *Members) IsPlain() bool { return m.plain && utf8.ValidString(m.Value) }

// Text decodes the value if it is a string; false: it is none.
func (m *Members) Text() (text string, plain, ok bool) {
	if m.IsPlain() {
		return m.Value[1 : len(m.Value)-1], true, true
	}
	text, ok = Text(m.Value)
	return text, false, ok
}

// Whole says, once Next was false, whether the document was an object to its end.
func (m *Members) Whole() bool { return m.whole }

// Find is the value of a member as it is written in the document. Of a member that is there twice
// the last one counts, as in package filter.
func Find(doc, key string) (value string, found bool) {
	for m := Of(doc); m.Next(); {
		if m.Key != key {
			continue
		}
		value, found = m.Value, true
		if rest := doc[m.at:]; !strings.Contains(rest, key) && strings.IndexByte(rest, '\\') < 0 {
			break // it is not there twice
		}
	}
	return value, found
}

// Text decodes a value that is a string; false: it is none.
func Text(value string) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; strings.IndexByte(inner, '\\') < 0 &&
		utf8.ValidString(inner) {
		return inner, true
	}
	err := json.Unmarshal([]byte(value), &text)
	return text, err == nil
}

// skip passes over white space and then c, if it is there.
func (m *Members) skip(c byte) bool {
	if m.space(); m.at < len(m.doc) && m.doc[m.at] == c {
		m.at++
		return true
	}
	return false
}

func (m *Members) space() {
	for m.at < len(m.doc) && isSpace(m.doc[m.at]) {
		m.at++
	}
}

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r')
}

// value passes over white space and a value, and returns the value.
func (m *Members) value() (value string, ok bool) {
	if m.space(); m.at == len(m.doc) {
		return "", false
	}
	start := m.at
	m.plain = false
	switch m.doc[m.at] {
	case '"':
		m.plain, ok = m.text()
	case '{', '[':
		ok = m.nested()
	default:
		for m.at < len(m.doc) && !isSpace(m.doc[m.at]) &&
			!strings.ContainsRune(",:}]", rune(m.doc[m.at])) {
			m.at++
		}
		ok = m.at > start
	}
	return m.doc[start:m.at], ok
}

// text passes over a string, and says whether nothing in it is escaped.
func (m *Members) text() (plain, ok bool) {
	for plain, m.at = true, m.at+1; ; plain = false {
		quote := strings.IndexByte(m.doc[m.at:], '"')
		if quote < 0 {
			return false, false
		}
		escape := strings.IndexByte(m.doc[m.at:m.at+quote], '\\')
		if escape < 0 {
			m.at += quote + 1
			return plain, true
		}
		m.at += escape + 2 // what is escaped may be the quote
	}
}

// nested passes over an object or array.
func (m *Members) nested() bool {
	for depth := 0; m.at < len(m.doc); {
		switch m.doc[m.at] {
		case '"':
			if _, ok := m.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		m.at++
		if depth == 0 {
			return true
		}
	}
	return false
}

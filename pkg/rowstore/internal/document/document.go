// Package document reads the members of a stored row one after the other, without decoding what
// nobody asks for. How a filter sees a value is up to the engines: package filter defines it.
package document

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Members iterates over the members of a document, which must be valid JSON. In any other text it
// finds some members or none.
type Members struct {
	Key   string // decoded
	Value string // as written in the document

	doc   string
	at    int
	key   int  // start of the member, at its key
	colon int  // after the colon that follows the key
	plain bool // the value is a string without escapes
	begun bool
	whole bool

	bare bool // the document is known to have no escapes
	all  bool // the characters of all texts are checked at once
	// whether they were, and are valid
	checked, valid bool
}

// Of returns Members before the first member of doc. They share doc's memory.
func Of(doc string) Members { return Members{doc: doc} }

// AllOf is Of for callers that read every text. One look at most documents saves a look at each
// text.
func AllOf(doc string) Members {
	return Members{doc: doc, bare: strings.IndexByte(doc, '\\') < 0, all: true}
}

// Next moves to the next member; false: there is none.
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
	if m.Key = key[1 : len(key)-1]; !plain || !m.isValid(m.Key) {
		m.Key, _ = Text(key)
	}
	if !m.skip(':') {
		return false
	}
	m.colon = m.at
	m.Value, ok = m.value()
	return ok
}

// Written returns the member's key as written in the document, up to its colon.
func (m *Members) Written() string { return m.doc[m.key:m.colon] }

// NextAs moves to the next member if its key has the spelling that Written returned for another
// document. The key is then the same, and Key is not set. False: the key differs or white space
// precedes it, and nothing has changed.
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

// IsPlain reports whether the value is a string without escapes, so that its text stands between
// the quotes as is. Such a text has no quotes, backslashes or control characters.
func (m *Members) IsPlain() bool { return m.plain && m.isValid(m.Value) }

// isValid reports whether a text of the document has valid characters only.
func (m *Members) isValid(text string) bool {
	if m.all && !m.checked {
		m.checked, m.valid = true, utf8.ValidString(m.doc)
	}
	return m.valid || utf8.ValidString(text)
}

// Text decodes the value; ok is false if it is not a string.
func (m *Members) Text() (text string, plain, ok bool) {
	if m.IsPlain() {
		return m.Value[1 : len(m.Value)-1], true, true
	}
	text, ok = Text(m.Value)
	return text, false, ok
}

// Whole reports, after Next returned false, whether the document was a complete object.
func (m *Members) Whole() bool { return m.whole }

// Find returns a member's value as written in the document. If the key occurs twice, the last one
// counts, as in package filter.
func Find(doc, key string) (value string, found bool) {
	for m := Of(doc); m.Next(); {
		if m.Key != key {
			continue
		}
		value, found = m.Value, true
		if rest := doc[m.at:]; !strings.Contains(rest, key) && strings.IndexByte(rest, '\\') < 0 {
			break // the key does not occur again
		}
	}
	return value, found
}

// Text decodes a value; ok is false if it is not a string.
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

// skip skips white space and then c, if c follows.
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

// endsValue says whether a number, true, false or null ends before c.
func endsValue(c byte) bool { return isSpace(c) || c == ',' || c == ':' || c == '}' || c == ']' }

// value skips white space, then reads and returns a value.
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
		for m.at < len(m.doc) && !endsValue(m.doc[m.at]) {
			m.at++
		}
		ok = m.at > start
	}
	return m.doc[start:m.at], ok
}

// text skips a string; plain is true if nothing in it is escaped.
func (m *Members) text() (plain, ok bool) {
	for plain, m.at = true, m.at+1; ; plain = false {
		quote := strings.IndexByte(m.doc[m.at:], '"')
		if quote < 0 {
			return false, false
		}
		escape := -1
		if !m.bare {
			escape = strings.IndexByte(m.doc[m.at:m.at+quote], '\\')
		}
		if escape < 0 {
			m.at += quote + 1
			return plain, true
		}
		m.at += escape + 2 // the escaped byte may be a quote
	}
}

// nested skips an object or array.
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

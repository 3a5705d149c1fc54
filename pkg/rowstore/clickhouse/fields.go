package clickhouse

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
)

// buckets is over how many groups of columns the fields of rows are spread, by the hash of their name: a filter on a
// field reads one of them. It is part of the schema.
const buckets = 8

func bucketOf(field string) int { return int(xxh3.HashString(field) % buckets) }

// The kinds of values that filters and sorts tell apart. They are stored: numbers never change. A missing field is 0.
const (
	kindNull        = 1
	kindFalse       = 2
	kindTrue        = 3
	kindOther       = 4 // arrays, objects, numbers beyond a 64-bit float
	kindText        = 5
	kindNumber      = 6
	kindNumericText = 7 // text and number at once
)

// field is a member of a document as filters see it.
type field struct {
	key  string
	kind uint8
	num  float64
	text string
}

// fields appends the members of a document that a filter can name. Of a member that is there twice the last one counts,
// as in package filter. What is no JSON object has none.
func fields(all []field, doc []byte) []field {
	start := len(all)
	s := scanner{doc: doc}
	if !s.next('{') {
		return all
	}
	for first := true; !s.next('}'); first = false {
		if !first && !s.next(',') {
			return all[:start]
		}
		key, ok := s.text()
		if !ok || !s.next(':') {
			return all[:start]
		}
		value, ok := s.value()
		if !ok {
			return all[:start]
		}
		if value.key = key; filter.IsField(key) {
			all = append(all, value)
		}
	}
	return all[:start+dedupe(all[start:])]
}

// dedupe keeps the last of fields with the same key, and returns how many stay.
func dedupe(all []field) int {
	last := make(map[string]int, len(all))
	for i := range all {
		last[all[i].key] = i
	}
	if len(last) == len(all) {
		return len(all)
	}
	kept := 0
	for i := range all {
		if last[all[i].key] == i {
			all[kept] = all[i]
			kept++
		}
	}
	return kept
}

// scanner reads a JSON document from its beginning.
type scanner struct {
	doc []byte
	at  int
}

func (s *scanner) space() {
	for s.at < len(s.doc) {
		switch s.doc[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and then c, if it is there.
func (s *scanner) next(c byte) bool {
	if s.space(); s.at < len(s.doc) && s.doc[s.at] == c {
		s.at++
		return true
	}
	return false
}

// text reads a string.
func (s *scanner) text() (text string, ok bool) {
	if s.space(); s.at >= len(s.doc) || s.doc[s.at] != '"' {
		return "", false
	}
	start, plain := s.at, true
	for s.at++; s.at < len(s.doc); s.at++ {
		switch c := s.doc[s.at]; {
		case c == '"':
			s.at++
			quoted := s.doc[start:s.at]
			if plain && utf8.Valid(quoted) {
				return string(quoted[1 : len(quoted)-1]), true
			}
			return text, json.Unmarshal(quoted, &text) == nil
		case c == '\\':
			plain = false
			s.at++
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// value reads any value.
func (s *scanner) value() (f field, ok bool) {
	s.space()
	if s.at >= len(s.doc) {
		return f, false
	}
	switch c := s.doc[s.at]; c {
	case '"':
		f.text, ok = s.text()
		f.kind = kindText
		if n, is := filter.ParseNumber(f.text); is {
			f.kind, f.num = kindNumericText, n+0 // of the two zeros, one
		}
		return f, ok
	case '{', '[':
		f.kind = kindOther
		return f, s.skip()
	}
	start := s.at
	for s.at < len(s.doc) && !bytes.ContainsRune([]byte(" \t\n\r,}]"), rune(s.doc[s.at])) {
		s.at++
	}
	switch literal := string(s.doc[start:s.at]); literal {
	case "null":
		f.kind = kindNull
	case "false":
		f.kind = kindFalse
	case "true":
		f.kind = kindTrue
	default:
		f.kind = kindOther
		if n, is := filter.ParseNumber(literal); is {
			f.kind, f.num = kindNumber, n+0
		} else if !json.Valid(s.doc[start:s.at]) {
			return f, false
		}
	}
	return f, true
}

// skip passes over an object or array.
func (s *scanner) skip() bool {
	for depth := 0; s.at < len(s.doc); {
		switch s.doc[s.at] {
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return true
		}
	}
	return false
}

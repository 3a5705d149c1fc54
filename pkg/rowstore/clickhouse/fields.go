package clickhouse

import (
	"encoding/json"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// buckets is the number of column groups over which row fields are spread, by the hash of their
// name. A filter on a field reads one of them. It is part of the schema.
const buckets = 8

func bucketOf(field string) int { return int(xxh3.HashString(field) % buckets) }

// The kinds of values that filters and sorts distinguish. They are stored: numbers never change. A
// missing field is 0.
const (
	kindNull        = 1
	kindFalse       = 2
	kindTrue        = 3
	kindOther       = 4 // arrays, objects, numbers beyond a 64-bit float
	kindText        = 5
	kindNumber      = 6
	kindNumericText = 7 // both text and number
)

// field is a member of a document as filters see it.
type field struct {
	key  string
	kind uint8
	num  float64
	text string
}

// fields appends those members of a document that a filter can name. If a key occurs twice, the
// last one counts, as in package filter. Anything but a JSON object has none.
func fields(all []field, doc []byte) []field {
	start := len(all)
	members := document.Of(string(doc))
	for members.Next() {
		value, ok := fieldOf(members.Key, members.Value)
		if !ok {
			return all[:start]
		}
		if filter.IsField(members.Key) {
			all = append(all, value)
		}
	}
	if !members.Whole() {
		return all[:start]
	}
	return all[:start+dedupe(all[start:])]
}

// fieldOf returns a member as filters see it; false: its value is not JSON.
func fieldOf(key, value string) (f field, ok bool) {
	f = field{key: key, kind: kindOther}
	switch value {
	case "null":
		f.kind = kindNull
		return f, true
	case "false":
		f.kind = kindFalse
		return f, true
	case "true":
		f.kind = kindTrue
		return f, true
	}
	switch value[0] {
	case '{', '[':
		return f, true
	case '"':
		f.kind = kindText
		if f.text, ok = document.Text(value); !ok {
			return f, false
		}
		if n, is := filter.ParseNumber(f.text); is {
			f.kind, f.num = kindNumericText, n+0 // make -0 a 0
		}
		return f, true
	}
	if n, is := filter.ParseNumber(value); is {
		f.kind, f.num = kindNumber, n+0
		return f, true
	}
	return f, json.Valid([]byte(value))
}

// dedupe keeps the last field of each key, and returns how many fields stay.
func dedupe(all []field) int {
	if !repeats(all) {
		return len(all)
	}
	last := make(map[string]int, len(all))
	for i := range all {
		last[all[i].key] = i
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

// few fields are compared in pairs, which saves a map for each row.
const few = 16

// repeats reports whether a key may occur twice.
func repeats(all []field) bool {
	if len(all) > few {
		return true
	}
	for i := range all {
		for j := range i {
			if all[i].key == all[j].key {
				return true
			}
		}
	}
	return false
}

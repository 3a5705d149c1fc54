package ldjson

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// field is a compiled entry of itemsConfig.
type field struct {
	key    []byte // the column's name as JSON, with the colon
	column string // the selector, as a column's name
	steps  []step // the selector, as a path
	exists bool
}

// step is one name of a path and which of its values the path takes.
type step struct {
	name  string
	all   bool // [*]
	index int  // [n]; -1 if there is none
}

// Bounds of itemsConfig, the same as for other types.
const (
	maxFields   = 500
	maxSelector = 2048
)

func compileFields(fields []model.Field) ([]field, fault.List) {
	var faults fault.List
	report := func(path, format string, args ...any) {
		faults = append(faults, fault.Invalid(fault.SchemaValidation, path, format, args...))
	}
	if len(fields) > maxFields {
		report("itemsConfig", "at most %d fields are allowed", maxFields)
		return nil, faults
	}
	compiled := make([]field, len(fields))
	seen := map[string]int{}
	for i, f := range fields {
		path := fmt.Sprintf("itemsConfig[%d]", i)
		name := f.Column()
		if problem := rows.BadName(f.Name); problem != "" {
			report(path+".name", "%s", problem)
		} else if first, ok := seen[name]; ok {
			report(path+".name", "the name %q is that of itemsConfig[%d] already", name, first)
		} else {
			seen[name] = i
		}
		if f.Kind != model.Text && f.Kind != model.Exists {
			report(path+".kind", "the kind must be TEXT or EXISTS: data has no attributes")
		}
		if f.Attr != "" {
			report(path+".attr", "only the kind ATTR has an attribute")
		}
		selector := strings.TrimSpace(f.Selector)
		if selector == "" {
			selector = name
		}
		steps, ok := parsePath(selector)
		if !ok {
			report(path+".selector", "must be a column or a path of property names, such as "+
				"offers.price or $.offers[0].price")
		}
		key, _ := json.Marshal(name) // a string always marshals
		compiled[i] = field{key: append(key, ':'), column: selector, steps: steps,
			exists: f.Kind == model.Exists}
	}
	return compiled, faults
}

// parsePath reads a path: names joined by dots or quoted in brackets, each with an optional index.
func parsePath(s string) ([]step, bool) {
	if len(s) > maxSelector {
		return nil, false
	}
	s = strings.TrimPrefix(s, "jsonpath:")
	s = strings.TrimPrefix(s, "$")
	var steps []step
	for s != "" {
		var name string
		switch {
		case strings.HasPrefix(s, "["):
			inner, rest, ok := strings.Cut(s[1:], "]")
			if !ok {
				return nil, false
			}
			s = rest
			if len(inner) > 2 && (inner[0] == '\'' || inner[0] == '"') &&
				inner[len(inner)-1] == inner[0] {
				name = inner[1 : len(inner)-1]
				break
			}
			if len(steps) == 0 || !steps[len(steps)-1].noteIndex(inner) {
				return nil, false
			}
			continue
		default:
			s = strings.TrimPrefix(s, ".")
			end := strings.IndexAny(s, ".[")
			if end < 0 {
				end = len(s)
			}
			name, s = s[:end], s[end:]
		}
		if name == "" {
			return nil, false
		}
		steps = append(steps, step{name: name, index: -1})
	}
	return steps, len(steps) > 0
}

// noteIndex records the index of a step; false if it is invalid or a second one.
func (s *step) noteIndex(index string) bool {
	if s.all || s.index >= 0 {
		return false
	}
	if index == "*" {
		s.all = true
		return true
	}
	n, err := strconv.Atoi(index)
	s.index = n
	return err == nil && n >= 0
}

// choose makes a row of the fields. It returns nil if all are null or false.
func choose(f *flattener, t *structured.Thing, fields []field) []byte {
	row, filled := []byte{'{'}, false
	for i := range fields {
		if i > 0 {
			row = append(row, ',')
		}
		row = append(row, fields[i].key...)
		value := fields[i].of(f, t)
		switch {
		case fields[i].exists:
			row = strconv.AppendBool(row, value != nil)
		case value == nil:
			row = append(row, "null"...)
		default:
			row = append(row, value...)
		}
		filled = filled || value != nil
		if len(row) > rows.MaxRowBytes || f.ended() {
			return row
		}
	}
	if !filled {
		return nil
	}
	return append(row, '}')
}

// of returns a field's value: the column that its selector names, else what its path leads to, or
// nil.
func (fd *field) of(f *flattener, t *structured.Thing) []byte {
	if i, ok := f.places[fd.column]; ok {
		return f.columns[i].value
	}
	values := f.walk(t.Item, fd.steps)
	if len(values) == 0 && t.Group != nil {
		values = f.walk(t.Group, fd.steps)
	}
	if len(values) == 0 {
		return nil
	}
	return f.list(values)
}

// maxReached bounds the values that a path reaches at a time. No page states more, but circular
// references could double them at each step. A longer list is too large for a row.
const maxReached = 100_000

// walk follows a path from an item.
func (f *flattener) walk(it *structured.Item, steps []step) []structured.Value {
	at := []structured.Value{{Kind: structured.Entity, Item: it}}
	for i, s := range steps {
		var next []structured.Value
		for _, v := range at {
			if v.Kind != structured.Entity {
				continue
			}
			it := f.data.Follow(v.Item)
			values := s.of(it)
			if len(next)+len(values) > maxReached {
				f.size = rows.MaxRowBytes + 1
				return nil
			}
			if !f.work.Spend(1 + len(it.Props)/16 + len(values)) {
				return nil
			}
			next = append(next, values...)
		}
		if !s.all && s.index < 0 && i < len(steps)-1 && len(next) > 1 {
			next = next[:1]
		}
		at = next
	}
	return at
}

// of returns the values of one item that the step takes.
func (s *step) of(it *structured.Item) []structured.Value {
	var values []structured.Value
	switch s.name {
	case "type", "@type":
		values = texts(it.Types)
	case "id", "@id":
		if it.ID != "" {
			values = texts([]string{it.ID})
		}
	}
	if len(values) == 0 {
		values = it.Get(s.name)
	}
	if s.index >= 0 {
		if s.index >= len(values) {
			return nil
		}
		return values[s.index : s.index+1]
	}
	return values
}

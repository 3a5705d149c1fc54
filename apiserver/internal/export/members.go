package export

import (
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/rowstore"
)

// Members says which members of rows are kept. The zero Members keeps all.
type Members struct {
	Fields  []string        // only these, in this order; nil: all
	Without map[string]bool // all but these; has no effect with Fields
}

// All says whether whole rows are kept.
func (m Members) All() bool { return m.Fields == nil && len(m.Without) == 0 }

// Of returns the kept members of a row.
func (m Members) Of(row json.RawMessage) (json.RawMessage, error) {
	switch {
	case m.Fields != nil:
		return project(row, m.Fields)
	case len(m.Without) > 0:
		return leaveOut(row, m.Without)
	}
	return row, nil
}

// project keeps the named members that a row has, in the order named.
func project(row json.RawMessage, fields []string) (json.RawMessage, error) {
	members := make(map[string]string, len(fields))
	m := rowstore.MembersOf(row)
	for m.Next() {
		members[m.Key] = m.Value
	}
	if !m.Whole() {
		return nil, errNotARow
	}
	out := []byte{'{'}
	for _, name := range fields {
		value, ok := members[name]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("name of a member: %w", err)
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// leaveOut keeps all but the named members of a row, in their order.
func leaveOut(row json.RawMessage, without map[string]bool) (json.RawMessage, error) {
	out := []byte{'{'}
	m := rowstore.MembersOf(row)
	for m.Next() {
		if without[m.Key] {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, m.Written()...), m.Value...)
	}
	if !m.Whole() {
		return nil, errNotARow
	}
	return append(out, '}'), nil
}

var errNotARow = fmt.Errorf("export: a stored row is no JSON object")

package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/jsontext"
)

// eachField visits the members of a JSON object in order. Values are valid until visit returns.
func eachField(doc []byte, visit func(name string, value json.RawMessage) error) error {
	from := json.NewDecoder(bytes.NewReader(doc))
	if start, err := from.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("a row is no object: %w", err)
	}
	for from.More() {
		name, err := from.Token()
		if err != nil {
			return fmt.Errorf("a row's field: %w", err)
		}
		var value json.RawMessage
		if err := from.Decode(&value); err != nil {
			return fmt.Errorf("a row's field: %w", err)
		}
		if err := visit(name.(string), value); err != nil { // member names are strings
			return err
		}
	}
	if _, err := from.Token(); err != nil {
		return fmt.Errorf("a row has no end: %w", err)
	}
	return nil
}

// appendObject appends a JSON object with the named members in the given order.
func appendObject(to []byte, names []string, values map[string]json.RawMessage) []byte {
	to = append(to, '{')
	for n, name := range names {
		if n > 0 {
			to = append(to, ',')
		}
		to = append(jsontext.AppendString(to, name), ':')
		to = append(to, values[name]...)
	}
	return append(to, '}')
}

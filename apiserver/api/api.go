// Package api owns what the operations of all resources share: times, page envelopes, cursors, and
// the two calls of a deletion. Each resource has a folder here, with one file and one test for each
// operation. It declares what it uses.
package api

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/pkg/fault"
)

// Time is Unix milliseconds, encoded as ISO 8601 in UTC; 0 is null.
type Time int64

// MarshalJSON writes the time with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(data []byte) error {
	var at *time.Time
	if err := json.Unmarshal(data, &at); err != nil {
		return errTime
	}
	*t = 0
	if at != nil {
		*t = Time(at.UnixMilli())
	}
	return nil
}

// UnmarshalText reads a parameter: an RFC 3339 time after 1970, truncated to milliseconds.
func (t *Time) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil || at.UnixMilli() <= 0 {
		return errTime
	}
	*t = Time(at.UnixMilli())
	return nil
}

var errTime = fault.New(fault.InvalidRequest,
	"must be a time after 1970, such as 2026-01-02T03:04:05Z")

// Schema describes a Time in the OpenAPI document. Its pattern excludes times before 1970.
func (Time) Schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "null"}, Format: "date-time",
		Pattern: "^(19[7-9]|[2-9][0-9])[0-9]"}
}

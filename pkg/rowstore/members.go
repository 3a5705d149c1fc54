package rowstore

import (
	"encoding/json"
	"unsafe"

	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// Members iterates over the members of a stored row, without decoding what nobody asks for. If a
// key occurs twice, the last one counts.
type Members = document.Members

// MembersOf returns Members before the first member of a row. What it yields shares the row's
// memory, so the row must not change any more.
func MembersOf(row json.RawMessage) Members {
	return document.AllOf(unsafe.String(unsafe.SliceData(row), len(row)))
}

// TextOf decodes a member's value; ok is false if it is not a string.
func TextOf(value string) (text string, ok bool) { return document.Text(value) }

package rowstore

import (
	"encoding/json"
	"unsafe"

	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// Members goes through the members of a stored row one after the other, without decoding what
// nobody asks for. Of a member that is there twice the last one counts.
type Members = document.Members

// MembersOf is before the first member of a row. What it reads is part of the row, which must not
// change any more.
func MembersOf(row json.RawMessage) Members {
	return document.Of(unsafe.String(unsafe.SliceData(row), len(row)))
}

// TextOf decodes a member's value that is a string; false: it is none.
func TextOf(value string) (text string, ok bool) { return document.Text(value) }

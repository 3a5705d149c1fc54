package api

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/fault"
)

// Limits of cursor envelopes (specification 1), and the version of cursors.
const (
	// PageBytes bounds a page's items, not counting the last. A page of large items ends early,
	// with a cursor: 1,000 rows or scrapers may take 1 GB.
	PageBytes     = 4 << 20
	cursorVersion = 1
	maxCursor     = 2 << 10 // characters
)

// CursorPage is the cursor envelope of the specification.
type CursorPage[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor" doc:"Null on the last page"`
	HasMore    bool    `json:"hasMore"`
}

// JSON does the same as Page.JSON. A cursor contains no characters that JSON escapes.
func (p CursorPage[T]) JSON() (text []byte, ok bool) {
	rows, ok := any(p.Items).([]Row)
	if !ok {
		return nil, false
	}
	cursor := "null"
	if p.NextCursor != nil {
		cursor = `"` + *p.NextCursor + `"`
	}
	return fmt.Appendf(withRows(`{"items":`, rows), `,"nextCursor":%s,"hasMore":%t}`, cursor,
		p.HasMore), true
}

// NewCursor encodes where a read continues. A checksum binds it to the read, so it is refused with
// other parameters. It holds no secret and grants nothing: every call checks access again.
func NewCursor(place any, read ...string) string {
	payload, err := json.Marshal(place)
	if err != nil {
		panic("api: a cursor's place is a plain struct: " + err.Error())
	}
	data := append(make([]byte, 9, 9+len(payload)), payload...)
	data[0] = cursorVersion
	binary.BigEndian.PutUint64(data[1:], checksum(payload, read))
	return base64.RawURLEncoding.EncodeToString(data)
}

// ReadCursor decodes a cursor of the same read into place. Its error has the code invalid_cursor.
func ReadCursor(cursor string, place any, read ...string) error {
	if len(cursor) > maxCursor {
		return RefuseCursor()
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(data) < 9 || data[0] != cursorVersion {
		return RefuseCursor()
	}
	if payload := data[9:]; binary.BigEndian.Uint64(data[1:]) != checksum(payload, read) ||
		json.Unmarshal(payload, place) != nil {
		return RefuseCursor()
	}
	if NewCursor(place, read...) != cursor { // the same place encoded differently
		return RefuseCursor()
	}
	return nil
}

// RefuseCursor is the error for a cursor that NewCursor did not make for this read.
func RefuseCursor() error {
	return fault.Invalid(fault.InvalidCursor, "cursor",
		"not a cursor of this read: begin anew without one")
}

func checksum(payload []byte, read []string) uint64 {
	h := xxh3.New()
	var size [8]byte
	for _, part := range read {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:]) // a hash never fails
		_, _ = h.WriteString(part)
	}
	_, _ = h.Write(payload)
	return h.Sum64()
}

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/pkg/fault"
)

// MaxReach bounds the rows that page and size may skip (decision 19).
const MaxReach = 100_000

// Row is a scraped row, a JSON object, exactly as stored.
type Row json.RawMessage

// Rows converts rows of the row store.
func Rows(stored []json.RawMessage) []Row {
	rows := make([]Row, len(stored))
	for i, row := range stored {
		rows[i] = Row(row)
	}
	return rows
}

// MarshalJSON writes the row unchanged.
func (r Row) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// ScrapedRow implements operation.ScrapedRow: texts are marked for agents.
func (Row) ScrapedRow() {}

// Schema describes a row in the OpenAPI document. Its members depend on its scraper.
func (Row) Schema() *jsonschema.Schema {
	text := func(doc string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Description: doc}
	}
	return &jsonschema.Schema{Title: "Row", Type: "object",
		Description: "Its members are its scraper's fields. Members that begin with _ are the " +
			"server's.",
		Properties: map[string]*jsonschema.Schema{
			"_sourceUrl": text("Address of the page as listed or found"),
			"_finalUrl":  text("Address after redirects, if there were any"),
			"_scrapedAt": {Type: "string", Format: "date-time"},
			"_jobId":     text("Run that made the row"),
			"_rowId":     text("Permanent id of the row: GET /api/scraper/data/{rowId}/receipt"),
			"_scraperId": text("Scraper of that run"),
		},
		AdditionalProperties: &jsonschema.Schema{}}
}

// Page is envelope A of the specification: the content and its position in the whole.
type Page[T any] struct {
	Content       []T   `json:"content"`
	TotalElements int64 `json:"totalElements"`
	TotalPages    int64 `json:"totalPages"`
	Size          int   `json:"size"`
	Number        int   `json:"number" doc:"Zero-based index of this page"`
}

// NewPage makes the envelope of one page; nil content becomes empty.
func NewPage[T any](content []T, total int64, number, size int) Page[T] {
	if content == nil {
		content = []T{}
	}
	return Page[T]{Content: content, TotalElements: total, TotalPages: Pages(total, size),
		Size: size, Number: number}
}

// JSON encodes a page of stored rows as they are. It returns false for pages of anything else. For
// encoding/json to check and copy the rows again would take a third of the time to find them.
func (p Page[T]) JSON() (text []byte, ok bool) {
	rows, ok := any(p.Content).([]Row)
	if !ok {
		return nil, false
	}
	return p.appendEnd(withRows(`{"content":`, rows)), true
}

func (p Page[T]) appendEnd(text []byte) []byte {
	return fmt.Appendf(text, `,"totalElements":%d,"totalPages":%d,"size":%d,"number":%d}`,
		p.TotalElements, p.TotalPages, p.Size, p.Number)
}

// Write writes a page whose content comes from next instead. next returns parts of any length, and
// nil at the end.
func (p Page[T]) Write(w io.Writer, next func() ([]T, error)) error {
	if _, err := io.WriteString(w, `{"content":`); err != nil {
		return err
	}
	if err := WriteArray(w, next); err != nil {
		return err
	}
	_, err := w.Write(p.appendEnd(nil))
	return err
}

// WriteArray writes an array of the items that next returns, in parts of any length, and nil at the
// end.
func WriteArray[T any](w io.Writer, next func() ([]T, error)) error {
	before := []byte{'['}
	for {
		items, err := next()
		if err != nil {
			return err
		}
		if items == nil {
			_, err := w.Write(append(bytes.TrimSuffix(before, []byte{','}), ']'))
			return err
		}
		for _, item := range items {
			if _, err := w.Write(before); err != nil {
				return err
			}
			if err := writeItem(w, item); err != nil {
				return err
			}
			before = []byte{','}
		}
	}
}

// writeItem writes an item as JSON, or by its own WriteTo.
func writeItem(w io.Writer, item any) error {
	if long, ok := item.(io.WriterTo); ok {
		_, err := long.WriteTo(w)
		return err
	}
	text, err := encodeItem(item)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Length returns the encoded size of an item, bytes.
func Length(item any) (int, error) {
	text, err := encodeItem(item)
	return len(text), err
}

// encodeItem encodes an item for clients: rows as stored, and addresses with a plain &.
func encodeItem(item any) ([]byte, error) {
	if row, ok := item.(Row); ok {
		return row, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(item)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// withRows appends an array of rows to before, with capacity for the rest of a page.
func withRows(before string, rows []Row) []byte {
	size := len(before) + 256
	for _, row := range rows {
		size += len(row) + 1
	}
	text := append(make([]byte, 0, size), before...)
	text = append(text, '[')
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	return append(text, ']')
}

// Pages returns the number of pages of a total.
func Pages(total int64, size int) int64 { return (total + int64(size) - 1) / int64(size) }

// Reach refuses pages that are too deep (decision 19). elsewhere says what to use instead.
func Reach(page, size int, elsewhere string) error {
	if page > MaxReach/size {
		return fault.Invalid(fault.InvalidPage, "page", "page times size may be at most %d; %s",
			MaxReach, elsewhere)
	}
	return nil
}

package rows

import (
	"context"
	"strconv"

	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/jsontext"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a page's rows as JSON, in bytes, and of their number. Single values have no bound of
// their own, because cutting them would lose data silently.
const (
	MaxRowBytes  = 1_000_000
	MaxRows      = 100_000
	MaxPageBytes = 32_000_000
)

// keptBytes bounds the memory kept for the next page.
const keptBytes = 1 << 16

// Writer collects the rows of one page.
type Writer struct {
	rows [][]byte
	size int
	buf  []byte
	row  Row
	ctx  context.Context

	page  string   // its address
	href  string   // href of its base element, "" without one
	base  *url.Url // base of its links, nil until needed
	based bool     // href is known
}

// Reset starts a page. Rows already returned stay unchanged.
func (w *Writer) Reset() {
	w.rows, w.size = nil, 0
	if cap(w.buf) > keptBytes || cap(w.row.cell) > keptBytes {
		w.buf, w.row.cell = nil, nil
	}
}

// Within ends the work on pages when the context ends.
func (w *Writer) Within(ctx context.Context) { w.ctx = ctx }

// Context returns the context set by Within.
func (w *Writer) Context() context.Context {
	if w.ctx == nil {
		return context.Background()
	}
	return w.ctx
}

// Rows returns the rows written.
func (w *Writer) Rows() [][]byte { return w.rows }

// Row is a row being written.
type Row struct {
	w      *Writer
	cell   []byte // decoded value of the current cell
	filled bool   // some field is neither null nor false
	full   bool   // the row exceeds its bound; nothing is added any more
}

// BeginRow starts a row.
func (w *Writer) BeginRow() *Row {
	w.buf = append(w.buf[:0], '{')
	w.row = Row{w: w, cell: w.row.cell[:0]}
	return &w.row
}

// Add writes a column's value, taken from the match m or, for dom.NoMatch, missing. An expression
// that gives a value is evaluated at the element at.
func (r *Row) Add(doc *dom.Document, c *Column, m dom.Match, at dom.Elem) {
	if !r.key(c) {
		return
	}
	w := r.w
	switch {
	case c.Selector.IsScalar():
		r.addScalar(c, c.Selector.XPath.Value(doc, at))
	case c.kind == model.Exists:
		w.buf = strconv.AppendBool(w.buf, m.Elem != dom.None)
		r.filled = r.filled || m.Elem != dom.None
	default:
		r.addString(doc, c, m)
	}
	r.full = len(w.buf) >= MaxRowBytes
}

// addScalar writes the value of an expression. Values that XPath takes for false do not fill the
// row, because expressions give them where a page has nothing.
func (r *Row) addScalar(c *Column, value any) {
	w := r.w
	filled, start := false, len(w.buf)
	switch v := value.(type) {
	case bool:
		filled = v
		w.buf = strconv.AppendBool(w.buf, v)
	case float64:
		filled = v != 0
		w.buf = strconv.AppendFloat(w.buf, v, 'f', -1, 64)
	case string:
		r.cell = dom.AppendCollapsed(r.cell[:0], v)
		filled = len(r.cell) > 0
		w.buf = jsontext.AppendBytes(w.buf, r.cell)
	default:
		w.buf = append(w.buf, "null"...)
	}
	if c.kind == model.Exists {
		w.buf = strconv.AppendBool(w.buf[:start], filled)
	}
	r.filled = r.filled || filled
}

// key writes a column's name; false if the row is full.
func (r *Row) key(c *Column) bool {
	if r.full {
		return false
	}
	w := r.w
	if len(w.buf) > 1 {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, c.key...)
	return true
}

// AddJSON writes a column's value as in a JSON body: numbers exactly as written, arrays and objects
// as JSON. A missing value, jsondoc.None, becomes null, or false for a column that asks whether it
// exists.
func (r *Row) AddJSON(doc *jsondoc.Document, c *Column, n jsondoc.Node) {
	if !r.key(c) {
		return
	}
	w := r.w
	switch {
	case c.kind == model.Exists:
		w.buf = strconv.AppendBool(w.buf, n != jsondoc.None)
		r.filled = r.filled || n != jsondoc.None
	case n == jsondoc.None:
		w.buf = append(w.buf, "null"...)
	default:
		w.buf = doc.AppendJSON(w.buf, n, MaxRowBytes, jsontext.AppendBytes)
		r.filled = r.filled || !doc.IsNull(n)
	}
	r.full = len(w.buf) >= MaxRowBytes
}

// AddText writes a member that is not a field of the recipe.
func (r *Row) AddText(name, value string) {
	if r.full {
		return
	}
	w := r.w
	if len(w.buf) > 1 {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(jsontext.AppendString(w.buf, name), ':')
	w.buf = jsontext.AppendString(w.buf, value)
	r.filled = true
	r.full = len(w.buf) >= MaxRowBytes
}

func (r *Row) addString(doc *dom.Document, c *Column, m dom.Match) {
	ok := m.Elem != dom.None
	switch {
	case !ok:
	case c.kind == model.Text:
		r.cell = doc.AppendMatch(r.cell[:0], m)
	default:
		r.cell, ok = doc.AppendAttr(r.cell[:0], m.Elem, c.attr)
		if mayBeAddress(c.attr) && (!isLate(c.attr) || doc.ShowsFile(m.Elem)) {
			r.cell = r.w.resolve(doc, r.cell)
		}
	}
	if !ok {
		r.w.buf = append(r.w.buf, "null"...)
		return
	}
	r.w.buf = jsontext.AppendBytes(r.w.buf, r.cell)
	r.filled = true
}

// End finishes the row. A row in which every field is null or false is dropped. The error is coded
// row_too_large.
func (r *Row) End() error {
	w := r.w
	if !r.filled {
		return nil
	}
	if r.full {
		return fault.New(fault.PageRowTooLarge, "a row is larger than %d bytes", MaxRowBytes)
	}
	if w.size += len(w.buf) + 1; w.size > MaxPageBytes {
		return fault.New(fault.PageRowTooLarge, "the rows of the page are larger than %d bytes",
			MaxPageBytes)
	}
	if len(w.rows) == MaxRows {
		return TooMany()
	}
	row := make([]byte, len(w.buf)+1)
	row[copy(row, w.buf)] = '}'
	w.rows = append(w.rows, row)
	return nil
}

// TooMany returns the error of a page with more than MaxRows rows.
func TooMany() error {
	return fault.New(fault.PageRowTooLarge, "the page has more than %d rows", MaxRows)
}

package rows

import (
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Whole keeps a row that is already a JSON object. The error is coded row_too_large.
func (w *Writer) Whole(row []byte) error {
	if len(row) > MaxRowBytes {
		return TooLarge()
	}
	if w.size += len(row); w.size > MaxPageBytes {
		return fault.New(fault.PageRowTooLarge, "the rows of the page are larger than %d bytes",
			MaxPageBytes)
	}
	if len(w.rows) == MaxRows {
		return TooMany()
	}
	w.rows = append(w.rows, row)
	return nil
}

// TooLarge returns the error of a row with more than MaxRowBytes bytes.
func TooLarge() error {
	return fault.New(fault.PageRowTooLarge, "a row is larger than %d bytes", MaxRowBytes)
}

// BadName returns the problem with the name of a field, or "".
func BadName(name string) string { return badName(name, model.ColumnOf(name)) }

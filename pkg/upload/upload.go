// Package upload owns how the rows of customers' files are read (specification 4.9). They are
// separated text, JSON Lines, or the first sheet of a spreadsheet. It has the bounds of files. It
// knows neither where a file lies nor what becomes of its rows.
package upload

import (
	"fmt"
	"io"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/jsontext"
)

// Bounds of a file's structure (specification 8).
const (
	MaxColumns = 500
	MaxName    = 256       // characters of a column's name
	MaxCell    = 32 << 10  // bytes of a value
	MaxRow     = 1_000_000 // bytes of a row, as it stands in the file; in a spreadsheet its values
	// MaxRows bounds what a small file makes of the row store: rows have bytes of their own there.
	MaxRows = 20_000_000
)

// Bounds of how files come (specification 8).
const (
	MaxJSONBytes  = 2_000_000 // of a JSON body with a file in it
	MaxJSONBodies = 8         // of these at a time
	MaxTime       = time.Hour // that a file may take to come
	LeastPace     = 600_000   // bits of a file a second, over a minute
	MaxScraper    = 200       // characters of the name of an upload's scraper
	PartBytes     = 4_000_000 // of each part but the last of a file that comes in parts
	MaxParts      = 100       // of a customer, of files that are not whole
)

// Format is how a file has its rows.
type Format string

// The formats.
const (
	CSV   Format = "csv"
	JSONL Format = "jsonl"
	XLSX  Format = "xlsx"
)

// Values implements the API's enums.
func (Format) Values() []string { return []string{string(CSV), string(JSONL), string(XLSX)} }

// MediaTypes are those that a file of the format comes as; nil: there is no such format.
func (f Format) MediaTypes() []string {
	switch f {
	case CSV:
		return []string{"text/csv"}
	case JSONL:
		return []string{"application/x-ndjson", "application/jsonl"}
	case XLSX:
		return []string{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
	}
	return nil
}

// MaxBytes is the most that a file of the format may have (specification 4.9).
func (f Format) MaxBytes() int64 {
	if f == XLSX {
		return 36_000_000
	}
	return 200_000_000
}

// Is says whether a file of the format may come as a media type.
func (f Format) Is(mediaType string) bool { return slices.Contains(f.MediaTypes(), mediaType) }

// Refusal says in words why a file cannot be read: what its customer can mend. Other errors of a
// Reader are those of what it reads from.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// refuseRow is a refusal for what is wrong with the row of a number, from 1.
func refuseRow(row int, format string, args ...any) error {
	return refuse("row %d: %s", row, fmt.Sprintf(format, args...))
}

// Nothing is the refusal of a file without rows.
func Nothing() *Refusal {
	return &Refusal{Reason: "nothing was imported: the file has no data rows"}
}

// Cell is a value with the name of its column. It is not empty.
type Cell struct{ Name, Text string }

// Row is the values of a row, in the order of the file's columns. It has one at least.
type Row []Cell

// AppendJSON appends the row as a JSON object whose values are texts.
func (r Row) AppendJSON(to []byte) []byte {
	to = append(to, '{')
	for i, cell := range r {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(jsontext.AppendString(to, cell.Name), ':')
		to = jsontext.AppendString(to, cell.Text)
	}
	return append(to, '}')
}

// Reader reads the rows of a file, from the first to the last.
type Reader interface {
	// Next is the next row that is not empty. It holds until the next call. Behind the last row the
	// error is io.EOF. A *Refusal says what is wrong with the file.
	Next() (Row, error)
	// Has says whether the file has a column, by its first row or those that were read. It may have
	// no value.
	Has(column string) bool
	// Close gives back what the reader has.
	Close() error
}

// NewReader reads a file of a format. A spreadsheet is copied to dir first, for its parts lie in no
// order; "" is the system's directory for temporary files. Its errors are those of a Reader.
func NewReader(format Format, from io.Reader, dir string) (Reader, error) {
	reader, err := newReader(format, from, dir)
	if err != nil {
		return nil, err
	}
	return &capped{Reader: reader, left: MaxRows}, nil
}

// capped refuses a file with more rows than it may have.
type capped struct {
	Reader
	left int
}

// Next implements Reader.
func (c *capped) Next() (Row, error) {
	row, err := c.Reader.Next()
	if err != nil {
		return nil, err
	}
	if c.left--; c.left < 0 {
		return nil, refuse("the file has more than %d rows", MaxRows)
	}
	return row, nil
}

func newReader(format Format, from io.Reader, dir string) (Reader, error) {
	switch format {
	case CSV:
		return newCSV(from), nil
	case JSONL:
		return newLines(from), nil
	case XLSX:
		return openSheet(from, dir)
	}
	return nil, refuse("files of the format %.20q are not read", string(format))
}

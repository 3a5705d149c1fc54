// Package upload reads the rows of customers' files (specification 4.9). These are separated text,
// JSON Lines, or the first sheet of a spreadsheet. It defines the bounds of files. It does not know
// where a file is stored or what becomes of its rows.
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
	MaxRow     = 1_000_000 // bytes of a row as it is in the file; in a spreadsheet, of its values
	// MaxRows limits what a small file costs the row store, where every row has some overhead.
	MaxRows = 20_000_000
)

// Bounds of uploads (specification 8).
const (
	MaxJSONBytes  = 2_000_000 // of a JSON body that contains a file
	MaxJSONBodies = 8         // of these at the same time
	MaxTime       = time.Hour // for the upload of a file
	LeastPace     = 600_000   // bits per second of a file, over a minute
	MaxScraper    = 200       // characters of the name of an upload's scraper
	PartBytes     = 4_000_000 // of each part of a multipart upload, except the last
	MaxParts      = 100       // of a customer, in unfinished uploads
)

// Format is the format of a file's rows.
type Format string

// The formats.
const (
	CSV   Format = "csv"
	JSONL Format = "jsonl"
	XLSX  Format = "xlsx"
)

// Values lists the formats for the API's enums.
func (Format) Values() []string { return []string{string(CSV), string(JSONL), string(XLSX)} }

// MediaTypes returns the media types of files in the format; nil: unknown format.
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

// MaxBytes returns the size limit for a file in the format (specification 4.9).
func (f Format) MaxBytes() int64 {
	if f == XLSX {
		return 36_000_000
	}
	return 200_000_000
}

// Is reports whether a file in the format may have a media type.
func (f Format) Is(mediaType string) bool { return slices.Contains(f.MediaTypes(), mediaType) }

// Refusal says in words why a file cannot be read, so that its customer can correct it. Other
// errors of a Reader come from the source that it reads.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// refuseRow returns a refusal for the row with a number, from 1.
func refuseRow(row int, format string, args ...any) error {
	return refuse("row %d: %s", row, fmt.Sprintf(format, args...))
}

// Nothing returns the refusal of a file without rows.
func Nothing() *Refusal {
	return &Refusal{Reason: "nothing was imported: the file has no data rows"}
}

// Cell is a non-empty value with the name of its column.
type Cell struct{ Name, Text string }

// Row is the values of a row, in the order of the file's columns. It has at least one.
type Row []Cell

// AppendJSON appends the row as a JSON object whose values are strings.
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
	// Next returns the next non-empty row, valid until the next call. After the last row the error
	// is io.EOF. A *Refusal says what is wrong with the file.
	Next() (Row, error)
	// Has reports whether the file has a column, according to its first row or the rows read so
	// far. The column may have no values.
	Has(column string) bool
	// Close releases the reader's resources.
	Close() error
}

// NewReader reads a file in a format. It first copies a spreadsheet to dir, since the parts come in
// any order; "" is the system's temporary directory. Its errors are those of a Reader.
func NewReader(format Format, from io.Reader, dir string) (Reader, error) {
	reader, err := newReader(format, from, dir)
	if err != nil {
		return nil, err
	}
	return &capped{Reader: reader, left: MaxRows}, nil
}

// capped refuses a file with too many rows.
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

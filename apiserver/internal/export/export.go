// Package export writes rows as a file: it decides which columns there are, in which order, and how
// each format encodes them. Memory is constant: rows come part by part, and at most two parts are
// read ahead of the one being written. It knows no store and no HTTP.
package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"shoal.dev/shoal/pkg/fault"
)

// Format is a file format.
type Format string

// The file formats.
const (
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	XLSX    Format = "xlsx"
	Parquet Format = "parquet"
)

// MediaType is the format's Content-Type.
func (f Format) MediaType() string {
	switch f {
	case CSV:
		return "text/csv; charset=utf-8"
	case XLSX:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case Parquet:
		return "application/vnd.apache.parquet"
	}
	return "application/x-ndjson"
}

// Resumes says whether a file of the format is written row by row, so that it can go on after any.
func (f Format) Resumes() bool { return f == CSV || f == JSONL }

// MediaTypes are the Content-Types of all formats.
func MediaTypes() []string {
	return []string{CSV.MediaType(), JSONL.MediaType(), XLSX.MediaType(), Parquet.MediaType()}
}

// Source reads rows from first to last, part by part, and ends at its first error. Parts are not
// reused. It may be called again, and then yields the same rows in the same order.
type Source func(ctx context.Context) iter.Seq2[[]json.RawMessage, error]

// Options say which parts of the rows are written, and how.
type Options struct {
	Format  Format
	Members Members
	// First are columns that come before all others, even if no row has them.
	First []string
	// BOM begins a csv with a byte order mark, by which spreadsheets recognize UTF-8.
	BOM bool
	// Unguarded leaves text that a spreadsheet would take for a formula as it is. Otherwise such
	// text gets an apostrophe in front (decision 21).
	Unguarded bool
	// Skip is how many rows the reader has from an earlier answer, with what comes before them.
	// They are not written again; 0: it has nothing. csv and jsonl only.
	Skip int64
	// Disk is space for rows until all columns are known. nil: the rows are read twice instead.
	Disk Disk
}

// Write writes all rows. Too many columns, or too few rows to skip, are invalid_request. More than
// a spreadsheet can hold is export_too_large. Other errors are those of rows and w.
func Write(ctx context.Context, w io.Writer, rows Source, o Options) error {
	out := bufio.NewWriterSize(w, 64<<10)
	rows = readAhead(rows)
	var err error
	switch o.Format {
	case CSV:
		err = writeCSV(ctx, out, rows, o)
	case XLSX:
		err = writeXLSX(ctx, out, rows, o)
	case Parquet:
		err = writeParquet(ctx, out, rows, o)
	default:
		err = writeJSONL(ctx, out, rows, o)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// eachRow visits the rows until one fails. written is false for the first skip rows. If there are
// fewer, the fault is invalid_request.
func eachRow(ctx context.Context, rows Source, skip int64,
	visit func(row json.RawMessage, written bool) error) error {
	count := int64(0)
	for part, err := range rows(ctx) {
		if err != nil {
			return err
		}
		for _, row := range part {
			count++
			if err := visit(row, count > skip); err != nil {
				return err
			}
		}
	}
	if count < skip {
		return fault.Invalid(fault.InvalidRequest, "skip", "the export has only %d rows", count)
	}
	return nil
}

func writeJSONL(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	return eachRow(ctx, rows, o.Skip, func(row json.RawMessage, written bool) error {
		if !written {
			return nil
		}
		line, err := oneLine(row, o.Members)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		return w.WriteByte('\n')
	})
}

// oneLine is the kept members of a row, without line breaks.
func oneLine(row json.RawMessage, kept Members) ([]byte, error) {
	row, err := kept.Of(row)
	if err != nil || !bytes.ContainsAny(row, "\r\n") {
		return row, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, row); err != nil {
		return nil, fmt.Errorf("a stored row is no JSON: %w", err)
	}
	return line.Bytes(), nil
}

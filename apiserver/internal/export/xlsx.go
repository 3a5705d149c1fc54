package export

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a spreadsheet.
const (
	maxSheetRows  = 100_000   // beside the header (specification 7)
	maxSheetBytes = 256 << 20 // of its rows, as they are stored
)

// sheetSize counts what is to become a spreadsheet.
type sheetSize struct {
	rows  int
	bytes int64
}

func (s *sheetSize) add(row json.RawMessage) error {
	s.rows++
	s.bytes += int64(len(row))
	switch {
	case s.rows > maxSheetRows:
		return fault.New(fault.ExportTooLarge,
			"a spreadsheet has at most %d rows, and there are more; take jsonl, csv or parquet",
			maxSheetRows)
	case s.bytes > maxSheetBytes:
		return fault.New(fault.ExportTooLarge,
			"a spreadsheet is made of at most %d MiB of rows, and these are more; take jsonl, "+
				"csv or parquet", maxSheetBytes>>20)
	}
	return nil
}

// writeXLSX writes one sheet: a header of all columns that any row has, then the rows. Text stands
// in cells of text, so that none is taken for a formula. Nothing is written before the sheet is
// whole: it lies on disk by then.
func writeXLSX(ctx context.Context, w *bufio.Writer, rows Source, o Options) (err error) {
	held := &hold{newSpool(o.Disk)}
	defer held.close()
	t, err := tabulate(ctx, rows, o, verbatim, held)
	if err != nil {
		return err
	}
	s, err := beginSheet(o.Disk, len(t.columns))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.file.Close()) }()
	for i, c := range t.columns {
		s.cells[i] = c.name
	}
	if err := s.put(); err != nil {
		return err
	}
	if err := t.each(ctx, held, s.row); err != nil {
		return err
	}
	return s.write(w)
}

// sheet is a spreadsheet that is being put together.
type sheet struct {
	disk  Disk
	file  *excelize.File
	out   *excelize.StreamWriter
	rows  int
	cells []any
	taken int64 // of the disk, beyond what is written
}

const sheetName = "data"

// sheetStep is taken of the disk at a time.
const sheetStep = 4 << 20

func beginSheet(disk Disk, columns int) (*sheet, error) {
	s := &sheet{disk: disk, cells: make([]any, columns)}
	options := excelize.Options{}
	if disk != nil {
		options.TmpDir = disk.Dir()
	}
	s.file = excelize.NewFile(options)
	err := s.file.SetSheetName("Sheet1", sheetName)
	if err == nil {
		s.out, err = s.file.NewStreamWriter(sheetName)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin a sheet: %w", err), s.file.Close())
	}
	return s, nil
}

func (s *sheet) row(cells []cell) error {
	clear(s.cells)
	for _, c := range cells {
		s.cells[c.place] = sheetCell(c.value)
	}
	return s.put()
}

// put writes the cells as the next row.
func (s *sheet) put() error {
	if err := s.takeRoom(); err != nil {
		return err
	}
	s.rows++
	name, err := excelize.CoordinatesToCellName(1, s.rows)
	if err == nil {
		err = s.out.SetRow(name, s.cells)
	}
	if err != nil {
		return fmt.Errorf("row of a sheet: %w", err)
	}
	return nil
}

// What a cell and a row of a sheet take beside their text, and what a byte of text takes at most.
// XML writes some characters in five.
const (
	cellBytes = 96
	rowBytes  = 32
	textBytes = 5
)

// takeRoom takes room for the cells, never less than the library writes of them.
func (s *sheet) takeRoom() error {
	if s.disk == nil {
		return nil
	}
	bytes := rowBytes + cellBytes*len(s.cells)
	for _, cell := range s.cells {
		if text, ok := cell.(string); ok {
			bytes += textBytes * len(text)
		}
	}
	for s.taken < int64(bytes) {
		if err := s.disk.TakeRoom(sheetStep); err != nil {
			return err
		}
		s.taken += sheetStep
	}
	s.taken -= int64(bytes)
	return nil
}

// write writes the whole file. The library would gather all of it in memory first; a writer of ours
// takes its place.
func (s *sheet) write(w io.Writer) error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("end a sheet: %w", err)
	}
	s.file.SetZipWriter(func(io.Writer) excelize.ZipWriter {
		out := zip.NewWriter(w)
		out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
			return flate.NewWriter(w, flate.BestSpeed)
		})
		return out
	})
	if err := s.file.Write(io.Discard); err != nil {
		return fmt.Errorf("write a sheet: %w", err)
	}
	return nil
}

// sheetCell is a value as a cell: nil is an empty one. A number that a spreadsheet would round is
// text.
func sheetCell(value string) any {
	if text, ok := rowstore.TextOf(value); ok {
		return text
	}
	switch value[0] {
	case 'n':
		return nil
	case 't', 'f':
		return value == "true"
	case '{', '[':
		return value
	}
	if number, kept := keepFloat(value); kept {
		return number
	}
	return value
}

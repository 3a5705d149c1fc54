package upload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// Bounds of a spreadsheet's parts.
const (
	// maxUnzipped is what all parts may have together once they are unpacked, in bytes.
	maxUnzipped = 2 << 30
	// inMemory is how many bytes of a part are unpacked into memory; a longer one goes to disk.
	inMemory = 4 << 20
)

// sheet reads the first sheet of a spreadsheet. Its values are as they are stored: a date is the
// number that stands for it.
type sheet struct {
	book  *excelize.File
	rows  *excelize.Rows
	table *table
	row   int // number of the row that is read, from 1
	head  bool
}

// openSheet copies a spreadsheet to a directory, and opens its first sheet.
func openSheet(from io.Reader, dir string) (_ *sheet, err error) {
	file, err := os.CreateTemp(dir, "upload-*.xlsx")
	if err != nil {
		return nil, fmt.Errorf("copy a spreadsheet: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("copy a spreadsheet: %w", err)
	}
	return openBook(file.Name(), dir)
}

func openBook(name, dir string) (_ *sheet, err error) {
	s := &sheet{table: newTable()}
	defer func() {
		// The library panics at some files that are none.
		if reason := recover(); reason != nil {
			err = refuse("the file is no spreadsheet that can be read")
		}
		if err != nil {
			_ = s.Close() // nothing of it is read
		}
	}()
	s.book, err = excelize.OpenFile(name, excelize.Options{UnzipSizeLimit: maxUnzipped,
		UnzipXMLSizeLimit: inMemory, TmpDir: dir, RawCellValue: true})
	if err != nil {
		return nil, refuse("the file is no spreadsheet that can be read: %.200s", err)
	}
	names := s.book.GetSheetList()
	if len(names) == 0 {
		return nil, refuse("the spreadsheet has no sheet")
	}
	if s.rows, err = s.book.Rows(names[0]); err != nil {
		return nil, refuse("the first sheet cannot be read: %.200s", err)
	}
	return s, nil
}

// Close implements Reader.
func (s *sheet) Close() error {
	var err error
	if s.rows != nil {
		err = s.rows.Close()
	}
	if s.book != nil {
		err = errors.Join(err, s.book.Close())
	}
	if err != nil {
		return fmt.Errorf("close a spreadsheet: %w", err)
	}
	return nil
}

// Next implements Reader.
func (s *sheet) Next() (row Row, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = refuseRow(s.row, "it cannot be read")
		}
	}()
	for s.rows.Next() {
		s.row++
		texts, err := s.rows.Columns(excelize.Options{RawCellValue: true})
		if err != nil {
			return nil, refuseRow(s.row, "it cannot be read: %.200s", err)
		}
		if row, err = s.take(texts); err != nil || len(row) > 0 {
			return row, err
		}
	}
	if err := s.rows.Error(); err != nil {
		return nil, refuseRow(s.row, "it cannot be read: %.200s", err)
	}
	return nil, io.EOF
}

// take makes a row of the values of one, or the names of the columns of the first that has any.
func (s *sheet) take(texts []string) (Row, error) {
	size, last := 0, 0
	for at, text := range texts {
		if size += len(text); text != "" {
			last = at + 1
		}
		if !utf8.ValidString(text) {
			return nil, refuseRow(s.row, "it is not UTF-8")
		}
	}
	texts = texts[:last]
	switch {
	case size > MaxRow:
		return nil, refuseRow(s.row, "it has more than %d bytes", MaxRow)
	case last > MaxColumns:
		return nil, refuse("the file has more than %d columns", MaxColumns)
	case last == 0:
		return nil, nil
	case !s.head:
		s.head = true
		return nil, s.table.head(texts)
	}
	for at, text := range texts {
		if err := s.table.put(s.row, at, text); err != nil {
			return nil, err
		}
	}
	return s.table.take(), nil
}

package upload

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// sheet reads the first sheet of a spreadsheet (ECMA-376, part 1, section 18.3). Values are as
// stored: a date is its serial number. Only numbers are spelled alike (spellNumber). It streams the
// sheet and keeps one row in memory, whatever the file claims about itself.
type sheet struct {
	file     *os.File // the spreadsheet, unlinked
	part     *part    // the sheet
	shared   *shared
	table    *table
	row      int      // number of the current row, from 1
	ahead    int      // number of the row whose element has begun; 0: none
	held     []string // a row that was read beyond the one before it; nil: none
	heldSize int      // bytes
	head     bool
}

// openSheet copies a spreadsheet to a directory, and opens its first sheet.
func openSheet(from io.Reader, dir string) (_ *sheet, err error) {
	s := &sheet{table: newTable()}
	defer func() {
		if err != nil {
			_ = s.Close() // nothing was read from it
		}
	}()
	if s.file, err = nameless(dir); err != nil {
		return nil, fmt.Errorf("copy a spreadsheet: %w", err)
	}
	entries := &entries{}
	size, err := io.Copy(io.MultiWriter(s.file, entries), from)
	if err != nil {
		return nil, fmt.Errorf("copy a spreadsheet: %w", err)
	}
	if entries.count > maxParts {
		return nil, refuse("the spreadsheet has more than %d parts", maxParts)
	}
	if isOld(s.file) {
		return nil, notSheet("it is an old .xls, or has a password")
	}
	archive, err := zip.NewReader(s.file, size)
	if err != nil {
		return nil, notSheet("%.200s", err)
	}
	name, texts, err := findParts(archive)
	if err != nil {
		return nil, err
	}
	if s.shared, err = readShared(archive, texts, dir); err != nil {
		return nil, err
	}
	s.part, err = openPart(archive, name)
	return s, err
}

// oldSheet begins an .xls, and a spreadsheet with a password. It may end with a zip archive.
const oldSheet = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// isOld reports whether a file is an .xls, or has a password.
func isOld(file io.ReaderAt) bool {
	begin := make([]byte, len(oldSheet))
	_, err := file.ReadAt(begin, 0)
	return err == nil && string(begin) == oldSheet
}

// notSheet refuses a file that is no spreadsheet of this format, for a reason.
func notSheet(format string, args ...any) error {
	return refuse("the file is no spreadsheet that can be read (%s): save it as .xlsx, without a "+
		"password", fmt.Sprintf(format, args...))
}

// nameless returns a file that vanishes when it is closed.
func nameless(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "upload-*.xlsx")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Has implements Reader.
func (s *sheet) Has(column string) bool { return s.table.has(column) }

// Close implements Reader.
func (s *sheet) Close() error {
	var err error
	if s.part != nil {
		_ = s.part.Close() // errors in its bytes were reported already
	}
	if s.shared != nil {
		err = errors.Join(err, s.shared.Close())
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	if err != nil {
		return fmt.Errorf("close a spreadsheet: %w", err)
	}
	return nil
}

// Next implements Reader.
func (s *sheet) Next() (Row, error) {
	for {
		texts, err := s.readRow()
		if err != nil {
			return nil, err
		}
		if row, err := s.makeRow(texts); err != nil || len(row) > 0 {
			return row, err
		}
	}
}

// readRow returns the values of the next row. Some programs write each cell in a row element of its
// own: elements of one number in a sequence are one row. Others give rows the same number: an
// element that repeats a cell begins a row. After the last row the error is io.EOF.
func (s *sheet) readRow() (texts []string, err error) {
	texts, size, begun := s.held, s.heldSize, s.held != nil
	s.held, s.heldSize = nil, 0
	for {
		if s.ahead == 0 {
			if err := s.beginRow(); err != nil {
				return nil, err
			}
		}
		switch {
		case s.ahead == 0 && !begun:
			return nil, io.EOF
		case begun && s.ahead != s.row: // or there is none
			return texts, nil
		}
		s.row, s.ahead, begun = s.ahead, 0, true
		if texts, size, err = s.addCells(texts, size); err != nil || s.held != nil {
			return texts, err
		}
	}
}

// beginRow finds the next row element, if there is one, and its number.
func (s *sheet) beginRow() error {
	start, err := s.part.find("row")
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return refuseRow(s.row+1, "it cannot be read: %.200s", err)
	}
	s.ahead = s.row + 1
	if at, err := strconv.Atoi(attribute(start, "r")); err == nil && at > 0 {
		s.ahead = at
	}
	return nil
}

// addCells adds the values of a row element that has begun to those of its row, of a size. If it
// repeats a cell of an earlier element, they are held for a row of their own.
func (s *sheet) addCells(texts []string, size int) ([]string, int, error) {
	var added []int // columns
	for next := 0; ; {
		token, err := s.part.next()
		if err != nil {
			return nil, 0, refuseRow(s.row, "it cannot be read: %.200s", endedEarly(err))
		}
		if end, ended := token.(xml.EndElement); ended && end.Name.Local == "row" {
			return texts, size, nil
		}
		start, begun := token.(xml.StartElement)
		if !begun || start.Name.Local != "c" {
			continue
		}
		at := next
		if place := attribute(start, "r"); place != "" {
			if at, err = column(place); err != nil {
				return nil, 0, refuseRow(s.row, "%v", err)
			}
		}
		next = at + 1
		text, err := s.cell(attribute(start, "t"))
		s.part.found(text)
		switch {
		case err != nil:
			return nil, 0, err
		case text == "":
			continue
		case at >= MaxColumns:
			return nil, 0, refuse("the file has more than %d columns", MaxColumns)
		}
		if s.held == nil && at < len(texts) && texts[at] != "" && !slices.Contains(added, at) {
			s.held, s.heldSize = make([]string, at+1), 0
			for _, column := range added {
				s.held, s.heldSize = putCell(s.held, column, texts[column]),
					s.heldSize+len(texts[column])
				texts[column] = ""
			}
		}
		if s.held != nil {
			s.heldSize += len(text)
			s.held = putCell(s.held, at, text)
		} else {
			size += len(text)
			texts = putCell(texts, at, text)
			if added = append(added, at); len(added) > MaxColumns { // cells are repeated
				slices.Sort(added)
				added = slices.Compact(added)
			}
		}
		if max(size, s.heldSize) > MaxRow {
			return nil, 0, refuseRow(s.row, "it has more than %d bytes", MaxRow)
		}
	}
}

// putCell sets the value of a column.
func putCell(texts []string, column int, text string) []string {
	for len(texts) <= column {
		texts = append(texts, "")
	}
	texts[column] = text
	return texts
}

// cell returns the value of a cell of a type. Its element has begun.
func (s *sheet) cell(kind string) (string, error) {
	var text string
	for {
		token, err := s.part.next()
		if err != nil {
			return "", refuseRow(s.row, "it cannot be read: %.200s", endedEarly(err))
		}
		switch t := token.(type) {
		case xml.EndElement:
			if t.Name.Local != "c" {
				continue
			}
			switch {
			case kind == "" || kind == "n":
				return spellNumber(text), nil
			case kind != "s" || text == "":
				return text, nil
			}
			at, err := strconv.Atoi(text)
			if err != nil {
				return "", refuseRow(s.row, "%.40q is no number of a text", text)
			}
			return s.sharedText(at)
		case xml.StartElement:
			switch t.Name.Local {
			case "v":
				if text, err = s.part.content(); kind == "str" {
					text = unescape(text)
				}
			case "is":
				text, err = s.part.runs()
			}
			if err != nil {
				return "", refuseRow(s.row, "it cannot be read: %.200s", endedEarly(err))
			}
		}
	}
}

// Bounds of the numbers that are spelled anew.
const (
	// mostNumber is the first integer that a float64 may not tell from the next.
	mostNumber = 1 << 53
	// leastNumber keeps small numbers from becoming rows of zeros.
	leastNumber = 1e-6
	// plainBytes is the most bytes that 15 digits, a point and a sign take.
	plainBytes = 17
)

// spellNumber spells a number of a cell in plain digits, so that keys are equal whichever program
// wrote them. Java spells 7 as 7.0 and 12345678 as 1.2345678E7; Excel spells 19.9 as
// 19.899999999999999. The number stays the same float64. Other spellings stay, with their zeros.
func spellNumber(text string) string {
	switch {
	case strings.HasPrefix(text, "0") && !strings.HasPrefix(text, "0."): // a leading zero is kept
		return text
	case strings.HasSuffix(text, ".0"), strings.ContainsAny(text, "eE"):
	case len(text) > plainBytes && strings.Contains(text, "."):
	default:
		return text
	}
	number, err := strconv.ParseFloat(text, 64)
	size := math.Abs(number)
	if err != nil || size >= mostNumber || number != 0 && size < leastNumber {
		return text
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// sharedText returns a shared text by its number. Disk errors are not the file's fault.
func (s *sheet) sharedText(at int) (string, error) {
	text, err := s.shared.text(at)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return "", refuseRow(s.row, "%s", refusal.Reason)
	}
	return text, err
}

// column returns the number of a cell's column, from 0, given the cell's place: 0 for A1.
func column(place string) (int, error) {
	at := 0
	for i := range len(place) {
		c := place[i] | 0x20
		if c < 'a' || c > 'z' {
			break
		}
		if at = at*26 + int(c-'a') + 1; at > 1<<14 { // XFD is the last column
			break
		}
	}
	if at == 0 || at > 1<<14 {
		return 0, fmt.Errorf("%.20q is no place of a cell", place)
	}
	return at - 1, nil
}

// makeRow turns values into a row, or the first non-empty ones into the names of the columns.
func (s *sheet) makeRow(texts []string) (Row, error) {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return nil, refuseRow(s.row, "it is not UTF-8")
		}
	}
	switch {
	case len(texts) == 0 || !s.head && namesNothing(texts):
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
	return s.table.endRow(), nil
}

// attribute returns an attribute of an element, "" if it is missing.
func attribute(of xml.StartElement, name string) string {
	for _, a := range of.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// endedEarly returns the error for an error inside an element: the end of the file is one.
func endedEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// unescape decodes characters that XML cannot hold: _x000D_ is a carriage return (ECMA-376, part 1,
// section 22.9.2.19). A character beyond U+FFFF is two codes of UTF-16.
func unescape(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		at := strings.Index(text, "_x")
		if at < 0 {
			break
		}
		out.WriteString(text[:at])
		text = text[at:]
		char, size := escaped(text), escapeBytes
		if utf16.IsSurrogate(char) {
			char, size = utf16.DecodeRune(char, escaped(text[size:])), 2*size
		}
		if !utf8.ValidRune(char) || size == 2*escapeBytes && char == utf8.RuneError {
			out.WriteString(text[:2])
			text = text[2:]
			continue
		}
		out.WriteRune(char)
		text = text[size:]
	}
	return out.String() + text
}

// escapeBytes is the length of an escaped code, such as _x000D_.
const escapeBytes = 7

// escaped returns the code of UTF-16 that a text begins with, escaped; -1: none.
func escaped(text string) rune {
	if len(text) < escapeBytes || text[:2] != "_x" || text[escapeBytes-1] != '_' {
		return -1
	}
	code, err := strconv.ParseUint(text[2:escapeBytes-1], 16, 16)
	if err != nil {
		return -1
	}
	return rune(code)
}

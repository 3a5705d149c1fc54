package upload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// readAhead is how much of a file is read into memory at a time.
const readAhead = 64 << 10

// csvReader reads separated text. A quote means something only where a value begins, and in a value
// that began with one. So handwritten files are read as is, and quotes never swallow rows. White
// space behind a closing quote is not part of the value.
type csvReader struct {
	from  *bufio.Reader
	table *table
	comma byte // separator of values; 0: the first row has not been read
	told  byte // separator that the file names; 0: none
	row   int  // number of the current row, from 1; empty rows count
	bytes int  // of the row so far
	text  []byte
	ends  []int // ends of the row's values in text
	quote int   // where text has the last closing quote, which it leaves out
	began bool  // a byte order mark has been looked for
}

func newCSV(from io.Reader) *csvReader {
	return &csvReader{from: bufio.NewReaderSize(from, readAhead), table: newTable()}
}

// Has implements Reader.
func (c *csvReader) Has(column string) bool { return c.table.has(column) }

// Close implements Reader.
func (*csvReader) Close() error { return nil }

// Next implements Reader.
func (c *csvReader) Next() (Row, error) {
	for {
		if c.comma == 0 {
			if err := c.readHead(); err != nil {
				return nil, err
			}
		}
		if err := c.readRow(); err != nil {
			return nil, err
		}
		from := 0
		for at, end := range c.ends {
			if err := c.table.put(c.row, at, string(c.text[from:end])); err != nil {
				return nil, err
			}
			from = end
		}
		if row := c.table.endRow(); len(row) > 0 {
			return row, nil
		}
	}
}

// readHead reads the names of the columns: the first non-empty row.
func (c *csvReader) readHead() error {
	if !c.began {
		c.began = true
		if mark, err := c.from.Peek(3); err == nil && string(mark) == "\ufeff" {
			_, _ = c.from.Discard(3) // Peek has seen them
		}
	}
	for {
		// Until the separator is known, both characters separate, and are kept in the text.
		if err := c.readRow(); err != nil {
			return err
		}
		told, err := c.tellsComma()
		if err != nil {
			return err
		}
		if told {
			continue
		}
		names, separators := c.split()
		if len(c.text) > separators && !namesNothing(names) {
			if err := c.refuseOther(names); err != nil {
				return err
			}
			return c.table.head(names)
		}
		c.comma = 0 // the next row determines the separator
	}
}

// tellsComma reports whether a first row is no names, but names the separator, as Excel reads it:
// sep=; or sep=,
func (c *csvReader) tellsComma() (bool, error) {
	const mark = "sep="
	if c.told != 0 || len(c.text) <= len(mark) ||
		!strings.EqualFold(string(c.text[:len(mark)]), mark) {
		return false, nil
	}
	switch comma := string(c.text[len(mark):]); {
	case comma == "," || comma == ";":
		c.told = comma[0]
		return true, nil
	case utf8.RuneCountInString(comma) == 1:
		return false, refuseRow(c.row, "it says that %q separates values: save the file with "+
			"commas or semicolons", comma)
	}
	return false, nil
}

// refuseOther refuses a file in another format, whose rows would be read as something else. UTF-16
// without a byte order mark may be valid UTF-8, with a zero byte beside each letter.
func (c *csvReader) refuseOther(names []string) error {
	if bytes.IndexByte(c.text, 0) >= 0 {
		return c.notUTF8()
	}
	tabs := 0
	for _, name := range names {
		tabs += strings.Count(strings.TrimSpace(name), "\t")
	}
	if tabs >= len(names) { // more than there are separators
		return refuseRow(c.row, "tabs separate its values: save the file with commas or semicolons")
	}
	return nil
}

func (c *csvReader) notUTF8() error {
	return refuseRow(c.row, "it is not UTF-8: save the file as UTF-8")
}

// split makes names of a first row, in which both separators end values. One is the separator; the
// other one is text.
func (c *csvReader) split() (names []string, separators int) {
	separators = len(c.ends) - 1
	comma := c.told
	if comma == 0 {
		comma = c.findComma()
	}
	if len(c.text) > separators {
		c.comma = comma
	}
	from := 0
	for i, end := range c.ends {
		if i == len(c.ends)-1 {
			names = append(names, string(c.text[from:end]))
		} else if c.text[end-1] == comma {
			names = append(names, string(c.text[from:end-1]))
			from = end
		}
	}
	return names, separators
}

// findComma returns the separator of a first row: the more frequent one outside of quotes. A comma
// before a space counts half, because names have such: "price, EUR". The semicolon wins a tie.
func (c *csvReader) findComma() byte {
	commas, semicolons := 0, 0 // in halves
	for _, end := range c.ends[:len(c.ends)-1] {
		switch {
		case c.text[end-1] == ';':
			semicolons += 2
		case end < len(c.text) && c.text[end] == ' ':
			commas++
		default:
			commas += 2
		}
	}
	if commas > semicolons || semicolons == 0 {
		return ','
	}
	return ';'
}

// places in a row
type place uint8

const (
	valueBegins place = iota
	inValue           // not quoted
	inQuotes
	quoteEnded // after a quote in a quoted value: its end, an escaped quote, or a lone one
	loneQuote  // in a value that began with a quote, after one that did not end it
)

// readRow reads the values of a row. After the last row the error is io.EOF.
func (c *csvReader) readRow() error {
	c.row++
	c.text, c.ends, c.bytes = c.text[:0], c.ends[:0], 0
	for at := valueBegins; ; {
		b, err := c.from.ReadByte()
		if errors.Is(err, io.EOF) {
			return c.endFile(at)
		}
		if err != nil {
			return err
		}
		if c.bytes++; c.bytes > MaxRow+1 { // the last byte may be the line's end
			return c.tooLong()
		}
		switch {
		case at == inQuotes && b != '"':
			c.text = append(c.text, b)
		case at == inQuotes:
			c.quote, at = len(c.text), quoteEnded
		case b == '\n', b == '\r':
			if b == '\r' {
				c.skipLineFeed()
			}
			return c.endRow(at)
		case c.separates(b):
			c.endQuotes(at)
			if c.comma == 0 {
				c.text = append(c.text, b) // the separator is not decided yet
			}
			if err := c.endValue(); err != nil {
				return err
			}
			at = valueBegins
		case b == '"' && at == valueBegins:
			at = inQuotes
		case b == '"' && at == quoteEnded && c.quote == len(c.text):
			c.text, at = append(c.text, b), inQuotes
		case at == quoteEnded && (b == ' ' || b == '\t'):
			c.text = append(c.text, b)
		default:
			switch at {
			case quoteEnded: // it is inside the value
				c.text, at = slices.Insert(c.text, c.quote, '"'), loneQuote
			case valueBegins:
				at = inValue
			}
			c.text = append(c.text, b)
		}
	}
}

func (c *csvReader) separates(b byte) bool {
	return b == c.comma || c.comma == 0 && (b == ',' || b == ';')
}

// endQuotes decides, at the end of a value, what its quotes mean. Lone quotes are text. If the
// value does not end with a quote, its first one is text too.
func (c *csvReader) endQuotes(at place) {
	switch {
	case at == quoteEnded:
		c.text = c.text[:c.quote] // without the white space behind it
	case at != loneQuote:
	case c.text[len(c.text)-1] == '"':
		c.text = c.text[:len(c.text)-1]
	default:
		c.text = slices.Insert(c.text, c.valueStart(), '"')
	}
}

// valueStart returns where the current value begins in the text.
func (c *csvReader) valueStart() int {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1]
}

func (c *csvReader) tooLong() error {
	return refuseRow(c.row, "it has more than %d bytes", MaxRow)
}

// skipLineFeed skips the line feed after a carriage return.
func (c *csvReader) skipLineFeed() {
	if next, err := c.from.Peek(1); err == nil && next[0] == '\n' {
		_, _ = c.from.Discard(1) // Peek has seen it
	}
}

// endValue ends a value. It gives up on a row with more values than there may be columns, before
// the row fills the memory.
func (c *csvReader) endValue() error {
	c.ends = append(c.ends, len(c.text))
	if len(c.ends) > MaxColumns+1 && c.comma != 0 {
		from := c.ends[len(c.ends)-2]
		if len(c.text) == from { // empty: separators at the end of rows mean nothing
			c.ends = c.ends[:len(c.ends)-1]
			return nil
		}
		return refuse("the file has more than %d columns", MaxColumns)
	}
	return nil
}

func (c *csvReader) endRow(at place) error {
	c.endQuotes(at)
	if err := c.endValue(); err != nil {
		return err
	}
	if !utf8.Valid(c.text) {
		return c.notUTF8()
	}
	return nil
}

// endFile ends the last row, which may lack a line end.
func (c *csvReader) endFile(at place) error {
	switch {
	case at == inQuotes:
		return refuseRow(c.row, "a quote that opens in it is never closed")
	case c.bytes == 0:
		return io.EOF
	case c.bytes > MaxRow:
		return c.tooLong()
	}
	return c.endRow(at)
}

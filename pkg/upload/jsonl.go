package upload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// lines reads JSON Lines. The names of members are the columns, in order of first appearance.
type lines struct {
	from  *bufio.Reader
	table *table
	row   int // number of the current line, from 1
	line  []byte
	text  bytes.Buffer
}

func newLines(from io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(from, readAhead), table: newTable()}
}

// Has implements Reader.
func (l *lines) Has(column string) bool { return l.table.has(column) }

// Close implements Reader.
func (*lines) Close() error { return nil }

// Next implements Reader.
func (l *lines) Next() (Row, error) {
	for {
		if err := l.readLine(); err != nil {
			return nil, err
		}
		if len(l.line) == 0 {
			continue
		}
		if err := l.readObject(); err != nil {
			return nil, err
		}
		if row := l.table.endRow(); len(row) > 0 {
			return row, nil
		}
	}
}

// readLine reads the next line, without surrounding white space. After the last line the error is
// io.EOF.
func (l *lines) readLine() error {
	l.row++
	l.line = l.line[:0]
	for {
		part, err := l.from.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case len(bytes.TrimRight(l.line, "\r\n")) > MaxRow:
			return refuseRow(l.row, "it has more than %d bytes", MaxRow)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.line) == 0:
			return io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if l.row == 1 {
			l.line = bytes.TrimPrefix(l.line, []byte("\ufeff"))
		}
		l.line = bytes.TrimSpace(l.line)
		return nil
	}
}

// readObject reads the object of a line.
func (l *lines) readObject() error {
	if !utf8.Valid(l.line) {
		return refuseRow(l.row, "it is not UTF-8: save the file as UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(l.line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return l.notObject()
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return l.notObject()
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return l.notObject()
		}
		if err := l.put(name.(string), value); err != nil { // the token is a name
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return l.notObject()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return l.notObject()
	}
	return nil
}

func (l *lines) notObject() error {
	return refuseRow(l.row, "it is not one JSON object")
}

// put stores a member. If a name occurs twice, the last member counts, as for JSON readers. Names
// that differ only in characters that hide others are one name.
func (l *lines) put(name string, value json.RawMessage) error {
	at, err := l.table.name(plain(name))
	if err != nil {
		return err
	}
	text, err := l.textOf(value)
	if err != nil {
		return l.notObject()
	}
	l.table.texts[at] = ""
	return l.table.put(l.row, at, text)
}

// textOf returns a value as text: numbers and booleans as written, nested values as compact JSON.
func (l *lines) textOf(value json.RawMessage) (text string, err error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		return text, json.Unmarshal(value, &text)
	case '{', '[':
		l.text.Reset()
		err = json.Compact(&l.text, value)
		return l.text.String(), err
	}
	return string(value), nil
}

// Package urllist reads a list of addresses before it is sent. It reports what is wrong with each
// line that a server would refuse, and can leave such lines out. A list is a file of any length, or
// standard input. Memory use is constant.
package urllist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Standard is the name of standard input.
const Standard = "-"

const (
	buffer = 64 << 10
	// maxLine is the longest line that a server accepts, in bytes.
	maxLine = 64 << 10
)

// List is a scanned list.
type List struct {
	ContentType string
	Length      int64  // of Body, in bytes
	Good        int64  // addresses
	Bad         int64  // lines that are not addresses
	First       string // the first address

	file *os.File
}

// Bad is a line that is not an address.
type Bad struct {
	Line   int64 // from 1
	Text   string
	Reason string
}

// ErrUTF16 is the error of a list in UTF-16, of which no line can be read.
var ErrUTF16 = errors.New("the list is UTF-16, as some editors and spreadsheets write it; save " +
	"it as UTF-8, or: iconv -f UTF-16 -t UTF-8 LIST > LIST.utf8")

// Open scans a file of addresses, or standard input. It passes bad lines to bad as they are found.
// With skip they are left out of the list's body.
func Open(path string, in io.Reader, skip bool, bad func(Bad)) (*List, error) {
	l := &List{}
	source, regular := in, false
	if path != Standard {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", path)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		source, regular = file, info.Mode().IsRegular()
		if l.file, l.Length = file, info.Size(); !regular || skip {
			defer func() { _ = file.Close() }() // read-only
		}
	}
	var copied *bufio.Writer
	if !regular || skip {
		spool, err := os.CreateTemp("", "shoal-list-*")
		if err != nil {
			return nil, fmt.Errorf("keep the list for sending: %w", err)
		}
		l.file, copied = spool, bufio.NewWriterSize(spool, buffer)
		if err := os.Remove(spool.Name()); err != nil { // the file goes when it is closed
			return nil, errors.Join(err, l.Close())
		}
	}
	if err := l.look(bufio.NewReaderSize(source, buffer), copied, skip, bad); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Body returns the list from its beginning. It may be called again.
func (l *List) Body() io.Reader { return io.NewSectionReader(l.file, 0, l.Length) }

// Close gives up the list.
func (l *List) Close() error { return l.file.Close() }

// look scans all lines. It copies what is to be sent to copied, unless that is nil.
func (l *List) look(lines *bufio.Reader, copied *bufio.Writer, skip bool, bad func(Bad)) error {
	head, _ := lines.Peek(512) // an error here recurs in the reading below, which returns it
	if isUTF16(head) {
		return ErrUTF16
	}
	read := (&plain{}).read
	l.ContentType = "text/uri-list"
	if bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, mark)), []byte("{")) {
		read, l.ContentType = ndjson, "application/x-ndjson"
	}
	size := int64(0)
	for number := int64(1); ; number++ {
		line, long, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the list: %w", err)
		}
		if len(line) == 0 {
			break
		}
		text := bytes.TrimSpace(line)
		if number == 1 {
			text = bytes.TrimPrefix(text, mark)
		}
		address, reason := "", fmt.Sprintf("is longer than %d bytes", maxLine)
		if !long {
			address, reason = read(string(text))
		}
		switch {
		case reason != "":
			l.Bad++
			bad(Bad{Line: number, Text: string(text), Reason: reason})
		case address != "":
			if l.Good++; l.Good == 1 {
				l.First = address
			}
		}
		if copied == nil || reason != "" && skip {
			continue
		}
		size += int64(len(line))
		if _, err := copied.Write(line); err != nil {
			return fmt.Errorf("keep the list for sending: %w", err)
		}
	}
	if copied == nil {
		return nil
	}
	l.Length = size
	if err := copied.Flush(); err != nil {
		return fmt.Errorf("keep the list for sending: %w", err)
	}
	return nil
}

// readLine reads a line with its end, if it has one. Of a line longer than a server accepts it
// keeps the beginning. An error comes with the last line, or alone.
func readLine(lines *bufio.Reader) (line []byte, long bool, err error) {
	line, err = lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, false, err
	}
	line = bytes.Clone(line[:100])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = lines.ReadSlice('\n')
	}
	return line, true, err
}

var mark = []byte("\xef\xbb\xbf")

// isUTF16 says whether a text begins with a UTF-16 mark, or has NULs in every other place.
func isUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	nuls := [2]int{}
	for i, c := range head {
		if c == 0 {
			nuls[i%2]++
		}
	}
	return len(head) >= 8 && max(nuls[0], nuls[1]) > len(head)/3
}

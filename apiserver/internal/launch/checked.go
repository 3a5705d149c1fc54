package launch

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// spoolBuffer is how many bytes of a list are written and read back at once.
const spoolBuffer = 64 << 10

// maxSpooledText bounds a text that is read back, in bytes. A canonical form may be longer than its
// line.
const maxSpooledText = 4 * maxLine

// check writes the addresses of a list with their canonical forms, for checked to read. It stops at
// the first invalid address, even if the rest of the list has not come yet.
func (t *intake) check(ctx context.Context, from addresses, to io.Writer) error {
	out := bufio.NewWriterSize(to, spoolBuffer)
	text := func(s string) {
		// errors show at the flush
		_, _ = out.Write(binary.AppendUvarint(out.AvailableBuffer(), uint64(len(s))))
		_, _ = out.WriteString(s)
	}
	for {
		given, err := from.next(ctx)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		canonical, err := t.canonical(given.url)
		if err != nil {
			return refusedAddress(from.place(), given.url, err)
		}
		text(given.url)
		if canonical == given.url {
			canonical = ""
		}
		text(canonical)
	}
}

// checked are the addresses that check has written.
type checked struct {
	written io.ReaderAt
	from    *bufio.Reader
}

func newChecked(written io.ReaderAt) *checked {
	c := &checked{written: written, from: bufio.NewReaderSize(nil, spoolBuffer)}
	c.rewind()
	return c
}

func (c *checked) rewind() { c.from.Reset(io.NewSectionReader(c.written, 0, math.MaxInt64)) }

func (*checked) place() string { return "the list" }

func (c *checked) next(context.Context) (listing, error) {
	if _, err := c.from.Peek(1); errors.Is(err, io.EOF) {
		return listing{}, io.EOF
	}
	url, err := c.text()
	if err != nil {
		return listing{}, err
	}
	canonical, err := c.text()
	if canonical == "" {
		canonical = url
	}
	return listing{url: url, canonical: canonical}, err
}

var errSpoiled = errors.New("what was kept of a list cannot be read")

// text reads a text, which has its length in front.
func (c *checked) text() (string, error) {
	length, err := binary.ReadUvarint(c.from)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errSpoiled, err)
	}
	if length > maxSpooledText {
		return "", fmt.Errorf("%w: a text of %d bytes", errSpoiled, length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(c.from, text); err != nil {
		return "", fmt.Errorf("%w: %w", errSpoiled, err)
	}
	return string(text), nil
}

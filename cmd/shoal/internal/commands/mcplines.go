package commands

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines are the lines of a client, without those that are no message. It answers these itself,
// because the library would end at the first one. A batch is left to the library.
type lines struct {
	from *bufio.Reader
	to   io.Writer
	left []byte // of the line that is being read
}

func newLines(from io.Reader, to io.Writer) *lines {
	return &lines{from: bufio.NewReaderSize(from, longestMessage), to: to}
}

// Read implements io.Reader.
func (l *lines) Read(into []byte) (int, error) {
	for len(l.left) == 0 {
		line, err := l.from.ReadSlice('\n')
		if len(line) == 0 {
			return 0, err
		}
		// The library ends at a line that is too long.
		if !errors.Is(err, bufio.ErrBufferFull) {
			if code, why := judge(line); code != 0 {
				_, err := fmt.Fprintf(l.to, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,`+
					`"message":%q}}`+"\n", code, why)
				if err != nil {
					return 0, err
				}
				continue
			}
		}
		l.left = line
	}
	n := copy(into, l.left)
	l.left = l.left[n:]
	return n, nil
}

// judge says why a line is no message; 0: it is one, or it is empty.
func judge(line []byte) (code int64, why string) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0 || line[0] == '[' && json.Valid(line):
		return 0, ""
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "the line is no JSON"
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return jsonrpc.CodeInvalidRequest, "the line is no JSON-RPC message"
	}
	return 0, ""
}

// unclosed is standard output, which Close leaves open. Several may write to it.
type unclosed struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (u *unclosed) Write(text []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.to.Write(text)
}

// Close implements io.Closer.
func (*unclosed) Close() error { return nil }

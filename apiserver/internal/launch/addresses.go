package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of link lists (decisions 8 and 9).
const (
	maxListed   = 100_000 // addresses in a JSON body
	maxStreamed = 5_000_000
	maxLine     = 64 << 10 // bytes of a line
	linksAtOnce = 10_000   // links of a stored list per read
	maxSkimmed  = 100      // links of a site that are read to find where its run begins
)

// listing is one address of a list.
type listing struct {
	url       string
	canonical string // "": not checked yet
}

// addresses is a list of addresses as it arrives.
type addresses interface {
	// next returns the next address, io.EOF after the last one.
	next(ctx context.Context) (listing, error)
	// place names the last address in errors, as the input at fault: urls[17], or line 17.
	place() string
}

// storedAddresses can be read again from the start.
type storedAddresses interface {
	addresses
	rewind()
}

// listed are the addresses of a JSON body.
type listed struct {
	field string
	urls  []string
	read  int
}

func (l *listed) next(context.Context) (listing, error) {
	if l.read == len(l.urls) {
		return listing{}, io.EOF
	}
	l.read++
	return listing{url: l.urls[l.read-1]}, nil
}

func (l *listed) rewind() { l.read = 0 }

func (l *listed) place() string {
	if l.field == "urls" {
		return fmt.Sprintf("urls[%d]", l.read-1)
	}
	return l.field
}

// lines are the addresses of a streamed body. It holds one line in memory.
type lines struct {
	scanner *bufio.Scanner
	parse   func(line []byte) (url string, err error) // "": the line has no address
	// the most addresses; lines, including blank ones and comments, may be twice as many
	most  int
	line  int // number of the last line, from 1
	found int
}

func newLines(body io.Reader, parse func([]byte) (string, error), most int) *lines {
	l := &lines{scanner: bufio.NewScanner(body), parse: parse, most: most}
	l.scanner.Buffer(make([]byte, 0, maxLine), maxLine)
	return l
}

func (l *lines) place() string { return fmt.Sprintf("line %d", l.line) }

func (l *lines) next(context.Context) (listing, error) {
	// A body that breaks off may end in the middle of a line. So Err is checked before that line is
	// used.
	for l.scanner.Scan() && l.scanner.Err() == nil {
		line := l.scanner.Bytes()
		if l.line == 0 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if l.line++; l.line > 2*l.most {
			return listing{}, fault.New(fault.ListTooLarge, "a list may have at most %d lines",
				2*l.most)
		}
		url, err := l.parse(bytes.TrimSpace(line))
		if err != nil {
			return listing{}, refusedAddress(l.place(), string(line), err)
		}
		if url == "" {
			continue
		}
		if l.found++; l.found > l.most {
			return listing{}, fault.New(fault.ListTooLarge, "a list may have at most %d addresses",
				l.most)
		}
		return listing{url: url}, nil
	}
	switch err := l.scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.line++
		return listing{}, fault.Invalid(fault.InvalidURL, l.place(),
			"the line is longer than %d bytes", maxLine)
	case err != nil:
		return listing{}, err
	}
	return listing{}, io.EOF
}

var (
	errNotText = fault.New(fault.InvalidURL, "The line is not valid UTF-8.")
	errJoined  = fault.New(fault.InvalidURL, "The line has a tab or a carriage return in it. A line "+
		"is one address, and ends with a line feed.")
)

// URILine reads a line of text/uri-list (RFC 2483): an address or a comment. It refuses tabs and
// carriage returns. A parser of addresses skips them, and would join several addresses into one.
func URILine(line []byte) (string, error) {
	switch {
	case len(line) == 0 || line[0] == '#':
		return "", nil
	case !utf8.Valid(line):
		return "", errNotText
	case bytes.ContainsAny(line, "\t\r"):
		return "", errJoined
	}
	return string(line), nil
}

// JSONLine reads a line of application/x-ndjson: {"url": "…"}, or an empty line.
func JSONLine(line []byte) (string, error) {
	if len(line) == 0 {
		return "", nil
	}
	if !utf8.Valid(line) {
		return "", errNotText
	}
	if url, ok := plainLine(line); ok {
		return url, nil
	}
	return jsonLine(line)
}

// plainLine reads a line as most writers write it, much faster than jsonLine.
func plainLine(line []byte) (string, bool) {
	const head, tail = `{"url":"`, `"}`
	if len(line) <= len(head)+len(tail) || string(line[:len(head)]) != head ||
		string(line[len(line)-len(tail):]) != tail {
		return "", false
	}
	url := line[len(head) : len(line)-len(tail)]
	for _, c := range url {
		if c < ' ' || c == '"' || c == '\\' {
			return "", false
		}
	}
	return string(url), true
}

func jsonLine(line []byte) (string, error) {
	malformed := fault.New(fault.InvalidBody,
		`The line is no JSON object like {"url": "https://…"}.`)
	tokens := json.NewDecoder(bytes.NewReader(line))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		return "", malformed
	}
	url := ""
	for tokens.More() {
		name, err := tokens.Token()
		if err != nil {
			return "", malformed
		}
		if name != "url" {
			return "", fault.New(fault.UnknownField, "There is no such member: %.100q.", name)
		}
		value, err := tokens.Token()
		text, isText := value.(string)
		if err != nil || !isText || text == "" || url != "" {
			return "", malformed
		}
		url = text
	}
	if end, err := tokens.Token(); err != nil || end != json.Delim('}') || url == "" {
		return "", malformed
	}
	if _, err := tokens.Token(); !errors.Is(err, io.EOF) {
		return "", malformed
	}
	return url, nil
}

// stored are the addresses of an earlier run's list.
type stored struct {
	store rowstore.Lists
	job   *client.Job
	links []rowstore.Link // read but not yet returned
	from  uint32
}

func (s *stored) place() string {
	return fmt.Sprintf("link %d of job %s", s.from-uint32(len(s.links))-1, s.job.ID)
}

func (s *stored) next(ctx context.Context) (listing, error) {
	if len(s.links) == 0 {
		links, err := s.store.Links(ctx, s.job.List, s.from, linksAtOnce)
		if errors.Is(err, rowstore.ErrListUnknown) {
			return listing{}, fault.Invalid(fault.InvalidRequest, "urls",
				"the list of the newest run is no longer kept; send the addresses")
		}
		if err != nil {
			return listing{}, fmt.Errorf("list of job %s: %w", s.job.ID, err)
		}
		if len(links) == 0 {
			return listing{}, io.EOF
		}
		s.links, s.from = links, links[len(links)-1].Seq+1
	}
	link := s.links[0]
	s.links = s.links[1:]
	return listing{url: link.URL}, nil
}

// Package curl parses curl commands, as browsers copy them for bash and for Windows cmd. One
// command becomes one HTTP request, from which it derives requests with placeholders, page
// parameters and redirects. It runs nothing, reads no file and makes no connection; options that
// would are refused by name. Where a request may go is up to pkg/egress, and the fetcher supplies
// the values of placeholders.
package curl

import (
	"strings"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a command and of its parts, in bytes unless stated otherwise.
const (
	MaxCommand = 128 << 10
	maxHeader  = 32 << 10 // all fields together
	maxFields  = 100
	maxBody    = 128 << 10
	maxMethod  = 32
	maxWords   = 1_000
)

// Request is the request of a command. It is immutable: derived requests are new ones.
type Request struct {
	Method string
	// as written, with the data of -G; may hold placeholders, except in scheme and host
	URL    string
	Header []egress.Field
	Body   []byte
}

// Parse parses a command. Its error is a *fault.Error with the code schema_validation_failed that
// names the offending option or construct, without values.
//
// The header is the command's, with these exceptions. Fields that the connection sets itself are
// left out: Connection, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade,
// Expect, Content-Length, Accept-Encoding, Host and the pseudo-fields of HTTP/2. Range and the
// conditional fields (If-…) are left out because each fetch wants the whole page. A Host, or a
// pseudo-field for it, that differs from the address's is refused. Accept defaults to */*.
func Parse(command string) (*Request, error) {
	if len(command) > MaxCommand {
		return nil, invalid("a curl command has at most %d bytes", MaxCommand)
	}
	split := bashWords
	if isCmd(command) {
		split = cmdWords
	}
	words, err := split(command)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || words[0] != "curl" && words[0] != "curl.exe" {
		return nil, invalid("a curl command begins with the word curl")
	}
	if len(words) > maxWords {
		return nil, invalid("a curl command has at most %d words", maxWords)
	}
	c := &reading{}
	if err := c.read(words[1:]); err != nil {
		return nil, err
	}
	return c.request()
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.SchemaValidation, format, args...)
}

// Redirected returns the request that follows a redirect from one canonical address to another, as
// in browsers. 301, 302 and 303 lead to a GET without body (a HEAD stays one). 307 and 308 repeat
// the request. Another origin gets neither credentials nor cookies. A nil request, a plain GET,
// stays nil.
func (r *Request) Redirected(status int, from, to string) *Request {
	if r == nil {
		return nil
	}
	next := &Request{Method: r.Method, URL: to, Header: r.Header, Body: r.Body}
	if status < 307 {
		if next.Method != "HEAD" {
			next.Method = "GET"
		}
		next.Body, next.Header = nil, without(next.Header, ofBody)
	}
	return next.For(from, to)
}

// For returns the request in the form that may be sent to to, although it was meant for another
// address. If the origins differ, it has no credentials and cookies.
func (r *Request) For(meant, to string) *Request {
	if originOf(meant) == originOf(to) {
		return r
	}
	stripped := *r
	stripped.Header = without(r.Header, secrets)
	return &stripped
}

// Fields that belong to a body, and fields for one origin only. In lower case.
var (
	ofBody = []string{"content-type", "content-encoding", "content-language", "content-location",
		"content-disposition"}
	secrets = []string{"authorization", "cookie", "proxy-authorization"}
)

func without(header []egress.Field, names []string) []egress.Field {
	var kept []egress.Field
	for _, field := range header {
		if !isOneOf(field.Name, names) {
			kept = append(kept, field)
		}
	}
	return kept
}

func isOneOf(name string, lower []string) bool {
	name = strings.ToLower(name)
	for _, one := range lower {
		if name == one {
			return true
		}
	}
	return false
}

// origin returns the scheme and authority of a canonical address.
func origin(canonical string) string {
	scheme, rest, _ := strings.Cut(canonical, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}

// field returns the value of the first header field with a name in lower case.
func (r *Request) field(name string) (value string, found bool) {
	for _, field := range r.Header {
		if strings.ToLower(field.Name) == name {
			return field.Value, true
		}
	}
	return "", false
}

// Package curl owns curl commands, as browsers copy them for bash and for Windows cmd. One command
// becomes one HTTP request, and requests with placeholders, page parameters and redirects follow
// from it. It runs nothing, reads no file and makes no connection; what would is refused by name.
// It does not own where a request may go (pkg/egress does), nor where the values of placeholders
// come from (the fetcher does).
package curl

import (
	"strings"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a command and of what it says, in bytes where nothing else is said.
const (
	MaxCommand = 128 << 10
	maxHeader  = 32 << 10 // all fields together
	maxFields  = 100
	maxBody    = 128 << 10
	maxMethod  = 32
	maxWords   = 1_000
)

// Request is what a command asks for. It is never changed: what follows from it is a new one.
type Request struct {
	Method string
	// as written, with the data of -G; may hold placeholders, but not in scheme and host
	URL    string
	Header []egress.Field
	Body   []byte
}

// Parse reads a command. Its error is a *fault.Error with the code schema_validation_failed that
// names the option or the construct at fault, without values.
//
// The header is as the command has it, with these exceptions. Left out because the connection makes
// its own: Connection, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade,
// Expect, Content-Length, Accept-Encoding, Host and the pseudo-fields of HTTP/2. Left out because
// each fetch wants the whole page: Range and the conditional fields (If-…). A Host, or a
// pseudo-field for it, that differs from the address's is refused. Accept is */* unless given.
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

// Redirected is the request that follows a redirect from one canonical address to another. It does
// as browsers do: 301, 302 and 303 lead to a GET without body (a HEAD stays one). 307 and 308
// repeat the request. Another origin gets neither credentials nor cookies. A nil request, a plain
// GET, stays nil.
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

// For is the request as it may be sent to an address when it was meant for another. It has no
// credentials and cookies where the origins differ.
func (r *Request) For(meant, to string) *Request {
	if originOf(meant) == originOf(to) {
		return r
	}
	stripped := *r
	stripped.Header = without(r.Header, secrets)
	return &stripped
}

// Fields that go with a body, and that are meant for one origin alone. In lower case.
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

// origin is the scheme and the authority of a canonical address.
func origin(canonical string) string {
	scheme, rest, _ := strings.Cut(canonical, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}

// field is the value of the first header field of a name in lower case.
func (r *Request) field(name string) (value string, found bool) {
	for _, field := range r.Header {
		if strings.ToLower(field.Name) == name {
			return field.Value, true
		}
	}
	return "", false
}

package curl

import (
	"regexp"
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
)

// Fields that are left out, in lower case; see Parse.
var dropped = []string{"connection", "keep-alive", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade",
	"expect", "content-length", "accept-encoding", "method", "path", "scheme", "protocol",
	"version", "range", "if-range",
	"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "http2-settings"}

// request returns the request that the options make.
func (c *reading) request() (*Request, error) {
	if len(c.urls) != 1 {
		return nil, invalid("a curl command needs exactly one address, not %d; an address that "+
			"holds & must be quoted", len(c.urls))
	}
	switch {
	case len(c.form) > 0 && len(c.data) > 0:
		return nil, invalid("a request has one body: -F and -d exclude each other")
	case len(c.form) > 0 && (c.get || c.head), len(c.data) > 0 && c.head && !c.get:
		return nil, invalid("a request without a body (-G, -I) cannot send one")
	}
	r := &Request{}
	var err error
	if r.URL, err = c.address(); err != nil {
		return nil, err
	}
	// Chrome copies -k with every http address, where there is nothing to check.
	if c.trust && !strings.HasPrefix(originOf(r.URL), "http://") {
		return nil, invalid("the option -k (--insecure) is not allowed: %s", trust)
	}
	if r.Method, err = c.verb(); err != nil {
		return nil, err
	}
	if err := c.setHeader(r); err != nil {
		return nil, err
	}
	if err := c.setBody(r); err != nil {
		return nil, err
	}
	return r, checkHeader(r.Header)
}

// Ranges and lists of curl, which make several addresses of one, and the escapes that prevent it.
var (
	globs    = regexp.MustCompile(`\[(\d+-\d+|[a-zA-Z]-[a-zA-Z])(:\d+)?\]|\{[^{}]*,[^{}]*\}`)
	brackets = regexp.MustCompile(`\\([][{}])`)
)

// address returns the one address, without fragment.
func (c *reading) address() (string, error) {
	at := c.urls[0]
	if !c.literal {
		if globs.MatchString(brackets.ReplaceAllString(at, "_")) {
			return "",
				invalid("the address stands for several ([1-9], {a,b}); -g takes it as it is")
		}
		at = brackets.ReplaceAllString(at, "$1")
	}
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	at, _, _ = strings.Cut(at, "#")
	if c.get && len(c.data) > 0 {
		join := "?"
		if strings.Contains(at, "?") {
			join = "&"
		}
		at = strings.TrimSuffix(at, join) + join + strings.Join(c.data, "&")
	}
	if placeholder.MatchString(origin(at)) {
		return "", invalid("placeholders may not stand in the host of the address")
	}
	if _, err := address.Canonical(at); err != nil {
		return "", invalid("the address cannot be read as an http or https address")
	}
	return at, nil
}

func (c *reading) verb() (string, error) {
	switch {
	case c.method == "" && c.head:
		return "HEAD", nil
	case c.method == "" && (c.get || len(c.data)+len(c.form) == 0):
		return "GET", nil
	case c.method == "":
		return "POST", nil
	case len(c.method) > maxMethod || !egress.IsToken(c.method):
		return "", invalid("the method (-X) is not the name of one")
	case c.method == "CONNECT", c.method == "TRACE":
		return "", invalid("the method %s is not allowed", c.method)
	}
	return c.method, nil
}

// setHeader collects the fields: those of -H in their order, then those that other options add
// unless -H has them.
func (c *reading) setHeader(r *Request) error {
	canonical, err := address.Canonical(r.URL)
	if err != nil {
		return err
	}
	_, authority, _ := strings.Cut(origin(canonical), "://")
	for _, field := range c.header {
		switch name := strings.ToLower(field.Name); {
		case name == "host" || name == "authority":
			if !strings.EqualFold(field.Value, authority) {
				return invalid("the header field %s names another host than the address",
					field.Name)
			}
		case !isOneOf(name, dropped):
			r.Header = append(r.Header, field)
		}
	}
	add := func(name, value string) {
		if _, given := r.field(strings.ToLower(name)); !given && value != "" &&
			!isOneOf(name, c.none) {
			r.Header = append(r.Header, egress.Field{Name: name, Value: value})
		}
	}
	if c.agent != nil {
		add("User-Agent", *c.agent)
	}
	add("Referer", c.referer)
	add("Cookie", strings.Join(c.cookies, "; "))
	add("Authorization", c.auth)
	if c.json {
		add("Content-Type", "application/json")
		add("Accept", "application/json")
	}
	add("Accept", "*/*")
	return nil
}

func (c *reading) setBody(r *Request) error {
	switch {
	case len(c.form) > 0:
		body, boundary := multipart(c.form)
		r.Body = body
		media, given := r.field("content-type")
		if given && strings.Contains(media, "boundary=") {
			return invalid("with -F the boundary is made here: leave the field Content-Type out")
		}
		if !given {
			media = "multipart/form-data"
		}
		r.Header = append(without(r.Header, []string{"content-type"}),
			egress.Field{Name: "Content-Type", Value: media + "; boundary=" + boundary})
	case len(c.data) > 0 && !c.get:
		r.Body = []byte(strings.Join(c.data, "&"))
		if _, given := r.field("content-type"); !given && !isOneOf("content-type", c.none) {
			r.Header = append(r.Header,
				egress.Field{Name: "Content-Type", Value: "application/x-www-form-urlencoded"})
		}
	}
	if len(r.Body) > maxBody {
		return invalid("the body has at most %d bytes", maxBody)
	}
	return nil
}

func checkHeader(header []egress.Field) error {
	if len(header) > maxFields {
		return invalid("a request has at most %d header fields", maxFields)
	}
	size := 0
	for _, field := range header {
		if !egress.IsToken(field.Name) {
			return invalid("a header field has a name that cannot be sent")
		}
		if strings.ContainsAny(field.Value, "\r\n\x00") {
			return invalid("the header field %s has a line's end in it", field.Name)
		}
		size += len(field.Name) + len(field.Value) + 4
	}
	if size > maxHeader {
		return invalid("the header has at most %d bytes", maxHeader)
	}
	return nil
}

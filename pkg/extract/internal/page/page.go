// Package page owns the input of an extraction and its output besides rows. These are fetched
// pages, and requests that must be answered before a page is complete. It knows what a page claims
// to be, but not what it contains.
package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// Page is what a fetch delivered or, with a Code, a fetch that delivered nothing.
type Page struct {
	URL         string // the final address, the base for links
	ContentType string // as the server sent it; may be empty
	Body        []byte // UTF-8; read only during Extract, and never changed
	// Code is why there is no page: a page code of pkg/fault. Only pages that an Ask requested have
	// one, and first pages of a type that makes rows of failures.
	Code fault.Code
	// Missing says that the site has no such page: it answered 404 or 410, and Code is http_status.
	Missing bool
	// Asked is the address as listed, or as the Ask named it. At is when the page was read.
	Asked string
	At    time.Time
	// Kept is what an earlier Extract chose to keep of the page (Ask.Keep). The page then has no
	// body.
	Kept []byte
}

// Media returns the server's media type without parameters, in lower case, or "". As in browsers,
// it also ends at the first white space, or at a comma if a server sent it twice.
func (p Page) Media() string {
	media := strings.TrimLeft(p.ContentType, " \t")
	if end := strings.IndexAny(media, "; \t,"); end >= 0 {
		media = media[:end]
	}
	return strings.ToLower(media)
}

// Start returns the body without a byte order mark and leading white space.
func (p Page) Start() []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(p.Body, []byte("\ufeff")), " \t\r\n\f")
}

// htmlWithin is how far into a page that begins as XML its html element is searched, in bytes.
const htmlWithin = 1024

// CheckHTML refuses a page that is not HTML with the code not_html. It has another media type, or
// it has none and its body does not begin like HTML.
func (p Page) CheckHTML() error {
	switch media := p.Media(); media {
	case "text/html", "application/xhtml+xml":
		return nil
	case "":
		body := p.Start()
		isXML := bytes.HasPrefix(body, []byte("<?xml"))
		if len(body) > 0 && body[0] == '<' &&
			(!isXML || bytes.Contains(body[:min(len(body), htmlWithin)], []byte("<html"))) {
			return nil
		}
		return fault.New(fault.PageNotHTML, "the answer has no media type and does not "+
			"look like HTML")
	default:
		return fault.New(fault.PageNotHTML, "the media type is %.100q", media)
	}
}

// IsHTML says whether a page passes CheckHTML and begins like HTML.
func (p Page) IsHTML() bool {
	body := p.Start()
	return p.CheckHTML() == nil && len(body) > 0 && body[0] == '<'
}

// CheckJSON refuses a body that is not JSON with the code not_json. Other media types are refused.
// With an unspecific one, as many APIs send, the body must begin like an object or an array. lines
// says that each line is a value.
func (p Page) CheckJSON() (lines bool, err error) {
	media := p.Media()
	switch {
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		return false, nil
	case media == "application/x-ndjson" || media == "application/ndjson" ||
		media == "application/jsonl":
		return true, nil
	case media == "" || strings.HasPrefix(media, "text/") ||
		strings.HasSuffix(media, "javascript") ||
		strings.HasSuffix(media, "json") || strings.HasSuffix(media, "/octet-stream"):
		if body := p.Start(); len(body) > 0 && (body[0] == '{' || body[0] == '[') {
			return false, nil
		}
		return false, fault.New(fault.PageNotJSON, "the answer does not look like JSON")
	}
	return false, fault.New(fault.PageNotJSON, "the media type is %.100q", media)
}

// Ask requests something from outside that a page's rows need. Exactly one of URL and Prompt is
// set. Extract is then called again with the same pages and one more: the answer, or a Page that
// says why there is none.
type Ask struct {
	// another page of the same unit, absolute http or https; fetched politely, never charged
	// separately
	URL string
	// a prompt to the language model; its answer is a Page of the type application/json
	Prompt *Prompt
	// Keep, if not empty, replaces the last page's body in later calls, which no longer need the
	// body.
	Keep []byte
}

// Prompt is a request to a language model whose answer must fit a schema.
type Prompt struct {
	System string
	User   string
	Schema json.RawMessage // a JSON Schema document
}

// Package page owns what goes into an extraction and what comes out beside rows. That is fetched
// pages, and what has to be asked before a page is complete. It knows what a page says that it is,
// and no more of what it holds.
package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// Page is what a fetch delivered, or, with a Code, that it delivered nothing.
type Page struct {
	URL         string // the final address, base for links
	ContentType string // as the server sent it; may be empty
	Body        []byte // UTF-8; only read, and only during Extract
	// Code is why there is no page: a page code of pkg/fault. Only pages that were asked for come
	// with one, and first pages of a type that makes rows of failures, too.
	Code fault.Code
	// Asked is the address as listed, or as the Ask named it, and At when it was read.
	Asked string
	At    time.Time
	// Kept is what an earlier Extract chose to keep of the page (Ask.Keep); the page then has no
	// body any more.
	Kept []byte
}

// Media is the media type that the server named, without parameters, in lower case; "" for none. As
// for browsers it ends at the first blank, too, or at a comma, where a server named it twice.
func (p Page) Media() string {
	media := strings.TrimLeft(p.ContentType, " \t")
	if end := strings.IndexAny(media, "; \t,"); end >= 0 {
		media = media[:end]
	}
	return strings.ToLower(media)
}

// Start is the body without what may stand before its first character.
func (p Page) Start() []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(p.Body, []byte("\ufeff")), " \t\r\n\f")
}

// htmlWithin is how far into a page that begins like XML its html element is looked for, in bytes.
const htmlWithin = 1024

// CheckHTML refuses what is no HTML page, coded not_html: another media type, or none and a body
// that does not begin like one.
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

// IsHTML says whether a page is HTML by its media type, and begins like it.
func (p Page) IsHTML() bool {
	body := p.Start()
	return p.CheckHTML() == nil && len(body) > 0 && body[0] == '<'
}

// CheckJSON refuses what is no JSON body, coded not_json. Another media type is none. Under one
// that says little, as many APIs send, a body has to begin like an object or an array. lines says
// that each line is a value.
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

// Ask is something outside that is needed before a page's rows can be made. One of URL and Prompt
// is set. Extract is then called again with the same pages and one more: the answer, or a Page that
// says why there is none.
type Ask struct {
	// another page of the same unit, absolute http or https; fetched politely, never charged by
	// itself
	URL string
	// a question to the language model; its answer is a Page of the type application/json
	Prompt *Prompt
	// Keep, when not empty, is handed in from now on in place of the last page's body, which is not
	// needed any more.
	Keep []byte
}

// Prompt is a question to a language model whose answer has to fit a schema.
type Prompt struct {
	System string
	User   string
	Schema json.RawMessage // a JSON Schema document
}

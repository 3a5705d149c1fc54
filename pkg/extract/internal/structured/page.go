package structured

import (
	"bytes"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/fault"
)

// ReadPage reads a fetched page: HTML, or a document that is JSON-LD itself. Errors are coded: not_html, unparsable.
func ReadPage(p page.Page) (*Data, error) {
	media, _, _ := strings.Cut(p.ContentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	body := bytes.TrimLeft(bytes.TrimPrefix(p.Body, []byte("\ufeff")), " \t\r\n\f")
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return ReadJSONLD(body), nil
	case media == "text/html" || media == "application/xhtml+xml":
	case media == "" && len(body) > 0 && body[0] == '<' && !bytes.HasPrefix(body, []byte("<?xml")):
	case media == "":
		return nil, fault.New(fault.PageNotHTML, "the answer has no media type and does not look like HTML")
	default:
		return nil, fault.New(fault.PageNotHTML, "the media type is %.100q", media)
	}
	data, err := Read(p.Body, p.URL)
	if err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	return data, nil
}

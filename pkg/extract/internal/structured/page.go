package structured

import (
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/fault"
)

// ReadPage reads a fetched page: HTML, or a JSON-LD document. Errors are coded: not_html,
// unparsable.
func ReadPage(p page.Page) (*Data, error) {
	if media := p.Media(); media == "application/json" || strings.HasSuffix(media, "+json") {
		return readJSONLD(p.Start()), nil
	}
	if err := p.CheckHTML(); err != nil {
		return nil, err
	}
	data, err := readHTML(p.Body, p.URL)
	if err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	return data, nil
}

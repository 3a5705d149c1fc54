package extract

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/fault"
)

// embedded reads the JSON that an HTML page embeds for its scripts, as if it were a JSON body. A
// next link found in the page itself takes precedence.
func (e *Extractor) embedded(p Page, m *memory) (Result, error) {
	body, err := structured.Embedded(p.Body)
	if err != nil {
		return Result{}, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	if len(body) == 0 {
		return Result{}, fault.New(fault.PageNotJSON, "the page embeds no JSON")
	}
	inner := p
	inner.Body, inner.ContentType = body, "application/json"
	found, err := e.json(inner, m)
	if err != nil || len(found.Rows) == 0 {
		return found, err
	}
	next, err := e.following(p, m)
	if err != nil {
		return Result{}, fmt.Errorf("next page of %s: %w", p.URL, err)
	}
	if next != "" {
		found.Next = next
	}
	return found, nil
}

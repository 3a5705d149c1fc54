package curl

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
)

// placeholder matches a placeholder for a token. In canonical addresses its braces may be
// percent-encoded.
var placeholder = regexp.MustCompile(`(?:\{|%7[Bb]){2}([A-Za-z0-9_]+)(?:\}|%7[Dd]){2}`)

// Placeholders returns the names between {{ and }} in the address, the header's values and the
// body, sorted and without duplicates.
func (r *Request) Placeholders() []string {
	names := map[string]bool{}
	note := func(text string) {
		for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
			names[found[1]] = true
		}
	}
	note(r.URL)
	note(string(r.Body))
	for _, field := range r.Header {
		note(field.Value)
	}
	return slices.Sorted(maps.Keys(names))
}

// Fill returns the request with values for its placeholders. It is false if a value is missing or
// not allowed in its place: no request with a placeholder may be sent.
func (r *Request) Fill(values map[string]string) (*Request, bool) {
	missing := false
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			value, ok := values[placeholder.FindStringSubmatch(found)[1]]
			missing = missing || !ok
			return value
		})
	}
	filled := &Request{Method: r.Method, URL: fill(r.URL), Header: slices.Clone(r.Header),
		Body: r.Body}
	if len(r.Body) > 0 {
		filled.Body = []byte(fill(string(r.Body)))
	}
	for i, field := range filled.Header {
		filled.Header[i] = egress.Field{Name: field.Name, Value: fill(field.Value)}
	}
	canonical, err := address.Canonical(filled.URL)
	ok := !missing && err == nil && origin(canonical) == originOf(r.URL) &&
		checkHeader(filled.Header) == nil && len(filled.Body) <= maxFilled
	// A value may itself look like a placeholder, or complete one.
	return filled, ok && len(filled.Placeholders()) == 0
}

// maxFilled is the most bytes of a body with filled-in values, which have up to 4,096 bytes each.
const maxFilled = 1 << 20

func originOf(url string) string {
	canonical, err := address.Canonical(url)
	if err != nil {
		return strings.ToLower(url)
	}
	return origin(canonical)
}

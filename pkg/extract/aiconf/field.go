package aiconf

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/schema"
)

// field is a property of the schema with what its name implies.
type field struct {
	schema.Property
	column     string // its name in the store
	normal     string
	concept    *concept // nil for an unknown name
	kind       form
	paths      [][]string
	meta       []string
	labels     map[string]bool // in normal form
	names      []string        // keys of names of elements that may hold it
	identifies bool            // rows of one thing share its value
	element    *field          // of an array
	members    []field         // of an object
}

// identifiers are the concepts that distinguish things.
var identifiers = []string{"url", "name", "sku", "productId", "gtin"}

// maxNesting bounds how deep objects of a schema are filled from the page.
const maxNesting = 4

func (l lexicon) fields(properties []schema.Property, depth int) []field {
	if depth > maxNesting {
		return nil
	}
	fields := make([]field, len(properties))
	for i := range properties {
		fields[i] = l.field(properties[i], depth)
	}
	return fields
}

func (l lexicon) field(p schema.Property, depth int) field {
	f := field{Property: p, column: p.Column(), normal: normal(p.Name),
		concept: l.of(p.Name),
		labels:  map[string]bool{}}
	f.labels[f.normal] = true
	if p.Title != "" {
		f.labels[normal(p.Title)] = true
	}
	if f.concept != nil {
		for path := range strings.FieldsSeq(f.concept.paths) {
			f.paths = append(f.paths, strings.Split(path, "."))
		}
		f.meta = strings.Fields(f.concept.meta)
		for label := range strings.FieldsSeq(f.concept.labels) {
			f.labels[normal(label)] = true
		}
		f.kind = f.concept.form
		first, _, _ := strings.Cut(f.concept.fields, " ")
		f.identifies = slices.Contains(identifiers, first)
	}
	f.names = namesOf(&f)
	if p.Items != nil && depth < maxNesting {
		element := l.field(*p.Items, depth+1)
		element.kind, element.concept = f.kind, f.concept
		f.element = &element
	}
	f.members = l.fields(p.Properties, depth+1)
	return f
}

// means says whether the field's concept has this name.
func (f *field) means(name string) bool {
	return f.concept != nil && strings.HasPrefix(f.concept.fields+" ", name+" ")
}

// Package structured owns what a page states about itself. That is typed items (JSON-LD, microdata,
// RDFa), meta elements, data that frameworks embed for their scripts, and labelled values of tables
// and lists. It runs no script and knows neither fields nor rows: the caller decides what is
// relevant.
//
// Everything is read in one parse of the page and kept as written: numbers keep their digits,
// properties their order. Names of schema.org (and its forerunner data-vocabulary.org) lose their
// vocabulary: http://schema.org/Product, schema:Product and Product are all Product. Names of other
// vocabularies stay as written.
package structured

import (
	"fmt"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// Bounds for reading one page. What exceeds them is left out, and Data.Cut says so.
const (
	maxBlocks = 500       // of JSON-LD, and likewise of framework blobs
	maxDepth  = 64        // of nested JSON
	maxValues = 200_000   // JSON values
	maxStated = 100_000   // values of items
	maxPairs  = 5_000     // labelled values, and likewise meta elements
	maxText   = 8_000_000 // bytes of text copied out of elements
	// nodes and chunks of white space examined for text, repeatedly for nested elements
	maxLooked = 20_000_000
	// bytes given to the JSON parser, repeatedly where scripts look like data
	maxParsed = 64_000_000
)

// Source is the format in which a page stated an item.
type Source uint8

// The sources, in the order of Data.Items.
const (
	JSONLD Source = iota + 1
	Microdata
	RDFa
)

// String is the name of the form.
func (s Source) String() string {
	return [...]string{"", "JSON-LD", "microdata", "RDFa"}[s]
}

// Data is what a page states.
type Data struct {
	// Items are the items that are not properties of others: JSON-LD first, then microdata, then
	// RDFa, each in document order. The elements of a @graph are separate items.
	Items []*Item
	Meta  []Pair // meta elements in document order: name, property or itemprop → content
	// Framework holds the JSON blobs that pages embed for their scripts, in document order.
	Framework []Blob
	Pairs     []Pair // labelled values of tables, definition lists and lines, in document order

	Title     string   // of the title element
	Headings  []string // texts of the h1 elements
	Canonical string   // absolute address of link rel=canonical
	Lang      string   // of the html element

	Root *html.Node // of the page's parse tree; nil for a JSON-LD document
	Cut  bool       // a bound left something out

	byID map[string]*Item
	base *url.Url
}

// Item is a typed thing with properties.
type Item struct {
	Source Source
	Types  []string
	ID     string // @id, itemid or resource, as written
	Props  []Prop // in page order, each name once
}

// Prop is a property with at least one value.
type Prop struct {
	Name   string
	Values []Value
}

// Kind is the kind of a value.
type Kind uint8

// The kinds. Entity occurs only as a value of properties. Null, Array and Object occur only in
// JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	Entity
)

// Value is a value of a property.
type Value struct {
	Kind Kind
	Text string // Bool: true or false; Number: as written, valid JSON; String: the text
	Item *Item  // Entity: an item; without properties it refers to another one, see Data.Follow
}

// Pair is a name and a text.
type Pair struct{ Name, Value string }

// Blob is JSON that a page embeds for its scripts.
type Blob struct {
	Name string // of the variable, the script's id or the attribute; may be empty
	JSON string // valid JSON, an object or an array

	Attribute bool // it is an attribute, which further elements may have, too
}

// Is says whether the item has one of the types, ignoring case.
func (it *Item) Is(types ...string) bool {
	for _, have := range it.Types {
		for _, want := range types {
			if strings.EqualFold(have, want) {
				return true
			}
		}
	}
	return false
}

// Get returns the values of a property, or nil.
func (it *Item) Get(name string) []Value {
	for i := range it.Props {
		if it.Props[i].Name == name {
			return it.Props[i].Values
		}
	}
	return nil
}

// Text returns the first scalar value of a property, or "".
func (it *Item) Text(name string) string {
	for _, v := range it.Get(name) {
		if v.Kind != Entity {
			return v.Text
		}
	}
	return ""
}

// Follow returns the item that a reference means if the page has it, otherwise the item itself.
// References may be circular, so callers must bound how often they follow.
func (d *Data) Follow(it *Item) *Item {
	if len(it.Props) == 0 && it.ID != "" {
		if found := d.byID[it.ID]; found != nil {
			return found
		}
	}
	return it
}

// Resolve returns a link's absolute address, or the link as written if that fails.
func (d *Data) Resolve(link string) string { return (&reader{base: d.base}).resolve(link) }

// MetaValue returns the first content that is not empty of the named meta elements, in the order of
// names and ignoring case, or "".
func (d *Data) MetaValue(names ...string) string {
	for _, name := range names {
		for i := range d.Meta {
			if d.Meta[i].Value != "" && strings.EqualFold(d.Meta[i].Name, name) {
				return d.Meta[i].Value
			}
		}
	}
	return ""
}

// readHTML reads an HTML page in UTF-8. Addresses are resolved against pageURL, or against the
// page's base element. Pages beyond the bounds of package tree are refused.
func readHTML(body []byte, pageURL string) (*Data, error) {
	root, err := tree.Parse(body, tree.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("structured: %w", err)
	}
	return ReadTree(root, pageURL), nil
}

// ReadTree is readHTML for a parsed page.
func ReadTree(root *html.Node, pageURL string) *Data {
	r := reader{data: &Data{Root: root}, root: root, base: baseOf(root, pageURL)}
	r.walk(root)
	r.finishFlight()
	if r.hasScopes {
		r.readMicrodata()
	}
	if r.hasTypeof {
		r.readRDFa()
	}
	r.data.byID, r.data.base = byID(r.data.Items), r.base
	return r.data
}

// readJSONLD reads a JSON-LD document without a page around it.
func readJSONLD(body []byte) *Data {
	r := reader{data: new(Data)}
	r.readBlock(string(body))
	r.data.byID = byID(r.data.Items)
	return r.data
}

// byID maps ids to the items that references mean: the first item with properties, including nested
// items.
func byID(items []*Item) map[string]*Item {
	found := map[string]*Item{}
	var visit func(*Item)
	visit = func(it *Item) {
		if it.ID != "" && len(it.Props) > 0 && found[it.ID] == nil {
			found[it.ID] = it
		}
		for i := range it.Props {
			for _, v := range it.Props[i].Values {
				if v.Kind == Entity {
					visit(v.Item)
				}
			}
		}
	}
	for _, it := range items {
		visit(it)
	}
	return found
}

// vocabularies are omitted from names.
var vocabularies = []string{
	"http://schema.org/", "https://schema.org/", "http://www.schema.org/",
	"https://www.schema.org/", "schema:",
	"//schema.org/", "schema.org/", "www.schema.org/",
	"http://schema.org#", "https://schema.org#", "http://rdf.data-vocabulary.org/#",
	"http://data-vocabulary.org/",
	"https://data-vocabulary.org/", "http://www.data-vocabulary.org/",
}

// local returns a name without the common vocabulary.
func local(name string) string {
	name = strings.TrimSpace(name)
	for _, v := range vocabularies {
		if len(name) > len(v) && strings.EqualFold(name[:len(v)], v) {
			return strings.TrimSuffix(name[len(v):], "/")
		}
	}
	return name
}

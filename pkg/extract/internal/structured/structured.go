// Package structured owns what a page states about itself. That is typed items (JSON-LD, microdata,
// RDFa), meta elements, data that frameworks embed for their scripts, and labelled values of tables
// and lists. No script is run. It knows no field and no row: what of all this matters is the
// caller's question.
//
// Everything is read in one parse of the page and stays as the page wrote it: numbers keep their
// digits, properties their order. Names of schema.org (and its forerunner data-vocabulary.org) lose
// their vocabulary: http://schema.org/Product, schema:Product and Product are all Product; names of
// other vocabularies stay as written.
package structured

import (
	"fmt"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// Bounds of what is read of one page. What lies beyond is left out, and Data.Cut says so.
const (
	maxBlocks = 500       // JSON-LD blocks, and as many framework blobs
	maxDepth  = 64        // of nested JSON
	maxValues = 200_000   // JSON values
	maxStated = 100_000   // values of items
	maxPairs  = 5_000     // labelled values, and as many meta elements
	maxText   = 8_000_000 // bytes of text copied out of elements
	// nodes and parts of white space looked at for text, those in nested elements again and again
	maxLooked = 20_000_000
	// bytes given to the parser of JSON, again and again where scripts look like data
	maxParsed = 64_000_000
)

// Source says how a page wrote an item.
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
	// Items are the items that are no property of another one: JSON-LD first, then microdata, then
	// RDFa, each in document order. The elements of a @graph are items of their own.
	Items []*Item
	Meta  []Pair // meta elements in document order: name, property or itemprop → content
	// Framework are the blobs of JSON that pages embed for their scripts, in document order.
	Framework []Blob
	Pairs     []Pair // labelled values of tables, definition lists and lines, in document order

	Title     string   // of the title element
	Headings  []string // texts of the h1 elements
	Canonical string   // absolute address of link rel=canonical
	Lang      string   // of the html element

	Root *html.Node // of the page's parse tree; nil for a document that is JSON-LD itself
	Cut  bool       // a bound left something out

	byID map[string]*Item
	base *url.Url
}

// Item is a typed thing with properties.
type Item struct {
	Source Source
	Types  []string
	ID     string // @id, itemid or resource, as written
	Props  []Prop // in the order of the page, each name once
}

// Prop is a property; it has at least one value.
type Prop struct {
	Name   string
	Values []Value
}

// Kind says what a value is.
type Kind uint8

// The kinds. Items occur as values of properties only, arrays and objects in JSON only, where null
// is one, too.
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
	Name string // of the variable, of the script's id or of the attribute; may be empty
	JSON string // valid JSON, an object or an array
}

// Is says whether the item has one of the types; case does not count.
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

// Get is the values of a property, nil if the item does not have it.
func (it *Item) Get(name string) []Value {
	for i := range it.Props {
		if it.Props[i].Name == name {
			return it.Props[i].Values
		}
	}
	return nil
}

// Text is the first scalar value of a property, "" if there is none.
func (it *Item) Text(name string) string {
	for _, v := range it.Get(name) {
		if v.Kind != Entity {
			return v.Text
		}
	}
	return ""
}

// Follow is the item that a reference means, where the page has it, and otherwise the item itself.
// References may lead in circles: callers bound how often they follow.
func (d *Data) Follow(it *Item) *Item {
	if len(it.Props) == 0 && it.ID != "" {
		if found := d.byID[it.ID]; found != nil {
			return found
		}
	}
	return it
}

// Resolve is a link of the page as an absolute address, or as written where it is none.
func (d *Data) Resolve(link string) string { return (&reader{base: d.base}).resolve(link) }

// MetaValue is the content of the first of the meta elements that has one, "" if none does; case
// does not count.
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

// readHTML reads an HTML page in UTF-8. Addresses are resolved against pageURL, or the page's base
// element. Pages beyond the bounds of package tree are refused.
func readHTML(body []byte, pageURL string) (*Data, error) {
	root, err := tree.Parse(body, tree.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("structured: %w", err)
	}
	return ReadTree(root, pageURL), nil
}

// ReadTree is readHTML for a page that is parsed already.
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

// readJSONLD reads a document that is JSON-LD itself, without a page around it.
func readJSONLD(body []byte) *Data {
	r := reader{data: new(Data)}
	r.readBlock(string(body))
	r.data.byID = byID(r.data.Items)
	return r.data
}

// byID finds the items that references may mean: the first with properties of each id, nested ones
// too.
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

// vocabularies are those whose names stand without them.
var vocabularies = []string{
	"http://schema.org/", "https://schema.org/", "http://www.schema.org/",
	"https://www.schema.org/", "schema:",
	"//schema.org/", "schema.org/", "www.schema.org/",
	"http://schema.org#", "https://schema.org#", "http://rdf.data-vocabulary.org/#",
	"http://data-vocabulary.org/",
	"https://data-vocabulary.org/", "http://www.data-vocabulary.org/",
}

// local is a name without the vocabulary that everybody uses.
func local(name string) string {
	name = strings.TrimSpace(name)
	for _, v := range vocabularies {
		if len(name) > len(v) && strings.EqualFold(name[:len(v)], v) {
			return strings.TrimSuffix(name[len(v):], "/")
		}
	}
	return name
}

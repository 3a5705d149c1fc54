// Package dom owns parsed pages, CSS selectors and XPath. A page is a flat list of elements in
// document order, so that an element is a number and its descendants are a range. dom knows neither
// fields nor rows.
//
// Pages are read by a parser of our own that builds the list in one pass. What it does not support
// (see builder) it leaves to golang.org/x/net/html, whose tree is then converted to the same list.
// Both parsers give the same document, which tests verify.
package dom

import (
	"context"
	"errors"
	"math"
	"strings"
	"unsafe"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/turns"
)

// Elem is an element of a document: its index in document order.
type Elem int32

// Root is the html element, which every document has. Whole, as a range to search, is the whole
// document.
const (
	None  Elem = -1
	Root  Elem = 0
	Whole Elem = Root
)

// Document is a parsed page. The next Parse reuses its memory. The page's bytes must not change
// until Reset.
type Document struct {
	elems []element
	attrs []attr
	texts []text
	// The maximum lengths of elems and attrs before some were dropped.
	mostElems, mostAttrs int

	odd     Oddity
	decoded bool  // names, values and texts are decoded, because the document comes from x/net/html
	steps   int   // work left for selectors
	failed  error // of an XPath expression, or the context's

	check  int // when steps fall below this, the context is checked
	ctx    context.Context
	budget pattern.Budget // of the current match

	wanted []*Selector // selectors whose first matches are sought while the page is read
	found  []Elem      // first matches of wanted

	xpath     xpathNodes
	typeIndex []ofType // parallel to elems, made on demand
	searched  map[siblingSearch]siblingResult
	scratch   []byte
	build     builder
}

// element is one element. Its descendants are the elements up to end, its texts the texts up to
// textEnd. Contents of template are not part of a page, as in a browser.
type element struct {
	named             string // lower-case name, if it has no tag constant
	parent, end, prev Elem   // prev is the previous sibling
	// position among its siblings, from 1; number of child elements
	index, kids     int32
	attrs, attrsEnd int32
	class, id       int32 // indexes in attrs, -1 for none
	text, textEnd   int32
	tag             tag
}

func (el *element) name() string {
	if el.tag != other {
		return tagInfo[el.tag].name
	}
	return el.named
}

type attr struct {
	name  string // lower case, as written: xlink:href
	value string // as written; see Document.value
}

type text struct {
	s      string // as written; see appendDecoded
	parent Elem
	hider  Elem // the innermost ancestor that hides its contents, or None
	raw    bool // without character references
	apart  bool // a comment separates it from the text before it
}

// maxSteps bounds the steps of a page's selectors; ordinary ones need some thousand.
const maxSteps = 50_000_000

// Bounds of one page. maxParts bounds its elements, texts and attributes, each. For pages read by
// x/net/html, whose nodes take additional memory, maxTree also bounds the bytes of the tree.
// Ordinary pages have some thousand elements.
const (
	maxParts = 150_000
	maxTree  = tree.MaxBytes * 3 / 4
	// maxLooked bounds the open elements that end tags are compared with, per page.
	maxLooked = 50_000_000
)

var (
	errTooLong = errors.New("the page is too long")
	errTooMany = errors.New("the page has too many elements")
	errTooSlow = errors.New("the selectors take too long on this page")
)

// Parse reads a page as HTML, like a browser with scripting enabled. With only, the document will
// be asked for nothing but the first matches of these selectors and their contents. So the page may
// be read no further than needed for them.
func (d *Document) Parse(body []byte, only ...*Selector) error {
	if len(body) > math.MaxInt32 {
		return errTooLong
	}
	d.Reset()
	// The caller keeps the bytes unchanged until Reset, so names and values may point into them.
	page := strings.TrimPrefix(unsafe.String(unsafe.SliceData(body), len(body)), "\ufeff")
	d.want(only)
	if d.odd = d.build.run(d, page); d.odd != notOdd && d.odd <= lastReread {
		first := d.odd
		d.Reset()
		if d.odd = d.build.run(d, page); d.odd == notOdd {
			d.odd = first
			return nil
		}
	}
	if d.odd == notOdd {
		return nil
	}
	tooMany, odd := d.hasTooMany(), d.odd
	d.Reset()
	if tooMany {
		return errTooMany
	}
	d.odd = odd
	return d.convert(body)
}

func (d *Document) hasTooMany() bool {
	return len(d.elems) > maxParts || len(d.texts) > maxParts || len(d.attrs) > maxParts
}

// want records the selectors to look for while the page is read, if what precedes an element
// decides for all of them whether it matches.
func (d *Document) want(only []*Selector) {
	for _, s := range only {
		if !s.forward {
			return
		}
	}
	for _, s := range only {
		d.wanted = append(d.wanted, s)
		d.found = append(d.found, None)
	}
}

// FellBack says whether the page was left to x/net/html.
func (d *Document) FellBack() bool { return d.decoded }

// Odd says why the page was not read in one pass: it was left to x/net/html, or read a second time
// as a whole.
func (d *Document) Odd() Oddity { return d.odd }

// checkEvery is the number of steps between checks of the context, at which others may go first.
const checkEvery = 1_000_000

// Within ends the work of selectors when the context ends, for all pages parsed from now on.
func (d *Document) Within(ctx context.Context) { d.ctx = ctx }

// goesOn says whether there are steps left and the context has not ended.
func (d *Document) goesOn() bool { return d.steps >= d.check || d.look() }

func (d *Document) look() bool {
	if err := turns.Yield(d.ctx); err != nil {
		d.failed, d.steps = err, -1
	}
	d.check = max(0, d.steps-checkEvery)
	return d.steps >= 0
}

// Err says that the selectors asked so far took too long or failed. Their results then do not
// count.
func (d *Document) Err() error {
	if d.steps < 0 && d.failed == nil {
		return errTooSlow
	}
	return d.failed
}

// keptElems bounds the memory kept for the next page.
const keptElems = 1 << 16

// Reset discards the page and keeps the memory of an ordinary one.
func (d *Document) Reset() {
	if cap(d.elems) > keptElems || cap(d.attrs) > 4*keptElems || cap(d.texts) > 2*keptElems ||
		cap(d.scratch) > 1<<20 {
		*d = Document{ctx: d.ctx}
	}
	if d.ctx == nil {
		d.ctx = context.Background()
	}
	clear(d.elems[:max(len(d.elems), d.mostElems)])
	clear(d.attrs[:max(len(d.attrs), d.mostAttrs)])
	d.mostElems, d.mostAttrs = 0, 0
	clear(d.texts)
	d.elems, d.attrs, d.texts = d.elems[:0], d.attrs[:0], d.texts[:0]
	d.typeIndex, d.xpath.filled = d.typeIndex[:0], false
	clear(d.searched)
	clear(d.wanted)
	d.wanted, d.found = d.wanted[:0], d.found[:0]
	d.decoded, d.odd = false, notOdd
	d.steps, d.check, d.failed = maxSteps, maxSteps, nil
}

// GoesOn says whether rows may still be made. After false, results do not count; see Err.
func (d *Document) GoesOn() bool { return d.goesOn() }

// Parent returns the parent of e, None for the root.
func (d *Document) Parent(e Elem) Elem { return d.elems[e].parent }

// End returns the first element after e and its descendants.
func (d *Document) End(e Elem) Elem { return d.elems[e].end }

// ofType is an element's position among siblings of the same name, from 1, and the number of these.
type ofType struct{ index, count int32 }

// types returns the typeIndex, which the first call makes.
func (d *Document) types() []ofType {
	if len(d.typeIndex) > 0 {
		return d.typeIndex
	}
	type key struct {
		parent Elem
		name   string
	}
	counts := make(map[key]int32, len(d.elems))
	for i := range d.elems {
		k := key{d.elems[i].parent, d.elems[i].name()}
		counts[k]++
		d.typeIndex = append(d.typeIndex, ofType{index: counts[k]})
	}
	for i := range d.elems {
		d.typeIndex[i].count = counts[key{d.elems[i].parent, d.elems[i].name()}]
	}
	return d.typeIndex
}

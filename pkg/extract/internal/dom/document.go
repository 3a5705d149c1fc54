// Package dom owns parsed pages, CSS selectors and XPath. A page is a flat list of elements in
// document order, so that an element is a number and its descendants are a range. It knows no field
// and no row.
//
// Pages are read by a parser of our own that builds the list in one pass. What it does not do (see
// builder) it leaves to golang.org/x/net/html, whose tree is then turned into the same list. The
// two give the same document, and tests hold them to it.
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

// Elem is an element of a document, by its place in document order.
type Elem int32

// Root is the html element, which every document has; Whole as a range to search means the whole
// document.
const (
	None  Elem = -1
	Root  Elem = 0
	Whole Elem = Root
)

// Document is a parsed page. Its memory is used again by the next Parse. The page's bytes must not
// change until Reset.
type Document struct {
	elems []element
	attrs []attr
	texts []text
	// How many elements and attributes there were before some were dropped.
	mostElems, mostAttrs int

	odd     Oddity
	decoded bool  // names, values and texts are decoded already: the document comes from x/net/html
	steps   int   // work that selectors may still do
	failed  error // of an XPath expression, or the context's

	check  int // when so few steps are left, the context is asked
	ctx    context.Context
	budget pattern.Budget // of the match at hand

	wanted []*Selector // whose first matches are looked for while the page is read
	found  []Elem      // of wanted

	xpath     xpathNodes
	typeIndex []ofType // of elems, made when a selector asks for it
	searched  map[siblingSearch]siblingResult
	scratch   []byte
	build     builder
}

// element is one element; its descendants are those up to end, their texts those up to textEnd.
// Contents of template are no part of a page, as in a browser.
type element struct {
	named             string // its name, lower case, if that is no tag's
	parent, end, prev Elem   // prev is the sibling before it
	// place among its siblings, from 1; how many elements it has as children
	index, kids     int32
	attrs, attrsEnd int32
	class, id       int32 // in attrs, -1 for none
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
	s      string // as written; see Document.decode
	parent Elem
	hider  Elem // the innermost element around it that hides its contents, None if none does
	raw    bool // without character references
	apart  bool // a comment stands between it and the text before it
}

// A page whose selectors need more steps than this is given up; ordinary ones need some thousand.
const maxSteps = 50_000_000

// Bounds of what one page may take: elements, texts and attributes, each. For the pages that
// x/net/html reads, whose nodes come on top of that, there are also the bytes of the tree. Ordinary
// pages have some thousand elements.
const (
	maxParts = 150_000
	maxTree  = tree.MaxBytes * 3 / 4
	// maxLooked bounds the open elements that end tags are held against, over a page.
	maxLooked = 50_000_000
)

var (
	errTooLong = errors.New("the page is too long")
	errTooMany = errors.New("the page has too many elements")
	errTooSlow = errors.New("the selectors take too long on this page")
)

// Parse reads a page as HTML, like a browser with scripting enabled. With only, nothing will be
// asked of the document but the first match of these selectors and what it holds. So the page may
// be read no further than that.
func (d *Document) Parse(body []byte, only ...*Selector) error {
	if len(body) > math.MaxInt32 {
		return errTooLong
	}
	d.Reset()
	// The caller keeps the bytes unchanged until Reset, so names and values can point into them.
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

// want notes the selectors to look for while the page is read, if all can be told from what comes
// before a match.
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

// Odd says why the page was not read in one go: it was left to x/net/html, or read once more as a
// whole.
func (d *Document) Odd() Oddity { return d.odd }

// checkEvery is how many steps are made before the context is asked again, and others may go first.
const checkEvery = 1_000_000

// Within ends the work of selectors when the context does, whatever pages are parsed next.
func (d *Document) Within(ctx context.Context) { d.ctx = ctx }

// goesOn says whether there are steps left, and whether who waits for them is still there.
func (d *Document) goesOn() bool { return d.steps >= d.check || d.look() }

func (d *Document) look() bool {
	if err := turns.Yield(d.ctx); err != nil {
		d.failed, d.steps = err, -1
	}
	d.check = max(0, d.steps-checkEvery)
	return d.steps >= 0
}

// Err says that the selectors asked so far took too long or failed, so that what they answered does
// not count.
func (d *Document) Err() error {
	if d.steps < 0 && d.failed == nil {
		return errTooSlow
	}
	return d.failed
}

// keptElems bounds the memory kept for the next page.
const keptElems = 1 << 16

// Reset forgets the page and keeps the memory of an ordinary one.
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

// GoesOn says whether rows may still be made: what is asked after that does not count, see Err.
func (d *Document) GoesOn() bool { return d.goesOn() }

// Parent is the element around e, None for the root.
func (d *Document) Parent(e Elem) Elem { return d.elems[e].parent }

// End is the first element after e and all that it holds.
func (d *Document) End(e Elem) Elem { return d.elems[e].end }

// ofType is an element's place among its siblings of the same name, from 1, and how many these are.
type ofType struct{ index, count int32 }

// types is the typeIndex, made on the first call.
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

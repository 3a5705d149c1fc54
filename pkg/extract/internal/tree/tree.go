// Package tree owns the parse of a page into the nodes of x/net/html within bounds. A page may have
// many more nodes than tags. The package estimates a page's memory and time before it parses
// anything. Callers read the tree.
package tree

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/html"
)

// MaxBytes bounds the memory of a page's tree, in bytes: its nodes and a copy of its texts and
// attributes. Ordinary pages have some thousand elements, the largest lists tens of thousands.
const MaxBytes = 26 << 20

const (
	elementBytes   = 240 // including the text after it: two nodes of 112 bytes
	attributeBytes = 48
	// for the longest text: x/net/html reads it into a buffer that doubles until it fits, besides
	// the copy that is kept
	longestTimes = 2
	// maxGiven bounds the attributes of one tag: for each of them, x/net/html clears a table as
	// large as the largest tag.
	maxGiven = 1_000
	// maxSteps bounds the work. A tag may look at some of the open elements. An end tag that ends
	// nothing looks at all of them, at most maxOpen, which costs eight times as much.
	maxSteps     = 20_000_000
	nothingEnded = maxOpen / 2
)

// ErrTooMany says that a page's tree would take more memory or time than allowed.
var ErrTooMany = errors.New("the page has too many elements or attributes")

// Parse parses a page in UTF-8, with or without a byte order mark. It refuses pages whose tree
// would take more than most bytes, or too long, and pages with more than 512 nested elements. The
// tree holds copies, so body may be reused.
func Parse(body []byte, most int) (*html.Node, error) {
	page := text(body)
	if !fits(page, most) {
		return nil, ErrTooMany
	}
	root, err := html.Parse(NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("parse HTML: %w", err)
	}
	return root, nil
}

// Check refuses what Parse refuses for a page's elements and attributes. It is for callers that
// read a page without its tree.
func Check(body []byte) error {
	if !fits(text(body), MaxBytes) {
		return ErrTooMany
	}
	return nil
}

func text(body []byte) string {
	return strings.TrimPrefix(unsafe.String(unsafe.SliceData(body), len(body)), "\ufeff")
}

// NewReader reads a page and reports its end with the last byte. Otherwise a tokenizer would double
// its buffer.
func NewReader(page string) io.Reader { return &reader{page} }

type reader struct{ rest string }

func (r *reader) Read(p []byte) (int, error) {
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; r.rest == "" {
		return n, io.EOF
	}
	return n, nil
}

// fits says whether a page's tree takes no more than most, in bytes, and not too long.
func fits(page string, most int) bool { return count(page, most).fits(most) }

// cost counts the parts of a tree and the work for it.
type cost struct {
	bytes                       int // of the page
	longest                     int // most bytes between two tags
	elements, attributes, steps int
	wide                        bool // a tag has too many attributes
}

func (c cost) fits(most int) bool {
	bytes := c.bytes + longestTimes*c.longest + elementBytes*c.elements +
		attributeBytes*c.attributes
	return bytes <= most && c.steps <= maxSteps && !c.wide
}

// count counts the parts of a tree, up to a bound. It overestimates: tags in scripts and comments
// count, too, and an element is open until its end tag comes. A tree has more parts only in two
// cases. Misnested tags lead to copies, a few for each tag. The parser also adds bodies and rows of
// tables that the page leaves out.
func count(page string, most int) cost {
	f := formatting{alike: map[string]int{}}
	c := cost{bytes: len(page)}
	open, names := 0, map[string]int{} // open elements, in total and by name
	for text := page; c.fits(most); {
		at := strings.IndexByte(page, '<')
		if at < 0 || at+1 == len(page) {
			c.longest = max(c.longest, len(text))
			break
		}
		page = page[at+1:]
		isEnd := page[0] == '/'
		if isEnd {
			page = page[1:]
		}
		length := nameLength(page)
		if length == 0 {
			continue
		}
		c.longest = max(c.longest, len(text)-len(page))
		name := strings.ToLower(page[:length])
		given, end := attributesOf(page[length:])
		tag := page[:length+end]
		page = page[length+end:]
		text = page
		kind := kinds[name]
		again := f.next(name, tag, kind, given, isEnd)
		c.elements += again.elements
		c.attributes += again.attributes
		if !isEnd || name == "p" || name == "br" { // a lone </p> is <p></p>
			c.elements++
		}
		switch {
		case !isEnd:
			c.attributes += given
			c.wide = c.wide || given > maxGiven
			if kind != void {
				open++
				names[name]++
			}
			c.steps += 1 + min(open, maxOpen)/16
		case names[name] > 0:
			c.steps += 1 + min(open, maxOpen)/16
			open--
			names[name]--
		default:
			c.steps += nothingEnded
		}
	}
	return c
}

func nameLength(s string) int {
	if s == "" || s[0]|0x20 < 'a' || s[0]|0x20 > 'z' {
		return 0
	}
	if end := strings.IndexAny(s, " \t\n\r\f/>"); end >= 0 {
		return end
	}
	return len(s)
}

// attributesOf counts the attributes of a tag after its name, and returns where the tag ends.
func attributesOf(s string) (n, end int) {
	const blanks = " \t\n\r\f"
	i := 0
	skip := func(these string) {
		for i < len(s) && strings.IndexByte(these, s[i]) >= 0 {
			i++
		}
	}
	until := func(these string) {
		if at := strings.IndexAny(s[i:], these); at >= 0 {
			i += at
		} else {
			i = len(s)
		}
	}
	for {
		skip(blanks + "/")
		if i == len(s) || s[i] == '>' {
			return n, i
		}
		n++
		i++ // here, an equals sign begins a name
		until(blanks + "/>=")
		skip(blanks)
		if i == len(s) || s[i] != '=' {
			continue
		}
		i++
		skip(blanks)
		if i < len(s) && (s[i] == '"' || s[i] == '\'') {
			quote := s[i : i+1]
			i++
			until(quote)
			i = min(i+1, len(s))
		} else {
			until(blanks + ">")
		}
	}
}

// formatting counts the elements that a tree builder reopens. A <b> that is open where its block
// ends is reopened in the next block as another element. Without a bound, five hundred of them
// times ten thousand paragraphs would be five million elements.
type formatting struct {
	alike map[string]int // open elements by tag
	open  []opened       // in order
	size  size           // of all open elements
}

type opened struct {
	tag        string
	attributes int
}

// size counts elements and their attributes.
type size struct{ elements, attributes int }

// kind classifies a tag's name.
type kind uint8

const (
	ordinary kind = iota
	formats       // reopened after the block in which it is open
	void          // never open
)

var kinds = func() map[string]kind {
	all := map[string]kind{}
	for _, name := range strings.Fields("a b big code em font i nobr s small strike strong tt u") {
		all[name] = formats
	}
	for _, name := range strings.Fields("area base br col embed hr img input link meta param " +
		"source track wbr") {
		all[name] = void
	}
	return all
}()

// A tree builder has at most three open elements of one name with the same attributes, and no more
// in total than may nest.
const (
	maxAlike = 3
	maxOpen  = 512
)

// next returns the elements that a tag may cause besides its own.
func (f *formatting) next(name, tag string, k kind, attributes int, isEnd bool) (again size) {
	if k != formats {
		return f.size
	}
	if isEnd || name == "a" || name == "nobr" { // one ends the other
		again = f.close(name)
	}
	if !isEnd && f.alike[tag] < maxAlike && len(f.open) < maxOpen {
		f.alike[tag]++
		f.open = append(f.open, opened{tag, attributes})
		f.size.elements++
		f.size.attributes += attributes
	}
	return again
}

// close ends the last open element of a name. Elements opened inside it continue after it; close
// returns their size.
func (f *formatting) close(name string) (behind size) {
	for i := len(f.open) - 1; i >= 0; i-- {
		o := f.open[i]
		if nameLength(o.tag) != len(name) || !strings.EqualFold(o.tag[:len(name)], name) {
			behind.elements++
			behind.attributes += o.attributes
			continue
		}
		if f.alike[o.tag]--; f.alike[o.tag] == 0 {
			delete(f.alike, o.tag)
		}
		f.open = slices.Delete(f.open, i, i+1)
		f.size.elements--
		f.size.attributes -= o.attributes
		return behind
	}
	return size{}
}

// Package tree owns the parse of a page into the nodes of x/net/html under bounds. A page may have
// many more nodes than tags. What a page may take of memory and time is said here, before anything
// is made. What is read in the tree is its caller's.
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

// MaxBytes is what a page's tree may take of memory, in bytes: its nodes and a copy of its texts
// and attributes. Ordinary pages have some thousand elements, the largest lists tens of thousands.
const MaxBytes = 26 << 20

const (
	elementBytes   = 240 // and the text behind it: two nodes of 112 bytes
	attributeBytes = 48
	// the longest text: what x/net/html reads it into doubles until it fits, beside the copy that
	// is kept
	longestTimes = 2
	// maxGiven bounds the attributes of one tag: x/net/html clears a table as large as the largest
	// tag at each of them.
	maxGiven = 1_000
	// maxSteps bounds the work. A tag may look at some of the elements that are open. One that ends
	// nothing looks at all of them, at most maxOpen, which is eight times as dear.
	maxSteps     = 20_000_000
	nothingEnded = maxOpen / 2
)

// ErrTooMany says that a page's tree would take more memory or time than a page may have.
var ErrTooMany = errors.New("the page has too many elements or attributes")

// Parse parses a page in UTF-8, with or without a byte order mark. Pages whose tree would take more
// bytes than most, or too long, are refused, and those with more than 512 nested elements. The tree
// holds copies: body may be used again.
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

// Check refuses what Parse would for the page's elements and attributes, for those who read a page
// without its tree.
func Check(body []byte) error {
	if !fits(text(body), MaxBytes) {
		return ErrTooMany
	}
	return nil
}

func text(body []byte) string {
	return strings.TrimPrefix(unsafe.String(unsafe.SliceData(body), len(body)), "\ufeff")
}

// NewReader reads a page, and says at its last byte that it ends: a tokenizer makes room for twice
// as much otherwise.
func NewReader(page string) io.Reader { return &reader{page} }

type reader struct{ rest string }

func (r *reader) Read(p []byte) (int, error) {
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; r.rest == "" {
		return n, io.EOF
	}
	return n, nil
}

// fits says whether a page's tree takes no more bytes than most, and not too long.
func fits(page string, most int) bool { return count(page, most).fits(most) }

// cost is what a tree is made of, and the work for it.
type cost struct {
	bytes                       int // of the page
	longest                     int // bytes between two tags
	elements, attributes, steps int
	wide                        bool // a tag has too many attributes
}

func (c cost) fits(most int) bool {
	bytes := c.bytes + longestTimes*c.longest + elementBytes*c.elements +
		attributeBytes*c.attributes
	return bytes <= most && c.steps <= maxSteps && !c.wide
}

// count counts what a tree is made of, up to a bound. It counts rather too many. What looks like a
// tag in a script or a comment counts, too, and an element is open until its end tag comes. What a
// tree has beyond it are copies that misnested tags lead to, a few for a tag. There are also bodies
// and rows of tables that the page leaves out.
func count(page string, most int) cost {
	f := formatting{alike: map[string]int{}}
	c := cost{bytes: len(page)}
	open, names := 0, map[string]int{} // elements, in all and by name
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
		if !isEnd || name == "p" || name == "br" { // </p> alone is <p></p>
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

// attributesOf counts the attributes of a tag from behind its name, and says where it ends.
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
		i++ // an equals sign is a name's first character there
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

// formatting reckons with elements that a tree builder makes again. <b> that is open where its
// block ends is open in the next block, too, as a further element there. Without a bound, five
// hundred of them times ten thousand paragraphs are five million elements.
type formatting struct {
	alike map[string]int // open elements by tag
	open  []opened       // in order
	size  size           // of all that is open
}

type opened struct {
	tag        string
	attributes int
}

// size is what elements take.
type size struct{ elements, attributes int }

// kind is what counts of a tag's name.
type kind uint8

const (
	ordinary kind = iota
	formats       // its element is made again behind the block in which it is open
	void          // its element is never open
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

// A tree builder has no more than three open elements of one name with the same attributes, and
// never more than fit into each other.
const (
	maxAlike = 3
	maxOpen  = 512
)

// next is what a tag may lead to besides its own element.
func (f *formatting) next(name, tag string, k kind, attributes int, isEnd bool) (again size) {
	if k != formats {
		return f.size
	}
	if isEnd || name == "a" || name == "nobr" { // where one ends the other
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

// close ends the last open element of a name. Those that were opened in it go on behind it: it says
// what they are.
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

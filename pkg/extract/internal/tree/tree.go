// Package tree owns the parse of a page into the nodes of x/net/html under bounds: a page may have many more nodes than
// tags, and what a page may take of memory is said here, before anything is made. What is read in the tree is its caller's.
package tree

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/html"
)

// MaxElements bounds a page's elements, and its attributes: a node takes 112 bytes, as much its text, an attribute 48.
// Ordinary pages have some thousand; the largest lists tens of thousands.
const MaxElements = 150_000

// ErrTooMany says that a page's tree would not fit into the memory that a page may have.
var ErrTooMany = errors.New("the page has too many elements or attributes")

// Parse parses a page in UTF-8, with or without a byte order mark. Pages of more than so many elements, or attributes,
// and those with more than 512 nested elements are refused. The tree holds copies: body may be used again.
func Parse(body []byte, most int) (*html.Node, error) {
	page := strings.TrimPrefix(unsafe.String(unsafe.SliceData(body), len(body)), "\ufeff")
	if !fits(page, most) {
		return nil, ErrTooMany
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("parse HTML: %w", err)
	}
	return root, nil
}

// fits says whether a page's tree has no more elements and attributes than most.
func fits(page string, most int) bool {
	elements, attributes := count(page, most)
	return elements <= most && attributes <= most
}

// count counts what a tree is made of, up to a bound. It counts rather too many: what looks like a tag in a script or a
// comment counts, too. What a tree has beyond it are copies that misnested tags lead to, a few for a tag, and bodies and
// rows of tables that the page leaves out.
func count(page string, most int) (elements, attributes int) {
	f := formatting{alike: map[string]int{}}
	for elements <= most && attributes <= most {
		at := strings.IndexByte(page, '<')
		if at < 0 || at+1 == len(page) {
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
		name := page[:length]
		given, end := attributesOf(page[length:])
		tag := page[:length+end]
		page = page[length+end:]
		again := f.next(name, tag, given, isEnd)
		elements += again.elements
		attributes += again.attributes
		if !isEnd {
			attributes += given
		}
		if !isEnd || strings.EqualFold(name, "p") || strings.EqualFold(name, "br") { // </p> alone is <p></p>
			elements++
		}
	}
	return elements, attributes
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

// formatting reckons with elements that a tree builder makes again: <b> that is open where its block ends is open in the
// next block, too, as a further element there. Without a bound, five hundred of them times ten thousand paragraphs are
// five million elements.
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

var names = map[string]bool{"a": true, "b": true, "big": true, "code": true, "em": true, "font": true, "i": true, "nobr": true,
	"s": true, "small": true, "strike": true, "strong": true, "tt": true, "u": true}

// A tree builder has no more than three open elements of one name with the same attributes, and never more than fit into
// each other.
const (
	maxAlike = 3
	maxOpen  = 512
)

// next is what a tag may lead to besides its own element.
func (f *formatting) next(name, tag string, attributes int, isEnd bool) (again size) {
	if !names[name] {
		if name = strings.ToLower(name); !names[name] {
			return f.size
		}
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

// close ends the last open element of a name. Those that were opened in it go on behind it: it says what they are.
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

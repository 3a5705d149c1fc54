package sitemap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is kept of a document.
const (
	maxName   = 64 // bytes of a name; sitemaps have no longer ones
	keptDepth = 8  // open elements whose names are kept; deeper ones are only counted
	maxEntity = 10 // characters of a character reference
)

// document reads XML as far as sitemaps need it, byte by byte. It skips declarations of entities
// and loads no DTD. So nothing grows except a count of elements.
type document struct {
	in    *bufio.Reader
	visit func(Entry) bool
	form  Form

	depth int              // number of open elements
	open  [keptDepth]qname // the outermost ones
	state
}

// qname is a qualified name.
type qname struct{ prefix, local string }

// attributes are the attributes of one element that sitemaps use.
type attributes struct{ href, rel, kind, url, medium, permalink string }

// into is where an attribute's value goes, nil if it is not used.
func (a *attributes) into(local string) *string {
	switch local {
	case "href":
		return &a.href
	case "rel":
		return &a.rel
	case "type":
		return &a.kind
	case "url":
		return &a.url
	case "medium":
		return &a.medium
	case "isPermaLink":
		return &a.permalink
	}
	return nil
}

// read reads the document up to the end of its root element.
func (d *document) read() error {
	for {
		if err := d.text(); err != nil {
			if errors.Is(err, io.EOF) && d.form == "" {
				return ErrNotSitemap
			}
			return err
		}
		c, err := d.in.ReadByte()
		if err != nil {
			return err
		}
		switch c {
		case '!':
			err = d.markup()
		case '?':
			err = d.skipTo("?>")
		case '/':
			err = d.end()
		default:
			if err = d.in.UnreadByte(); err == nil {
				err = d.start()
			}
		}
		if err != nil {
			return err
		}
		if d.form != "" && d.depth == 0 {
			return nil // ignore what follows
		}
	}
}

// text reads up to the next tag, and keeps the text if it is wanted.
func (d *document) text() error {
	if d.wanted == nil {
		return d.skipTo("<")
	}
	for {
		c, err := d.in.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '<':
			return nil
		case c == '&':
			if err := d.reference(&d.kept); err != nil {
				return err
			}
		default:
			d.keep(c)
		}
	}
}

// reference reads what follows an ampersand. It keeps malformed references as written. It does so
// with undeclared entities, too, but text with one cannot be an address.
func (d *document) reference(into *limitedText) error {
	head, err := d.in.Peek(maxEntity + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	end := bytes.IndexByte(head, ';')
	if end < 0 {
		into.add('&')
		return nil
	}
	switch entity := string(head[:end]); entity {
	case "amp":
		into.add('&')
	case "lt":
		into.add('<')
	case "gt":
		into.add('>')
	case "quot":
		into.add('"')
	case "apos":
		into.add('\'')
	default:
		c, ok := character(entity)
		if !ok {
			into.declared = into.declared || isName(entity)
			into.add('&')
			return nil
		}
		into.add(utf8.AppendRune(nil, c)...)
	}
	_, err = d.in.Discard(end + 1)
	return err
}

// isName says whether a text can be an entity's name.
func isName(text string) bool {
	for i, c := range text {
		if c != '_' && c != ':' && !unicode.IsLetter(c) &&
			(i == 0 || c != '-' && c != '.' && !unicode.IsDigit(c)) {
			return false
		}
	}
	return text != ""
}

// character is the character of a numeric reference.
func character(entity string) (c rune, ok bool) {
	if len(entity) < 2 || entity[0] != '#' {
		return 0, false
	}
	digits, base := entity[1:], 10
	if digits[0] == 'x' || digits[0] == 'X' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	c = rune(min(n, utf8.MaxRune+1))
	return c, err == nil && utf8.ValidRune(c) && (c >= ' ' || c == '\t' || c == '\n' || c == '\r')
}

// skipTo skips everything up to and including end, which has one or more characters. In a longer
// end, the last character must differ from the first.
func (d *document) skipTo(end string) error {
	last := end[len(end)-1]
	var before []byte // the last bytes skipped
	for {
		part, err := d.in.ReadSlice(last)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if err == nil && bytes.HasSuffix(part, []byte(end)) {
			return nil
		}
		before = append(before, part[max(0, len(part)-len(end)):]...)
		before = before[max(0, len(before)-len(end)):]
		if err == nil && string(before) == end {
			return nil
		}
	}
}

// markup skips a comment or a declaration, and reads CDATA.
func (d *document) markup() error {
	head, err := d.in.Peek(len("[CDATA["))
	switch {
	case bytes.HasPrefix(head, []byte("--")):
		_, _ = d.in.Discard(2) // cannot fail: peeked
		return d.comment()
	case string(head) == "[CDATA[":
		_, _ = d.in.Discard(len(head)) // as above
		return d.literal()
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return d.declaration()
}

// comment skips the rest of a comment.
func (d *document) comment() error { return d.skipTo("-->") }

// literal reads CDATA up to "]]>".
func (d *document) literal() error {
	closing := 0 // brackets that may belong to the end
	for {
		c, err := d.in.ReadByte()
		switch {
		case err != nil:
			return err
		case c == ']':
			if closing++; closing > 2 {
				closing = 2
				d.keep(']')
			}
		case c == '>' && closing == 2:
			return nil
		default:
			for ; closing > 0; closing-- {
				d.keep(']')
			}
			d.keep(c)
		}
	}
}

// declaration skips a declaration with everything in it.
func (d *document) declaration() error {
	for level := 0; ; {
		c, err := d.in.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '"' || c == '\'':
			err = d.skipTo(string(c))
		case c == '<':
			if head, _ := d.in.Peek(3); string(head) == "!--" {
				_, _ = d.in.Discard(3) // cannot fail: peeked
				err = d.comment()
			} else {
				level++
			}
		case c == '>' && level == 0:
			return nil
		case c == '>':
			level--
		}
		if err != nil {
			return err
		}
	}
}

// start reads a start tag.
func (d *document) start() error {
	name, c, err := d.name(" \t\r\n/>")
	if err != nil {
		return err
	}
	if name.local == "" {
		return fmt.Errorf("%w: a tag without a name", ErrBroken)
	}
	var given attributes
	for {
		for isBlank(c) {
			if c, err = d.in.ReadByte(); err != nil {
				return err
			}
		}
		switch c {
		case '>':
			return d.openElement(name, &given)
		case '/':
			if c, err = d.in.ReadByte(); err != nil {
				return err
			}
			if c != '>' {
				continue
			}
			if err := d.openElement(name, &given); err != nil {
				return err
			}
			return d.finish()
		}
		if err := d.in.UnreadByte(); err != nil {
			return err
		}
		if c, err = d.attribute(&given); err != nil {
			return err
		}
	}
}

// attribute reads an attribute, and the character after it.
func (d *document) attribute(given *attributes) (next byte, err error) {
	name, c, err := d.name(" \t\r\n/>=")
	for err == nil && isBlank(c) {
		c, err = d.in.ReadByte()
	}
	if err != nil || c != '=' {
		return c, err
	}
	for c = ' '; err == nil && isBlank(c); {
		c, err = d.in.ReadByte()
	}
	if err != nil {
		return 0, err
	}
	if c != '"' && c != '\'' {
		return 0, fmt.Errorf("%w: an attribute without quotes", ErrBroken)
	}
	into := given.into(name.local)
	if name.prefix != "" || into == nil {
		if err := d.skipTo(string(c)); err != nil {
			return 0, err
		}
		return d.in.ReadByte()
	}
	var value limitedText
	for quote := c; ; {
		switch c, err = d.in.ReadByte(); {
		case err != nil:
			return 0, err
		case c == quote:
			*into = value.address()
			return d.in.ReadByte()
		case c == '&':
			if err := d.reference(&value); err != nil {
				return 0, err
			}
		default:
			value.add(c)
		}
	}
}

// name reads a qualified name, and the character after it. A name that is too long becomes "?".
func (d *document) name(end string) (name qname, next byte, err error) {
	var buffer [maxName + 1]byte
	text := buffer[:0]
	for {
		c, err := d.in.ReadByte()
		if err != nil {
			return name, 0, err
		}
		if strings.IndexByte(end, c) >= 0 {
			next = c
			break
		}
		if len(text) <= maxName {
			text = append(text, c)
		}
	}
	if len(text) > maxName {
		text = append(text[:0], '?')
	}
	if at := bytes.IndexByte(text, ':'); at >= 0 {
		return qname{string(text[:at]), string(text[at+1:])}, next, nil
	}
	return qname{"", string(text)}, next, nil
}

// openElement opens an element.
func (d *document) openElement(name qname, given *attributes) error {
	d.depth++
	if d.depth <= keptDepth {
		d.open[d.depth-1] = name
	}
	if d.depth > 1 {
		d.opened(name, given)
		return nil
	}
	switch name.local {
	case "urlset":
		d.form = URLs
	case "sitemapindex":
		d.form = Index
	case "rss", "RDF":
		d.form = RSS
	case "feed":
		d.form = Atom
	default:
		return ErrNotSitemap
	}
	return nil
}

// end reads an end tag.
func (d *document) end() error {
	name, c, err := d.name(" \t\r\n>")
	for err == nil && c != '>' {
		c, err = d.in.ReadByte()
	}
	switch {
	case err != nil:
		return err
	case d.depth == 0, d.depth <= keptDepth && d.open[d.depth-1] != name:
		return fmt.Errorf("%w: %s is closed and not open", ErrBroken, mended(name.local))
	}
	return d.finish()
}

// finish closes an element.
func (d *document) finish() error {
	err := d.closed()
	d.depth--
	return err
}

package detect

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a page on which fields are picked. The rest of the page is left out.
const (
	// MaxViewBytes bounds the markup.
	MaxViewBytes = 480 << 10
	// MaxViewElements bounds the elements.
	MaxViewElements  = 10_000
	maxViewAttribute = 2_048 // bytes of a kept attribute
	maxViewGiven     = 40    // attributes of an element
)

// View is a page for picking fields. It keeps the elements with their attributes and texts, so that
// selectors match as on the page. The contents of scripts, styles and comments are left out.
type View struct {
	URL        string            `json:"url"`           // the final address
	Packed     []byte            `json:"packed"`        // gzipped markup; see Markup
	Cut        bool              `json:"cut,omitempty"` // the end is left out
	Pagination *model.Pagination `json:"pagination,omitempty"`
}

// newView makes a view of a page whose address is url.
func newView(root *html.Node, url string) (View, error) {
	v := View{URL: url}
	var markup string
	markup, v.Cut = strip(root)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, markup)
	if err == nil {
		err = w.Close()
	}
	v.Packed = packed.Bytes()
	return v, err
}

// Markup unpacks the page's markup.
func (v *View) Markup() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(v.Packed))
	if err != nil {
		return nil, fmt.Errorf("unpack a page: %w", err)
	}
	markup, err := io.ReadAll(io.LimitReader(r, 2*MaxViewBytes))
	if err != nil {
		return nil, fmt.Errorf("unpack a page: %w", err)
	}
	return markup, nil
}

// CompileView is Compile for viewing a page: the first row is a View.
func CompileView(r model.Recipe, run Run, tags []string) (rows.Maker, fault.List) {
	schemas, faults := readSchemas(r)
	if faults != nil {
		return rows.Maker{}, faults
	}
	return rows.Maker{Read: func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		if err := pages[0].CheckHTML(); err != nil {
			return rows.More{}, err
		}
		root, err := tree.Parse(pages[0].Body, tree.MaxBytes) // with the bound of runs
		if err != nil {
			return rows.More{}, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
		}
		view, err := newView(root, pages[0].URL)
		if err != nil {
			return rows.More{}, fault.Wrap(fault.PageUnparsable, err, "the page cannot be kept")
		}
		d := &detection{recipe: r, page: pages[0], run: run, tags: tags, schemas: schemas}
		found := d.candidates()
		view.Pagination = d.next
		if err := writeRow(out, view); err != nil {
			return rows.More{}, err
		}
		for _, c := range found {
			if err := writeRow(out, c); err != nil {
				return rows.More{}, err
			}
		}
		return rows.More{}, nil
	}}, nil
}

// stripper writes a page's markup, keeping what is shown or used by selectors.
type stripper struct {
	out      strings.Builder
	elements int
	cut      bool
}

// strip returns markup that parses to the same elements, and whether its end is left out.
func strip(root *html.Node) (markup string, cut bool) {
	var s stripper
	for c := root.FirstChild; c != nil; c = c.NextSibling {
		s.node(c)
	}
	return s.out.String(), s.cut
}

// emptied are elements whose text is not shown, or follows its own end rules.
var emptied = map[string]bool{"script": true, "style": true, "template": true, "noscript": true,
	"iframe": true, "noembed": true, "noframes": true, "svg": true, "math": true, "object": true}

// unending are elements that would swallow what follows, so they get another name.
var unending = map[string]bool{"plaintext": true, "xmp": true, "frameset": true, "listing": true}

// void are the elements without an end tag.
var void = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true,
	"hr": true, "img": true, "input": true, "link": true, "meta": true, "param": true,
	"source": true, "track": true, "wbr": true, "keygen": true, "frame": true}

var plainTag = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func (s *stripper) node(n *html.Node) {
	if s.cut = s.cut || s.out.Len() >= MaxViewBytes || s.elements >= MaxViewElements; s.cut {
		return
	}
	switch n.Type {
	case html.DoctypeNode: // the doctype decides where tables nest
		s.out.WriteString("<!DOCTYPE " + plain(n.Data))
		for i, a := range n.Attr {
			if i == 0 && a.Key == "system" {
				s.out.WriteString(" SYSTEM")
			} else if i == 0 {
				s.out.WriteString(" PUBLIC")
			}
			s.out.WriteString(` "` + plain(a.Val) + `"`)
		}
		s.out.WriteString(">")
	case html.TextNode:
		s.text(n)
	case html.ElementNode:
		s.elements++
		name := n.Data
		if unending[name] || !plainTag.MatchString(name) {
			name = "div"
		}
		s.out.WriteString("<" + name)
		s.attributes(n)
		s.out.WriteString(">")
		if void[name] {
			return
		}
		if !emptied[name] {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				s.node(c)
			}
		}
		s.out.WriteString("</" + name + ">")
	}
}

// plain removes from a doctype's word what would end it.
func plain(word string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '>' || r < ' ' {
			return -1
		}
		return r
	}, word[:min(len(word), maxPiece)])
}

// maxPiece is how many bytes of a text are written between checks of the bound.
const maxPiece = 1_024

// text writes a text, or as much of it as the bound allows.
func (s *stripper) text(n *html.Node) {
	text := n.Data
	// parsers drop the first line break in these elements
	if strings.HasPrefix(text, "\n") && n.PrevSibling == nil &&
		(n.Parent.Data == "pre" || n.Parent.Data == "textarea") {
		s.out.WriteString("\n")
	}
	for text != "" {
		if s.cut = s.out.Len() >= MaxViewBytes; s.cut {
			return
		}
		end := min(len(text), maxPiece)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		s.out.WriteString(html.EscapeString(text[:end]))
		text = text[end:]
	}
}

var plainAttribute = regexp.MustCompile(`^[a-z_][a-z0-9_:.-]{0,99}$`)

func (s *stripper) attributes(n *html.Node) {
	given := 0
	for _, a := range n.Attr {
		if a.Namespace != "" || !plainAttribute.MatchString(a.Key) ||
			strings.HasPrefix(a.Key, "on") || slices.Contains(unkept, a.Key) {
			continue
		}
		if len(a.Val) > maxViewAttribute {
			if !strings.HasPrefix(a.Val, "data:") {
				continue
			}
			a.Val = "data:" // an image, whose address is all that a row could take
		}
		if given++; given > maxViewGiven || s.out.Len() >= MaxViewBytes {
			return
		}
		s.out.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
	}
}

// unkept are attributes that selectors do not use.
var unkept = []string{"style", "srcdoc", "integrity", "nonce"}

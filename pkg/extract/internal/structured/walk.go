package structured

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// reader reads one page.
type reader struct {
	data *Data
	root *html.Node
	base *url.Url

	blocks, values, parsed, text int      // counted against the bounds
	named, looked, attributes    int      // likewise
	flight                       []string // parts of one text
	hasScopes, hasTypeof         bool
}

// baseOf returns the address that the page's links are relative to, or nil if pageURL is not an
// address. A base element whose address is not on the web does not count.
func baseOf(root *html.Node, pageURL string) *url.Url {
	base, err := url.Parse(pageURL)
	if err != nil {
		return nil
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Body {
			break
		}
		if href := tree.Attr(n, "href"); n.DataAtom == atom.Base && href != "" &&
			len(href) <= maxLink {
			if b, err := base.Parse(href); err == nil &&
				(b.Scheme() == "http" || b.Scheme() == "https") {
				return b
			}
			break
		}
	}
	return base
}

// maxLink bounds the length of an address, in bytes.
const maxLink = 8192

// resolve returns a link's absolute address, or the link as written if that fails.
func (r *reader) resolve(link string) string {
	link = strings.TrimSpace(link)
	if r.base == nil || link == "" || len(link) > maxLink {
		return link
	}
	u, err := r.base.Parse(link)
	if err != nil {
		return link
	}
	return u.Href(false)
}

// walk reads everything but the items marked by attributes.
func (r *reader) walk(root *html.Node) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		r.noteMarks(n)
		r.readBlobs(n)
		switch n.DataAtom {
		case atom.Meta:
			r.readMeta(n)
		case atom.Title:
			if r.data.Title == "" && n.Namespace == "" {
				r.data.Title = r.textOf(n)
			}
		case atom.H1:
			if len(r.data.Headings) < maxBlocks {
				r.data.Headings = append(r.data.Headings, r.textOf(n))
			}
		case atom.Link:
			if r.data.Canonical == "" && hasToken(tree.Attr(n, "rel"), "canonical") {
				r.data.Canonical = r.resolve(tree.Attr(n, "href"))
			}
		case atom.Html:
			r.data.Lang = strings.TrimSpace(tree.Attr(n, "lang"))
		case atom.Table:
			r.readTable(n)
		case atom.Dl:
			r.readDefinitions(n)
		case atom.Li, atom.P, atom.Div:
			r.readLine(n)
		}
	}
}

// noteMarks records which kinds of marked items there are.
func (r *reader) noteMarks(n *html.Node) {
	for i := range n.Attr {
		switch n.Attr[i].Key {
		case "itemscope":
			r.hasScopes = true
		case "typeof":
			r.hasTypeof = true
		}
	}
}

func (r *reader) readMeta(n *html.Node) {
	content, ok := tree.LookAttr(n, "content")
	if !ok {
		return
	}
	for _, key := range [...]string{"property", "name", "itemprop"} {
		if name := strings.TrimSpace(tree.Attr(n, key)); name != "" {
			if len(r.data.Meta) == maxPairs {
				r.data.Cut = true
				return
			}
			r.data.Meta = append(r.data.Meta, Pair{name, strings.TrimSpace(content)})
			return
		}
	}
}

// addValue counts a value of an item; false if there are too many.
func (r *reader) addValue() bool {
	if r.values++; r.values > maxStated {
		r.data.Cut = true
		return false
	}
	return true
}

// add adds a value to a new or known property.
func (r *reader) add(it *Item, name string, v Value) {
	if name == "" || !r.addValue() {
		return
	}
	for i := range it.Props {
		if it.Props[i].Name == name {
			it.Props[i].Values = append(it.Props[i].Values, v)
			return
		}
	}
	if len(it.Props) == maxProps {
		r.data.Cut = true
		return
	}
	it.Props = append(it.Props, Prop{name, []Value{v}})
}

// maxProps bounds the properties of one item.
const maxProps = 500

// textOf returns an element's text as a browser would show it: white space collapsed, without
// scripts, styles and templates.
func (r *reader) textOf(n *html.Node) string { return r.textUpTo(n, maxValue) }

// textUpTo is textOf that stops after about most bytes.
func (r *reader) textUpTo(n *html.Node, most int) string {
	var b strings.Builder
	gap := false
	var add func(*html.Node)
	add = func(n *html.Node) {
		for c := n.FirstChild; c != nil && r.hasTime() && b.Len() <= most; c = c.NextSibling {
			r.looked++
			switch {
			case c.Type == html.TextNode:
				apart := gap || startsWithSpace(c.Data)
				for left := c.Data; b.Len() <= most; {
					word := strings.TrimLeftFunc(left, unicode.IsSpace)
					r.looked += (len(left) - len(word)) / bytesPerStep
					if word == "" {
						break
					}
					if b.Len() > 0 && apart {
						b.WriteByte(' ')
					}
					left = word
					word = word[:min(len(word), most+1)]
					if end := strings.IndexFunc(word, unicode.IsSpace); end >= 0 {
						word = word[:end]
					}
					left = left[len(word):]
					b.WriteString(word)
					r.text += len(word) + 1
					apart, gap = true, false
				}
				gap = gap || endsWithSpace(c.Data)
			case c.Type == html.ElementNode && !isHidden(c):
				if isBreak(c) {
					gap = true
				} else if sign := tree.Between(b.String(), c); !gap || sign == "." || sign == "," {
					b.WriteString(sign)
					gap = gap && sign == ""
				}
				add(c)
				gap = gap || isBreak(c)
			}
		}
	}
	add(n)
	r.data.Cut = r.data.Cut || !r.hasTime()
	return b.String()
}

// hasTime says whether more text may be copied, and more nodes and white space examined for it.
func (r *reader) hasTime() bool { return r.text < maxText && r.looked < maxLooked }

func startsWithSpace(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return unicode.IsSpace(first)
}

func endsWithSpace(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(last)
}

// isBreak says whether an element's text is separate from the text around it.
func isBreak(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Data, atom.Del,
		atom.Em, atom.Font,
		atom.I, atom.Ins, atom.Kbd, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span,
		atom.Strong, atom.Sub,
		atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Meta, atom.Link:
		return false
	}
	return n.DataAtom != 0
}

func isHidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Noframes,
		atom.Noembed:
		return true
	}
	return false
}

func hasToken(list, want string) bool {
	for token := range strings.FieldsSeq(list) {
		if strings.EqualFold(token, want) {
			return true
		}
	}
	return false
}

package aiconf

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxMarkdown bounds the part of a page given to a model, in bytes: some 12,000 tokens.
const maxMarkdown = 48_000

// minMain is the length of text, in bytes, from which a main element counts as the page.
const minMain = 400

// markdown returns the page as a reader sees it: headings, paragraphs, lists, tables, links and
// pictures. Navigation, scripts, inputs and hidden elements are left out.
func (r *reader) markdown() string {
	w := writer{reader: r}
	for n := range r.data.Root.Descendants() {
		if n.DataAtom == atom.Main {
			w.children(n)
			break
		}
	}
	if w.out.Len() < minMain {
		w = writer{reader: r}
		w.children(r.data.Root)
	}
	return strings.TrimSpace(w.out.String())
}

type writer struct {
	*reader
	out   strings.Builder
	lines int  // line breaks due before the next text
	gap   bool // a space is due before it
}

func (w *writer) full() bool { return w.out.Len() >= maxMarkdown }

func (w *writer) children(n *html.Node) {
	for c := n.FirstChild; c != nil && !w.full(); c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			w.text(c.Data)
		case html.ElementNode:
			w.element(c)
		}
	}
}

// text writes words, with the breaks that are due.
func (w *writer) text(s string) {
	if s == "" {
		return
	}
	w.gap = w.gap || unicode.IsSpace(rune(s[0]))
	for word := range strings.FieldsSeq(s) {
		if len(word) > maxMarkdown-w.out.Len() {
			w.out.WriteString(" […]")
			w.out.WriteString(strings.Repeat(" ", max(0, maxMarkdown-w.out.Len())))
			return
		}
		w.before()
		w.out.WriteString(word)
		w.gap = true
	}
	w.gap = unicode.IsSpace(rune(s[len(s)-1])) || w.gap && strings.TrimSpace(s) == ""
}

// before writes the breaks that are due.
func (w *writer) before() {
	switch {
	case w.out.Len() == 0:
	case w.lines > 0:
		w.out.WriteString("\n\n"[:min(w.lines, 2)])
	case w.gap:
		w.out.WriteByte(' ')
	}
	w.lines, w.gap = 0, false
}

func (w *writer) mark(s string) {
	w.before()
	w.out.WriteString(s)
}

// block writes an element on its own lines.
func (w *writer) block(n *html.Node, lines int, mark string) {
	w.lines = max(w.lines, lines)
	if mark != "" {
		w.mark(mark)
	}
	w.children(n)
	w.lines = max(w.lines, lines)
}

func (w *writer) element(n *html.Node) {
	if unseen(n) {
		return
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block(n, 2, strings.Repeat("#", int(n.Data[1]-'0'))+" ")
	case atom.Li:
		w.block(n, 1, "- ")
	case atom.Br:
		w.lines = max(w.lines, 1)
	case atom.Tr:
		w.block(n, 1, "")
	case atom.Td, atom.Th:
		w.mark("| ")
		w.children(n)
		w.gap = true
	case atom.P, atom.Ul, atom.Ol, atom.Table, atom.Dl, atom.Blockquote, atom.Pre, atom.Article,
		atom.Section, atom.Figure:
		w.block(n, 2, "")
	case atom.A:
		w.children(n)
		if href := w.link(attrOf(n, "href")); href != "" && len(href) <= maxLink &&
			!strings.Contains(href, "#") {
			w.out.WriteString(" (" + href + ")")
			w.gap = true
		}
	case atom.Img:
		if src := w.link(attrOf(n, "src")); src != "" && len(src) <= maxLink {
			w.mark("![" + strings.Join(strings.Fields(attrOf(n, "alt")), " ") + "](" + src + ")")
			w.gap = true
		}
	case atom.Div, atom.Dt, atom.Dd, atom.Header, atom.Footer, atom.Aside, atom.Main, atom.Address,
		atom.Figcaption, atom.Tbody,
		atom.Thead, atom.Body, atom.Details, atom.Summary, atom.Hr:
		w.block(n, 1, "")
	default:
		w.children(n)
	}
}

// maxLink bounds the length of an address; longer ones only cost tokens.
const maxLink = 300

// unseen says whether an element is invisible to readers or is not content.
func unseen(n *html.Node) bool { return concealed(n) || attrOf(n, "aria-hidden") == "true" }

// concealed is unseen without the check of aria-hidden. Shops set it on visible prices that they
// repeat in words.
func concealed(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Svg, atom.Head,
		atom.Nav, atom.Select,
		atom.Textarea, atom.Object, atom.Video, atom.Audio, atom.Canvas, atom.Dialog, atom.Math,
		atom.Input, atom.Button:
		return true
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(style, "display:none") ||
				strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

func attrOf(n *html.Node, key string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return n.Attr[i].Val
		}
	}
	return ""
}

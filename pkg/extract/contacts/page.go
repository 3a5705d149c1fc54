package contacts

import (
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/unicode/norm"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// Bounds of what is examined of a page.
const (
	maxText  = 1 << 20 // bytes of visible text; the rest is left out
	maxData  = 1 << 20 // bytes of JSON data; larger blocks are left out
	maxMarks = 20_000  // each of links, headings and addresses in attributes
	maxTitle = 1000    // bytes of the title that are examined
	maxHits  = 2000    // occurrences of addresses
	maxKept  = 400     // addresses of a page, including foreign ones

	maxSources = 200 // addresses of scripts and frames
	maxSource  = 500 // bytes of each that are examined
)

// document is a page as one text whose lines are blocks, with the positions of what is in it.
type document struct {
	text     strings.Builder
	title    string
	headings []span // headings, terms and other lines that introduce what follows
	links    []link
	linked   []hit // addresses of mailto links and other markup, at the markup's place
	data     []string
	states   []string        // JSON data of frameworks
	doubts   []doubt         // in text order
	crowded  bool            // there are more of them
	filed    bool            // it has style sheet files
	texts    []string        // its own style sheets, in lower case
	told     map[string]bool // classes named in texts; nil: not yet collected
	bare     []span          // hidden blocks: an address that fills one is a trap
	outlines
}

// outlines is what the verdict on a page needs besides its text.
type outlines struct {
	scripts   int
	sources   []string // addresses of scripts and frames, in lower case
	noscript  string
	roots     bool // it has a root element into which scripts build a page
	frameset  bool
	refresh   string
	protected bool
}

// span is a part of the text.
type span struct{ from, to int }

// link is a hyperlink.
type link struct {
	href string
	span
}

// readPage finds what matters of a page of a site with the domains own.
func readPage(p page.Page, own []string) findings {
	d := parse(p.Body, own)
	text := d.text.String()
	f := findings{URL: p.URL, Protected: d.protected ||
		strings.IndexByte(text, styled) >= 0 && styledSign.MatchString(text) ||
		isTurnedByMark(text, own),
		Verdict: judge(d, text, p.URL), Topics: topics(d, text, p.URL)}
	base := rows.BaseOf(p.URL, d.base())
	if f.Refresh = refreshTarget(base, d.refresh, p.URL); f.Refresh != "" &&
		len(strings.Fields(text)) > maxRefreshWords {
		f.Refresh = ""
	}
	f.Links = contactLinks(d, text, base, p.URL)
	f.Makers = makers(d, text, base, own)
	hits := append(d.linked, findAddresses(text, own)...)
	slices.SortStableFunc(hits, func(a, b hit) int { return a.from - b.from })
	hits = hits[:min(len(hits), maxHits)]
	at := map[string]int{}
	last, around := 0, role(0)
	for i, h := range hits {
		// otherwise a link and its text, or a list, to which the same words apply
		if i == 0 || h.from > hits[i-1].to+1 {
			around = rolesAt(d, text, last, h.from)
		}
		roles, domain := around, domainOfEmail(h.email)
		if isPlaceholder(h.email, slices.Contains(own, domain)) || d.isTrap(h) {
			continue
		}
		if d.isDoubtful(h, text) {
			f.Protected = true
			continue
		}
		last = max(last, h.to)
		if isForeign(domain) {
			roles |= listed
		}
		// An address without a foreign role at any of its places is the site's own.
		if known, seen := at[h.email]; seen {
			f.Addresses[known].Roles &= roles
			continue
		}
		if len(f.Addresses) < maxKept {
			at[h.email] = len(f.Addresses)
			f.Addresses = append(f.Addresses, published{h.email, roles})
		}
	}
	for _, email := range append(dataAddresses(d.data, own), stateAddresses(d.states, own)...) {
		if _, seen := at[email]; !seen && len(f.Addresses) < maxKept &&
			!isPlaceholder(email, slices.Contains(own, domainOfEmail(email))) {
			at[email] = len(f.Addresses)
			a := published{Email: email}
			if isForeign(domainOfEmail(email)) {
				a.Roles = listed
			}
			f.Addresses = append(f.Addresses, a)
		}
	}
	return f
}

// base returns the href of the base element. It is the link without a place in the text.
func (d *document) base() string {
	for _, l := range d.links {
		if l.from < 0 {
			return l.href
		}
	}
	return ""
}

// parser reads a page once, from start to end.
type parser struct {
	document
	dataBytes int // bytes of kept JSON
	sheets    *sheets
	inline    []inline  // open inline elements
	opened    []element // open elements, for selectors
	bareTag   string    // tag of the current hidden block, "": none
	bareIn    int       // number of its tags that are open
	bareFrom  int
	bareLinks int              // addresses of markup before it
	turned    *strings.Builder // text displayed reversed, nil: none
	own       []string
	heading   int    // where the current heading begins, -1: none
	anchor    int    // index of the open link, -1: none
	hidden    string // the element that hides its contents, "": none
	hiddenIn  int    // number of its tags that are open
	skipped   string // the element whose contents are not text
	drawn     bool   // inside the text of a drawing
	noscripts int
	emphasis  int // where a bold line begins, -1: none
}

// parse reads markup as a browser without scripts would display it.
func parse(body []byte, own []string) *document {
	p := parser{own: own, heading: -1, anchor: -1, emphasis: -1}
	p.sheets, p.texts = newSheets(body)
	z := html.NewTokenizer(tree.NewReader(unsafe.String(unsafe.SliceData(body), len(body))))
	for {
		switch z.Next() {
		case html.ErrorToken:
			p.closeAnchor()
			return &p.document
		case html.TextToken:
			p.addText(z)
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			p.start(&t)
		case html.EndTagToken:
			t := z.Token()
			p.end(&t)
		}
	}
}

func (p *parser) addText(z *html.Tokenizer) {
	switch {
	case p.skipped == "script":
		p.script(string(z.Raw()))
	case p.skipped == "json":
		if raw := z.Raw(); len(p.data) < 100 && p.dataBytes+len(raw) <= maxData {
			p.data = append(p.data, string(raw))
			p.dataBytes += len(raw)
		}
	case p.skipped == "state":
		if raw := string(z.Raw()); hasSign(raw) {
			p.addState(raw)
		}
	case p.skipped == "title":
		if p.title == "" {
			title := strings.TrimSpace(string(z.Text()))
			p.title = title[:alignRune(title, min(len(title), maxTitle))]
		}
	case p.skipped == "" && p.hidden != "" && p.turned != nil:
		if p.turned.Len() < maxTrap {
			p.turned.Write(z.Text())
		}
	case p.skipped != "" || p.hidden != "":
	default:
		text := z.Text()
		p.write(string(text[:min(len(text), maxText)]))
	}
}

// write adds text, with white space as one space and without invisible characters.
func (p *parser) write(s string) {
	if p.text.Len() > maxText {
		return
	}
	if p.noscripts > 0 && len(p.noscript) < 4096 {
		p.noscript += s
	}
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r', '\f', '\u00a0', '\u2007', '\u202f', '\u3000':
			p.space(' ')
		case '\u00ad', '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff':
		case '﹫':
			p.text.WriteByte('@')
		case '․':
			p.text.WriteByte('.')
		case '„', '“', '”':
			p.text.WriteByte('"')
		case '«', '‹':
			p.text.WriteByte('<')
		case '»', '›':
			p.text.WriteByte('>')
		case '【', '〔', '〈':
			p.text.WriteByte('[')
		case '】', '〕', '〉':
			p.text.WriteByte(']')
		default:
			if '！' <= r && r <= '～' { // full-width letters and signs
				r -= '！' - '!'
			}
			if '𝐀' <= r && r <= '𝟿' || 'Ⓐ' <= r && r <= 'ⓩ' { // letters drawn as symbols
				p.text.WriteString(norm.NFKC.String(string(r)))
				continue
			}
			p.text.WriteRune(r)
		}
	}
}

// space writes a separator unless the text ends with the same or a stronger one.
func (p *parser) space(c byte) {
	s := p.text.String()
	if len(s) == 0 {
		return
	}
	last := s[len(s)-1]
	if last == '\n' || last == c || last == '\x1f' && c == ' ' {
		return
	}
	p.text.WriteByte(c)
}

var blocks = map[atom.Atom]bool{atom.P: true, atom.Div: true, atom.Br: true, atom.Li: true,
	atom.Ul: true, atom.Ol: true, atom.Tr: true,
	atom.Td: true, atom.Th: true, atom.Table: true, atom.Section: true, atom.Article: true,
	atom.Header: true, atom.Footer: true,
	atom.Nav: true, atom.Aside: true, atom.Main: true, atom.H1: true, atom.H2: true, atom.H3: true,
	atom.H4: true, atom.H5: true,
	atom.H6: true, atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Address: true,
	atom.Blockquote: true, atom.Form: true,
	atom.Fieldset: true, atom.Legend: true, atom.Hr: true, atom.Pre: true, atom.Figure: true,
	atom.Figcaption: true,
	atom.Summary:    true, atom.Details: true, atom.Body: true, atom.Button: true,
	atom.Option: true,
	atom.Center: true}

var titles = map[atom.Atom]bool{atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true,
	atom.H5: true, atom.H6: true, atom.Dt: true,
	atom.Legend: true, atom.Summary: true, atom.Th: true}

// skips are the elements whose contents are not text of the page.
var skips = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Title: true,
	atom.Textarea: true, atom.Template: true,
	atom.Select: true, atom.Svg: true, atom.Iframe: true, atom.Noframes: true, atom.Noembed: true,
	atom.Xmp: true}

var voids = map[atom.Atom]bool{atom.Br: true, atom.Img: true, atom.Input: true, atom.Hr: true,
	atom.Meta: true, atom.Link: true,
	atom.Wbr: true, atom.Base: true, atom.Frame: true, atom.Embed: true, atom.Source: true,
	atom.Area: true, atom.Col: true}

func (p *parser) start(t *html.Token) {
	if unclosed := p.skipped == "svg" || p.skipped == "select"; unclosed && blocks[t.DataAtom] &&
		t.DataAtom != atom.Option {
		p.skipped = "" // it cannot contain blocks
	}
	if p.skipped == "svg" {
		p.draw(t)
	}
	if p.skipped != "" {
		return
	}
	attrs := attributes(t)
	if p.hidden != "" {
		if !blocks[t.DataAtom] {
			if t.Data == p.hidden && !voids[t.DataAtom] {
				p.hiddenIn++
			}
			return
		}
		p.hidden = "" // an end tag is missing: a hidden inline element has no blocks
		p.turnBack()
	}
	done := p.style(t, attrs)
	_, concealed := attrs["hidden"]
	concealed = concealed || done&hides != 0
	if !blocks[t.DataAtom] && !voids[t.DataAtom] && t.Type == html.StartTagToken && concealed {
		p.protected = p.protected || protects(t, attrs)
		p.hidden, p.hiddenIn = t.Data, 1
		if done&reverses != 0 {
			p.turned = &strings.Builder{}
		}
		return
	}
	p.doubtOf(t, attrs, done)
	p.enter(t, attrs)
	p.markup(t, attrs)
	if blocks[t.DataAtom] {
		p.space('\n')
		p.startBare(t, concealed)
	}
	if done&adds != 0 {
		p.text.WriteByte(styled)
	}
	if isSign(t, attrs) {
		p.text.WriteString(pictured)
	}
	switch {
	case t.DataAtom == atom.Script:
		p.startScript(attrs)
	case skips[t.DataAtom] && t.Type == html.StartTagToken:
		p.skipped = t.Data
	case titles[t.DataAtom]:
		p.heading = p.text.Len()
	case t.DataAtom == atom.Strong || t.DataAtom == atom.B:
		if s := p.text.String(); s == "" || s[len(s)-1] == '\n' {
			p.emphasis = p.text.Len()
		}
	case t.DataAtom == atom.A:
		p.startAnchor(attrs)
	case t.DataAtom == atom.Img:
		p.image(attrs)
	case t.DataAtom == atom.Noscript:
		p.noscripts++
	}
}

func (p *parser) end(t *html.Token) {
	if p.skipped != "" {
		if t.Data == p.skipped || t.DataAtom == atom.Script &&
			(p.skipped == "json" || p.skipped == "state") {
			p.skipped = ""
		}
		return
	}
	if p.hidden != "" {
		if t.Data == p.hidden {
			p.hiddenIn--
		}
		if p.hiddenIn == 0 || blocks[t.DataAtom] {
			p.hidden = ""
			p.turnBack()
		}
		if !blocks[t.DataAtom] {
			return
		}
	}
	if p.drawn && (t.Data == "text" || t.DataAtom == atom.Svg) {
		p.drawn = false
		p.space('\n')
		if t.DataAtom != atom.Svg {
			p.skipped = "svg"
		}
		return
	}
	p.endDoubt(t)
	p.leave(t)
	switch {
	case t.DataAtom == atom.A:
		p.closeAnchor()
	case t.DataAtom == atom.Noscript:
		p.noscripts = max(p.noscripts-1, 0)
	case titles[t.DataAtom] && p.heading >= 0:
		p.addHeading(p.heading)
		p.heading = -1
	case (t.DataAtom == atom.Strong || t.DataAtom == atom.B) && p.emphasis >= 0:
		p.addHeading(p.emphasis)
		p.emphasis = -1
	}
	if blocks[t.DataAtom] {
		p.space('\n')
		p.endBare(t)
	}
}

func (p *parser) addHeading(from int) {
	if to := p.text.Len(); to > from && to-from < 200 && len(p.headings) < maxMarks {
		p.headings = append(p.headings, span{from, to})
	}
}

func (p *parser) startAnchor(attrs map[string]string) {
	p.closeAnchor()
	href := strings.TrimSpace(attrs["href"])
	if href == "" || len(p.links) >= maxMarks {
		return
	}
	// Separate the addresses of adjacent links.
	if s := p.text.String(); s != "" && !strings.ContainsRune(" \n\x1f", rune(s[len(s)-1])) {
		p.text.WriteByte('\x1f')
	}
	p.anchor = len(p.links)
	p.links = append(p.links, link{href, span{p.text.Len(), p.text.Len()}})
	p.addMailto(href)
}

// addMailto records the addresses of a mailto link.
func (p *parser) addMailto(href string) {
	href = strings.TrimSpace(withoutTabs.Replace(href[:min(len(href), maxMailto)]))
	if len(href) > len("mailto:") && strings.EqualFold(href[:len("mailto:")], "mailto:") &&
		len(p.linked) < maxMarks {
		for _, email := range mailtoAddresses(href, p.own) {
			p.linked = append(p.linked, hit{email, p.text.Len(), p.text.Len()})
		}
	}
}

// withoutTabs removes the characters that browsers ignore in an address.
var withoutTabs = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// draw takes the readable parts of a drawing: its texts and links.
func (p *parser) draw(t *html.Token) {
	switch t.Data {
	case "text":
		p.skipped, p.drawn = "", true
		p.space('\n')
	case "a":
		attrs := attributes(t)
		p.addMailto(attrs["href"])
		p.addMailto(attrs["xlink:href"])
	}
}

func (p *parser) closeAnchor() {
	if p.anchor < 0 {
		return
	}
	p.links[p.anchor].to = p.text.Len()
	p.anchor = -1
	p.text.WriteByte('\x1f')
}

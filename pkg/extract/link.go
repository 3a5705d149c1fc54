package extract

import (
	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// link finds the next page's link or cursor in a page. The zero link finds nothing.
type link struct {
	selector *rows.Selector // NEXT_LINK's, in HTML pages
	path     *jsondoc.Path  // NEXT_LINK's in JSON bodies, or JSON_CURSOR's
	cursor   bool           // path is JSON_CURSOR's
}

// compileLink compiles the pagination's selector, in the same language as the fields. For fields
// that read embedded JSON, it may also select in the page itself.
func compileLink(r model.Recipe) (l link, f *fault.Error) {
	const field = "sourceConfig.pagination."
	// Types that parse pages on their own have paths that are not JSONPaths into a body.
	isJSON := rows.IsJSON(r.Fields) &&
		(r.Type == model.SingleProduct || r.Type == model.MultipleProducts)
	switch p := r.Pagination; {
	case p == nil:
	case p.Type == model.LoadMore:
		f = rows.CheckClick(field+"selector", p.Selector)
	case p.Type == model.JSONCursor:
		l.cursor = true
		l.path, f = rows.CompilePath(field+"cursorPath", p.CursorPath, new(pattern.Total))
		if f == nil && len(r.Fields) > 0 && !isJSON {
			f = fault.Invalid(fault.SchemaValidation, field+"type",
				"JSON_CURSOR needs fields that are JSONPaths")
		}
	case p.Type == model.NextLink && isJSON &&
		(rows.IsPath(p.Selector) || !rows.IsEmbedded(r.Fields)):
		l.path, f = rows.CompilePath(field+"selector", p.Selector, new(pattern.Total))
	case p.Type == model.NextLink:
		var s rows.Selector
		s, f = rows.CompileSelector(field+"selector", p.Selector, new(pattern.Total))
		l.selector = &s
	}
	return l, f
}

// following returns the next link of a page that its type parses on its own.
func (e *Extractor) following(p Page, m *memory) (string, error) {
	if e.next.selector == nil || p.Code != "" || p.CheckHTML() != nil {
		return "", nil
	}
	defer m.doc.Reset()
	if err := m.doc.Parse(p.Body); err != nil {
		return "", fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	return e.nextLink(p, m)
}

// nextLink returns the parsed page's next link. An earlier selector's overrun also surfaces here.
func (e *Extractor) nextLink(p Page, m *memory) (string, error) {
	next := e.next.ofHTML(&m.doc, p.URL)
	if err := m.doc.Err(); err != nil {
		return "", tooSlow(m.out.Context(), err, "the selectors take too long on this page")
	}
	return next, nil
}

// ofHTML returns where the selector's first match leads: its href. If an XPath expression gives an
// attribute, a text or a value, ofHTML takes that as the link. It resolves the link as a browser
// would: against the page's base element if it has one, else against its address.
func (l *link) ofHTML(doc *dom.Document, pageURL string) string {
	if l.selector == nil {
		return ""
	}
	var href string
	ok := true
	switch match := l.selector.First(doc); {
	case l.selector.IsScalar():
		href, ok = l.selector.XPath.Value(doc, dom.Whole).(string)
		ok = ok && href != ""
	case match.Elem == dom.None:
		return ""
	case match.IsElem():
		href, ok = doc.Attr(match.Elem, "href")
	default:
		href = string(doc.AppendMatch(nil, match))
	}
	if !ok {
		return ""
	}
	baseHref, _ := doc.BaseHref()
	return resolve(pageURL, baseHref, href)
}

// ofJSON returns the path's first match: resolved as the next link, or as the cursor.
func (l *link) ofJSON(doc *jsondoc.Document, pageURL string) (next, cursor string) {
	if l.path == nil {
		return "", ""
	}
	match := l.path.First(doc)
	if match == jsondoc.None {
		return "", ""
	}
	text, _ := doc.String(match)
	switch {
	case l.cursor:
		return "", text
	case text == "":
		return "", ""
	}
	return resolve(pageURL, "", text), ""
}

// resolve returns a link's absolute address, or "" unless it is http or https.
func resolve(pageURL, baseHref, href string) string {
	base := rows.BaseOf(pageURL, baseHref)
	if base == nil {
		return ""
	}
	link, err := base.Parse(href)
	if err != nil || !rows.IsWeb(link) {
		return ""
	}
	return link.Href(false)
}

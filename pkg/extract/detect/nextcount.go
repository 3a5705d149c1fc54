package detect

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// pageCount is what numbers pages: the number of one, or those of its first item and its last one.
type pageCount struct{ from, to int }

// follows says whether a page is the one behind another.
func (c pageCount) follows(other pageCount) bool {
	return c.from == other.to+1 && (c.from == c.to) == (other.from == other.to)
}

// maxNumberText is how long what numbers a page is, in bytes.
const maxNumberText = 24

// numberOf is what a text numbers a page by, and nothing else but signs and the word for a page;
// none where it says something else.
func numberOf(text string) pageCount {
	if len(text) >= maxNumberText {
		return pageCount{}
	}
	var numbers []int
	between := ""
	for i, run := range digitRuns.FindAllStringIndex(text, -1) {
		n := nextNumber(text[run[0]:run[1]])
		if i > 1 || n == 0 {
			return pageCount{}
		}
		if numbers = append(numbers, n); i == 0 {
			between = text[run[1]:]
		}
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r)
	}) {
		if !pageWords[word] {
			return pageCount{}
		}
	}
	switch len(numbers) {
	case 1:
		return pageCount{numbers[0], numbers[0]}
	case 2:
		between, _, _ = strings.Cut(between, digitRuns.FindString(between))
		if sign := strings.TrimSpace(between); numbers[0] < numbers[1] &&
			(sign == "-" || sign == "–" || sign == "—") {
			return pageCount{numbers[0], numbers[1]}
		}
	}
	return pageCount{}
}

// afterText is an XPath expression of the first link behind this page's number, where that is a
// text between links: CSS knows none. It is "" where there is no such text.
func (p *probe) afterText(n *html.Node) string {
	holder := n.Parent
	if holder == nil || holder.Type != html.ElementNode || numberOf(textOf(n)).from == 0 {
		return ""
	}
	before := n.PrevSibling
	if before == nil || before.Type != html.TextNode || numberOf(before.Data).from == 0 {
		return ""
	}
	signs := signsOf(before.Data)
	if strings.ContainsRune(signs, '\'') {
		return ""
	}
	scope := holder.Data
	if id := attribute(holder, "id"); identifier.MatchString(id) && isStable(id) {
		scope += "[@id='" + id + "']"
	} else if class := attribute(holder, "class"); class != "" && isPlainText(class) &&
		!strings.ContainsRune(class, '\'') {
		scope += "[@class='" + class + "']"
	}
	if p.firstAfterText(holder, signs) != n {
		return ""
	}
	return "//" + scope + "/text()[number(translate(., '" + signs + "', '')) > 0]" +
		"/following-sibling::a[1]"
}

// signsOf are what a text has beside digits, each once, with what stands between numbers anyway.
func signsOf(text string) string {
	signs := []rune(" [](){}|,.-–·•/\u00a0")
	for _, r := range text {
		if !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune(string(signs), r) {
			signs = append(signs, r)
		}
	}
	return string(signs)
}

// firstAfterText is the first link behind a number in elements that are called like one, as the
// expression finds it.
func (p *probe) firstAfterText(holder *html.Node, signs string) *html.Node {
	for i := range p.all {
		e := p.all[i].node
		if e.Data != holder.Data || attribute(e, "id") != attribute(holder, "id") ||
			attribute(e, "class") != attribute(holder, "class") {
			continue
		}
		numbered := false
		for c := e.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode {
				left := strings.Map(func(r rune) rune {
					if strings.ContainsRune(signs, r) {
						return -1
					}
					return r
				}, c.Data)
				numbered = numbered || nextNumber(strings.TrimSpace(left)) > 0
			} else if numbered && c.Data == "a" && c.Type == html.ElementNode {
				return c
			}
		}
	}
	return nil
}

// countedOn is the pagination by the parameter in which the address of the next page differs from
// that of this page, nil where it differs otherwise. It is for numbers of which none is told as this
// page's own, so that no selector tells the next.
func (p *probe) countedOn(link *html.Node) *model.Pagination {
	target, err := p.linkBase().Parse(strings.TrimSpace(attribute(link, "href")))
	if err != nil || target.Path != p.base.Path {
		return nil
	}
	own, name := p.base.Query(), ""
	for param, values := range target.Query() {
		switch {
		case slices.Equal(own[param], values):
		case name != "" || len(values) != 1:
			return nil
		default:
			name = param
		}
	}
	next, before := nextNumber(target.Query().Get(name)), 0
	if own.Has(name) {
		if before, err = strconv.Atoi(own.Get(name)); err != nil {
			return nil
		}
	}
	switch step := next - before; {
	case name == "" || step < 1:
		return nil
	case step == 1 && !own.Has(name): // the first page is 0
		return &model.Pagination{Type: model.URLPageParam, Param: name, Start: &before}
	case step == 1 || next == 2 && !own.Has(name):
		return &model.Pagination{Type: model.URLPageParam, Param: name}
	default:
		return &model.Pagination{Type: model.OffsetParam, Param: name, PageSize: &step}
	}
}

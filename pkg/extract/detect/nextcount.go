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

// numberOf is what a text numbers a page by. It says nothing else but signs and the word for a
// page: otherwise there is none.
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

// A calendar has rows of seven days, and four weeks at least.
const (
	weekDays = 7
	minWeeks = 4
)

// isDay says whether a link stands in a calendar.
func isDay(link *html.Node) bool {
	row := ancestor(link, named("tr"))
	if row == nil || childrenNamed(row, "td") != weekDays || row.Parent == nil {
		return false
	}
	return childrenNamed(row.Parent, "tr") >= minWeeks
}

func childrenNamed(n *html.Node, name string) int {
	found := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.Data == name {
			found++
		}
	}
	return found
}

// besideNumbers says how much what is around a link looks like numbers of pages.
func (p *probe) besideNumbers(n *html.Node) float64 {
	at := n.Parent
	for range 3 {
		if at == nil || at.Type != html.ElementNode {
			break
		}
		i, known := p.index[at]
		if !known || p.all[i].textLength() > 400 {
			break
		}
		found := 0
		for k := i; k < p.all[i].end; k++ {
			e := &p.all[k]
			if e.step == "a" && e.node != n && nextNumber(textOf(e.node)) > 0 {
				found++
			}
		}
		if found == 1 && p.currentIn(i, n).from > 0 {
			found++ // this page's own, which is no link
		}
		called := append(words(at), split(attribute(at, "id"))...)
		if found > 1 || sharesWord(called, []string{"pagination", "pager", "pagenavi", "paging",
			"pages", "paginator", "paginate", "pagenav", "seiten"}) {
			return 2
		}
		at = at.Parent
	}
	return 0
}

// followsCurrent says whether a link says the number behind that of this page, or the items behind
// those of this page. The number of this page stands among those of others without a link, or as
// the current one. Otherwise its address says it, and 1 stands where nothing does.
func (p *probe) followsCurrent(n *html.Node) bool {
	own := numberOf(textOf(n))
	around := n.Parent
	for range 2 {
		if around == nil || around.Type != html.ElementNode {
			break
		}
		i, known := p.index[around]
		if !known || p.all[i].textLength() > 400 {
			break
		}
		if current := p.currentIn(i, n); current.from > 0 {
			return own.follows(current)
		}
		around = around.Parent
	}
	current := pageCount{1, 1}
	if m := pageNumber.FindString(p.base.RequestURI()); m != "" {
		if number := nextNumber(strings.TrimLeft(m, "?&/pageofstrPAGEOFSTRd=-")); number > 0 {
			current = pageCount{number, number}
		}
	}
	return own.follows(current)
}

// currentIn is the number of this page among those in an element, none where no other than that of
// a link is told from links.
func (p *probe) currentIn(around int, n *html.Node) pageCount {
	for k := around; k < p.all[around].end; k++ {
		e := &p.all[k]
		if !e.own || e.node == n {
			continue
		}
		link := ancestor(e.node, named("a"))
		isLink := link != nil && attribute(link, "href") != ""
		number := numberOf(textOf(e.node))
		if number.from > 0 && (!isLink || attribute(e.node, "aria-current") != "" ||
			attribute(link, "aria-current") != "" ||
			sharesWord(append(words(e.node), words(e.node.Parent)...),
				[]string{"current", "active", "selected", "on"})) {
			return number
		}
		if isLink {
			continue
		}
		for c := e.node.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode && len(c.Data) < maxNumberText {
				if number = numberOf(c.Data); number.from > 0 {
					return number
				}
			}
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
	if id := attribute(holder, "id"); isIdentifier(id) && isStable(id) {
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

// countingParams are the parameters, in lower case, that number pages or their first items. Others
// with numbers choose something: a size, a day.
var countingParams = wordsIn(`page|p|pg|paged|pageno|pagenum|pagenumber|page_number|page_no|` +
	`pageindex|pageid|currentpage|cur_page|seite|pagina|strana|sida|offset|start|skip|from|first|` +
	`begin|limitstart|startindex|start_index`)

// countedOn is the pagination by the parameter in which the address of the next page differs from
// this page's. It is nil where it differs otherwise. It is for numbers of which none is told as
// this page's own, so that no selector tells the next.
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
	if !countingParams[strings.ToLower(name)] {
		return nil
	}
	next, before := nextNumber(target.Query().Get(name)), 0
	if own.Has(name) {
		if before, err = strconv.Atoi(own.Get(name)); err != nil {
			return nil
		}
	}
	switch step := next - before; {
	case step < 1:
		return nil
	case step == 1 && !own.Has(name): // the first page is 0
		return &model.Pagination{Type: model.URLPageParam, Param: name, Start: &before}
	case step == 1 || next == 2 && !own.Has(name):
		return &model.Pagination{Type: model.URLPageParam, Param: name}
	default:
		return &model.Pagination{Type: model.OffsetParam, Param: name, PageSize: &step}
	}
}

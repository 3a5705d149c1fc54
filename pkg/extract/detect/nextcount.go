package detect

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// pageCount numbers a page: by its own number, or by those of its first and last item.
type pageCount struct{ from, to int }

// follows says whether c is the page right after other.
func (c pageCount) follows(other pageCount) bool {
	return c.from == other.to+1 && (c.from == c.to) == (other.from == other.to)
}

// maxNumberText bounds the text of a page number, in bytes.
const maxNumberText = 24

// numberOf reads the page number in a text. A text with other words than one for a page has none.
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

// A calendar has rows of seven days, and at least four weeks.
const (
	weekDays = 7
	minWeeks = 4
)

// isDay says whether a link is a day in a calendar.
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

// besideNumbers rates how much a link's surroundings look like page numbers.
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
			found++ // the current page's number, without a link
		}
		called := append(words(at), split(tree.Attr(at, "id"))...)
		if found > 1 || sharesWord(called, []string{"pagination", "pager", "pagenavi", "paging",
			"pages", "paginator", "paginate", "pagenav", "seiten"}) {
			return 2
		}
		at = at.Parent
	}
	return 0
}

// followsCurrent says whether a link's number, or its item range, comes right after the current
// page's. The current number is shown without a link or marked as current. If it is not shown, the
// page's address gives it; the default is 1.
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

// currentIn returns the current page's number within an element: one outside links or marked as
// current. It ignores n and returns the zero count if there is none.
func (p *probe) currentIn(around int, n *html.Node) pageCount {
	for k := around; k < p.all[around].end; k++ {
		e := &p.all[k]
		if !e.own || e.node == n {
			continue
		}
		link := ancestor(e.node, named("a"))
		isLink := link != nil && tree.Attr(link, "href") != ""
		number := numberOf(textOf(e.node))
		if number.from > 0 && (!isLink || tree.Attr(e.node, "aria-current") != "" ||
			tree.Attr(link, "aria-current") != "" ||
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

// afterText returns an XPath expression for the first link after this page's number where that is
// plain text, which CSS cannot match. It returns "" if there is no such text.
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
	if id := tree.Attr(holder, "id"); isIdentifier(id) && isStable(id) {
		scope += "[@id='" + id + "']"
	} else if class := tree.Attr(holder, "class"); class != "" && isPlainText(class) &&
		!strings.ContainsRune(class, '\'') {
		scope += "[@class='" + class + "']"
	}
	if p.firstAfterText(holder, signs) != n {
		return ""
	}
	return "//" + scope + "/text()[number(translate(., '" + signs + "', '')) > 0]" +
		"/following-sibling::a[1]"
}

// signsOf returns the usual signs between numbers plus the text's other signs, each once.
func signsOf(text string) string {
	signs := []rune(" [](){}|,.-–·•/\u00a0")
	for _, r := range text {
		if !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune(string(signs), r) {
			signs = append(signs, r)
		}
	}
	return string(signs)
}

// firstAfterText returns the link that the expression finds: the first one after a number, among
// all elements named like holder.
func (p *probe) firstAfterText(holder *html.Node, signs string) *html.Node {
	for i := range p.all {
		e := p.all[i].node
		if e.Data != holder.Data || tree.Attr(e, "id") != tree.Attr(holder, "id") ||
			tree.Attr(e, "class") != tree.Attr(holder, "class") {
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

// countingParams are the parameters, in lower case, that number pages or their first items. Other
// numeric parameters choose something, such as a size or a day.
var countingParams = wordsIn(`page|p|pg|paged|pageno|pagenum|pagenumber|page_number|page_no|` +
	`pageindex|pageid|currentpage|cur_page|seite|pagina|strana|sida|offset|start|skip|from|first|` +
	`begin|limitstart|startindex|start_index`)

// zeroParams are those of countingParams that count items from 0 by convention.
var zeroParams = wordsIn(`offset|skip|limitstart`)

// countedOn returns a pagination by the one counting parameter in which the next page's address
// differs from this page's, or nil. It serves page numbers without a visible current one, for which
// no selector finds the next link. items is the number of the page's items.
func (p *probe) countedOn(link *html.Node, items int) *model.Pagination {
	name, next := p.countIn(link)
	if !countingParams[strings.ToLower(name)] {
		return nil
	}
	own, before := p.base.Query(), 0
	if own.Has(name) {
		var err error
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
	case !own.Has(name) && p.countsFromOne(name, next, items):
		step--
		return &model.Pagination{Type: model.URLPageParam, Param: name, Step: &step}
	default:
		return &model.Pagination{Type: model.OffsetParam, Param: name, PageSize: &step}
	}
}

// countIn returns the one parameter in which a link's address differs from the page's, and its
// number. The name is "" if the addresses differ otherwise, and the number 0 if it is none.
func (p *probe) countIn(link *html.Node) (name string, number int) {
	target, err := p.linkBase().Parse(strings.TrimSpace(tree.Attr(link, "href")))
	if err != nil || target.Path != p.base.Path {
		return "", 0
	}
	own := p.base.Query()
	for param, values := range target.Query() {
		switch {
		case slices.Equal(own[param], values):
		case name != "" || len(values) != 1:
			return "", 0
		default:
			name, number = param, nextNumber(values[0])
		}
	}
	return name, number
}

// countsFromOne says whether the first page, which lacks the parameter, has the number 1 rather
// than 0. next is the second page's number. If two page links do not tell the step between pages,
// the number of items does, if the parameter's name allows it.
func (p *probe) countsFromOne(name string, next, items int) bool {
	numbers := p.numbers()
	known := map[int]int{} // numbers in addresses, by the page or item after those of the link
	for i := range p.all {
		link := p.all[i].node
		param, number := "", 0
		if numbers[link] {
			param, number = p.countIn(link)
		}
		if param != name || number == 0 {
			continue
		}
		page := numberOf(textOf(link))
		if before, follows := known[page.from]; follows && number > before {
			return next-1 == number-before
		}
		known[page.to+1] = number
	}
	return next-1 == items && !zeroParams[strings.ToLower(name)]
}

package detect

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// nextWords are the whole texts of links to the next page, in lower case and without signs. They
// cover at least 48 languages: those of Europe, and the most widely read ones of Asia and Africa.
var nextWords = wordsIn(`next|next page|older|older posts|older entries|older articles|older news|
previous entries|next results|go to next page|next posts|next entries|
nächste|nächste seite|nächster|zur nächsten seite|ältere beiträge|ältere einträge|ältere artikel|
vor|vorwärts|suivant|suivante|suivants|page suivante|articles plus anciens|articles précédents|
plus anciens|siguiente|siguientes|página siguiente|siguiente página|próximo|próxima|entradas antiguas|
entradas más antiguas|entradas anteriores|más antiguas|seguinte|página seguinte|próxima página|
próximos|posts antigos|postagens mais antigas|avançar|successivo|successiva|successivi|
pagina successiva|prossimo|prossima|prossima pagina|avanti|articoli meno recenti|articoli precedenti|
post più vecchi|articoli più vecchi|volgende|volgende pagina|oudere berichten|næste|næste side|
ældre indlæg|neste|neste side|eldre innlegg|nästa|nästa sida|äldre inlägg|seuraava|seuraava sivu|
vanhemmat|vanhemmat artikkelit|następna|następny|następne|następna strona|starsze wpisy|
starsze posty|další|další stránka|následující|starší příspěvky|ďalšia|ďalší|ďalšie|nasledujúca|
ďalšia strana|staršie články|következő|következő oldal|régebbi bejegyzések|korábbi bejegyzések|
următoarea|următorul|pagina următoare|articole mai vechi|sljedeća|sljedeće|iduća|sljedeća stranica|
starije objave|следующая|следующий|следующая страница|следующие|вперед|вперёд|след|
предыдущие записи|старые записи|наступна|наступна сторінка|вперед|επόμενη|επόμενο|επόμενα|
επόμενη σελίδα|παλαιότερα|παλαιότερα άρθρα|sonraki|sonraki sayfa|ileri|eski yazılar|berikutnya|
selanjutnya|halaman berikutnya|pos lama|tulisan lama|postingan lama|tiếp|tiếp theo|trang sau|次|
次へ|次の|次のページ|次ページ|次ページへ|次のページへ|次の#件|次#件|次の#件へ|過去の投稿|古い投稿|以前の記事|下一页|下一頁|下页|下頁|后页|
后一页|下一页面|다음|다음 페이지|다음페이지|이전 글|التالي|الصفحة التالية|التالية|الأقدم|הבא|לעמוד הבא|अगला|
अगला पृष्ठ|अगले|পরবর্তী|পরের|পরবর্তী পাতা|ถัดไป|หน้าถัดไป|continued|continued on next page|
kitas|kitas puslapis|toliau|nākamā|nākamais|nākamā lapa|järgmine|järgmine leht|vanemad postitused|
naslednja|naslednji|naslednja stran|starejše objave|следваща|следваща страница|по-стари публикации|
следећа|следећа страна|sledeća|sledeće|sledeća strana|следна|следна страница|següent|
pàgina següent|entrades més antigues|páxina seguinte|hurrengoa|hurrengo orria|بعدی|صفحه بعد|صفحه بعدی|
اگلا|اگلا صفحہ|seterusnya|halaman seterusnya|næsta|næsta síða|tjetra|faqja tjetër|அடுத்து|
அடுத்த பக்கம்|తదుపరి|पुढील|पुढील पृष्ठ|આગળ|susunod|susunod na pahina|inayofuata|ukurasa unaofuata|შემდეგი|
հաջորդ|հաջորդ էջ|келесі|келесі бет|növbəti|növbəti səhifə|sonrakı|volgende bladsy|
дараагийн|keyingi|keyingi sahifa`)

// goOnWords may lead to the next page, but may also lead to the rest of an item.
var goOnWords = wordsIn(`weiter|mehr|more|далее|дальше|далі|tovább|dalej|dále|ďalej|verder|lanjut|
continua|continuar|daha fazla|more results|keep going|înainte|framåt|fremover|frem|もっと見る|
더보기|更多|المزيد|अधिक`)

// loadWords ask for further items.
var loadWords = wordsIn(`load more|show more|view more|see more|more results|load more results|
show more results|load more products|more products|mehr laden|mehr anzeigen|weitere anzeigen|
mehr produkte|weitere laden|voir plus|afficher plus|charger plus|plus de produits|cargar más|
ver más|mostrar más|carregar mais|ver mais|mostrar mais|carica altri|carica altro|mostra altri|
mostra di più|meer laden|toon meer|laad meer|meer tonen|vis mere|indlæs flere|vis flere|last flere|
last inn flere|visa fler|ladda fler|visa mer|näytä lisää|lataa lisää|pokaż więcej|załaduj więcej|
zobacz więcej|načíst další|zobrazit více|zobrazit další|zobraziť viac|načítať ďalšie|
további betöltése|több megjelenítése|mutass többet|încarcă mai multe|vezi mai multe|učitaj više|
prikaži više|показать ещё|показать еще|загрузить ещё|загрузить еще|показати ще|завантажити ще|
περισσότερα|φόρτωση περισσότερων|daha fazla|daha fazla göster|muat lebih banyak|lihat lebih banyak|
xem thêm|もっと見る|さらに表示|加载更多|显示更多|載入更多|顯示更多|더보기|더 보기|عرض المزيد|تحميل المزيد|טען עוד|
और देखें|আরও দেখুন|โหลดเพิ่ม|ดูเพิ่มเติม`)

func wordsIn(list string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.SplitSeq(list, "|") {
		words[strings.TrimSpace(word)] = true
	}
	return words
}

// arrows are the signs that links to the next page show instead of words.
var arrows = map[string]bool{">": true, ">>": true, "›": true, "»": true, "→": true, "»»": true,
	"▶": true, "►": true, "⟩": true, "❯": true, "⇒": true, "➔": true, "▸": true, "⟶": true}

// spoken reduces a text to letters and digits, in lower case, with single spaces.
func spoken(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// nextLink is a link that may lead to the next page.
type nextLink struct {
	node    *html.Node
	score   float64
	counted bool // page numbers support it
}

// maxNextText bounds the text of such a link, in bytes.
const maxNextText = 60

// leastNext is the minimum score of a next link.
const leastNext = 4

// leastHint is the minimum score of another link to the same page. Its selector serves if the best
// link has none.
const leastHint = 1

// findNext finds the links to the next page, the likeliest first, or none. They all lead to the
// same address, so evidence for one counts for all.
func (p *probe) findNext(lists []list) []nextLink {
	numbers := p.numbers()
	best, bestScore := "", 0.0
	byTarget := map[string][]nextLink{}
	for i := range p.all {
		e := &p.all[i]
		if e.step != "a" && e.step != "link" || e.textLength() > maxNextText {
			continue
		}
		href := strings.TrimSpace(tree.Attr(e.node, "href"))
		target, err := p.linkBase().Parse(href)
		if err != nil || href == "" || href[0] == '#' || !p.isOther(target) {
			continue
		}
		link := p.rateNext(i, target, numbers)
		if len(lists) > 0 && p.isOneOf(lists[0], i) {
			link.score -= 4
		}
		if link.score < leastHint {
			continue
		}
		address := target.String()
		byTarget[address] = append(byTarget[address], link)
		if link.score >= leastNext && link.score > bestScore {
			best, bestScore = address, link.score
		}
	}
	found := byTarget[best]
	slices.SortStableFunc(found, func(a, b nextLink) int { return cmp.Compare(b.score, a.score) })
	return found
}

// isOneOf says whether an element lies in an item of the list, except the first and the last one.
// The outermost items may include the page links.
func (p *probe) isOneOf(l list, i int) bool {
	item := l.set.inside(p.all[i].node)
	return item != nil && item != l.items[len(l.items)-1] && item != l.items[0]
}

// linkBase returns the address that links are relative to.
func (p *probe) linkBase() *url.URL {
	if all := p.sel.all("base[href]"); len(all) > 0 {
		if base, err := p.base.Parse(strings.TrimSpace(tree.Attr(all[0], "href"))); err == nil &&
			(base.Scheme == "http" || base.Scheme == "https") {
			return base
		}
	}
	return p.base
}

// isOther says whether an address is another page of the site.
func (p *probe) isOther(target *url.URL) bool {
	if target.Scheme != "http" && target.Scheme != "https" || siteOf(target) != siteOf(p.base) {
		return false
	}
	return target.EscapedPath() != p.base.EscapedPath() || target.RawQuery != p.base.RawQuery
}

func siteOf(u *url.URL) string { return strings.TrimPrefix(strings.ToLower(u.Host), "www.") }

// rateNext rates how likely a link leads to the next page.
func (p *probe) rateNext(i int, target *url.URL, numbers map[*html.Node]bool) nextLink {
	n := p.all[i].node
	link := nextLink{node: n}
	text := textOf(n)
	said := spoken(text)
	if slices.Contains(strings.Fields(strings.ToLower(tree.Attr(n, "rel"))), "next") {
		link.score += 4
	}
	for _, label := range [...]string{tree.Attr(n, "aria-label"), tree.Attr(n, "title")} {
		if label = spoken(label); saysNext(label) || strings.HasPrefix(label, "next page") {
			link.score += 2
			if _, ofPage := phrasesNext(label); ofPage && said == "" {
				link.score += 2 // its only text
			}
			break
		}
	}
	switch {
	case saysNext(said):
		link.score += 3
		if _, ofPage := phrasesNext(said); ofPage {
			link.score++
		}
	case loadWords[said] || asksMore(said):
		link.score += 1.5
	case goOnWords[said]:
		link.score++
	case said == "" && arrows[strings.ReplaceAll(text, " ", "")]:
		link.score += 1.5
	case text == "":
		_, signed := signIn(n)
		link.score += signed
	}
	called := append(words(n), split(tree.Attr(n, "id"))...)
	if n.Parent != nil {
		called = append(append(called, words(n.Parent)...), split(tree.Attr(n.Parent, "id"))...)
	}
	if sharesWord(called, []string{"next", "nextpage", "siguiente", "weiter", "suivant", "older"}) {
		link.score += 1.5
	}
	if slices.Contains(called, "disabled") {
		link.score -= 5
	}
	if link.score > 0 || numbers[n] {
		beside := p.besideNumbers(n)
		link.score += beside
		if step := isNextNumber(p.base, target); step {
			link.score += 2.5
			link.counted = true
		}
		link.counted = link.counted || beside >= 2
	}
	switch {
	case numbers[n] && p.followsCurrent(n):
		link.score += 2.5
		link.counted = true
	case numbers[n]:
		link.score -= 2.5 // a page size or some other page
	}
	return link
}

// numbers returns the links whose text is a number.
func (p *probe) numbers() map[*html.Node]bool {
	found := map[*html.Node]bool{}
	for i := range p.all {
		e := &p.all[i]
		if e.step == "a" && e.textLength() > 0 && e.textLength() < maxNumberText &&
			numberOf(textOf(e.node)).from > 0 && !isDay(e.node) {
			found[e.node] = true
		}
	}
	return found
}

// maxPageNumber bounds the numbers that count as page numbers.
const maxPageNumber = 1_000_000

// nextNumber reads a text as a number; 0 if it is not one.
func nextNumber(text string) int {
	n, err := strconv.Atoi(strings.Trim(text, "[]() .\u00a0"))
	if err != nil || n < 1 || n > maxPageNumber {
		return 0
	}
	return n
}

var digitRuns = regexp.MustCompile(`[0-9]+`)

// isNextNumber says whether two addresses differ by one larger number, or by an added one. The
// number counts pages or items.
func isNextNumber(from, to *url.URL) bool {
	a, b := from.RequestURI(), to.RequestURI()
	if digitRuns.ReplaceAllString(a, "#") == digitRuns.ReplaceAllString(b, "#") {
		old, next := digitRuns.FindAllString(a, -1), digitRuns.FindAllString(b, -1)
		changed, grown := 0, false
		for i := range old {
			if old[i] != next[i] {
				changed++
				x, y := nextNumber("1"+old[i]), nextNumber("1"+next[i])
				grown = len(next[i]) > len(old[i]) || y > x
			}
		}
		return changed == 1 && grown
	}
	// a number that the first page's address lacks
	query := from.Query()
	added := 0
	for name, values := range to.Query() {
		if _, has := query[name]; !has && len(values) == 1 && nextNumber(values[0]) > 0 {
			added++
		}
	}
	if added > 0 && strings.HasPrefix(to.Path, strings.TrimSuffix(from.Path, "/")) {
		return true
	}
	rest, isLonger := strings.CutPrefix(to.Path, strings.TrimSuffix(from.Path, "/"))
	if isLonger && addedPage.MatchString(rest) {
		return true
	}
	suffix := path.Ext(from.Path)
	rest, isLonger = strings.CutPrefix(to.Path, strings.TrimSuffix(from.Path, suffix))
	return suffix != "" && isLonger && addedPage.MatchString(rest)
}

var addedPage = regexp.MustCompile(`(?i)^[/_-]?(page|p|seite|pagina|strana|sivu|side|index)?[/_=-]?[0-9]+(\.[a-z]{3,5})?/?$`)

// next returns the pagination of a page that links to the next one, or nil. counted says that page
// numbers support it, which links to a next article do not have.
func (p *probe) next(lists []list) (pagination *model.Pagination, counted bool) {
	found := p.findNext(lists)
	for i := range found {
		if css := p.nextSelector(&found[i]); css != "" {
			return &model.Pagination{Type: model.NextLink, Selector: css}, found[0].counted
		}
	}
	counted = len(found) > 0 && found[0].counted
	const inHead = `link[rel="next"]`
	if all := p.sel.all(inHead); len(all) > 0 {
		target, err := p.linkBase().Parse(strings.TrimSpace(tree.Attr(all[0], "href")))
		if err == nil && p.isOther(target) && numbersPages(target) {
			return &model.Pagination{Type: model.NextLink, Selector: inHead},
				counted || isNextNumber(p.base, target)
		}
	}
	if counted {
		items := 0
		if len(lists) > 0 {
			items = len(lists[0].items)
		}
		pagination = p.countedOn(found[0].node, items)
	}
	return pagination, counted
}

// numbersPages says whether an address can be one of several pages, because it has a number or a
// query. Otherwise it is another text of the site, which rel=next may mark as well.
func numbersPages(target *url.URL) bool {
	return target.RawQuery != "" || strings.ContainsAny(target.Path, "0123456789")
}

// nextSelector returns a selector that finds the next link by what marks it as one. So it also
// works on other pages, and finds nothing on the last one.
func (p *probe) nextSelector(link *nextLink) string {
	n := link.node
	leads := func(css string) bool {
		matches := p.sel.all(css)
		return len(matches) > 0 && (matches[0] == n || tree.Attr(matches[0], "href") ==
			tree.Attr(n, "href"))
	}
	var list []string
	add := func(css string) { list = append(list, css) }
	if strings.EqualFold(tree.Attr(n, "rel"), "next") {
		add(`a[rel="next"]`)
	}
	tells := func(css string) bool { return slices.Contains(split(css), "next") }
	for _, own := range simple(n) {
		if tells(own) {
			add(own)
		}
	}
	if id := tree.Attr(n, "id"); isIdentifier(id) && tells(id) {
		add("#" + id)
	}
	if n.Parent != nil && n.Parent.Type == html.ElementNode {
		for _, around := range simple(n.Parent) {
			if tells(around) {
				add(around + " > a")
			}
		}
		if id := tree.Attr(n.Parent, "id"); isIdentifier(id) && tells(id) {
			add("#" + id + " > a")
		}
	}
	for _, name := range [...]string{"aria-label", "title"} {
		if value := tree.Attr(n, name); nextWords[spoken(value)] && isPlainText(value) {
			add("a[" + name + `="` + value + `"]`)
		}
	}
	around := ""
	if n.Parent != nil {
		around = p.named(n.Parent)
	}
	text := textOf(n)
	said := spoken(text)
	if saysNext(said) || goOnWords[said] || loadWords[said] || asksMore(said) ||
		said == "" && text != "" {
		for _, scope := range [...]string{"", around} {
			add(scope + "a:matches(" + textPattern(text) + ")")
		}
	}
	if text == "" {
		if sign, _ := signIn(n); sign != "" {
			add(around + "a:has(" + sign + ")")
			add("a:has(" + sign + ")")
		}
	}
	list = append(list, p.afterCurrent(n, around)...)
	for _, css := range list {
		if leads(css) {
			return css
		}
	}
	return p.afterText(n)
}

func isPlainText(text string) bool { return !strings.ContainsAny(text, "\"\\\n") }

// named returns a selector for the nearest named element from n up, with a trailing space.
func (p *probe) named(n *html.Node) string {
	for range 4 {
		if n == nil || n.Type != html.ElementNode {
			break
		}
		for _, css := range simple(n) {
			if css[0] == '.' {
				return css + " "
			}
		}
		if id := tree.Attr(n, "id"); isIdentifier(id) && isStable(id) {
			return "#" + id + " "
		}
		n = n.Parent
	}
	return ""
}

// afterCurrent returns selectors for the page number after the current one.
func (p *probe) afterCurrent(n *html.Node, around string) []string {
	var list []string
	step, inner := n, ""
	for range 2 {
		if before := elementBefore(step); before != nil {
			for _, css := range currentOf(before) {
				list = append(list, around+css+" + "+step.Data+inner, css+" + "+step.Data+inner)
			}
			// elements with a comma or a space may lie between numbers
			if before = elementBefore(before); before != nil && spoken(textOf(before)) != "" {
				for _, css := range currentOf(before) {
					list = append(list, around+css+" ~ "+step.Data+inner)
				}
			}
		}
		if step.Parent == nil || step.Parent.Type != html.ElementNode {
			break
		}
		step, inner = step.Parent, " > a"
	}
	return list
}

func elementBefore(n *html.Node) *html.Node {
	for n = n.PrevSibling; n != nil && n.Type != html.ElementNode; {
		n = n.PrevSibling
	}
	return n
}

// currentOf returns selectors that mark an element as the current page's number.
func currentOf(n *html.Node) []string {
	var list []string
	for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
		if isIdentifier(class) && sharesWord(split(class),
			[]string{"current", "active", "selected", "on", "disabled"}) {
			list = append(list, n.Data+"."+class)
		}
	}
	if tree.Attr(n, "aria-current") != "" {
		list = append(list, n.Data+"[aria-current]")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			for _, css := range currentOf(c) {
				if strings.ContainsAny(css, ".[") { // a plain name would match other elements, too
					list = append(list, n.Data+":has("+css+")")
				}
			}
		}
	}
	if n.Data != "a" && len(list) == 0 && numberOf(textOf(n)).from > 0 {
		if n.Data != "li" && n.Data != "td" && n.Data != "div" {
			list = append(list, n.Data)
		}
		list = append(list, n.Data+":not(:has(a))")
	}
	return list
}

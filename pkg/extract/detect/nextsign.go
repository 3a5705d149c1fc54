package detect

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// countedWords accompany numbers in links to the next page, as in "next 20 results" or "page 2 of
// 9". They do not tell where the link leads.
var countedWords = wordsIn(`page|pages|seite|seiten|página|páginas|pagina|pagine|sida|side|sivu|
strona|stránka|strana|oldal|страница|сторінка|σελίδα|sayfa|halaman|trang|result|results|item|items|
product|products|post|posts|article|articles|entry|entries|hit|hits|record|records|job|jobs|event|
events|topics|threads|ergebnisse|treffer|einträge|artikel|beiträge|produkte|résultats|articles|
produits|resultados|artículos|productos|artigos|produtos|risultati|articoli|prodotti|resultaten|
artikelen|producten|resultater|træffere|varer|träffar|produkter|tulosta|tuotetta|wyników|wyniki|
produktów|výsledků|položek|produktů|találat|termék|результатов|товаров|записей|результатів|
αποτελέσματα|sonuç|ürün|hasil|kết quả|件|条|條|개|of|von|de|di|van|av|af|z|ze|из|από|sur|su|the`)

// saysNext says whether a text, as spoken returns it, marks a link to the next page, with or
// without numbers in it.
func saysNext(said string) bool {
	if nextWords[said] || nextWords[digitRuns.ReplaceAllString(said, "#")] {
		return true
	}
	if isNext, _ := phrasesNext(said); isNext {
		return true
	}
	var kept []string
	isCounted := false
	for word := range strings.FieldsSeq(said) {
		switch {
		case nextNumber(word) > 0:
			isCounted = true
		case !countedWords[word]:
			kept = append(kept, word)
		}
	}
	if !isCounted {
		return false
	}
	rest := strings.Join(kept, " ")
	isNext, _ := phrasesNext(rest)
	return isNext || nextWords[rest] || nextStems[rest]
}

// textPattern returns a pattern of a link's text in which each number matches any, because other
// pages have other numbers.
func textPattern(text string) string {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
	return `^\s*` + digitRuns.ReplaceAllString(pattern, "[0-9]+") + `\s*$`
}

// maxSigns bounds the nodes of a link that are searched for a sign.
const maxSigns = 20

// signIn finds the picture or icon of a link without text that stands for the next page. css
// selects the sign within its link. score rates how certain the sign is, 0 if there is none.
func signIn(link *html.Node) (css string, score float64) {
	if slices.Contains(strings.Fields(strings.ToLower(tree.Attr(link, "rel"))), "prev") {
		return "", 0
	}
	looked, onward := 0, "right"
	if runsLeft(link) {
		onward = "left"
	}
	for n := range link.Descendants() {
		if looked++; looked > maxSigns {
			break
		}
		if n.Type != html.ElementNode {
			continue
		}
		for _, name := range [...]string{"alt", "title", "aria-label"} {
			value := tree.Attr(n, name)
			if value != "" && saysNext(spoken(value)) && isPlainText(value) {
				return n.Data + "[" + name + `="` + value + `"]`, 3
			}
		}
		if file := fileOf(tree.Attr(n, "src")); n.Data == "img" && file != "" &&
			isPlainText(file) && isNextSign(split(file), onward) {
			return `img[src$="` + file + `"]`, 1.5
		}
		for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
			if isIdentifier(class) && isNextSign(split(class), onward) {
				return n.Data + "." + class, 1.5
			}
		}
	}
	return "", 0
}

// fileOf returns the name of a picture's file, or "" for a picture embedded in the page.
func fileOf(address string) string {
	if strings.HasPrefix(address, "data:") {
		return ""
	}
	return address[strings.LastIndexByte(address, '/')+1:]
}

// isNextSign says whether a class or a file name is that of an icon for the next page. A double
// arrow leads to the last page. In right-to-left texts, the next page is on the left.
func isNextSign(called []string, onward string) bool {
	if sharesWord(called, []string{"double", "last", "end", "prev", "previous"}) {
		return false
	}
	if sharesWord(called, []string{"next", "forward"}) {
		return true
	}
	return sharesWord(called, []string{onward}) &&
		sharesWord(called, []string{"arrow", "chevron", "angle", "caret", "triangle"})
}

// runsLeft says whether the text around an element runs from right to left.
func runsLeft(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if direction := tree.Attr(n, "dir"); direction != "" {
			return strings.EqualFold(direction, "rtl")
		}
	}
	return false
}

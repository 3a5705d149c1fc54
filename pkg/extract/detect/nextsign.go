package detect

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// countedWords are what stands beside a number in links to the next page: next 20 results, page 2
// of 9. They say nothing of where it leads.
var countedWords = wordsIn(`page|pages|seite|seiten|página|páginas|pagina|pagine|sida|side|sivu|
strona|stránka|strana|oldal|страница|сторінка|σελίδα|sayfa|halaman|trang|result|results|item|items|
product|products|post|posts|article|articles|entry|entries|hit|hits|record|records|job|jobs|event|
events|topics|threads|ergebnisse|treffer|einträge|artikel|beiträge|produkte|résultats|articles|
produits|resultados|artículos|productos|artigos|produtos|risultati|articoli|prodotti|resultaten|
artikelen|producten|resultater|træffere|varer|träffar|produkter|tulosta|tuotetta|wyników|wyniki|
produktów|výsledků|položek|produktů|találat|termék|результатов|товаров|записей|результатів|
αποτελέσματα|sonuç|ürün|hasil|kết quả|件|条|條|개|of|von|de|di|van|av|af|z|ze|из|από|sur|su|the`)

// saysNext says whether a text, as spoken gives it, says that a link leads to the next page, with
// numbers in it or without.
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

// textPattern is a pattern of a link's text, with any number for each in it: other pages have
// others.
func textPattern(text string) string {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
	return `^\s*` + digitRuns.ReplaceAllString(pattern, "[0-9]+") + `\s*$`
}

// maxSigns is how many nodes in a link are looked at for a sign.
const maxSigns = 20

// signIn is the picture or the icon of a link without a text that shows the next page. css is the
// selector of the sign in its link, and score how surely it says so: 0 where there is none.
func signIn(link *html.Node) (css string, score float64) {
	if slices.Contains(strings.Fields(strings.ToLower(attribute(link, "rel"))), "prev") {
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
			value := attribute(n, name)
			if value != "" && saysNext(spoken(value)) && isPlainText(value) {
				return n.Data + "[" + name + `="` + value + `"]`, 3
			}
		}
		if file := fileOf(attribute(n, "src")); n.Data == "img" && file != "" &&
			isPlainText(file) && isNextSign(split(file), onward) {
			return `img[src$="` + file + `"]`, 1.5
		}
		for class := range strings.FieldsSeq(attribute(n, "class")) {
			if isIdentifier(class) && isNextSign(split(class), onward) {
				return n.Data + "." + class, 1.5
			}
		}
	}
	return "", 0
}

// fileOf is the name of a picture's file, "" of a picture that is in the page.
func fileOf(address string) string {
	if strings.HasPrefix(address, "data:") {
		return ""
	}
	return address[strings.LastIndexByte(address, '/')+1:]
}

// isNextSign says whether a class, or the name of a file, is that of an icon of what comes next.
// Two arrows lead to the last page. Where texts run to the left, so do pages.
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

// runsLeft says whether the texts around an element run from the right to the left.
func runsLeft(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if direction := attribute(n, "dir"); direction != "" {
			return strings.EqualFold(direction, "rtl")
		}
	}
	return false
}

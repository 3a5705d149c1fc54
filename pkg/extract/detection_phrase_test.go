package extract

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// Links to the next page use whole phrases, with verbs or with the name of what the pages hold. A
// link to the next single thing does not lead to the next page.
func TestDetectNextByPhrase(t *testing.T) {
	for phrase, want := range map[string]bool{
		"Go to the next page": true, "View next page": true, "Older Stories": true,
		"Nächste Einträge": true, "Zur nächsten Seite blättern": true, "Eine Seite weiter": true,
		"Aller à la page suivante": true, "Articles suivants": true,
		"Ir a la página siguiente": true, "pág. siguiente": true,
		"Ir para a próxima página": true, "Vai alla pagina successiva": true,
		"Ga naar de volgende pagina": true, "Gå til neste side": true, "Gå till nästa sida": true,
		"Gå til næste side": true, "Siirry seuraavalle sivulle": true,
		"Przejdź do następnej strony": true, "Přejít na další stránku": true,
		"Перейти на следующую страницу": true, "Trang tiếp theo": true, "次の10件": true,
		"Ver más":            true, // says "more", but leads to the next page's number
		"Näytä seuraavat 20": true, "Voir les 20 articles suivants": true,
		"Mostrar los siguientes 20": true, "Next 7 days": false, "Next 2 weeks": false,
		"Next article": false, "Nächster Artikel": false, "Next steps": false,
		"All pages": false, "Previous page": false,
	} {
		got := proposalsOf(t, model.Recipe{}, "text/html", listBefore(
			`<p><a href="/list?page=2">`+phrase+`</a></p>`))
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", phrase)
		}
		if found := got[0].Scraper.SourceConfig.Pagination != nil; found != want {
			t.Errorf("%s: the next page is found: %v, want %v", phrase, found, want)
		}
	}
}

// A link that names the next page is followed whatever its address: a cursor has no page number.
func TestDetectNextPageByCursor(t *testing.T) {
	for phrase, want := range map[string]bool{"Next page": true, "Next entries": false} {
		got := proposalsOf(t, model.Recipe{}, "text/html", listBefore(
			`<p><a href="/list?cursor=eyJpZCI6MTB9">`+phrase+`</a></p>`))
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", phrase)
		}
		if found := got[0].Scraper.SourceConfig.Pagination != nil; found != want {
			t.Errorf("%s: the next page is found: %v, want %v", phrase, found, want)
		}
	}
}

// listBefore returns a page with a list of ten things, followed by rest.
func listBefore(rest string) string {
	var page strings.Builder
	page.WriteString(`<html><body><h1>All things</h1><ul>`)
	for i := range 10 {
		fmt.Fprintf(&page, `<li class="item"><a href="/thing/%d-x">Thing of kind %d with words</a>`+
			`<p>What it is %d</p></li>`, i, i, i)
	}
	return page.String() + `</ul>` + rest + `</body></html>`
}

package detect

import "strings"

// A link to the next page is often a phrase: go to the next page, next entries. A phrase counts if
// it has a word for next and its other words name the action or what the pages hold.

// nextStems are the words for next, in the inflections that phrases use.
var nextStems = wordsIn(`next|older|nächste|nächsten|nächster|nächstes|ältere|älteren|weitere|
weiteren|weiter|suivant|suivante|suivants|suivantes|prochain|prochaine|prochains|prochaines|
siguiente|siguientes|próxima|próximas|próximo|próximos|proxima|proximo|proximas|proximos|seguinte|
seguintes|successiva|successivo|successivi|successive|prossima|prossimo|prossimi|prossime|volgende|
oudere|næste|neste|nästa|äldre|eldre|ældre|seuraava|seuraavat|seuraavalle|seuraavaan|vanhemmat|
następna|następną|następnej|następne|następny|kolejna|kolejną|kolejnej|kolejne|starsze|další|
následující|starší|ďalšia|ďalšiu|ďalšie|nasledujúca|nasledujúcu|következő|régebbi|
următoarea|următoare|următoarele|urmatoarea|urmatoare|sljedeća|sljedeću|sljedeće|sledeća|sledeću|
следующая|следующую|следующей|следующие|наступна|наступну|наступні|επόμενη|επόμενης|επόμενες|
sonraki|berikutnya|selanjutnya|tiếp|kế|التالية|הבא|अगला|naslednja|naslednjo|следваща|
следващата|kitas|nākamā|järgmine|següent|següents`)

// pageWords are the words for a page, in the inflections that phrases use.
var pageWords = wordsIn(`page|seite|página|pagina|pàgina|pág|sida|sidan|side|siden|sivu|sivulle|
sivun|strona|stronę|strony|stránka|stránku|stránky|strana|stranu|oldal|oldalra|страница|страницу|
страницы|страницата|сторінка|сторінку|σελίδα|sayfa|sayfaya|halaman|trang|stran|lapa|leht|puslapis|
الصفحة|עמוד|पृष्ठ`)

// phraseWords are the other words of such phrases. Singular nouns are left out: the next article
// after an article is not the next page of a list.
var phraseWords = wordsIn(`go|to|the|view|show|see|load|get|display|turn|of|in|on|and|this|list|
pages|results|items|products|posts|articles|entries|stories|hits|records|listings|jobs|events|
topics|threads|comments|messages|reviews|zur|zu|der|die|das|den|dem|eine|einen|gehe|gehen|blättern|
anzeigen|laden|springen|wechseln|seiten|ergebnisse|treffer|einträge|beiträge|meldungen|nachrichten|
produkte|angebote|aller|à|a|la|le|les|l|de|des|afficher|voir|charger|résultats|produits|annonces|
actualités|ir|al|el|los|las|ver|mostrar|cargar|resultados|artículos|productos|entradas|noticias|
anuncios|para|o|os|as|carregar|artigos|produtos|postagens|notícias|vai|alla|ai|agli|gli|i|mostra|
carica|vedi|risultati|articoli|prodotti|notizie|annunci|ga|naar|het|toon|bekijk|resultaten|
artikelen|producten|berichten|gå|til|till|vis|visa|se|den|det|resultater|artikler|innlegg|indlæg|
resultat|artiklar|inlägg|nyheter|nyheder|siirry|näytä|tulokset|artikkelit|uutiset|przejdź|do|na|
pokaż|zobacz|wyniki|wpisy|artykuły|produkty|ogłoszenia|přejít|prejsť|zobrazit|zobraziť|výsledky|
články|příspěvky|príspevky|ugrás|a|az|bejegyzések|hírek|találatok|mergi|la|vezi|rezultate|articole|
idi|prikaži|rezultati|objave|članci|перейти|на|к|показать|результаты|записи|статьи|новости|
перейти|показати|результати|записи|новини|στην|μετάβαση|αποτελέσματα|git|göster|sonuçlar|yazılar|
haberler|ke|lihat|hasil|đến|theo|xem|إلى|prikaži|rezultati|към`)

// maxPhrase is the maximum number of words in such a phrase.
const maxPhrase = 7

// phrasesNext says whether the words of a text, as spoken returns them, form such a phrase. ofPage
// says that the phrase also names the page, so its meaning is certain.
func phrasesNext(said string) (isNext, ofPage bool) {
	looked := 0
	for word := range strings.FieldsSeq(said) {
		if looked++; looked > maxPhrase {
			return false, false
		}
		switch {
		case nextStems[word]:
			isNext = true
		case pageWords[word]:
			ofPage = true
		case !phraseWords[word]:
			return false, false
		}
	}
	return isNext && looked > 1, isNext && ofPage
}

// moreWords ask for more of what the list holds, which the following words name.
var moreWords = wordsIn(`more|weitere|mehr|plus|más|mais|altri|altre|altro|meer|fler|flere|lisää|
więcej|další|ďalšie|więcej|további|alte|više|ещё|еще|больше|ще|більше|περισσότερα|περισσότερες`)

// asksMore says whether a text asks for more of what the pages hold, such as "more articles".
func asksMore(said string) bool {
	first, rest, ok := strings.Cut(said, " ")
	if !ok || !moreWords[first] {
		return false
	}
	looked := 0
	for word := range strings.FieldsSeq(rest) {
		if looked++; looked > maxPhrase || !phraseWords[word] {
			return false
		}
	}
	return true
}

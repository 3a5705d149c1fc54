package contacts

import (
	neturl "net/url"
	"path"
	"slices"
	"strings"

	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/wordset"
)

// maxRefreshWords is the maximum number of words on a page that redirects at once.
const maxRefreshWords = 60

// Kinds of contact-type pages, best first.
const (
	contactPage = iota
	imprintPage
	aboutPage
	kinds
)

// pageWords are the names of such pages, as words of addresses and link texts in lower case, with
// words joined by dashes.
var pageWords = [kinds]map[string]bool{
	contactPage: wordset.Of(`kontakt contact contacts contactus contact-us contacto contáctanos contactanos contatti contattaci contatto contato
		contactez contactez-nous nous-contacter contactar contacte contacter contactgegevens neem-contact-op contact-opnemen kontakte kontaktformular kontaktdaten
		kontaktaufnahme kontaktieren kontaktieren-sie-uns kontaktiere-uns kontakty kontaktujte kontaktujte-nas kontaktní-údaje skontaktuj
		napisz-do-nas kapcsolat kapcsolatok elérhetőség elérhetőségek elerhetoseg yhteystiedot ota-yhteyttä ota-yhteytta yhteys kontakta
		kontakta-oss kontakt-oss kontakt-os kontakti kontaktai kontaktid kontakt-nas kontakt-z-nami contactați contactati-ne hafa-samband
		επικοινωνία επικοινωνια epikoinonia iletişim iletisim bize-ulaşın контакты контакти контакт связаться get-in-touch getintouch
		reach-us write-us say-hello find-us harremanetan stik kontaktirajte-nas お問い合わせ 联系我们 聯絡我們 ansprechpartner fale-conosco`),
	imprintPage: wordset.Of(`impressum imprint legal-notice legal-notices mentions-légales mentions-legales mentionslegales aviso-legal avisolegal
		note-legali informazioni-legali colofon anbieterkennzeichnung rechtliche-hinweise rechtliches legal legals impressum-datenschutz
		nota-prawna dane-firmy provozovatel impresszum juridische-informatie informações-legais informacoes-legais avís-legal
		publisher site-notice právní-informace pravni-informace`),
	aboutPage: wordset.Of(`about about-us aboutus über-uns ueber-uns uber-uns über-mich ueber-mich wir-über-uns wir-ueber-uns wir wer-wir-sind
		qui-sommes-nous à-propos a-propos apropos quiénes-somos quienes-somos sobre-nosotros nosotros sobre-mí chi-siamo chisiamo azienda
		l-azienda over-ons overons over-mij o-nas onas o-nás o-firmie o-společnosti o-spolecnosti rólunk rolunk om-oss om-os om-mig om
		meistä meista tietoa despre-noi despre za-nas за-нас о-нас про-нас о-компании quem-somos sobre-nós sobre-nos sobre unternehmen
		firma company who-we-are our-story team das-team unser-team σχετικά-με-εμάς hakkımızda hakkimizda par-mums apie-mus meist`),
}

// misleading words give a contact word next to them another meaning.
var misleading = wordset.Of(`lens lenses linsen linse kontaktlinsen kontaktlinse lentilles lentes lenti lenzen grill paper sport form-builder
	less tracing center-software shop warenkorb login`)

// resolve returns a link's address without its fragment, or "" if it does not lead to a page.
func resolve(base *url.Url, href string) string {
	if base == nil || href == "" || href[0] == '#' || len(href) > 2048 {
		return ""
	}
	to, err := base.Parse(href)
	if err != nil || to.Scheme() != "http" && to.Scheme() != "https" || to.Username() != "" ||
		to.Password() != "" {
		return ""
	}
	switch strings.ToLower(path.Ext(to.Pathname())) {
	case ".pdf", ".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".vcf", ".doc", ".docx", ".zip",
		".ics", ".xml", ".mp4", ".css", ".js":
		return ""
	}
	return to.Href(true)
}

// candidate is a link to a contact-type page.
type candidate struct {
	url   string
	kind  int
	score int
}

// contactLinks returns the best two contact-type pages of the same site that a page links to. They
// are the best of all and, if possible, the best of another kind.
func contactLinks(d *document, text string, base *url.Url, pageURL string) []string {
	domain := domainOfURL(pageURL)
	var found []candidate
	for _, l := range d.links {
		if l.from < 0 {
			continue
		}
		label := text[l.from:min(max(l.to, l.from), len(text))]
		kind, score := contactKind(l.href, label)
		if score == 0 {
			continue
		}
		to := resolve(base, l.href)
		if to == "" || domainOfURL(to) != domain || samePage(to, pageURL) {
			continue
		}
		if at := slices.IndexFunc(found,
			func(c candidate) bool { return samePage(c.url, to) }); at >= 0 {
			if c := &found[at]; kind < c.kind || kind == c.kind && score > c.score {
				c.kind, c.score = kind, score
			}
			continue
		}
		if len(found) < 100 {
			found = append(found, candidate{to, kind, score})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		if a.kind != b.kind {
			return a.kind - b.kind
		}
		return b.score - a.score
	})
	if len(found) == 0 {
		return nil
	}
	links := []string{found[0].url}
	second := slices.IndexFunc(found, func(c candidate) bool { return c.kind != found[0].kind })
	if second < 0 && len(found) > 1 {
		second = 1
	}
	if second > 0 {
		links = append(links, found[second].url)
	}
	return links
}

// samePage says that two addresses differ at most in scheme, www., fragment and trailing slash.
func samePage(a, b string) bool {
	plain := func(s string) string {
		_, s, _ = strings.Cut(s, "://")
		s, _, _ = strings.Cut(s, "#")
		return strings.TrimSuffix(strings.TrimPrefix(s, "www."), "/")
	}
	return plain(a) == plain(b)
}

// contactKind returns the kind of contact-type page that a link leads to, and a score, 0 for none.
func contactKind(href, label string) (kind, score int) {
	href, _, _ = strings.Cut(href, "#")
	where, _, _ := strings.Cut(href, "?")
	where = strings.TrimSuffix(where, "/")
	segment := strings.TrimSuffix(strings.TrimSuffix(path.Base(where), path.Ext(where)), "_html")
	texts := []string{joined(label), joined(segment)}
	if query := href[len(where):]; strings.Contains(query, "=") { // index.php?page=kontakt
		for value := range strings.FieldsFuncSeq(query,
			func(r rune) bool { return strings.ContainsRune("?&=/", r) }) {
			texts = append(texts, joined(value))
		}
	}
	best := kinds
	for _, text := range texts {
		k, s := kindOf(text)
		if s > 0 && (k < best || k == best && s > score) {
			best, score = k, s
		}
	}
	return best, score
}

// joined returns a text in lower case with dashes between its words.
func joined(s string) string {
	if len(s) > 120 {
		return ""
	}
	s = strings.ToLower(s)
	if strings.Contains(s, "%") {
		if decoded, err := neturl.PathUnescape(s); err == nil {
			s = decoded
		}
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return strings.ContainsRune(" -–—_./&+|,:;!?»›>→•·'’()[]\x1f\n\t", r)
	}), "-")
}

// kindOf returns the kind of page that text names. score is 3 for all of it, 2 for a phrase in it.
func kindOf(text string) (kind, score int) {
	if text == "" {
		return 0, 0
	}
	for kind, list := range pageWords {
		if list[text] {
			return kind, 3
		}
	}
	parts := strings.Split(text, "-")
	if len(parts) > 5 || slices.ContainsFunc(parts,
		func(w string) bool { return misleading[w] }) {
		return 0, 0
	}
	for kind, list := range pageWords {
		for from := range parts {
			for to := from + 1; to <= min(from+4, len(parts)); to++ {
				phrase := strings.Join(parts[from:to], "-")
				if len(phrase) > 4 && list[phrase] {
					return kind, 2
				}
			}
		}
	}
	return 0, 0
}

// refreshTarget returns where a page's refresh leads within 5 seconds, or "" if there is none.
func refreshTarget(base *url.Url, content, pageURL string) string {
	seconds, rest, found := strings.Cut(content, ";")
	if !found {
		if seconds, rest, found = strings.Cut(content, ","); !found {
			return ""
		}
	}
	seconds = strings.TrimSpace(seconds)
	if len(seconds) != 1 || seconds[0] < '0' || seconds[0] > '5' {
		return ""
	}
	rest = strings.TrimSpace(rest)
	if len(rest) < 4 || !strings.EqualFold(rest[:3], "url") {
		return ""
	}
	rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[3:]), "="))
	to := resolve(base, strings.Trim(rest, `"'`))
	if to == "" || samePage(to, pageURL) {
		return ""
	}
	return to
}

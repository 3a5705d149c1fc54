package contacts

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"shoal.dev/shoal/pkg/fault"
)

// website is a synthetic site with its truth: what a careful person would note.
type website struct {
	name  string
	url   string
	pages map[string]response
	want  truth
}

// response is the response at an address. Other addresses respond with 404.
type response struct {
	final string // where redirects led; "" if there were none
	code  fault.Code
	media string
	body  string
}

// truth is a correct row, without the address and the time.
type truth struct {
	status Status
	emails []string // best first
	source string
	match  string
}

// tongue is how sites in one language phrase what matters here.
type tongue struct {
	code, tld                        string
	contact, imprint, about, privacy string // link texts
	contactPath, imprintPath         string
	aboutPath                        string
	mail, phone, address             string // labels
	madeBy, hostedBy, taxBy          string
	at, dot                          string
	prose                            []string
	trade                            []string // company names
	people                           []string // local parts of persons
	freemail                         string
}

var tongues = []tongue{
	{"de", "de", "Kontakt", "Impressum", "Über uns", "Datenschutz", "kontakt", "impressum",
		"ueber-uns", "E-Mail:", "Telefon:", "Anschrift",
		"Webdesign:", "Hosting:", "Steuerberater:", "at", "dot",
		[]string{"Wir sind Ihr Partner für Dach und Fassade in der Region.",
			"Seit 1978 stehen wir für Qualität und Zuverlässigkeit.",
			"Rufen Sie uns gerne an oder besuchen Sie uns vor Ort."},
		[]string{"Dachdeckerei Brandt", "Tischlerei Vogel", "Gasthof Linde", "Blumen Krüger",
			"Autohaus Sommer"}, []string{"petra.brandt", "h.vogel", "kai.sommer"}, "t-online.de"},
	{"de-at", "at", "Kontakt", "Impressum", "Wer wir sind", "Datenschutzerklärung", "kontakt.html",
		"impressum.html", "wir.html", "E-Mail", "Tel.:", "Adresse",
		"Webseite erstellt von", "Provider:", "Steuerberatung:", "ät", "punkt",
		[]string{"Unser Familienbetrieb im Herzen der Steiermark.",
			"Genießen Sie regionale Küche auf unserer Terrasse.",
			"Geöffnet von Dienstag bis Sonntag."},
		[]string{"Weingut Hofer", "Pension Alpenblick", "Installateur Gruber"},
		[]string{"maria.hofer", "office.gruber"}, "gmx.at"},
	{"en", "co.uk", "Contact us", "Legal notice", "About us", "Privacy policy", "contact-us",
		"legal-notice", "about-us", "Email:", "Phone:", "Address",
		"Website by", "Hosted by", "Accountants:", "at", "dot",
		[]string{"We are a family-run bakery in the heart of the village.",
			"Fresh bread every morning from six o'clock.",
			"Pop in and say hello, or give us a ring."},
		[]string{"Hartley Plumbing", "Rose Cottage Bakery", "Northgate Dental",
			"Oakfield Garden Centre"}, []string{"tom.hartley", "jane.rose"}, "btinternet.com"},
	{"en-us", "com", "Contact", "Legal", "Our Story", "Privacy", "contact", "legal", "our-story",
		"E-mail:", "Call", "Location",
		"Site by", "Hosting by", "Tax advisor:", "AT", "DOT",
		[]string{"Licensed and insured contractors serving the county since 1992.",
			"Ask for a free estimate today.", "Our crew takes pride in every single job."},
		[]string{"Blue Ridge Roofing", "Maple Street Dental", "Harbor Auto Repair"},
		[]string{"mike.oneil", "sarah"}, "gmail.com"},
	{"fr", "fr", "Contactez-nous", "Mentions légales", "Qui sommes-nous ?", "Confidentialité",
		"contactez-nous", "mentions-legales", "qui-sommes-nous", "Courriel :", "Tél. :", "Adresse",
		"Réalisation :", "Hébergeur :", "Expert-comptable :", "arobase", "point",
		[]string{"Artisan boulanger depuis trois générations.",
			"Nous vous accueillons du mardi au samedi.", "Tous nos produits sont faits maison."},
		[]string{"Boulangerie Martin", "Garage Lefèvre", "Menuiserie Dubois"},
		[]string{"luc.martin", "c.dubois"}, "orange.fr"},
	{"es", "es", "Contacto", "Aviso legal", "Quiénes somos", "Privacidad", "contacto",
		"aviso-legal", "quienes-somos", "Correo:", "Teléfono:", "Dirección",
		"Diseño web:", "Alojamiento:", "Gestoría:", "arroba", "punto",
		[]string{"Cocina tradicional en el centro de la ciudad.", "Reserve su mesa por teléfono.",
			"Abierto todos los días excepto los lunes."},
		[]string{"Restaurante Casa Pepe", "Talleres Ruiz", "Clínica Sol"},
		[]string{"pepe.garcia", "ana.ruiz"}, "hotmail.es"},
	{"it", "it", "Contatti", "Note legali", "Chi siamo", "Privacy", "contatti", "note-legali",
		"chi-siamo", "E-mail:", "Telefono:", "Indirizzo",
		"Sito realizzato da", "Hosting:", "Commercialista:", "chiocciola", "punto",
		[]string{"Una lunga tradizione di famiglia.", "Venite a trovarci nel nostro negozio.",
			"Produzione propria dal 1950."},
		[]string{"Trattoria Bella Vista", "Officina Rossi", "Mobili Bianchi"},
		[]string{"mario.rossi", "l.bianchi"}, "libero.it"},
	{"nl", "nl", "Contact", "Colofon", "Over ons", "Privacyverklaring", "contact", "colofon",
		"over-ons", "E-mail:", "Telefoon:", "Adres",
		"Website door", "Hosting:", "Boekhouder:", "apenstaartje", "punt",
		[]string{"Al dertig jaar uw vertrouwde schilder.", "Kom gerust eens langs in onze winkel.",
			"Wij maken graag een vrijblijvende offerte."},
		[]string{"Schildersbedrijf de Vries", "Bakkerij Jansen", "Fietsenwinkel Bos"},
		[]string{"piet.devries", "info.bos"}, "ziggo.nl"},
	{"pl", "pl", "Kontakt", "Nota prawna", "O nas", "Polityka prywatności", "kontakt",
		"nota-prawna", "o-nas", "E-mail:", "Tel.", "Adres",
		"Realizacja:", "Hosting:", "Biuro rachunkowe:", "małpa", "kropka",
		[]string{"Działamy na rynku od ponad dwudziestu lat.", "Zapraszamy do naszego sklepu.",
			"Oferujemy szeroki wybór usług."},
		[]string{"Stolarnia Kowal", "Piekarnia Nowak", "Auto Serwis Wisła"},
		[]string{"jan.nowak", "biuro.kowal"}, "wp.pl"},
	{"cs", "cz", "Kontakty", "Provozovatel", "O nás", "Ochrana údajů", "kontakty", "provozovatel",
		"o-nas", "E-mail:", "Telefon:", "Adresa",
		"Tvorba webu:", "Hosting:", "Účetní:", "zavináč", "tečka",
		[]string{"Rodinná firma s dlouhou tradicí.", "Navštivte naši provozovnu.",
			"Nabízíme kompletní služby."},
		[]string{"Truhlářství Novák", "Pekárna Dvořák"}, []string{"petr.novak", "dvorak"},
		"seznam.cz"},
	{"sv", "se", "Kontakta oss", "Kontakt", "Om oss", "Integritet", "kontakta-oss", "kontakt",
		"om-oss", "E-post:", "Telefon:", "Adress",
		"Webbyrå:", "Hosting:", "Redovisningsbyrå:", "snabel-a", "punkt",
		[]string{"Vi hjälper dig med allt inom bygg.", "Välkommen in i vår butik.",
			"Öppet vardagar mellan nio och sex."},
		[]string{"Byggfirma Larsson", "Bageri Ek"}, []string{"anna.larsson", "olle.ek"},
		"telia.com"},
	{"pt", "pt", "Contactos", "Aviso legal", "Sobre nós", "Privacidade", "contacto", "aviso-legal",
		"sobre-nos", "E-mail:", "Telefone:", "Morada",
		"Desenvolvido por", "Hospedagem:", "Contabilista:", "arroba", "ponto",
		[]string{"Tradição e qualidade desde 1965.", "Visite a nossa loja no centro.",
			"Peça já o seu orçamento."},
		[]string{"Padaria Silva", "Oficina Costa"}, []string{"joao.silva", "rita.costa"},
		"sapo.pt"},
	{"hu", "hu", "Kapcsolat", "Impresszum", "Rólunk", "Adatvédelem", "kapcsolat", "impresszum",
		"rolunk", "E-mail:", "Telefon:", "Cím",
		"Készítette:", "Hosting:", "Könyvelő:", "kukac", "pont",
		[]string{"Családi vállalkozás Budapest szívében.", "Várjuk szeretettel üzletünkben."},
		[]string{"Asztalos Kiss", "Pékség Nagy"}, []string{"kiss.peter", "nagy"}, "freemail.hu"},
	{"fi", "fi", "Yhteystiedot", "Tietosuoja", "Meistä", "Tietosuojaseloste", "yhteystiedot",
		"tietoa", "meista", "Sähköposti:", "Puhelin:", "Osoite",
		"Toteutus:", "Hosting:", "Tilitoimisto", "at", "piste",
		[]string{"Perheyritys jo vuodesta 1985.", "Tervetuloa tutustumaan myymäläämme."},
		[]string{"Rakennus Virtanen", "Leipomo Korhonen"}, []string{"matti.virtanen", "liisa"},
		"luukku.com"},
}

// corpus builds sites from a seed; the same seed gives the same corpus.
type corpus struct {
	*rand.Rand
	sites []website
	count int
}

// draft is a site under construction.
type draft struct {
	c        *corpus
	t        *tongue
	company  string
	domain   string
	root     string // https://www.domain/
	agency   string // domain of the site's maker
	pages    map[string]response
	noise    bool // add third parties and placeholders
	topLinks string
}

func (c *corpus) draft(t *tongue) *draft {
	c.count++
	company := t.trade[c.IntN(len(t.trade))]
	d := &draft{c: c, t: t, company: company, pages: map[string]response{}, noise: c.IntN(4) > 0}
	d.domain = fmt.Sprintf("%s-%d.%s", slug(company), c.count, t.tld)
	d.root = "https://www." + d.domain + "/"
	d.agency = fmt.Sprintf("pixelwerk-%d.com", c.count)
	return d
}

func slug(s string) string {
	s = strings.NewReplacer("ü", "ue", "ö", "oe", "ä", "ae", "è", "e", "é", "e", "ł", "l", "ř", "r",
		"á", "a", "ó", "o", "í", "i", "ů", "u").Replace(strings.ToLower(s))
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s), "-")
}

func (d *draft) pick(list []string) string { return list[d.c.IntN(len(list))] }
func (d *draft) own(local string) string   { return local + "@" + d.domain }
func (d *draft) role() string {
	return d.own(d.pick([]string{"info", "kontakt", "office", "mail", "hello", "contact", "post"}))
}
func (d *draft) person() string { return d.own(d.pick(d.t.people)) }

// url returns the address of a page of the site.
func (d *draft) url(path string) string { return d.root + path }

// put adds a page. The home page's path is "".
func (d *draft) put(path, content string) {
	d.pages[d.url(path)] = response{media: "text/html; charset=utf-8", body: d.frame(content)}
}

// links sets the links of the navigation: any of c, i and a.
func (d *draft) links(which string) {
	nav := fmt.Sprintf(`<a href="/">Home</a> <a href="/leistungen">%s</a> `, d.company)
	for _, w := range which {
		switch w {
		case 'c':
			nav += fmt.Sprintf(`<a class="nav" href="/%s">%s</a> `, d.t.contactPath, d.t.contact)
		case 'i':
			nav += fmt.Sprintf(`<a href="%s%s">%s</a> `, d.root, d.t.imprintPath, d.t.imprint)
		case 'a':
			nav += fmt.Sprintf(`<li><a href='/%s'><span>%s</span></a></li> `, d.t.aboutPath,
				d.t.about)
		}
	}
	d.topLinks = nav + fmt.Sprintf(`<a href="/privacy-x">%s</a>`, d.t.privacy)
}

// frame wraps content in the site's page: header, navigation, prose, footer, scripts and other
// common parts.
func (d *draft) frame(content string) string {
	prose := ""
	for range 3 + d.c.IntN(6) {
		prose += "<p>" + d.pick(d.t.prose) + "</p>\n"
	}
	cms := d.pick([]string{"WordPress 6.4", "Joomla!", "TYPO3 CMS", "Drupal 10", "Contao"})
	head := fmt.Sprintf(`<!DOCTYPE html><html lang="%s"><head><meta charset="utf-8"><title>%s</title><meta name="generator" content="%s">
<style>@media print{a{color:red}} @import url("x.css");</style><script>var dsn="https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@o4504.ingest.sentry.io/1";</script></head>`,
		d.t.code, d.company, cms)
	images := `<img src="/img/logo@2x.png" srcset="/img/hero@2x.jpg 2x" alt="Logo">`
	footer := ""
	if d.noise {
		footer = d.footer()
	}
	return head + `<body><header>` + images + `<nav><ul>` + d.topLinks +
		`</ul></nav></header><main><h1>` + d.company + `</h1>` + prose +
		content + prose + `</main>` + footer + `<script src="/app.js"></script></body></html>`
}

// footer returns a footer with third parties and placeholders.
func (d *draft) footer() string {
	forms := fmt.Sprintf(`<form><label>%s <input type="email" placeholder="name@example.com" value="your@email.com"></label></form>`, d.t.mail)
	var credit string
	switch d.c.IntN(4) {
	case 0:
		credit = fmt.Sprintf(`<p>%s <a href="https://www.%s/">Pixelwerk</a> hallo@%s</p>`,
			d.t.madeBy, d.agency, d.agency)
	case 1:
		credit = fmt.Sprintf(`<div>%s Pixelwerk, <a href="mailto:info@%s">info@%s</a></div>`,
			d.t.madeBy, d.agency, d.agency)
	case 2:
		credit = fmt.Sprintf(`<small>© %s | %s <a href="mailto:studio@%s">Pixelwerk Studio</a></small>`, d.company, d.t.madeBy, d.agency)
	default:
		credit = fmt.Sprintf(`<a href="https://%s">%s Pixelwerk</a>`, d.agency, d.t.madeBy)
	}
	return `<footer>` + forms + credit + `</footer>`
}

// section is a block of an imprint with a heading.
func section(heading string, lines ...string) string {
	return "<h3>" + strings.TrimRight(heading, " :") + "</h3><p>" + strings.Join(lines, "<br>\n") +
		"</p>"
}

func mailto(email string) string { return fmt.Sprintf(`<a href="mailto:%s">%s</a>`, email, email) }

// done adds a site to the corpus.
func (d *draft) done(shape string, want truth) {
	if want.status == Found && want.match == "" {
		want.match = "yes"
	}
	d.c.sites = append(d.c.sites,
		website{name: fmt.Sprintf("%03d-%s-%s", d.c.count, d.t.code, shape), url: d.root,
			pages: d.pages, want: want})
}

func found(source string, emails ...string) truth {
	return truth{status: Found, emails: emails, source: source}
}

// newCorpus makes sites of all shapes, each in several languages.
func newCorpus(seed uint64) []website {
	c := &corpus{Rand: rand.New(rand.NewPCG(seed, 14))}
	next := 0
	for _, s := range shapes {
		times := s.times
		if times == 0 {
			times = 6
		}
		for range times {
			t := &tongues[next%len(tongues)]
			next++
			if s.tongue != "" {
				for i := range tongues {
					if tongues[i].code == s.tongue {
						t = &tongues[i]
					}
				}
			}
			s.make(c.draft(t), s.name)
		}
	}
	return c.sites
}

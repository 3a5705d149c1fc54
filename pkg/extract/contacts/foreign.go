package contacts

import (
	"regexp"
	"slices"
	"strings"

	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/wordset"
)

// role is a set of roles: what the surroundings of an address say about its owner.
type role uint16

// The roles of third parties.
const (
	maker     role = 1 << iota // who made the site
	hoster                     // who runs the site's server
	adviser                    // tax adviser, accountant
	authority                  // supervisors, chambers, arbitration
	privacy                    // external data protection officers, consent tools
	credits                    // pictures and texts by others
	listed                     // the domain is in the list of foreign domains
)

// roleWords announce a third party. They stand at the beginning of a line, as a heading, or right
// before its name.
var roleWords = []struct {
	role  role
	words *regexp.Regexp
}{
	{maker,
		announced(`web ?-?design(?:er)?|webseite(?:n(?:gestaltung|erstellung|betreuung))?(?: (?:von|by|erstellt))|website(?: (?:by|von|design|door|gemaakt|erstellt|created))|` +
			`(?:web ?)?site (?:web )?(?:by|réalisé|par|créé|conçu)|design(?:ed)? (?:by|von|&|und|and)|design:|developed by|development:|built by|made by|powered by|created by|` +
			`(?:konzept(?:ion)?|gestaltung|umsetzung|realisierung|programmierung|technische (?:umsetzung|realisierung|betreuung))(?: (?:von|durch|by)|,? ?(?:und|&|,|/)|:|$)|` +
			`internetagentur|werbeagentur|webagentur|web agency|digitalagentur|internetauftritt (?:von|erstellt)|réalisation(?: du site| :|:| par|$)|` +
			`création (?:du |de |et )?(?:site|réalisation)|conception(?: (?:du site|et|graphique|:)|:)|développement(?: :|:| web| par)|agence web|diseño (?:web|y desarrollo|gráfico)|diseñado por|` +
			`desarrollo web|desarrollado por|realizzazione(?: sito)?|realizzato da|sito (?:web )?(?:realizzato|creato|di)|sviluppo(?: web| sito)|webontwerp|webdesign|realisatie|gemaakt door|` +
			`ontwikkeld door|website door|projekt (?:i wykonanie|strony)|wykonanie(?: strony)?|realizacja(?: strony)?|strony www|tvorba (?:webu|www|stránek)|webbyrå|producerad av|` +
			`utvecklet av|udviklet af|hjemmeside af|hemsida (?:av|från)|desenvolvido por|criação de site|site por|készítette|weboldal|toteutus|сайт (?:от|створено|разработан)|разработка сайта`)},
	{hoster,
		announced(`(?:web ?-?)?hosting|hosted by|hoster|hosting-?(?:anbieter|provider|partner)|provider:|hébergeur|hébergement|hébergé par|alojamiento|hospedaje|` +
			`alojado por|hospedagem|hostingprovider|hosting i domena|serverstandort|technischer provider`)},
	{adviser,
		announced(`steuerberat(?:er|erin|ung|ungsgesellschaft)|(?:unsere |unser )?buchhaltungsbüro|wirtschaftsprüf(?:er|ung)|tax advis[eo]r|accountants?:|our accountant|` +
			`expert-comptable|cabinet comptable|gestoría|asesoría fiscal|commercialista|boekhouder|accountantskantoor|biuro rachunkowe|księgowość:|daňový poradce|účetní|` +
			`revisor:|redovisningsbyrå|regnskapsfører|contabilista|könyvelő|tilitoimisto`)},
	{authority,
		announced(`(?:zuständige )?aufsichtsbehörde|(?:zuständige )?kammer|berufskammer|handwerkskammer|ärztekammer|zahnärztekammer|rechtsanwaltskammer|architektenkammer|` +
			`steuerberaterkammer|industrie- und handelskammer|landesbeauftragte|beschwerdestelle|(?:verbraucher)?schlichtungsstelle|allgemeine verbraucherschlichtungsstelle|` +
			`berufshaftpflicht(?:versicherung)?|haftpflichtversicherung|supervisory authority|regulated by|autorité de contrôle|médiateur|médiation|ordre des|agencia española|` +
			`garante|autoriteit persoonsgegevens|ombudsman|organ nadzor|urząd ochrony|dozorový úřad|integritetsskydds|datatilsynet`)},
	{privacy,
		announced(`(?:externer? )?datenschutzbeauftragte[rn]?|data protection officer|dpo:|délégué à la protection|delegado de protección|responsabile della protezione|` +
			`functionaris (?:voor )?gegevensbescherming|inspektor ochrony|cookie-?(?:banner|consent|tool|hinweis|einwilligung)|consent[ -]?management|consent tool|einwilligungsmanagement`)},
	{credits,
		announced(`bildnachweise?|bildquellen?|bildrechte|bilder:|fotos?:|fotos? (?:von|by)|fotograf(?:ie|in)?:|fotografie (?:von|by)|photos?:|photos? (?:by|par)|` +
			`photography(?: by|:)|picture credits|image credits|crédits? photos?|fotografía:|fotografie:|zdjęcia:|foto:|texte:|illustration(?:en)?:`)},
}

func announced(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[\s|•·–©(\x1f/,.-])(?:` + alternatives + `)`)
}

// ownWords announce the business itself.
var ownWords = regexp.MustCompile(`(?i)(?:^|[\s|•·–©(\x1f])(?:kontakt|contact(?:o|ez|s)?|anschrift|adresse|address|inhaber(?:in)?|geschäftsführ(?:er|ung|erin)|betreiber|vertreten durch|` +
	`angaben gemäß|diensteanbieter|verantwortlich(?:er)?|owner|proprietor|responsable|éditeur|directeur de la publication|titular|titolare|eigenaar|sales|vertrieb|` +
	`reservierung|booking|bestellung|zentrale|büro|office|praxis|service)\b`)

// How far before an address words still apply to it.
const (
	nearLines = 7
	nearBytes = 300
)

// rolesAt returns the roles announced between the end of the previous address, last, and the
// address at offset at.
func rolesAt(d *document, text string, last, at int) role {
	from := max(last, at-nearBytes, 0)
	heading := span{-1, -1}
	for _, h := range d.headings { // in text order
		if h.to > at {
			break
		}
		heading = h
	}
	lines := strings.Split(text[alignRune(text, min(from, at)):at], "\n")
	if roles := rolesOf(lines[len(lines)-1]); roles != 0 {
		return roles
	}
	if heading.from >= from || heading.from >= at-2*nearBytes && heading.to >= last-1 &&
		heading.from >= 0 {
		if roles := rolesOf(text[heading.from:heading.to]); roles != 0 {
			return roles
		}
		lines = strings.Split(text[alignRune(text, max(min(from, at), heading.to)):at], "\n")
	}
	for _, line := range slices.Backward(lines[max(0, len(lines)-nearLines):]) {
		if roles := rolesOf(line); roles != 0 {
			return roles
		}
		if ownWords.MatchString(line) {
			break
		}
	}
	return 0
}

// alignRune returns the first offset from i on that begins a character.
func alignRune(s string, i int) int {
	for i < len(s) && s[i]&0xc0 == 0x80 {
		i++
	}
	return i
}

// maxRoleLine bounds the end of a line that is searched for roles, in bytes.
const maxRoleLine = 160

// rolesOf returns the roles that a line announces.
func rolesOf(line string) role { return rolesAmong(^role(0), line) }

// rolesAmong is rolesOf limited to some roles.
func rolesAmong(some role, line string) role {
	line = strings.Trim(line, " \x1f")
	if len(line) > maxRoleLine {
		line = line[alignRune(line, len(line)-maxRoleLine):]
	}
	var roles role
	for _, r := range roleWords {
		if some&r.role != 0 && r.words.MatchString(line) {
			roles |= r.role
		}
	}
	return roles
}

var tradeWords = []struct {
	role  role
	words *regexp.Regexp
}{
	{maker,
		regexp.MustCompile(`(?i)web ?-?(?:design|agentur|agency|entwicklung|develop|studio|bureau|byrå)|internet-?agentur|werbe-?agentur|digital-?agentur|agence web|software|marketing|grafik|diseño`)},
	{hoster, regexp.MustCompile(`(?i)hosting|hébergement|provider|server|cloud`)},
	{adviser,
		regexp.MustCompile(`(?i)steuer|tax|wirtschaftspr|buchhalt|comptable|gestor|asesor|commercialista|boekhoud|accountant|rachunkow|účetn|ucetn|revision|könyvel`)},
	{authority,
		regexp.MustCompile(`(?i)kammer|behörde|behoerde|ministerium|landesbeauftragte|ombuds|schlichtung|versicherung|insurance`)},
	{privacy, regexp.MustCompile(`(?i)datenschutz|data protection|privacy|gdpr|dsgvo|rgpd`)},
	{credits, regexp.MustCompile(`(?i)foto|photo|bild|illustrat`)},
}

// topics returns the roles that are the site's own trade: on a tax adviser's site, the own address
// stands under "Steuerberater".
func topics(d *document, text, pageURL string) role {
	about := d.title + " " + address.HostOf(pageURL)
	if len(d.headings) > 0 {
		about += " " + text[d.headings[0].from:d.headings[0].to]
	}
	var own role
	for _, t := range tradeWords {
		if t.words.MatchString(about) {
			own |= t.role
		}
	}
	return own
}

// Bounds of a site's makers, and of the links that are examined for them.
const (
	maxMakers = 20
	maxLooked = 500
)

// makers returns the domains of other sites that links credit with making this one.
func makers(d *document, text string, base *url.Url, own []string) []string {
	var domains []string
	looked := 0
	for _, l := range d.links {
		if l.from < 0 || !strings.HasPrefix(l.href, "http") && !strings.HasPrefix(l.href, "//") ||
			len(domains) >= maxMakers {
			continue
		}
		if looked++; looked > maxLooked {
			break
		}
		before := text[alignRune(text, max(0, l.from-60)):l.from]
		if cut := strings.LastIndexByte(before, '\n'); cut >= 0 {
			before = before[cut+1:]
		}
		to := resolve(base, l.href)
		if to == "" {
			continue
		}
		domain := domainOfURL(to)
		if slices.Contains(own, domain) || slices.Contains(domains, domain) {
			continue
		}
		if rolesAmong(maker|hoster, before) != 0 ||
			rolesAmong(maker|hoster, text[l.from:l.to]) != 0 {
			domains = append(domains, domain)
		}
	}
	return domains
}

// foreignDomains are those of companies that host, build or measure other people's websites, and of
// bodies that supervise them or settle their disputes.
var foreignDomains = wordset.Of(`
1und1.de ionos.de ionos.com ionos.fr ionos.es strato.de strato.com hetzner.com hetzner.de all-inkl.com ovh.com ovh.net ovhcloud.com
godaddy.com wix.com wixpress.com jimdo.com squarespace.com shopify.com wordpress.com wordpress.org automattic.com weebly.com webflow.com
webflow.io hostinger.com one.com netcup.de df.eu domainfactory.de mittwald.de united-domains.de hosteurope.de host-europe.de raidboxes.io
raidboxes.de alfahosting.de checkdomain.de manitu.de webgo.de lima-city.de world4you.com hostpoint.ch infomaniak.com infomaniak.ch
metanet.ch siteground.com bluehost.com namecheap.com dreamhost.com gandi.net lws.fr o2switch.fr planethoster.com aruba.it register.it
arsys.es dinahosting.com webempresa.com transip.nl combell.com loopia.se binero.se simply.com home.pl nazwa.pl cyberfolks.pl wedos.com
forpsi.com rackhost.hu amazonaws.com digitalocean.com vercel.com netlify.com firebase.com duda.co site123.com strikingly.com
cookiebot.com cybot.com usercentrics.com onetrust.com borlabs.io iubenda.com cookieyes.com complianz.io consentmanager.net
consentmanager.de ccm19.de quantcast.com trustarc.com didomi.io axeptio.eu tarteaucitron.io osano.com termly.io cookiefirst.com
cookie-script.com civicuk.com klaro.org devowl.io cookiehub.com tacit-consent.com
google.com googlemail-support.com facebook.com fb.com meta.com instagram.com twitter.com x.com linkedin.com pinterest.com tiktok.com
youtube.com vimeo.com microsoft.com adobe.com apple.com amazon.com amazon.de paypal.com paypal.de stripe.com klarna.com klarna.de mollie.com
adyen.com sofort.com hotjar.com matomo.org innocraft.com mailchimp.com intuit.com hubspot.com cleverreach.com cleverreach.de
newsletter2go.de newsletter2go.com sendinblue.com brevo.com rapidmail.de rapidmail.com klick-tipp.com activecampaign.com getresponse.com
cloudflare.com akamai.com fastly.com hcaptcha.com friendlycaptcha.com sentry.io zendesk.com intercom.io tawk.to userlike.com calendly.com
trustedshops.de trustedshops.com trustpilot.com provenexpert.com etracker.com etracker.de econda.de awin.com criteo.com taboola.com
openstreetmap.org osmfoundation.org fontawesome.com fonticons.com monotype.com myfonts.com
e-recht24.de dr-dsgvo.de activemind.de activemind.legal janolaw.de haendlerbund.de it-recht-kanzlei.de datenschutz-generator.de
wbs-law.de ra-plutte.de dg-datenschutz.de adsimple.at firmenwebseiten.at swiss-anwalt.ch legalplace.fr cnil.fr bfdi.bund.de bund.de
datenschutz-berlin.de datenschutz.hessen.de ldi.nrw.de baden-wuerttemberg.datenschutz.de lda.bayern.de dsb.gv.at edoeb.admin.ch
garanteprivacy.it aepd.es agpd.es ico.org.uk dataprotection.ie autoriteitpersoonsgegevens.nl uodo.gov.pl uoou.cz uoou.gov.cz imy.se
datatilsynet.no datatilsynet.dk apd-gba.be europa.eu verbraucher-schlichter.de universalschlichtungsstelle.de vsbinfo.de
fotolia.com istockphoto.com shutterstock.com pixabay.com unsplash.com pexels.com gettyimages.com gettyimages.de depositphotos.com`)

// isForeign says that a registrable domain is in the list.
func isForeign(domain string) bool { return foreignDomains[domain] }

// Placeholder words for a name or a domain.
var (
	sampleDomains = wordset.Of(`example beispiel exemple ejemplo esempio voorbeeld przyklad priklad exempel eksempel exemplo pelda domain yourdomain
		your-domain mydomain my-domain domainname domain-name ihredomain ihre-domain deinedomain deine-domain meinedomain meine-domain
		votredomaine votre-domaine mondomaine domaine tudominio su-dominio sudominio midominio dominio tuodominio ilmiodominio jouwdomein
		uwdomein domein twojadomena domena vasedomena minadoman mysite my-site yoursite your-site yourwebsite your-website monsite votresite
		tusitio tuosito jouwsite yourcompany your-company mycompany deinefirma ihrefirma meinefirma musterfirma muster-firma muster mustermann
		mustermail musterdomain votreentreprise tuempresa tuaazienda uwbedrijf twojafirma vasefirma company-name companyname testdomain doe
		placeholder sample foo bar foobar xxx xxxx xyz123 abcdef email-domain somewhere nowhere acme mailserver emailaddress youremail`)
	sampleLocals = wordset.Of(`vorname.nachname vorname.name v.nachname nachname vorname firstname.lastname firstname first.last firstlast lastname
		prenom.nom prénom.nom nom.prenom nome.cognome nombre.apellido imie.nazwisko imię.nazwisko voornaam.achternaam fornavn.etternavn
		jmeno.prijmeni fornamn.efternamn etunimi.sukunimi name.surname your.name yourname your-name your_name ihr.name ihrname ihr-name
		dein.name deinname dein-name votre.nom votrenom votre-nom tu.nombre tunombre twoje.imie uwnaam jouwnaam max.mustermann maxmustermann
		m.mustermann mustermann erika.mustermann mustermail youremail your-email your.email ihre-email ihreemail deine-email deineemail
		votre-email votreemail tuemail tu-email emailaddress email-address e-mail-adresse noemail nomail nobody nospam yourusername`)
	// These names are placeholders only outside the site's own domain.
	sampleNames   = wordset.Of(`name user username someone somebody you your me john.doe johndoe john jane.doe janedoe test tester abc xyz aaa xxx foo bar a b x email mail e-mail address sample example jan.jansen`)
	sampleHosts   = wordset.Of(`email.com mail.com gmail.com test.com test.de domain.com mail.de email.de company.com firma.de site.com website.com web.com xyz.com abc.com server.com host.com provider.de provider.com firma.com firma.pl entreprise.fr empresa.com empresa.es azienda.it bedrijf.nl adresse.de adres.nl mail.ru`)
	ownlessLabels = wordset.Of(`firma company unternehmen entreprise empresa azienda bedrijf`)

	// unread matches mailboxes that nobody reads.
	unread    = regexp.MustCompile(`^(?:no|do[._-]?not|(?:bitte-)?nicht)[._-]?(?:reply|replies|respond|response|antworten)|^(?:ne-?pas-?repondre|no-?responder|non-?rispondere)`)
	hexLocal  = regexp.MustCompile(`^[0-9a-f]{16,}$|^[0-9a-f]{8}-[0-9a-f]{4}-`)
	imageSize = regexp.MustCompile(`^\d+(?:\.\d+)?x(?:\.|$|-)`)
	unwanted  = regexp.MustCompile(`(?i)no-?spam|remove-?(?:this|me)|spam-?(?:not|frei|free)|entfernen|anti-?spam|sin-?spam`)
)

// isPlaceholder says that an email is a placeholder or otherwise not real. own says that it is on
// the site's own domain.
func isPlaceholder(email string, own bool) bool {
	local, domain, _ := strings.Cut(email, "@")
	name, suffix, _ := strings.Cut(registrable(domain), ".")
	switch {
	case sampleLocals[local], hexLocal.MatchString(local), imageSize.MatchString(domain),
		unwanted.MatchString(email), unread.MatchString(local):
		return true
	case own:
		return false
	case sampleDomains[name], ownlessLabels[name], suffix == "tld", suffix == "example",
		suffix == "test", suffix == "invalid":
		return true
	case strings.HasPrefix(domain, "sentry") || strings.Contains(domain, ".sentry") ||
		strings.HasSuffix(domain, "wixpress.com"):
		return true
	}
	return sampleNames[local] && sampleHosts[domain] || local == "test" && name == "test"
}

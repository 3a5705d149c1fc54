package contacts

import (
	"strings"
	"testing"
)

// wild are pages as real businesses have them, each with what a careful person would note.
var wild = []struct {
	name  string
	pages []string // on firma.de: home, /kontakt, /impressum
	want  string   // status and addresses, best first
}{
	{"builder's icon list", []string{`<a href="/kontakt">Kontakt</a>`, `<ul class="elementor-icon-list-items"><li><a href="mailto:info@firma.de">
<span class="elementor-icon-list-icon"><i class="fas fa-envelope"></i></span><span class="elementor-icon-list-text">info@firma.de</span></a></li></ul>
<footer>© 2024 Brauhaus | <a href="https://www.webhelden-agentur.de">Webdesign Agentur Nürnberg</a></footer>`}, "EMAIL_FOUND info@firma.de"},
	{"imprint with who looks after it", []string{`<a href="/impressum">Impressum</a>`, "", `<h1>Impressum</h1><p>Brauhaus Süd GmbH<br>Ring 1<br>Tel.: 0911 1<br>
E-Mail: post@firma.de</p><h2>Umsetzung und technische Betreuung</h2><p>Webhelden GmbH<br>Hauptstr. 1<br>E-Mail: kontakt@webhelden-agentur.de</p>`},
		"EMAIL_FOUND post@firma.de"},
	{"mentions légales", []string{`<a href="/impressum">Mentions légales</a>`, "", `<h2>Éditeur du site</h2><p>SARL Boulangerie Martin – 3 rue des Lilas<br>Email : contact@firma.de<br>
Directeur de la publication : M. Martin</p><h2>Hébergement</h2><p>OVH SAS – 2 rue Kellermann – support@ovh.com</p><h2>Conception et réalisation</h2>
<p>Studio Bleu – bonjour@studiobleu-lyon.fr</p><h2>Données personnelles</h2><p>Délégué à la protection des données : dpo@firma.de</p>`},
		"EMAIL_FOUND contact@firma.de; dpo@firma.de"},
	{"privacy officer of another house", []string{`<a href="/kontakt">Contact us</a>`, `<p>Hartley Plumbing, 1 High St. hello@firma.de</p>
<p>Our Data Protection Officer: Jane Doe, GDPR Services Ltd, jane@gdpr-services-ltd.co.uk. You may complain to the ICO, casework@ico.org.uk.</p>`},
		"EMAIL_FOUND hello@firma.de"},
	{"lawyer", []string{`<a href="/impressum">Impressum</a>`, "", `<p>Rechtsanwältin Petra Huber<br>kanzlei@firma.de</p><p>Zuständige Kammer: Rechtsanwaltskammer München, Tal 33, 80331 München, info@rak-m.de</p>
<p>Berufshaftpflichtversicherung: Allianz Versicherungs-AG, haftpflicht@allianz-muster.de</p>`}, "EMAIL_FOUND kanzlei@firma.de"},
	{"doctor with free mail", []string{`<a href="/impressum">Impressum</a>`, "", `<p>Dr. med. Kai Sommer<br>Telefon 0221 1<br>E-Mail: praxis.sommer@t-online.de</p>
<p>Aufsichtsbehörde:<br>Ärztekammer Nordrhein<br>Tersteegenstr. 9<br>aerztekammer@aekno.de</p>`}, "EMAIL_FOUND praxis.sommer@t-online.de"},
	{"group's address", []string{`<a href="/kontakt">Kontakt</a>`,
		`<p>Firma GmbH, ein Unternehmen der Meyer-Gruppe<br>E-Mail: info@meyer-gruppe-holding.de</p>`},
		"EMAIL_FOUND info@meyer-gruppe-holding.de"},
	{"photographer", []string{`<a href="/impressum">Impressum</a>`, "",
		`<p>info@firma.de</p><p>Fotos: Max Knipser (max@knipser-bilder.de)</p>`},
		"EMAIL_FOUND info@firma.de"},
	{"vendors in the banner",
		[]string{`<div id="usercentrics-root"><p>Usercentrics GmbH, Sendlinger Str. 7, datenschutz@usercentrics.com</p></div><a href="/kontakt">Kontakt</a>`,
			`<p>mail@firma.de</p>`}, "EMAIL_FOUND mail@firma.de"},
	{"cut by a comment", []string{`<a href="/kontakt">Kontakt</a>`,
		`<p>info<!-- no robots -->@<!-- x -->firma.de</p>`}, "EMAIL_FOUND info@firma.de"},
	{"label grown to it", []string{`<a href="/kontakt">Kontakt</a>`,
		`<div><span>E-Mail</span><span>info@firma.de</span></div><div><span>Email</span><span>verkauf@firma.de</span></div>`},
		"EMAIL_FOUND info@firma.de; verkauf@firma.de"},
	{"telephone grown to it", []string{`<a href="/kontakt">Kontakt</a>`,
		`<div><span>Tel. +49 911 123456</span><span>info@firma.de</span></div>`},
		"EMAIL_FOUND info@firma.de"},
	{"a real name that begins so",
		[]string{`<a href="/kontakt">Kontakt</a>`,
			`<p>emailmarketing@firma.de, e-mail@firma.de, mailing@firma.de, 24h@firma.de</p>`},
		"EMAIL_FOUND emailmarketing@firma.de; e-mail@firma.de; mailing@firma.de; 24h@firma.de"},
	{"two in a line", []string{`<a href="/kontakt">Kontakt</a>`,
		`<p>info@firma.de/verkauf@firma.de, oder buero@firma.de|lager@firma.de</p>`},
		"EMAIL_FOUND info@firma.de; verkauf@firma.de; buero@firma.de; lager@firma.de"},
	{"behind a label in bold",
		[]string{`<a href="/kontakt">Kontakt</a>`,
			`<p><b>E-Mail:</b>info@firma.de<br><b>Web:</b>www.firma.de</p>`},
		"EMAIL_FOUND info@firma.de"},
	{"newsletter and login",
		[]string{`<form><input type="email" name="email" placeholder="deine@email.de"></form><a href="/kontakt">Kontakt</a>`, `<form>` +
			`<label>E-Mail (z. B. max@mustermann.de)</label></form><p>Tel. 0911 1</p>`},
		"NO_EMAIL_PUBLISHED "},
	{"twitter names and prices",
		[]string{`<p>Folgt uns: @firma auf X. Angebot 3 @ 2.50</p><a href="/kontakt">Kontakt</a>`,
			`<p>@firma.de auf Mastodon: @firma@mastodon.social</p>`}, "NO_EMAIL_PUBLISHED "},
	{"only behind a protection, agency in the open",
		[]string{`<a href="/kontakt">Kontakt</a><footer>Webdesign: <a href="mailto:hallo@agentur-xyz.de">hallo@agentur-xyz.de</a></footer>`,
			`<a href="/cdn-cgi/l/email-protection#aabb" class="__cf_email__" data-cfemail="aabb">[email&nbsp;protected]</a>`}, "EMAIL_NOT_EXTRACTABLE "},
}

const wildProse = `<p>Wir sind seit 1978 Ihr Partner in der Region und beraten Sie gerne, im Laden und am Telefon.</p>
<p>Besuchen Sie uns vor Ort: Montag bis Freitag von neun bis sechs, samstags bis zwei Uhr, und nach Vereinbarung.</p>`

func TestWild(t *testing.T) {
	for _, c := range wild {
		w := website{name: c.name, url: "https://www.firma.de/", pages: map[string]response{}}
		for i, path := range []string{"", "kontakt", "impressum"} {
			if i < len(c.pages) {
				w.pages[w.url+
					path] = raw("<html><head><title>Firma</title></head><body><h1>Firma</h1>" +
					wildProse + wildProse + c.pages[i] + "</body></html>")
			}
		}
		got, _, _ := visit(t, w)
		if text := string(got.Status) + " " + got.All; text != c.want {
			t.Errorf("%s:\n got  %s\n want %s", c.name, strings.TrimSpace(text), c.want)
		}
	}
}

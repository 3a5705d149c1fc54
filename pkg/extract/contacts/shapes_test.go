package contacts

import (
	"fmt"
	"slices"
	"strings"
)

// shape is a kind of site. times is its number in the corpus, by default 6; tongue fixes its
// language.
type shape struct {
	name   string
	times  int
	tongue string
	make   func(d *draft, name string)
}

var shapes = slices.Concat(plainShapes, hiddenShapes, foreignShapes, unreadableShapes, oddShapes)

var plainShapes = []shape{
	{name: "footer-and-contact", make: func(d *draft, name string) {
		d.links("cia")
		a, p := d.role(), d.person()
		d.put("", `<div class="widget">`+mailto(a)+`</div>`)
		d.put(d.t.contactPath,
			section(d.t.address, d.company, "Street 1", d.t.phone+" 0123 456", d.t.mail+" "+a,
				d.t.mail+" "+mailto(p)))
		d.done(name, found(d.url(d.t.contactPath), a, p))
	}},
	{name: "contact-text", make: func(d *draft, name string) {
		d.links("ca")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath,
			fmt.Sprintf(`<table><tr><td>%s</td><td>0123 456</td></tr><tr><td>%s</td><td>%s</td></tr></table>`, d.t.phone, d.t.mail, a))
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "imprint-after-form", make: func(d *draft, name string) {
		d.links("ci")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath,
			`<form action="/send"><input name="email" placeholder="you@company.com"><textarea>max.mustermann@firma.de</textarea></form>`)
		d.put(d.t.imprintPath, section(d.company, "Street 1", d.t.mail+" "+a))
		d.done(name, found(d.url(d.t.imprintPath), a))
	}},
	{name: "about-only", make: func(d *draft, name string) {
		d.links("a")
		a, p := d.person(), d.own("b.weiss")
		d.put("", "")
		d.put(d.t.aboutPath, "<ul><li>A. Person, "+a+"</li><li>B. Weiss &lt;"+p+"&gt;</li></ul>")
		d.done(name, found(d.url(d.t.aboutPath), a, p))
	}},
	{name: "home-only", make: func(d *draft, name string) {
		d.links("")
		a := d.role()
		d.put("", "<p>"+d.t.mail+" "+a+".</p>")
		d.done(name, found(d.root, a))
	}},
	{name: "free-mail", make: func(d *draft, name string) {
		d.links("c")
		a := slug(d.company) + "@" + d.t.freemail
		d.put("", "")
		d.put(d.t.contactPath,
			section(d.t.address, d.company, d.t.phone+" 0123", d.t.mail+" "+mailto(a)))
		d.done(name, truth{Found, []string{a}, d.url(d.t.contactPath), "no"})
	}},
	{name: "own-before-free-mail", make: func(d *draft, name string) {
		d.links("c")
		a, b := d.role(), "chef."+slug(d.company)+"@"+d.t.freemail
		d.put("", "<p>"+a+"</p>")
		d.put(d.t.contactPath, section(d.t.address, d.t.mail+" "+b))
		d.done(name, found(d.root, a, b))
	}},
	{name: "json-ld", make: func(d *draft, name string) {
		d.links("a")
		a, b := d.role(), d.own("service")
		d.put("", fmt.Sprintf(`<script type="application/ld+json">{"@context":"https://schema.org","@type":"LocalBusiness","email":"mailto:%s",
"contactPoint":[{"@type":"ContactPoint","email":"%s"}],"review":{"author":{"email":"guest@example.net"}}}</script>`, a, b))
		d.put(d.t.aboutPath, "<p>…</p>")
		d.done(name, truth{Found, []string{a, b}, d.root, "yes"})
	}},
	{name: "microdata", times: 4, make: func(d *draft, name string) {
		d.links("")
		a := d.role()
		d.put("",
			`<div itemscope itemtype="https://schema.org/Organization"><meta itemprop="email" content="`+a+`"></div>`)
		d.done(name, found(d.root, a))
	}},
	{name: "definition-list", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath,
			fmt.Sprintf("<dl><dt>%s<dd>0123<dt>%s<dd>%s</dl>", d.t.phone, d.t.mail, a))
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "departments", make: func(d *draft, name string) {
		d.links("c")
		all := []string{d.own("info"), d.own("buchhaltung"), d.own("jobs"), d.own("webmaster"),
			d.own("datenschutz")}
		d.put("", "")
		content := ""
		for _, a := range all {
			content += "<div class=card><b>Team</b><br>" + mailto(a) + "</div>"
		}
		d.put(d.t.contactPath, content)
		d.done(name, found(d.url(d.t.contactPath), all...))
	}},
	{name: "form-only", make: func(d *draft, name string) {
		d.links("ci")
		d.put("", "")
		d.put(d.t.contactPath,
			`<form><input type=email placeholder="name@domain.tld"><button>OK</button></form>`)
		d.put(d.t.imprintPath, section(d.company, "Street 1", d.t.phone+" 0123"))
		d.done(name, truth{status: None})
	}},
	{name: "nothing", make: func(d *draft, name string) {
		d.links("")
		d.put("", `<a href="mailto:?subject=Look&body=https://x.com">Share</a>`)
		d.done(name, truth{status: None})
	}},
	{name: "contact-page-gone", times: 4, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.done(name, truth{status: None})
	}},
}

var hiddenShapes = []shape{
	{name: "spelled-brackets", make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		local, domain, _ := strings.Cut(a, "@")
		d.put("", "")
		open, shut := d.pick([]string{"[", "(", "{"}),
			map[string]string{"[": "]", "(": ")", "{": "}"}
		d.put(d.t.contactPath,
			fmt.Sprintf("<p>%s %s %s%s%s %s</p>", d.t.mail, local, open, d.t.at, shut[open],
				strings.ReplaceAll(domain, ".", " "+open+d.t.dot+shut[open]+" ")))
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "spelled-at", make: func(d *draft, name string) {
		d.links("i")
		a, b := d.role(), d.own("verkauf")
		d.put("", "")
		d.put(d.t.imprintPath,
			"<p>"+strings.Replace(a, "@", "(at)", 1)+"</p><p>"+strings.Replace(b, "@", " [@] ", 1)+
				"</p>")
		d.done(name, found(d.url(d.t.imprintPath), a, b))
	}},
	{name: "shouted", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "<p>Meet us at "+d.domain+" or look at "+d.company+".</p>")
		d.put(d.t.contactPath,
			"<p>"+strings.ReplaceAll(strings.Replace(a, "@", " AT ", 1), ".", " DOT ")+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "entities", make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		coded := ""
		for i, r := range a {
			if i%2 == 0 {
				coded += fmt.Sprintf("&#%d;", r)
			} else {
				coded += fmt.Sprintf("&#x%x;", r)
			}
		}
		d.put("", "")
		d.put(d.t.contactPath,
			`<a href="&#109;&#97;&#105;&#108;&#116;&#111;:`+coded+`">`+coded+`</a>`)
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "cut-up", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a, b := d.own("info"), d.own("bestellung")
		d.put("", "")
		d.put(d.t.contactPath,
			`<p>info<span style="display: none">null</span>@<!-- x -->`+d.domain+
				`</p><p>bestel&shy;lung<b>@</b>`+d.domain+`</p>`)
		d.done(name, found(d.url(d.t.contactPath), a, b))
	}},
	{name: "trap", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", `<a href="mailto:trap@`+d.domain+`" style="display:none">x</a><span hidden>bot@`+
			d.domain+`</span><!-- admin@`+d.domain+` -->`)
		d.put(d.t.contactPath, "<p>"+a+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "cloudflare", make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath,
			`<p>`+d.t.mail+
				` <a href="/cdn-cgi/l/email-protection" class="__cf_email__" data-cfemail="a3cacdc5cce3">[email&#160;protected]</a></p>`)
		d.done(name, truth{status: Protected})
	}},
	{name: "cloudflare-and-plain", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("",
			`<span class="__cf_email__" data-cfemail="a3cacdc5cce3">[email&#160;protected]</span>`)
		d.put(d.t.contactPath, "<p>"+a+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "joomla-cloak", times: 4, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath, `<span id="cloak123">Diese E-Mail-Adresse ist vor Spambots geschützt! Zur Anzeige muss JavaScript eingeschaltet sein.</span>
<script>var addy1 = '&#105;nf&#111;' + '&#64;'; document.getElementById('cloak123').innerHTML += addy1;</script>`)
		d.done(name, truth{status: Protected})
	}},
	{name: "typo3-with-text", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath,
			`<a href="#" data-mailto-token="ocknvq,kphq" data-mailto-vector="1">`+strings.Replace(a,
				"@", "(at)", 1)+`</a>`)
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "typo3-without-text", times: 4, make: func(d *draft, name string) {
		d.links("ci")
		d.put("", "")
		d.put(d.t.contactPath,
			`<a href="javascript:linkTo_UnCryptMailto('ocknvq,kphq');">E-Mail</a>`)
		d.put(d.t.imprintPath, section(d.company, d.t.phone+" 0123"))
		d.done(name, truth{status: Protected})
	}},
	{name: "image", times: 4, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath,
			`<p>E-Mail: <img src="/files/adr.gif" width=180></p><p><img src="/img/email-adresse.png"></p>`)
		d.done(name, truth{status: Protected})
	}},
	{name: "assembled", times: 4, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath,
			`<script>var n="info"; document.write('<a href="mailto:' + n + '@' + 'firma' + '.de">' + n + '</a>');</script>`)
		d.done(name, truth{status: Protected})
	}},
	{name: "reversed", times: 2, make: func(d *draft, name string) {
		d.links("")
		d.put("", `<span style="unicode-bidi: bidi-override; direction: rtl">`+reverse(d.role())+
			`</span>`)
		d.done(name, truth{status: Protected})
	}},
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

var foreignShapes = []shape{
	{name: "agency-only", make: func(d *draft, name string) {
		d.links("i")
		d.noise = true
		d.put("", "")
		d.put(d.t.imprintPath,
			section(d.company, "Street 1", d.t.phone+" 0123")+section(d.t.madeBy, "Pixelwerk GmbH",
				"Road 2", d.t.mail+" info@"+d.agency))
		d.done(name, truth{status: None})
	}},
	{name: "imprint-sections", make: func(d *draft, name string) {
		d.links("i")
		a := d.role()
		d.put("", "")
		d.put(d.t.imprintPath, section(d.company, "Street 1", d.t.mail+" "+mailto(a))+
			section(d.t.madeBy, "Pixelwerk GmbH", "Road 2", "Tel. 0123",
				d.t.mail+" info@"+d.agency)+
			section(d.t.hostedBy, "Serverfarm AG", "support@serverfarm-nord.com")+
			section(d.t.taxBy, "Zahlen & Partner", "kanzlei@zahlen-partner.com"))
		d.done(name, found(d.url(d.t.imprintPath), a))
	}},
	{name: "imprint-lines", make: func(d *draft, name string) {
		d.links("i")
		a := slug(d.company) + "@" + d.t.freemail
		d.put("", "")
		d.put(d.t.imprintPath, fmt.Sprintf("<p>%s<br>Street 1<br>%s "+
			"%s</p><p>%s<br>Pixelwerk<br>Road 2<br>%s hallo@%s</p><p>%s Zahlen und Partner, "+
			"post@zahlen-partner.com</p>",
			d.company, d.t.mail, a, d.t.madeBy, d.t.mail, d.agency, d.t.taxBy))
		d.done(name, truth{Found, []string{a}, d.url(d.t.imprintPath), "no"})
	}},
	{name: "listed-vendors", make: func(d *draft, name string) {
		d.links("i")
		a := d.role()
		d.put("", "")
		d.put(d.t.imprintPath, section(d.company, a)+"<p>Cookies: Usercentrics GmbH, "+
			"contact@usercentrics.com; Cybot A/S, mail@cookiebot.com; IONOS SE, info@ionos.de; "+
			"Google, support-deutschland@google.com</p>")
		d.done(name, found(d.url(d.t.imprintPath), a))
	}},
	{name: "chamber", times: 3, tongue: "de", make: func(d *draft, name string) {
		d.links("i")
		a := d.role()
		d.put("", "")
		d.put(d.t.imprintPath,
			section("Angaben gemäß § 5 DDG", d.company, "E-Mail: "+a)+section("Zuständige Kammer",
				"Handwerkskammer Musterland", "E-Mail: info@hwk-musterland.de")+
				"<p>Datenschutzbeauftragter: Dr. Recht, "+
				"dsb@recht-und-schutz.de</p><p>Bildnachweis: "+
				"Foto Meier, bild@foto-meier.de</p>"+
				"<p>Plattform der EU-Kommission: https://ec.europa.eu/odr, unsere E-Mail-Adresse: "+
				a+
				"</p>")
		d.done(name, found(d.url(d.t.imprintPath), a))
	}},
	{name: "placeholders", make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "<p>name@domain.tld, mail@example.com, max@mustermann.de, vorname.nachname@"+
			d.domain+
			", info@yourdomain.com</p><p>605a7baede844d278b89dc95ae0a9123@sentry-next.wixpress.com</p>")
		d.put(d.t.contactPath, "<p>z.B. name@firma.de</p><p>"+a+"</p><p>icon@3x.webp "+
			"photo@1.5x.app</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "other-domain", make: func(d *draft, name string) {
		d.links("c")
		d.noise = true
		a := "info@" + strings.Replace(d.domain, ".", "-gruppe.", 1)
		d.put("", "")
		d.put(d.t.contactPath, section(d.t.address, d.company, d.t.phone+" 01", d.t.mail+" "+a))
		d.done(name, truth{Found, []string{a}, d.url(d.t.contactPath), "no"})
	}},
	{name: "tax-adviser-itself", times: 3, tongue: "de", make: func(d *draft, name string) {
		d.company = "Steuerberater Anton Huber"
		d.links("i")
		a := "kanzlei-huber@t-online.de"
		d.put("", "")
		d.put(d.t.imprintPath, "<h2>Steuerberater Anton Huber</h2><p>Gasse 3<br>E-Mail: "+a+"</p>")
		d.done(name, truth{Found, []string{a}, d.url(d.t.imprintPath), "no"})
	}},
	{name: "agency-itself", times: 3, tongue: "de", make: func(d *draft, name string) {
		d.company = "Webdesign Studio Nord"
		d.links("c")
		d.noise = false
		a := "studio-nord@gmx.de"
		d.put("", "")
		d.put(d.t.contactPath, "<h2>Webdesign Studio Nord</h2><p>E-Mail: "+a+"</p>")
		d.done(name, truth{Found, []string{a}, d.url(d.t.contactPath), "no"})
	}},
}

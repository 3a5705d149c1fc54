package contacts

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

func raw(body string) response { return response{media: "text/html", body: body} }

// sole makes a site of one unreadable page.
func sole(body string) func(*draft, string) {
	return func(d *draft, name string) {
		d.pages[d.root] = raw(strings.ReplaceAll(body, "DOMAIN", d.domain))
		d.done(name, truth{status: NotReadable})
	}
}

func failing(code fault.Code, status Status) shape {
	return shape{name: "home-" + string(code), times: 1, make: func(d *draft, name string) {
		d.pages[d.root] = response{code: code}
		d.done(name, truth{status: status})
	}}
}

var unreadableShapes = []shape{
	{name: "shell", times: 3, make: sole(
		`<html><head><title>App</title></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="/static/main.js"></script></body></html>`)},
	{name: "empty-with-script", times: 1,
		make: sole(`<html><body><script src="/bundle.js"></script></body></html>`)},
	{name: "shell-with-data", times: 2, make: func(d *draft, name string) {
		a := d.role()
		d.pages[d.root] = raw(`<html><head><script type="application/ld+json">{"@type":"Store","email":"` + a + `"}</script></head><body><div id="app"></div><script src="/app.js"></script></body></html>`)
		d.done(name, found(d.root, a))
	}},
	{name: "noscript-address", times: 2, make: func(d *draft, name string) {
		a := d.role()
		d.pages[d.root] = raw(`<body><noscript>JavaScript! Or write to ` + a +
			`</noscript><div id="app"></div><script src="/app.js"></script></body>`)
		d.done(name, found(d.root, a))
	}},
	{name: "parked-sale", times: 1,
		make: sole(`<title>DOMAIN</title><body><h1>DOMAIN</h1><p>This domain is for sale! Contact sales@domainbroker-one.com</p><a href="/contact">Contact</a></body>`)},
	{name: "parked-de", times: 1,
		make: sole(`<title>DOMAIN</title><body><h1>Diese Domain steht zum Verkauf</h1><p>Anfragen an verkauf@sedo-makler.de</p></body>`)},
	{name: "parked-sedo", times: 1,
		make: sole(`<title>DOMAIN - Informationen</title><body><script src="//img.sedoparking.com/js.js"></script><a href="#">Versicherung</a> <a href="#">Kredit</a></body>`)},
	{name: "parked-fr", times: 1,
		make: sole(`<title>DOMAIN</title><body>Ce nom de domaine est à vendre. Domaine à vendre : contact@noms-pas-chers.fr</body>`)},
	{name: "parked-es", times: 1,
		make: sole(`<title>DOMAIN</title><body>Este dominio está en venta</body>`)},
	{name: "parked-nl", times: 1,
		make: sole(`<title>DOMAIN</title><body><p>Deze domeinnaam is geregistreerd door een klant van hoster.</p></body>`)},
	{name: "parked-pl", times: 1,
		make: sole(`<title>DOMAIN</title><body>Ta domena jest na sprzedaż</body>`)},
	{name: "parked-named", times: 1,
		make: sole(`<title>DOMAIN</title><body>The domain DOMAIN may be for sale. sales@broker-three.com</body>`)},
	{name: "parked-named-de", times: 1,
		make: sole(`<title>DOMAIN</title><body>Die Domain „DOMAIN“ steht zum Verkauf. info@makler-drei.de</body>`)},
	{name: "parked-named-fr", times: 1,
		make: sole(`<title>DOMAIN</title><body>Le domaine DOMAIN est à vendre</body>`)},
	{name: "parked-named-es", times: 1,
		make: sole(`<title>DOMAIN</title><body>El dominio DOMAIN está en venta</body>`)},
	{name: "parked-named-it", times: 1,
		make: sole(`<title>DOMAIN</title><body>Il dominio DOMAIN è in vendita</body>`)},
	{name: "parked-named-nl", times: 1,
		make: sole(`<title>DOMAIN</title><body>De domeinnaam DOMAIN is te koop</body>`)},
	{name: "parked-named-cs", times: 1,
		make: sole(`<title>DOMAIN</title><body>Doména DOMAIN je na prodej</body>`)},
	{name: "hoster-default", times: 1,
		make: sole(`<title>Apache2 Ubuntu Default Page: It works</title><body><p>It works! webmaster@localhost</p></body>`)},
	{name: "new-registration", times: 1,
		make: sole(`<title>DOMAIN</title><body><h1>Hier entsteht eine neue Internetpräsenz</h1><p>Kunde von Hoster, support@ein-hoster-24.de</p></body>`)},
	{name: "suspended", times: 1,
		make: sole(`<title>Account Suspended</title><body>This Account has been suspended. Contact billing@hoster-cheap.com</body>`)},
	{name: "challenge-cloudflare", times: 1,
		make: sole(`<title>Just a moment...</title><body><h2>Checking your browser before accessing DOMAIN</h2><noscript>Enable JavaScript and cookies to continue</noscript></body>`)},
	{name: "challenge-captcha", times: 1,
		make: sole(`<title>DOMAIN</title><body><p>Please verify that you are human</p><div class="g-recaptcha"></div><p>Support: help@waf-vendor.net</p></body>`)},
	{name: "challenge-de", times: 1,
		make: sole(`<title>Sicherheitsüberprüfung</title><body>Bestätigen Sie, dass Sie ein Mensch sind.</body>`)},
	{name: "denied", times: 1,
		make: sole(`<title>Access Denied</title><body><h1>Access Denied</h1>You don't have permission. Reference #18.2</body>`)},
	{name: "cookie-wall", times: 2,
		make: sole(`<title>DOMAIN</title><body><h1>Mit Werbung und Cookies weiterlesen</h1><p>Wir und unsere Partner speichern Cookies auf Ihrem Endgerät. Ihre Einwilligung können Sie jederzeit widerrufen.</p><button>Akzeptieren</button> <a href="/abo">Werbefrei im Abo</a> <a href="/datenschutz">Datenschutz</a></body>`)},
	{name: "cookie-wall-en", times: 1,
		make: sole(`<title>Before you continue</title><body><p>We use cookies. To continue to DOMAIN please accept all cookies.</p><p>Cookie settings</p><button>Accept all</button><button>Reject all</button></body>`)},
	{name: "cookie-wall-imprint", times: 2, tongue: "de", make: func(d *draft, name string) {
		a := d.role()
		d.pages[d.root] = raw(`<title>Hallo</title><body><p>Wir verwenden Cookies. Bitte stimmen Sie der Nutzung von Cookies zu. Einwilligung nötig.</p><button>Zustimmen</button><a href="/impressum">Impressum</a></body>`)
		d.put(d.t.imprintPath, section(d.company, a))
		d.done(name, found(d.url(d.t.imprintPath), a))
	}},
	{name: "cookie-banner-is-no-wall", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("",
			`<div id="banner"><p>Cookies! We use cookies and need your consent. Cookie settings, accept cookies, reject cookies.</p></div>`)
		d.put(d.t.contactPath, "<p>"+a+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "frameset", times: 1,
		make: sole(`<html><frameset cols="20%,80%"><frame src="nav.html"><frame src="main.html"></frameset></html>`)},
	{name: "pdf", times: 1, make: func(d *draft, name string) {
		d.pages[d.root] = response{media: "application/pdf", body: "%PDF-1.4 info@" + d.domain}
		d.done(name, truth{status: NotReadable})
	}},
	{name: "contact-page-blocked", times: 3, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.pages[d.url(d.t.contactPath)] = response{code: fault.PageBlocked}
		d.done(name, truth{status: NotReadable})
	}},
	{name: "contact-page-down", times: 3, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.pages[d.url(d.t.contactPath)] = response{code: fault.PageStatus}
		d.done(name, truth{status: NotReadable})
	}},
	{name: "contact-page-missing", times: 3, make: func(d *draft, name string) {
		d.links("c")
		d.put("", "")
		d.done(name, truth{status: None})
	}},
	failing(fault.PageDNS, Unreachable), failing(fault.PageConnect, Unreachable),
	failing(fault.PageTimeout, Unreachable),
	failing(fault.PageTLS, Unreachable), failing(fault.PageProtocol, Unreachable),
	failing(fault.PageAddressForbidden, Unreachable),
	failing(fault.PageStatus, NotReadable), failing(fault.PageBlocked, NotReadable),
	failing(fault.PageTooLarge, NotReadable),
	failing(fault.PageRobots, NotReadable), failing(fault.PageRedirects, NotReadable),
	failing(fault.PageDailyLimit, LimitReached),
	{name: "profile", times: 12, make: func(d *draft, name string) {
		profiles := []string{"https://www.facebook.com/%s", "https://instagram.com/%s/",
			"https://de.linkedin.com/company/%s", "https://www.amazon.de/shops/%s",
			"https://www.ebay.co.uk/usr/%s", "https://www.etsy.com/shop/%s",
			"https://www.xing.com/pages/%s", "https://x.com/%s", "https://linktr.ee/%s",
			"https://www.google.com/maps/place/%s", "https://%s.business.site/",
			"https://www.tripadvisor.co.uk/Restaurant-%s"}
		d.root = fmt.Sprintf(profiles[d.c.count%len(profiles)], slug(d.company))
		d.done(name, truth{status: Social})
	}},
	{name: "leads-to-network", times: 1, make: func(d *draft, name string) {
		r := raw("<p>Log in. press@fb.com</p>")
		r.final = "https://www.facebook.com/shop"
		d.pages[d.root] = r
		d.done(name, truth{status: Social})
	}},
}

var oddShapes = []shape{
	{name: "moved-to-group", times: 4, make: func(d *draft, name string) {
		a := "info@group-holding.com"
		r := raw(d.frame("<p>" + a + "</p>"))
		r.final = "https://www.group-holding.com/" + d.t.code
		d.pages[d.root] = r
		d.done(name, truth{Found, []string{a}, r.final, "unknown"})
	}},
	{name: "moved-and-own", times: 2, make: func(d *draft, name string) {
		a := d.role()
		r := raw(d.frame("<p>" + a + "</p>"))
		r.final = "https://new-home-of-us.com/"
		d.pages[d.root] = r
		d.done(name, truth{Found, []string{a}, r.final, "yes"})
	}},
	{name: "umlaut-domain", times: 3, tongue: "de", make: func(d *draft, name string) {
		d.domain = "xn--mbel-" + fmt.Sprint(d.c.count) + "-5pb.de"
		d.root = "https://www.xn--mllerei-n2a.de/"
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath, "<p>E-Mail: info@Müllerei.de</p><p>info@xn--mllerei-n2a.de</p>")
		d.done(name, truth{Found, []string{"info@xn--mllerei-n2a.de"}, d.url(d.t.contactPath),
			"yes"})
	}},
	{name: "refresh", times: 3, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.pages[d.root] = raw(`<html><head><meta http-equiv="refresh" content="0; url=/start/"></head><body></body></html>`)
		d.put("start/", "")
		d.put(d.t.contactPath, "<p>"+a+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "subdomain-address", times: 3, make: func(d *draft, name string) {
		d.links("c")
		a := "shop@mail." + d.domain
		d.put("", "")
		d.put(d.t.contactPath, "<p>"+a+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "glued", make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath, "<span>"+d.t.mail+a+"</span><span>Tel 0123</span><a "+
			"href='/x'>more</a>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "mailto-forms", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a, b, c := d.own("info"), d.own("shop"), d.own("service")
		d.put("", "")
		d.put(d.t.contactPath,
			`<a href="MAILTO:%20`+a+
				`?subject=Hello%20you&cc=someone@else.com">Mail</a><a href="mailto:`+b+`,`+
				strings.Replace(c, "@", "%40", 1)+`">x</a>`)
		d.done(name, found(d.url(d.t.contactPath), a, b, c))
	}},
	{name: "many", times: 2, make: func(d *draft, name string) {
		d.links("c")
		var all []string
		content := ""
		for i := range 130 {
			a := d.own(fmt.Sprintf("p%d.person", i))
			content += "<li>" + a
			if i < maxAddresses {
				all = append(all, a)
			}
		}
		d.put("", "")
		d.put(d.t.contactPath, "<ul>"+content+"</ul>")
		d.done(name, found(d.url(d.t.contactPath), all...))
	}},
	{name: "query-pages", times: 4, make: func(d *draft, name string) {
		a := d.role()
		d.topLinks = `<base href="` + d.root + `cms/"><a href="index.php?page=` + d.t.contactPath +
			`&l=1#form">&raquo; ` + d.t.contact + `</a>`
		d.put("", "")
		at := d.root + "cms/index.php?page=" + d.t.contactPath + "&l=1"
		d.pages[at] = raw(d.frame("<p>" + a + "</p>"))
		d.done(name, found(at, a))
	}},
	{name: "old-markup", times: 4, make: func(d *draft, name string) {
		a := d.role()
		d.pages[d.root] = raw(`<HTML><BODY BGCOLOR=white><CENTER><FONT SIZE=5>` + d.company +
			`<P>` + d.pick(d.t.prose) + `<TABLE><TR><TD><A HREF=` + d.t.contactPath + `>` +
			d.t.contact + `</A><TD>x</TABLE>`)
		d.pages[d.url(d.t.contactPath)] = raw(`<BODY><P>` + d.t.mail + `<BR><A HREF=mailto:` + a +
			`>` + a + `</BODY>`)
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "misleading-links", times: 3, tongue: "en", make: func(d *draft, name string) {
		a := d.role()
		d.topLinks = `<a href="/contact-lenses">Contact lenses</a><a href="/shop/contact-paper">Contact paper</a><a href="https://elsewhere-co.com/contact">Contact</a>
<a href="/brochure-contact.pdf">Contact</a><a href="tel:1">Contact</a><a href="/help/get-in-touch">Get in touch</a>`
		d.put("", "")
		d.put("help/get-in-touch", "<p>"+a+"</p>")
		d.done(name, found(d.url("help/get-in-touch"), a))
	}},
	{name: "fullwidth", times: 2, tongue: "en-us", make: func(d *draft, name string) {
		a := d.own("info")
		d.links("c")
		d.put("", "")
		d.put(d.t.contactPath, "<p>メールinfo＠"+d.domain+"まで</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "capitals-and-repeats", times: 4, make: func(d *draft, name string) {
		d.links("c")
		a := d.own("info")
		d.put("", "<p>INFO@"+strings.ToUpper(d.domain)+"</p>")
		d.put(d.t.contactPath, "<p>Info@"+d.domain+"</p><p>"+mailto(a)+"</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
	{name: "not-utf8-and-nul", times: 2, make: func(d *draft, name string) {
		d.links("c")
		a := d.role()
		d.put("", "")
		d.put(d.t.contactPath, "<p>\xff\xfe \x00 "+a+" \xc3</p>")
		d.done(name, found(d.url(d.t.contactPath), a))
	}},
}

// A contact page that refuses or fails may hide an address, and a missing one hides none. One
// that was read answers for the other.
func TestUnreadContactPages(t *testing.T) {
	const home = "https://www.firma-x.de/"
	text := strings.Repeat("<p>Wir backen seit 1950 Brot und Kuchen in der Altstadt.</p>", 10)
	links := text + `<a href="/kontakt">Kontakt</a> <a href="/impressum">Impressum</a>`
	down, blocked := response{code: fault.PageStatus}, response{code: fault.PageBlocked}
	botCheck := raw("<title>Just a moment...</title>")
	redirects := raw(`<meta http-equiv="refresh" content="0; url=/start">`)
	for name, c := range map[string]struct {
		pages map[string]response // besides the home page; others are missing
		want  Status
	}{
		"both missing":         {nil, None},
		"down, missing":        {map[string]response{"kontakt": down}, NotReadable},
		"missing, down":        {map[string]response{"impressum": down}, NotReadable},
		"missing, blocked":     {map[string]response{"impressum": blocked}, NotReadable},
		"missing, a bot check": {map[string]response{"impressum": botCheck}, NotReadable},
		"down, read": {map[string]response{"kontakt": down,
			"impressum": raw(text)}, None},
		"read, down": {map[string]response{"kontakt": raw(text),
			"impressum": down}, None},
		"missing, read": {map[string]response{"impressum": raw(text)}, None},
		"missing, no fetch is left": {map[string]response{"": redirects,
			"start": raw(links)}, NotReadable},
	} {
		w := website{name: name, url: home, pages: map[string]response{home: raw(links)}}
		for path, r := range c.pages {
			w.pages[home+path] = r
		}
		if got, free, _ := visit(t, w); got.Status != c.want || free != (c.want != None) {
			t.Errorf("%s: %s, free %v, want %s", name, got.Status, free, c.want)
		}
	}
}

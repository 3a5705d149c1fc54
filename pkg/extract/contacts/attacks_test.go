package contacts

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/extract/internal/page"
)

// attacks are pages meant to be misread. They have spellings that people can read, text that only
// looks like an address, and addresses that a script must compute.
var attacks = []form{
	// Spellings.
	{"brackets and words", `<p>info[at]firma[dot]de</p>`, "EMAIL_FOUND info@firma.de"},
	{"braces", `<p>info {at} firma {dot} de</p>`, "EMAIL_FOUND info@firma.de"},
	{"angles", `<p>info &lt;at&gt; firma &lt;dot&gt; de</p>`, "EMAIL_FOUND info@firma.de"},
	{"capitals", `<p>INFO(AT)FIRMA(DOT)DE</p>`, "EMAIL_FOUND info@firma.de"},
	{"dashes", `<p>info -at- firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"tight dashes", `<p>info-at-firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"tight dashes of a file", `<p>look-at-me.md, home-at-last.com, work-at-home.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"underscores and dot", `<p>info_at_firma_dot_de</p>`, "EMAIL_FOUND info@firma.de"},
	{"guillemets", `<p>info«at»firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"quotes", `<p>info„at“firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"slashes", `<p>info/at/firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"plus", `<p>info+at+firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"ät in brackets", `<p>info(ät)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"snabela", `<p>info(snabela)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"snabel a", `<p>info [snabel a] firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"krøllalfa", `<p>info (krøllalfa) firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"miukumauku", `<p>info(miukumauku)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"kukac", `<p>info[kukac]firma[pont]de</p>`, "EMAIL_FOUND info@firma.de"},
	{"et", `<p>info (et) firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"chez", `<p>info [chez] firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"at sign in brackets", `<p>info [@] firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"spaced sign", `<p>Kontakt: info @ firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"spaced sign behind a word", `<p>Send us an email message: bram @ verein-nord.de<br>`, "EMAIL_FOUND bram@verein-nord.de"},
	{"spaced sign of an event", `<p>Samstag: Max @ club-nord.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"entity sign", `<p>info&commat;firma&period;de, post&#64;firma&#46;de, a.b&#x40;firma.de</p>`, "EMAIL_FOUND info@firma.de; post@firma.de; a.b@firma.de"},
	{"double entity", `<p>info&amp;#64;firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"word breaks", `<p>info<wbr>@<wbr>firma.<wbr>de</p>`, "EMAIL_FOUND info@firma.de"},
	{"nothing wide", "<p>in\u200bfo\u2060@\ufefffirma\u00ad.de</p>", "EMAIL_FOUND info@firma.de"},
	{"marks of direction", "<p>\u200einfo@firma.de\u200f, \u202apost@firma.de\u202c</p>", "EMAIL_FOUND info@firma.de; post@firma.de"},
	{"mathematical letters", `<p>𝐢𝐧𝐟𝐨@𝐟𝐢𝐫𝐦𝐚.𝐝𝐞</p>`, "EMAIL_FOUND info@firma.de"},
	{"letters in circles", `<p>ⓘⓝⓕⓞ@ⓕⓘⓡⓜⓐ.ⓓⓔ</p>`, "EMAIL_FOUND info@firma.de"},
	{"one dot leader", `<p>info@firma․de</p>`, "EMAIL_FOUND info@firma.de"},
	{"bold halves", `<p><b>info</b><i>@</i><u>firma</u>.<em>de</em></p>`, "EMAIL_FOUND info@firma.de"},
	{"spamspan", `<span class="spamspan"><span class="u">info</span> [at] <span class="d">firma [dot] de</span></span>`, "EMAIL_FOUND info@firma.de"},
	{"spamspan picture", `<span class="spamspan"><span class="u">info</span><img alt="at" width="10" src="/sites/image.gif" /><span class="d">firma.de</span></span>`, "EMAIL_FOUND info@firma.de"},
	{"remove me", `<p>info@firma.REMOVETHIS.de, infoNOSPAM@firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"space before the sign", `<p>Kontakt: info @firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"nobody reads it", `<pre><code>from: noreply@firma.de</code></pre><p>do-not-reply@firma.de, no.reply@firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"reply", `<p>reply@firma.de</p>`, "EMAIL_FOUND reply@firma.de"},
	{"look at", `<p>Look at firma.de, work at firma.de today</p>`, "NO_EMAIL_PUBLISHED "},
	{"dot in a sentence", `<p>Stand (at) booth 7. (dot) com</p>`, "NO_EMAIL_PUBLISHED "},
	// Links.
	{"subject", `<a href="mailto:info@firma.de?subject=a@b.de&body=c@d.de">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"copy", `<a href="mailto:info@firma.de?cc=chef@firma.de&bcc=log@firma.de">x</a>`, "EMAIL_FOUND info@firma.de; chef@firma.de"},
	{"to", `<a href="mailto:?to=info@firma.de&subject=x">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"encoded to", `<a href="mailto:?Subject=x&amp;To=info%40firma.de">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"several", `<a href="mailto:info@firma.de,chef@firma.de;%20lager@firma.de">x</a>`, "EMAIL_FOUND info@firma.de; chef@firma.de; lager@firma.de"},
	{"encoded", `<a href="mailto:%69nfo%40firma%2Ede">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"encoded space", `<a href="mailto:%20info@firma.de%20">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"named", `<a href="mailto:%22Firma%22%20%3Cinfo@firma.de%3E">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"slashes", `<a href="mailto://info@firma.de">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"capital scheme", `<a href=" MailTo:INFO@FIRMA.DE ">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"tab in the scheme", "<a href=\"mail\tto:info@firma.de\">x</a>", "EMAIL_FOUND info@firma.de"},
	{"ampersand", `<a href="mailto:info@firma.de&subject=x">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"percent that is none", `<a href="mailto:info@firma.de?subject=100%">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"empty", `<a href="mailto:">x</a><a href="mailto:?">x</a><a href="mailto:@">x</a><a href="mailto:info@">x</a>`, "NO_EMAIL_PUBLISHED "},
	{"two signs", `<a href="mailto:info@@firma.de">x</a>`, "NO_EMAIL_PUBLISHED "},
	{"spelled", `<a href="mailto:info(at)firma.de">x</a>`, "EMAIL_FOUND info@firma.de"},
	{"link elsewhere", `<a href="mailto:post@firma.de">info@firma.de</a>`, "EMAIL_FOUND post@firma.de; info@firma.de"},
	{"area", `<map><area href="mailto:info@firma.de"></map>`, "EMAIL_FOUND info@firma.de"},
	{"link of a drawing", `<svg><a xlink:href="mailto:info@firma.de"><text>info@firma.de</text></a></svg>`, "EMAIL_FOUND info@firma.de"},
	{"form", `<form action="mailto:info@firma.de" method="post"><input></form>`, "EMAIL_FOUND info@firma.de"},
	{"gmail", `<a href="https://mail.google.com/mail/?view=cm&to=info@firma.de">x</a>`, "NO_EMAIL_PUBLISHED "},
	// International names.
	{"umlauts", `<p>info@bücher-firma.de</p>`, "EMAIL_FOUND info@xn--bcher-firma-thb.de"},
	{"punycode", `<p>info@xn--bcher-kva.de</p>`, "EMAIL_FOUND info@xn--bcher-kva.de"},
	{"punycode that is none", `<p>info@xn--zzzzzz9999.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"homograph", "<p>info@firm\u0430.de</p>", "NO_EMAIL_PUBLISHED "},
	{"homograph in front", "<p>\u0456nfo@firma.de</p>", "NO_EMAIL_PUBLISHED "},
	{"label in Cyrillic", `<p>Почтаinfo@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"Japanese around", `<p>メールはinfo@firma.deまで。</p>`, "EMAIL_FOUND info@firma.de"},
	// Text around an address.
	{"full stop", `<p>Schreiben Sie an info@firma.de. In Berlin.</p>`, "EMAIL_FOUND info@firma.de"},
	{"next sentence grown to it", `<p><span>info@firma.de.</span><span>In Berlin</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"punctuation", `<p>(info@firma.de), "a.b@firma.de"; 'c.d@firma.de'! &lt;e.f@firma.de&gt;… g.h@firma.de– i.j@firma.de?</p>`, "EMAIL_FOUND info@firma.de; a.b@firma.de; c.d@firma.de; e.f@firma.de; g.h@firma.de; i.j@firma.de"},
	{"label grown to it", `<p>E-Mail:info@firma.de|Tel.:030 1</p>`, "EMAIL_FOUND info@firma.de"},
	{"arrow", `<p>→info@firma.de ✉chef@firma.de ☎030</p>`, "EMAIL_FOUND info@firma.de; chef@firma.de"},
	{"port", `<p>info@firma.de:25</p>`, "EMAIL_FOUND info@firma.de"},
	{"long domain", `<p>info@` + "a.b.c.d.e.f.g.h.i.j.k.firma.de" + `</p>`, "EMAIL_FOUND info@a.b.c.d.e.f.g.h.i.j.k.firma.de"},
	// Text that only looks like an address.
	{"pictures", `<img src="logo@2x.png" alt="logo@2x.png"><p>hero@3x.webp icon@1.5x.jpg photo@2x.info</p>`, "NO_EMAIL_PUBLISHED "},
	{"style rules", `<p>@media print {} @import url(a@b.css) @font-face</p>`, "NO_EMAIL_PUBLISHED "},
	{"names", `<p>@firma @firma.de via @jack@mastodon.social, cc @max</p>`, "NO_EMAIL_PUBLISHED "},
	{"packages", `<p>npm i @scope/name@1.2.3 vue@next react@18.2.0 lodash@4.17.21 left-pad@latest x@^1.0</p>`, "NO_EMAIL_PUBLISHED "},
	{"paths of packages", `<p>https://cdn.jsdelivr.net/npm/bootstrap@5.3.0/dist/a.css https://unpkg.com/vue@3.io/x</p>`, "NO_EMAIL_PUBLISHED "},
	{"ssh", `<pre>git clone git@github.com:firma/shop.git; scp a root@firma.de:/tmp; git@gitlab.firma.de:x/y.git</pre>`, "NO_EMAIL_PUBLISHED "},
	{"ssh by scheme", `<p>ssh://git@firma.de/x.git git+ssh://hg@firma.de/x</p>`, "NO_EMAIL_PUBLISHED "},
	{"user of an address", `<p>https://user:pass@firma.de/x ftp://anonymous@ftp.firma.de postgres://app:pw@db.firma.de:5432/x</p>`, "NO_EMAIL_PUBLISHED "},
	{"data source name", `<p>https://abcdef0123456789abcdef0123456789@o1.ingest.sentry.io/12, https://public@errors.firma.de/3</p>`, "NO_EMAIL_PUBLISHED "},
	{"calls", `<p>sip:100@pbx.firma.de xmpp:chat@firma.de acct:max@firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"parameter", `<p>https://firma.de/x?email=info@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"message", `<pre>Message-ID: &lt;20240101120000.12345@mail.firma.de&gt;</pre>`, "NO_EMAIL_PUBLISHED "},
	{"templates", `<p>{{user}}@firma.de ${user}@firma.de %s@firma.de #{u}@firma.de $user@firma.de [name]@firma.de *@firma.de ...@firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"samples", `<p>name@firma.de? vorname.nachname@firma.de, you@example.com, max@mustermann.de, jane.doe@domain.tld</p>`, "EMAIL_FOUND name@firma.de"},
	{"prices and scores", `<p>3 @ 2.50, 10 @ 4.99 EUR, 5@3.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"coordinates", `<p>https://www.google.com/maps/@48.1371,11.5754,15z</p>`, "NO_EMAIL_PUBLISHED "},
	{"numbers", `<p>IBAN DE89 3704 0044 0532 0130 00, USt-ID DE123456789, Tel. +49 (0)30 123-456 ext. 7, 1-800-FLOWERS, 12.05.2024</p>`, "NO_EMAIL_PUBLISHED "},
	{"numbers grown to it", `<p><span>Fax +49 30 1234-56</span><span>info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"number grown to it", `<p><span>030/123456</span><span>info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"addresses of hosts", `<p>root@127.0.0.1 root@localhost user@[10.0.0.1] a@b.c@firma.de</p>`, "NO_EMAIL_PUBLISHED "},
	{"comment and script", `<!-- info@firma.de --><script>// info@firma.de
var x = 1;</script><style>/* info@firma.de */</style><template>info@firma.de</template>`, "NO_EMAIL_PUBLISHED "},
	{"what a field holds", `<input type="email" placeholder="a.b@firma.de"><input type="hidden" value="info@firma.de"><textarea>info@firma.de</textarea>`, "NO_EMAIL_PUBLISHED "},
	{"a field to copy from", `<input type="text" readonly value="info@firma.de">`, "EMAIL_FOUND info@firma.de"},
	// Text in other places.
	{"drawing", `<svg><title>x</title><text>info@firma.de</text></svg>`, "EMAIL_FOUND info@firma.de"},
	{"picture's text", `<img src="a.png" alt="info@firma.de">`, "EMAIL_FOUND info@firma.de"},
	{"copied", `<button data-copy="info@firma.de">x</button>`, "EMAIL_FOUND info@firma.de"},
	{"microdata", `<div itemscope><link itemprop="email" href="mailto:info@firma.de"><meta itemprop="email" content="post@firma.de"></div>`, "EMAIL_FOUND info@firma.de; post@firma.de"},
	{"linked data", `<script type="application/ld+json">{"@graph":[{"@type":"Organization","contactPoint":{"email":"mailto:%20info@firma.de"}}]}</script>`, "EMAIL_FOUND info@firma.de"},
	{"linked data that is broken", `<script type="application/ld+json">{"email":"info@firma.de",}</script>`, "EMAIL_FOUND info@firma.de"},
	{"linked data in CDATA", "<script type=\"application/ld+json\">//<![CDATA[\n{\"email\":\"info@firma.de\"}\n//]]></script>", "EMAIL_FOUND info@firma.de"},
	{"linked data in a comment", `<script type="application/ld+json"><!-- {"email":"info@firma.de"} --></script>`, "EMAIL_FOUND info@firma.de"},
	{"linked data by entity", `<script type="application/ld+json">{"email":"info\u0040firma.de"}</script>`, "EMAIL_FOUND info@firma.de"},
	{"framework by entity", `<script id="__NEXT_DATA__" type="application/json">{"p":{"mail":"info\u0040firma.de"}}</script>`, "EMAIL_FOUND info@firma.de"},
	{"noscript", `<noscript>info@firma.de</noscript>`, "EMAIL_FOUND info@firma.de"},
	{"hidden attribute", `<p>x <span hidden>bot@firma.de</span> <span style="display:none!important">b2@firma.de</span></p>`, "NO_EMAIL_PUBLISHED "},
	{"transparent", `<p>info<span style="font-size:0">xx</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"turned by style", `<p><span style="unicode-bidi:bidi-override;direction:rtl">ed.amrif@ofni</span></p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"turned by a mark", "<p>\u202eed.amrif@ofni\u202c</p>", "EMAIL_NOT_EXTRACTABLE "},
	// Addresses that must be computed.
	{"joomla", `<joomla-hidden-mail is-link="1" is-email="1" first="aW5mbw==" last="ZmlybWEuZGU=" text="aW5mb0BmaXJtYS5kZQ==" base="">Diese E-Mail-Adresse ist vor Spambots geschützt!</joomla-hidden-mail>`, "EMAIL_NOT_EXTRACTABLE "},
	{"link in base64", `<a href="#" data-link="bWFpbHRvOmluZm9AZmlybWEuZGU=">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"address in base64", `<a href="#" data-m="aW5mb0BmaXJtYS5kZQ==">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"something else in base64", `<a href="#" data-m="eyJhIjoiYkBjIn0=" data-n="SGFsbG8gV2VsdCBIYWxsbw==">x</a>`, "NO_EMAIL_PUBLISHED "},
	{"turned attribute", `<a href="#" data-r="ed.amrif@ofni">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"script link in base64", `<a href="javascript:location.href=atob('bWFpbHRvOmluZm9AZmlybWEuZGU=')">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"script link by numbers", `<a href="javascript:location.href=String.fromCharCode(109,97,105,108,116,111,58)+x()">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"script in base64", `<script>document.getElementById('m').textContent=atob("aW5mb0BmaXJtYS5kZQ==")</script>`, "EMAIL_NOT_EXTRACTABLE "},
	{"other base64 in a script", `<script>document.getElementById('m').textContent=atob("SGFsbG8gV2VsdA==")</script>`, "NO_EMAIL_PUBLISHED "},
	{"template", "<script>el.innerHTML=`${u}@${d}`</script>", "EMAIL_NOT_EXTRACTABLE "},
	{"concat", `<script>el.textContent="info".concat("@","firma.de")</script>`, "EMAIL_NOT_EXTRACTABLE "},
	{"turned in a script", `<script>el.innerHTML="ed.amrif@ofni".split("").reverse().join("")</script>`, "EMAIL_NOT_EXTRACTABLE "},
	{"numbers", `<script>document.write("info&#64;firma.de")</script>`, "EMAIL_NOT_EXTRACTABLE "},
	{"write", `<script>document.write("info@firma.de")</script>`, "EMAIL_NOT_EXTRACTABLE "},
	{"link by a click", `<a href="#" onclick="location.href='mailto:'+'info'+'@'+'firma.de'">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"link by a click in base64", `<a href="#" onclick="window.open(atob('bWFpbHRvOmluZm9AZmlybWEuZGU='))">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"cloudflare", `<a href="/cdn-cgi/l/email-protection#1a2b">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"rot13 attribute", `<a href="#" data-x="znvygb:vasb@svezn.qr">x</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"escaped content", `<style>.m:before{content:"info\000040 firma.de"}</style><p class="m"></p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"a newsletter script", `<script>$("#mail").val().match(/@/) && $("#m").html("Danke")</script>`, "NO_EMAIL_PUBLISHED "},
	{"a checking script", `<script>if(!/^[^@]+@[^@]+\.[a-z]+$/.test(mail)) el.innerHTML="E-Mail?"</script>`, "NO_EMAIL_PUBLISHED "},
	{"a share script", "<script>a.href=`mailto:?subject=${t}&body=${u}`</script>", "NO_EMAIL_PUBLISHED "},
}

// TestHostileClasses: the work for an element is bounded, however many classes it has and however
// many rules name them.
func TestHostileClasses(t *testing.T) {
	s, _ := newSheets([]byte("<style>" + strings.Repeat(".a{display:none}", maxRules) +
		strings.Repeat(".b", 100) + "{display:none}</style>"))
	for name, class := range map[string]string{
		"one class": strings.Repeat("a ", 250_000), "long": strings.Repeat("a", 500_000) + " a",
		"many": fmt.Sprint(make([]int, 250_000)) + " a",
	} {
		e := elementOf(&html.Token{Data: "p"}, map[string]string{"class": class})
		if n := len(strings.Fields(e.class)); n > maxClasses || len(e.class) > maxClassBytes {
			t.Errorf("%s: %d classes in %d bytes", name, n, len(e.class))
		}
		before := s.tries
		s.effect(e, nil)
		if used := before - s.tries; used > maxRules*(1+maxClassBytes/64) {
			t.Errorf("%s: %d tries", name, used)
		}
	}
	for _, r := range s.rules {
		if len(r.parts[0].classes) > maxParts {
			t.Errorf("a rule asks for %d classes", len(r.parts[0].classes))
		}
	}
}

// TestManyAddresses: the row keeps the first addresses, bounded however many a page has.
func TestManyAddresses(t *testing.T) {
	var links, text, spelled strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&links, "<a href=mailto:a%d@firma.de>x</a>", i)
		fmt.Fprintf(&text, "a%d@firma.de ", i)
		fmt.Fprintf(&spelled, "a%d(at)firma.de<br>", i)
	}
	for name, body := range map[string]string{"links": links.String(), "text": text.String(),
		"spelled": spelled.String(), "signs": strings.Repeat("a@", 300_000) + " a0@firma.de"} {
		w := website{url: "https://www.firma.de/", pages: map[string]response{
			"https://www.firma.de/": raw(body)}}
		got, _, _ := visit(t, w)
		if n := strings.Count(got.All, "@"); n > maxAddresses ||
			name != "signs" && (n != maxAddresses || !strings.HasPrefix(got.All, "a0@firma.de")) {
			t.Errorf("%s: %d addresses, %.40s", name, n, got.All)
		}
	}
}

// TestSpelledByGenerator: an address in any of many spellings is found, or protected if it is
// encoded. No other address is ever found.
func TestSpelledByGenerator(t *testing.T) {
	locals := []string{"info", "kontakt", "max.muster", "a-b_c", "x+y", "büro", "i2"}
	domains := []string{"firma.de", "mail.firma.de"}
	ats := []string{"@", "&#64;", "&commat;", "＠", "(at)", " [at] ", "{at}", " (@) ", "<b>@</b>",
		"<i class=fa-at></i>", "<img alt=at>", "&shy;@", "@\u200b", " &lt;at&gt; ", "【at】", "«at»",
		"(arroba)", " [ät] "}
	dots := []string{".", "&#46;", "．", "<wbr>.", "․"}
	arounds := []string{"<p>%s</p>", "<p>E-Mail: %s.</p>", "<p>(%s)</p>", "<li>%s, Tel. 030 1",
		"<td>%s</td><td>x@</td>", "<b>E-Mail:</b>%s<br>", "<p>%s|030 123-45</p>", "<address>%s"}
	coded := []string{`<a data-m="%s">x</a>`, `<script>document.write(atob("%s"))</script>`,
		`<a href="javascript:open(atob('%s'))">x</a>`}
	rapid.Check(t, func(t *rapid.T) {
		local := rapid.SampledFrom(locals).Draw(t, "local")
		domain := rapid.SampledFrom(domains).Draw(t, "domain")
		want := "EMAIL_FOUND " + local + "@" + domain
		var markup string
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			markup = strings.Replace(rapid.SampledFrom(coded).Draw(t, "coded"), "%s",
				base64.StdEncoding.EncodeToString([]byte(local+"@"+domain)), 1)
			want = "EMAIL_NOT_EXTRACTABLE "
		} else {
			markup = strings.Replace(rapid.SampledFrom(arounds).Draw(t, "around"), "%s",
				local+rapid.SampledFrom(ats).Draw(t, "at")+strings.ReplaceAll(domain, ".",
					rapid.SampledFrom(dots).Draw(t, "dot")), 1)
		}
		f := readPage(pageOf("<h1>Firma</h1>"+wildProse+markup), []string{"firma.de"})
		got := "NO_EMAIL_PUBLISHED "
		if f.Protected {
			got = "EMAIL_NOT_EXTRACTABLE "
		}
		for i, a := range f.Addresses {
			if got = "EMAIL_FOUND " + a.Email; i > 0 {
				got = "several"
			}
		}
		if got != want {
			t.Fatalf("%s: %s, want %s", markup, got, want)
		}
	})
}

func pageOf(body string) page.Page {
	return page.Page{URL: "https://www.firma.de/", ContentType: "text/html", Body: []byte(body)}
}

package contacts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// form is a page of firma.de, with the status and the addresses that it must give.
type form struct{ name, markup, want string }

// forms are ways to write an address, each on a page of firma.de, with what a person reads there.
// An address that scripts, style sheets or a cipher must produce is protected.
var forms = []form{
	// Text hidden by a style sheet.
	{"decoy by class",
		`<style>.weg{display:none}</style><p>info<span class="weg">weg</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"decoy by id",
		`<style>#x1 { visibility : hidden }</style><p>in<b id="x1">xx</b>fo@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"decoy by tag and class",
		`<style>@import "x.css"; b.n, i.n{font-size:0!important}</style><p>info<i class="a n">weg</i>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"decoy in a parent",
		`<style>.mail > span{display:none}</style><p class="mail">info<span>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"decoy deeper",
		`<style>#c .mail em{position:absolute;left:-9999px}</style><div id="c"><p class="mail"><b>info<em>weg</em></b>@firma.de</p></div>`, "EMAIL_FOUND info@firma.de"},
	{"decoy off the screen",
		`<p>info<span style="position:absolute; top:-5000px">weg</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"not in that parent",
		`<style>.other span{display:none}</style><p class="mail"><span>info</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"shown by a later rule",
		`<style>.m{display:none} .m{display:inline}</style><p><span class="m">info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"hidden on some screens",
		`<style>@media (max-width:600px){.m{display:none}}</style><p><span class="m">info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"shown on some screens",
		`<style>.m{display:none}@media (max-width:600px){.m{display:inline}}</style><p><span class="m">info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"hidden from printers",
		`<style media="print">.m{display:none}</style><style>@media print{.m{display:none}}</style><p><span class="m">info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"moved in by scripts",
		`<style>.wow{visibility:hidden}</style><p><span class="wow">info@firma.de</span></p>`,
		"EMAIL_FOUND info@firma.de"},
	{"trap by class",
		`<style>.hp{display:none}</style><p class="hp">trap@firma.de</p><a class="hp" href="mailto:bot@firma.de">x</a><p>info@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"trap in a block",
		`<div style="display:none"><a href="mailto:trap@firma.de">trap@firma.de</a></div><p>info@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"only a trap", `<style>.hp{text-indent:-9999px}</style><p class="hp">trap@firma.de</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"tab that scripts open",
		`<style>.tab{display:none}</style><div class="tab"><p>Schreiben Sie uns: info@firma.de</p></div>`, "EMAIL_FOUND info@firma.de"},
	{"sheet that hides nothing", `<style>span{color:red</style><p><span>info@firma.de</span></p>`,
		"EMAIL_FOUND info@firma.de"},
	// Other spellings.
	{"(a)", `<p>info(a)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"(a) behind a label", `<p>Sähköposti: info (a) firma.de</p><p>Email: post (a) firma.de</p>`,
		"EMAIL_FOUND post@firma.de"},
	{"item (a)", `<p>§ 3 (a) firma.de haftet nicht; see section b (a) firma.de</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"|at|", `<p>info|at|firma|dot|de</p>`, "EMAIL_FOUND info@firma.de"},
	{"_at_", `<p>info_at_firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"*at*", `<p>verkauf*at*firma.de</p>`, "EMAIL_FOUND verkauf@firma.de"},
	{"'at'", `<p>verkauf'at'firma.de und "at"</p>`, "EMAIL_FOUND verkauf@firma.de"},
	{"file names", `<p>photo_at_beach.sh, look_at_me.md, menu |at| home.de</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"arroba", `<p>info arroba firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"arroba punto", `<p>Correo: info arroba firma punto de</p>`, "EMAIL_FOUND info@firma.de"},
	{"(arroba)", `<p>info(arroba)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"chiocciola", `<p>info chiocciola firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"arobase", `<p>info arobase firma point de</p>`, "EMAIL_FOUND info@firma.de"},
	{"małpa", `<p>info [małpa] firma [kropka] de</p>`, "EMAIL_FOUND info@firma.de"},
	{"zavináč", `<p>info zavináč firma tečka de</p>`, "EMAIL_FOUND info@firma.de"},
	{"kukac", `<p>info kukac firma pont de</p>`, "EMAIL_FOUND info@firma.de"},
	{"snabel-a", `<p>info snabel-a firma punkt de</p>`, "EMAIL_FOUND info@firma.de"},
	{"собака", `<p>info собака firma точка de</p>`, "EMAIL_FOUND info@firma.de"},
	{"アットマーク", `<p>info【アットマーク】firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"골뱅이", `<p>info(골뱅이)firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"full width", `<p>ｉｎｆｏ＠ｆｉｒｍａ．ｄｅ</p>`, "EMAIL_FOUND info@firma.de"},
	{"full-width brackets", `<p>info（at）firma（dot）de</p>`, "EMAIL_FOUND info@firma.de"},
	{"small at sign", `<p>info﹫firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"picture called at", `<p>info<img src="/i/at.gif">firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"picture that says at",
		`<p>info<img src="/i/1.png" alt="(at)">firma.de, post<img src="/i/1.png" alt="@">firma.de</p>`, "EMAIL_FOUND info@firma.de; post@firma.de"},
	{"icon", `<p>info<i class="fas fa-at"></i>firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"icon before a website",
		`<p>Tel. 123 <i class="fas fa-at"></i> www.firma.de <img src="at.svg"> firma.de</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"copied", `<button data-clipboard-text="info@firma.de">E-Mail kopieren</button>`,
		"EMAIL_FOUND info@firma.de"},
	// Framework data.
	{"next data", `<script id="__NEXT_DATA__" type="application/json">{"props":{"site":{"contactEmail":"info@firma-gruppe.de","text":"Mail an post@firma.de",
"authors":[{"email":"jane@blogger.com"}],"dsn":"https://x@errors.io/1"}}}</script>`, "EMAIL_FOUND post@firma.de; info@firma-gruppe.de"},
	{"assigned",
		`<script>window.__INITIAL_STATE__ = {"company":{"e_mail":"info@firma.de"}};start()</script>`, "EMAIL_FOUND info@firma.de"},
	{"pushed", `<script>self.__next_f.push([1,"a:{\"mail\":\"info@firma.de\"}"])</script>`,
		"EMAIL_FOUND info@firma.de"},
	{"attribute",
		`<div id="app" data-page="{&quot;props&quot;:{&quot;email&quot;:&quot;info@firma.de&quot;}}"></div>`, "EMAIL_FOUND info@firma.de"},
	{"not JSON", `<script>window.x = {mail: "info@firma.de"}</script>`, "NO_EMAIL_PUBLISHED "},
	// Protections.
	{"content", `<style>.m::before{content:"info@firma.de"}</style><p><span class="m"></span></p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"content at sign",
		`<style>.at:after{content:"\40"}</style><p>info<span class="at"></span>firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"content of an icon",
		`<style>.icon:before{content:"@"}</style><p><span class="icon"></span> Tel. 123</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"content of attributes",
		`<style>.m::before{content:attr(data-a) "\0040" attr(data-b)}</style><p><span class="m" data-a="info" data-b="firma.de"></span></p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"unused content", `<style>.m::before{content:"info@firma.de"}</style><p>Tel. 123</p>`,
		"NO_EMAIL_PUBLISHED "},
	{"reversed by a sheet",
		`<style>.r{unicode-bidi:bidi-override;direction:rtl}</style><p><span class="r">ed.amrif@ofni</span></p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"reversed by markup", `<bdo dir="rtl">ed.amrif@ofni</bdo>`, "EMAIL_NOT_EXTRACTABLE "},
	// Buttons and checks are not protections.
	{"picture of a button", `<a class="popup" href="/email-a-friend"><img src="/img/email-it.gif" alt="Email a friend"></a>
<img id="share-reaction3-icon_img" src="/img/email.png" alt=""><img class="social-mail" src="/mail.svg">`, "NO_EMAIL_PUBLISHED "},
	{"picture of an address", `<p>Write to us:</p><a href="#"><img src="/img/email.gif"></a>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"picture behind a label", `<p>E-Mail: <a href="/kontakt"><img src="/i/adr.gif"></a></p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"script that checks an address", `<script>function isMail(s){return s.indexOf(".")>2 && s.indexOf("@") > 0 && !(s.charAt(0) == '@')}
$('#message').html('Please check your email address!');</script>`, "NO_EMAIL_PUBLISHED "},
	{"script that checks and makes", `<script>if(s.indexOf("@")>0){document.write('E-Mail: ' + n + "@" + d)}</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"reversed stars",
		`<style>.r{unicode-bidi:bidi-override;direction:rtl}</style><p><span class="r">★★★</span></p>`, "NO_EMAIL_PUBLISHED "},
	{"share links",
		`<a onclick="window.open('mailto:?subject='+t)">x</a><a onclick="location='mailto:%20?subject=x'">x</a><a onclick="handleShare(event, 'mailto:?body=x@y')">x</a>`, "NO_EMAIL_PUBLISHED "},
	{"nothing hidden before it",
		`<div hidden></div><div><a href="mailto:info@firma.de"><img src="m.jpg"></a></div>`,
		"EMAIL_FOUND info@firma.de"},
	{"what users wrote",
		`<div data-x='{"comments":[{"email":"a@firma.de"}],"teaser":{"email":"jane@blogger.com"}}'></div>`, "NO_EMAIL_PUBLISHED "},
	{"rot13 link", `<a href="znvygb:vasb@svezn.qr">E-Mail</a>`, "EMAIL_NOT_EXTRACTABLE "},
	{"rot13 class", `<span class="rot13">vasb@svezn.qr</span>`, "EMAIL_NOT_EXTRACTABLE "},
	{"rot13 script",
		`<script>document.write("<n uers=\"znvygb:vasb\">".replace(/[a-z]/g, rot13))</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"joined by a script", `<script>el.textContent=["info","firma.de"].join("@")</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"joined without a word of mail", `<script>document.write("info"+"@"+"firma.de")</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"joined in pieces", `<script>el.innerHTML="in"+"fo"+"@"+"firma.de"</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"all of it by numbers",
		`<script>document.write(String.fromCharCode(105,110,102,111,64,102,46,100,101))</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"hidden where a feature is there",
		`<style>@supports(display:grid){.q{display:none}}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"hidden on screens, too",
		`<style>@media print,screen{.q{display:none}}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"hidden on wide screens",
		`<style>@media (min-width:300px){.q{display:none}}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"hidden in an old sheet",
		`<style><!-- .q{display:none} --></style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"cut away",
		`<style>.q{clip-path:inset(100%)}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"hidden on paper",
		`<style>@media print{.q{display:none}}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND infoweg@firma.de"},
	{"hidden by a nested rule",
		`<style>p{& .q{display:none}}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"flat",
		`<style>.q{max-height:0;overflow:hidden}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"the weightier rule",
		`<style>span.q{display:inline} .q{display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND infoweg@firma.de"},
	{"faded in", `<style>.q{opacity:0}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND infoweg@firma.de"},
	{"in doubt: not",
		`<style>span:not(.v){display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"in doubt: nth-child",
		`<style>p span:nth-child(1){display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"in doubt: attribute",
		`<style>[data-x]{display:none}</style><p>info<span data-x>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"another attribute",
		`<style>[hidden]{display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND infoweg@firma.de"},
	{"in doubt: sibling", `<style>b + i{display:none}</style><p><b>in</b><i>weg</i>fo@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"in doubt: is",
		`<style>:is(.h,.q){display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"in doubt: escaped",
		`<style>.\71{display:none}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"clipped",
		`<style>.q{position:absolute;clip:rect(0,0,0,0)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"clipped to pixels",
		`<p>info<span style="position:absolute!important;clip:rect(1px, 1px, 1px, 1px)">weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"clipped to a part",
		`<style>.q{position:absolute;clip:rect(0,100px,10px,0)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND infoweg@firma.de"},
	{"clipped by a path",
		`<style>.q{position:absolute;width:1px;clip-path:inset(50%)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"clipped whole",
		`<style>.q{position:absolute;clip-path:inset(50%);clip:rect(0 0 0 0);height:1px;width:1px;overflow:hidden}</style><p><span class=q>info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"clipped beside it",
		`<style>.q{position:absolute;clip:rect(0,0,0,0)}</style><p><span class=q>E-Mail:</span> info@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"no box",
		`<style>.q{width:0;height:0;overflow:hidden}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"a box of a pixel",
		`<p>info<span style="display:inline-block;width: 1px;height: 1px;overflow: hidden">weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"a box",
		`<style>.q{width:10px;height:10px;overflow:hidden}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND infoweg@firma.de"},
	{"shrunk",
		`<style>.q{display:inline-block;transform:scale(0)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"shrunk whole, until a script shows it",
		`<style>.q{display:inline-block;transform:scale(0)}</style><p><span class=q>info@firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"shrunk a little",
		`<style>.q{transform:scale(0.9)}</style><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_FOUND infoweg@firma.de"},
	{"hidden by a variable",
		`<style>:root{--d:none}.q{display:var(--d)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"sized by a variable",
		`<style>:root{--s:0}.q{font-size:var(--s)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"clipped by a rule in doubt",
		`<style>.q:not(b){position:absolute;clip:rect(0,0,0,0)}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_NOT_EXTRACTABLE "},
	{"for listeners", `<p>info<span class=sr-only>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"sheets in files",
		`<link rel=stylesheet href=/a.css><p>info<span class=q>weg</span>@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"sheets in files, and one that tells",
		`<link rel=stylesheet href=/a.css><style>.q{color:red}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND infoweg@firma.de"},
	{"sheets in files, whole parts",
		`<link rel=stylesheet href=/a.css><p><span class=q>info</span>@<span class=r>firma.de</span></p>`, "EMAIL_FOUND info@firma.de"},
	{"a file of fonts",
		`<link rel=stylesheet href=https://fonts.example/a.css><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND infoweg@firma.de"},
	{"a nested rule behind declarations",
		`<style>p,b{color:red;& .q{color:red;display:none;}}</style><p>info<span class=q>weg</span>@firma.de</p>`, "EMAIL_FOUND info@firma.de"},
	{"for listeners, in front", `<p><span class=sr-only>weg</span>info@firma.de</p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"for listeners, beside it", `<p><span class=sr-only>E-Mail</span> info@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"sheets in files, the sign alone",
		`<link rel=stylesheet href=/a.css><p>info <span class=q>(at)</span> firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
	{"bars of a browser",
		`<style>::-webkit-scrollbar{display:none}</style><p>info<b>weg</b>@firma.de</p>`,
		"EMAIL_FOUND infoweg@firma.de"},
	{"half by content",
		`<style>.m:after{content:"@firma.de"}</style><p><span class=m>info</span></p>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"packages of a script",
		`<script>document.write(""); load("react@18"+"/umd", {"@type": "x"})</script>`,
		"NO_EMAIL_PUBLISHED "},
	{"char codes", `<script>x.innerHTML='info'+String.fromCharCode(64)+'firma.de'</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"base64", `<script>a.href='mailto:'+atob('aW5mb0BmaXJtYS5kZQ==')</script>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"on a click", `<a href="#" onclick="location.href='mailto:'+u+'@'+d">E-Mail</a>`,
		"EMAIL_NOT_EXTRACTABLE "},
	{"script beside an address",
		`<script>el.textContent=["x","firma.de"].join("@")</script><p>info@firma.de</p>`,
		"EMAIL_FOUND info@firma.de"},
}

func TestForms(t *testing.T) {
	for _, c := range slices.Concat(forms, attacks) {
		w := website{name: c.name, url: "https://www.firma.de/", pages: map[string]response{
			"https://www.firma.de/": raw(
				"<html><head><title>Firma</title></head><body><h1>Firma</h1>" + wildProse +
					wildProse + c.markup + wildProse + "</body></html>")}}
		got, _, _ := visit(t, w)
		if text := string(got.Status) + " " + got.All; text != c.want {
			t.Errorf("%s:\n got  %s\n want %s", c.name, strings.TrimSpace(text), c.want)
		}
	}
}

// FuzzSheets: applying any style sheet to an element terminates and gives the same effect each
// time.
func FuzzSheets(f *testing.F) {
	for _, c := range forms {
		f.Add([]byte(c.markup))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, _ := newSheets(body)
		if s != nil && (len(s.rules) > maxRules || len(s.shown) > 20) {
			t.Errorf("%d rules, %d attributes", len(s.rules), len(s.shown))
		}
		e, open := element{"span", "x", "m weg r"}, []element{{"div", "c", ""}, {"p", "", "mail"}}
		if first, again := s.effect(e, open), s.effect(e, open); first != again {
			t.Error("differs")
		}
		if d := parse(body, []string{"firma.de"}); d.text.Len() > 8*maxText {
			t.Errorf("%d bytes of text", d.text.Len())
		}
	})
}

// TestHostileSheets: the work for nested rules and partly understood selectors is bounded by the
// sheet's size, not by their product.
func TestHostileSheets(t *testing.T) {
	inner := strings.Repeat("& x{color:red}", 200)
	sheet := strings.Repeat(strings.Repeat("a,", 100)+"b{"+inner+strings.Repeat("c{", 3)+"}}}}",
		100)
	s, _ := newSheets([]byte("<style>" + sheet + strings.Repeat(":not(b){display:none}", 5000) +
		"</style>"))
	if len(s.rules) > maxRules || len(s.vague) > maxVague || s.nested > 0 {
		t.Errorf("%d rules, %d of them read in part, %d bytes left", len(s.rules), len(s.vague),
			s.nested)
	}
}

// TestBeyondTheBounds: what bounds leave out of style sheets may hide letters of an address. Such
// an address is in doubt, and one without elements inside is not.
func TestBeyondTheBounds(t *testing.T) {
	const hidden = ".q{display:none}"
	layers := func(n int) string {
		return strings.Repeat("@layer a{", n) + hidden + strings.Repeat("}", n)
	}
	classes := many("c", maxParts+1, " ")
	for name, c := range map[string]struct{ sheet, before, class string }{
		"bytes":     {".a{display:none}" + strings.Repeat(" ", maxSheets) + hidden, "", "q"},
		"sheets":    {strings.Repeat(" ", maxSheets) + "</style><style>" + hidden, "", "q"},
		"rules":     {strings.Repeat(".a{display:none}", maxRules) + hidden, "", "q"},
		"selectors": {strings.Repeat(".a,", maxRules) + hidden, "", "q"},
		"vague":     {strings.Repeat(".a:not(b){display:none}", maxVague+1), "", "q"},
		"depth":     {layers(maxDepth + 1), "", "q"},
		"nested": {"p,a,a,a{" + strings.Repeat("a{b:c}", maxSheets/7) + "& " + hidden + "}", "",
			"q"},
		"classes": {"." + strings.ReplaceAll(classes, " ", ".") + "{display:none}", "",
			classes},
		"class bytes": {hidden, "", strings.Repeat("c ", maxClassBytes/2) + "q"},
		"all classes": {hidden, "", many("c", maxClasses, " ") + " q"},
		"tries": {strings.Repeat("x span{display:none}", maxRules-1) + hidden,
			strings.Repeat("<span>a</span> ", maxTries/maxRules+2), "q"},
		"open":   {"main .q{display:none}", strings.Repeat("<b>", maxOpen) + "<main>", "q"},
		"inline": {".q:not(b){display:none}", strings.Repeat("<b>", maxOpen), "q"},
		"doubts": {".q:not(b){display:none}",
			strings.Repeat("<i class=q>a</i>", maxDoubts) + " ", "q"},
	} {
		page := "<style>" + c.sheet + "</style><p>" + c.before + "info<span class='" + c.class +
			"'>weg</span>@firma.de, <b>post</b>@firma.de"
		got := readPage(pageOf(page), []string{"firma.de"})
		honest := len(got.Addresses) == 1 && got.Addresses[0].Email == "post@firma.de"
		if crowded := name == "doubts"; !got.Protected || !honest && !crowded {
			t.Errorf("%s: protected %v, %v", name, got.Protected, got.Addresses)
		}
	}
}

// many joins a name with n numbers.
func many(name string, n int, with string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(name, i)
	}
	return strings.Join(names, with)
}

// Boundaries at the edges of words take no room.
func TestDoubtsAreWithinWords(t *testing.T) {
	d := parse([]byte("<style>.q:not(b){display:none}</style><p>"+
		strings.Repeat("<i class=q>a</i> ", maxDoubts)+"b<i class=q>c</i>"), nil)
	if len(d.doubts) > 4 || d.crowded {
		t.Errorf("%d boundaries, crowded %v", len(d.doubts), d.crowded)
	}
}

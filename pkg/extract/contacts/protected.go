package contacts

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// protections are attributes that hold an address only for scripts.
var protections = []string{"data-cfemail", "data-enc-email", "data-mailto-token", "data-mailto",
	"data-mail-to", "data-email",
	"data-e-mail", "data-mail", "data-email-encoded", "data-obfuscated-email", "data-hash-email",
	"data-cryptmail"}

var (
	cryptedLink = regexp.MustCompile(`(?i)^javascript:.*(?:crypt|mail|fromcharcode|rot13)`)
	mailImage   = regexp.MustCompile(`(?i)(?:^|[/_.-])(?:e-?mail|mailadresse|mailaddress|e-?mail-?adresse|correo|courriel)[^/]*\.(?:png|gif|jpe?g|webp|svg)(?:\?|$)`)
	iconImage   = regexp.MustCompile(`(?i)icon|symbol|logo|button|btn|envelope|letter|brief|sprite|32|24|16|64`)
	// buttonName matches ids and classes of buttons, whatever the name of their picture.
	buttonName = regexp.MustCompile(`(?i)icon|symbol|logo|button|btn|share|social|toolbar`)
	// mailto links that share the page do not match
	madeMailto = regexp.MustCompile(`mailto:(?:['"` + "`" + `] ?\+ ?[a-z('"]|[^?'"%&\s]+@)`)
	endsLabel  = regexp.MustCompile(`(?i)(?:e-?mail|mail|e-post|correo|courriel|posta)(?:[ -]?(?:adresse|address))?[ ]?[:：][ \x1f\n]*$`)
)

// Marks of scripts that produce an address. A script must contain one of each list.
var (
	makesMail = []string{"mailto:' +", "mailto:'+", `mailto:" +`, `mailto:"+`, "'@'", `"@"`,
		"'&#64;'", `"&#64;"`, "'%40'", `"%40"`, `\x40`, `\u0040`,
		"&#109;&#97;&#105;&#108;", "'ma'+'il'", "eeb_", "uncryptmail", "decryptmail", "addy"}
	putsText = []string{"document.write", "innerhtml", ".href", "insertadjacenthtml", "textcontent",
		"setattribute", "location", "innertext",
		"append", "createtextnode", "replacewith", ".html(", ".text(", ".attr("}
	// decoders also occur in other programs; in a short script about mail they produce an address.
	decoders = []string{"atob(", "fromcharcode", `split('').reverse()`, `split("").reverse()`}
	// encodings are ways to hide an address from clients that run no scripts.
	encodings = []string{"znvygb", "rot13", "fromcharcode(64)", "fromcharcode(0x40)", ".join('@')",
		`.join("@")`, "join(`@`)", "decodeemail", "deobfuscate",
		"decryptemail"}
)

var (
	// joinedSign matches an at sign that a script joins with texts: "info" + "@" + "firma.de".
	joinedSign = regexp.MustCompile(`["'` + "`" + `] ?\+ ?["'` + "`" + `][\w.-]*@[\w.-]*["'` + "`" +
		`] ?\+ ?["'` + "`" + `]`)
	// charCodes matches characters by their codes; 64 is an at sign, 46 a dot.
	charCodes = regexp.MustCompile(`fromcharcode\(([0-9, ]+)\)`)
)

// checkedSign matches a script's check for an at sign in a visitor's input.
var checkedSign = regexp.MustCompile(
	`(?:indexof|includes|search|contains|strpos|charat\([^)]{0,20}\)|[=!]==?) ?\(? ?(?:"(?:@|\\x40|\\u0040)"|` +
		`'(?:@|\\x40|\\u0040)')`)

// makesAddress says whether a lower-case script about mail contains a part from which scripts make
// addresses.
func makesAddress(script string) bool {
	return containsAny(script, makesMail) &&
		containsAny(checkedSign.ReplaceAllString(script, ""), makesMail)
}

// writesCodes says whether a script makes text from character codes that include an at sign and a
// dot.
func writesCodes(script string) bool {
	for _, found := range charCodes.FindAllStringSubmatch(script, 10) {
		codes := " " + strings.Join(strings.FieldsFunc(found[1],
			func(r rune) bool { return r < '0' || r > '9' }), " ") + " "
		if strings.Contains(codes, " 64 ") && strings.Contains(codes, " 46 ") {
			return true
		}
	}
	return false
}

// maxLine bounds a script that does nothing but write an address, in bytes.
const maxLine = 3000

func containsAny(s string, marks []string) bool {
	for _, mark := range marks {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// protects says that an element holds a protected address. Nothing of it is decoded.
func protects(t *html.Token, attrs map[string]string) bool {
	for _, name := range protections {
		if value := attrs[name]; value != "" && t.DataAtom != atom.Input &&
			t.DataAtom != atom.Form {
			return true
		}
	}
	class := " " + strings.ToLower(attrs["class"]) + " "
	if strings.Contains(class, " __cf_email__ ") || strings.Contains(class, " cryptedmail ") ||
		strings.Contains(class, " cloaked_email ") {
		return true
	}
	if attrs["data-domain"] != "" && (attrs["data-user"] != "" || attrs["data-name"] != "") {
		return true
	}
	if strings.Contains(class, " rot13 ") {
		return true
	}
	click := strings.ToLower(attrs["onclick"] + attrs["onmouseover"])
	if click != "" && (madeMailto.MatchString(click) || containsAny(click, encodings)) {
		return true
	}
	if strings.HasPrefix(strings.ToLower(attrs["id"]), "cloak") {
		return true
	}
	href := strings.TrimSpace(attrs["href"])
	return t.DataAtom == atom.A &&
		(len(href) > 7 && strings.EqualFold(href[:7], "znvygb:") ||
			strings.Contains(href, "/cdn-cgi/l/email-protection") || cryptedLink.MatchString(href))
}

// script records whether a script makes an address.
func (p *parser) script(text string) {
	if state := stateIn(text); state != "" {
		p.addState(state)
	}
	if len(text) > 200_000 {
		return // a program, not a line that writes an address
	}
	raw := text
	text = strings.ToLower(text)
	p.protected = p.protected || containsAny(text, putsText) &&
		(len(text) < maxLine && hidesAddress(raw, p.own) ||
			strings.Contains(text, "mail") && makesAddress(text) ||
			containsAny(text, encodings) ||
			len(text) < maxLine &&
				(strings.Contains(text, "mailto") && containsAny(text, decoders) ||
					joinedSign.MatchString(text) || writesCodes(text)))
}

// image takes an image's text, or records that the image shows an address.
func (p *parser) image(attrs map[string]string) {
	alt := attrs["alt"]
	if isSignName(strings.ToLower(strings.Trim(alt, " ()[]{}"))) || alt == "" &&
		signImage.MatchString(attrs["src"]) {
		p.text.WriteString(pictured)
		return
	}
	if strings.ContainsAny(alt, "@＠") || spelledAt.MatchString(alt) {
		p.write(" " + alt + " ")
		return
	}
	s := p.text.String()
	name := attrs["src"]
	labelled := endsLabel.MatchString(s[max(0, len(s)-40):])
	if iconImage.MatchString(name) {
		return
	}
	p.protected = p.protected || labelled || mailImage.MatchString(name) && !p.isButton(attrs)
}

// isButton says whether an image acts as a button. Its id or class says so, or its link leads
// elsewhere than to mail.
func (p *parser) isButton(attrs map[string]string) bool {
	if buttonName.MatchString(attrs["id"]) || buttonName.MatchString(attrs["class"]) {
		return true
	}
	if p.anchor < 0 {
		return false
	}
	href := p.links[p.anchor].href
	return !strings.HasPrefix(href, "#") &&
		!(len(href) >= len("mailto:") && strings.EqualFold(href[:len("mailto:")], "mailto:"))
}

// signImage matches the address of a picture of an at sign.
var signImage = regexp.MustCompile(`(?i)(?:^|[/_-])(?:at|at[_-]?sign|klammeraffe|aff?e|arroba|arobase|chiocciola|malpa|zavinac)\.(?:png|gif|jpe?g|webp|svg)(?:\?|$)`)

// isSignName says whether a lower-case word is a name of the at sign.
func isSignName(word string) bool {
	switch word {
	case "@", "＠", "at", "at sign", "at-sign", "at-zeichen", "klammeraffe", "arroba", "arobase",
		"chiocciola", "małpa", "zavináč", "apenstaartje", "snabel-a":
		return true
	}
	return false
}

// isSign says whether an element is an icon of an at sign.
func isSign(t *html.Token, attrs map[string]string) bool {
	if t.DataAtom != atom.I && t.DataAtom != atom.Span {
		return false
	}
	for class := range strings.FieldsSeq(attrs["class"]) {
		switch class {
		case "fa-at", "icon-at", "bi-at", "ti-at", "la-at", "ri-at-line", "mdi-at", "ph-at",
			"uil-at", "glyphicon-at":
			return true
		}
	}
	return false
}

// styled marks an at sign in the text of a page that a style sheet adds.
const styled = '\x1e'

// styledSign matches such a sign within an address.
var styledSign = regexp.MustCompile(`[\pL\pN]\x1e+[\pL\pN-]+\.`)

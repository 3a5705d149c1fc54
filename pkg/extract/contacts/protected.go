package contacts

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// protections are attributes that hold an address for a script alone.
var protections = []string{"data-cfemail", "data-enc-email", "data-mailto-token", "data-mailto", "data-mail-to", "data-email",
	"data-e-mail", "data-mail", "data-email-encoded", "data-obfuscated-email", "data-hash-email", "data-cryptmail"}

var (
	cryptedLink = regexp.MustCompile(`(?i)^javascript:.*(?:crypt|mail)`)
	mailImage   = regexp.MustCompile(`(?i)(?:^|[/_.-])(?:e-?mail|mailadresse|mailaddress|e-?mail-?adresse|correo|courriel)[^/]*\.(?:png|gif|jpe?g|webp|svg)(?:\?|$)`)
	iconImage   = regexp.MustCompile(`(?i)icon|symbol|logo|button|btn|envelope|letter|brief|sprite|32|24|16|64`)
	endsLabel   = regexp.MustCompile(`(?i)(?:e-?mail|mail|e-post|correo|courriel|posta)(?:[ -]?(?:adresse|address))?[ ]?[:：][ \x1f\n]*$`)
)

// Marks of scripts that make an address: one of each list stands in the script.
var (
	makesMail = []string{"mailto:' +", "mailto:'+", `mailto:" +`, `mailto:"+`, "'@'", `"@"`, "'&#64;'", `"&#64;"`, "'%40'", `"%40"`, `\x40`, `\u0040`,
		"&#109;&#97;&#105;&#108;", "'ma'+'il'", "eeb_", "uncryptmail", "decryptmail", "addy"}
	putsText = []string{"document.write", "innerhtml", ".href", "insertadjacenthtml", "textcontent", "setattribute", "location"}
)

func containsAny(s string, marks []string) bool {
	for _, mark := range marks {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// protects says that an element holds an address behind a protection. Nothing of it is decoded.
func protects(t *html.Token, attrs map[string]string) bool {
	for _, name := range protections {
		if value := attrs[name]; value != "" && t.DataAtom != atom.Input && t.DataAtom != atom.Form {
			return true
		}
	}
	class := " " + strings.ToLower(attrs["class"]) + " "
	if strings.Contains(class, " __cf_email__ ") || strings.Contains(class, " cryptedmail ") || strings.Contains(class, " cloaked_email ") {
		return true
	}
	if attrs["data-domain"] != "" && (attrs["data-user"] != "" || attrs["data-name"] != "") {
		return true
	}
	style := strings.ReplaceAll(strings.ToLower(attrs["style"]), " ", "")
	if strings.Contains(style, "bidi-override") && strings.Contains(style, "rtl") {
		return true
	}
	if strings.HasPrefix(strings.ToLower(attrs["id"]), "cloak") {
		return true
	}
	href := strings.TrimSpace(attrs["href"])
	return t.DataAtom == atom.A && (strings.Contains(href, "/cdn-cgi/l/email-protection") || cryptedLink.MatchString(href))
}

// script notes a script that makes an address.
func (p *parser) script(text string) {
	if len(text) > 200_000 {
		return // a program, not a line that writes an address
	}
	text = strings.ToLower(text)
	p.protected = p.protected || strings.Contains(text, "mail") && containsAny(text, makesMail) && containsAny(text, putsText)
}

// image takes an image's text, or notes that it shows an address.
func (p *parser) image(attrs map[string]string) {
	alt := attrs["alt"]
	if strings.ContainsAny(alt, "@＠") || spelledAt.MatchString(alt) {
		p.write(" " + alt + " ")
		return
	}
	s := p.text.String()
	name := attrs["src"]
	labelled := endsLabel.MatchString(s[max(0, len(s)-40):])
	if labelled && !iconImage.MatchString(name) || mailImage.MatchString(name) && !iconImage.MatchString(name) {
		p.protected = true
	}
}

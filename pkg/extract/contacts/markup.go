package contacts

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func attributes(t *html.Token) map[string]string {
	if len(t.Attr) == 0 {
		return nil
	}
	attrs := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		if _, twice := attrs[a.Key]; !twice {
			attrs[a.Key] = a.Val
		}
	}
	return attrs
}

// markup records what elements state outside their text.
func (p *parser) markup(t *html.Token, attrs map[string]string) {
	if protects(t, attrs) || codes(t, attrs, p.own) {
		p.protected = true
	}
	if itemprop := attrs["itemprop"]; itemprop == "email" && attrs["content"] != "" {
		p.addLinked(attrs["content"])
	}
	switch t.DataAtom {
	case atom.Area, atom.Link:
		p.addMailto(attrs["href"])
	case atom.Form:
		p.addMailto(attrs["action"])
	case atom.Input: // a field to copy from
		if _, readonly := attrs["readonly"]; readonly && attrs["type"] != "hidden" {
			p.addLinked(attrs["value"])
		}
	}
	for _, name := range copied {
		if text := attrs[name]; text != "" {
			p.addLinked(text)
		}
	}
	for i := range t.Attr {
		if text := t.Attr[i].Val; len(text) > 2 && (text[0] == '{' || text[0] == '[') &&
			hasSign(text) {
			p.addState(text)
		}
	}
	switch id := strings.ToLower(attrs["id"]); id {
	case "root", "app", "__next", "__nuxt", "___gatsby", "svelte", "q-app", "main-app":
		p.roots = true
	}
	switch t.DataAtom {
	case atom.Meta:
		p.meta(attrs)
	case atom.Base:
		if href := attrs["href"]; href != "" && p.base() == "" {
			p.links = append(p.links, link{href, span{-1, -1}})
		}
	case atom.Iframe, atom.Frame:
		p.addSource(attrs["src"])
	case atom.Frameset:
		p.frameset = true
	case 0:
		if t.Data == "app-root" || t.Data == "ion-app" {
			p.roots = true
		}
	}
}

func (p *parser) meta(attrs map[string]string) {
	switch name := strings.ToLower(attrs["name"] + attrs["property"]); {
	case name == "og:email" || name == "business:contact_data:email" || name == "contact:email":
		p.addLinked(attrs["content"])
	case strings.EqualFold(attrs["http-equiv"], "refresh") && p.refresh == "":
		p.refresh = attrs["content"]
	}
}

func (p *parser) addLinked(text string) {
	for _, h := range findAddresses(text, p.own) {
		if len(p.linked) < maxMarks {
			p.linked = append(p.linked, hit{h.email, p.text.Len(), p.text.Len()})
		}
	}
}

// copied are attributes whose text a button copies for the visitor.
var copied = []string{"data-clipboard-text", "data-clipboard", "data-copy", "data-copy-text"}

// hasSign says whether JSON may contain an at sign.
func hasSign(text string) bool {
	return strings.Contains(text, "@") || strings.Contains(text, `\u0040`)
}

// addState keeps data of a framework.
func (p *parser) addState(text string) {
	if len(p.states) < 100 && p.dataBytes+len(text) <= maxData {
		p.states = append(p.states, text)
		p.dataBytes += len(text)
	}
}

func (p *parser) addSource(src string) {
	if src != "" && len(p.sources) < maxSources {
		p.sources = append(p.sources, strings.ToLower(src[:min(len(src), maxSource)]))
	}
}

func (p *parser) startScript(attrs map[string]string) {
	p.skipped = "script"
	media, _, _ := strings.Cut(strings.ToLower(attrs["type"]), ";")
	switch strings.TrimSpace(media) {
	case "application/ld+json":
		p.skipped = "json"
	case "application/json":
		p.skipped = "state"
	case "", "text/javascript", "module", "application/javascript":
		p.scripts++
		p.addSource(attrs["src"])
	}
}

package detect

import (
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// heading returns the element that names what a page is about, or nil. headed is the share of the
// page's title that it has, from 0 to 1.
func (p *probe) heading() (heading *html.Node, headed float64) {
	if p.headingKnown {
		return p.headingNode, p.headingShare
	}
	p.headingKnown = true
	names := p.names()
	most := 0.0
	look := func(i int, text string) {
		shared := likenessOf(text, names)
		if worth := p.headingWorth(i, shared); worth > most {
			most, p.headingNode, p.headingShare = worth, p.all[i].node, shared
		}
	}
	for i := range p.all {
		if e := &p.all[i]; e.step == "h1" && !e.beside && e.textLength() > 0 {
			p.firstHeads++
		}
	}
	for i := range p.all {
		switch e := &p.all[i]; e.step {
		case "h1", "h2", "h3":
			if n := e.textLength(); n > 0 && n <= maxTitle {
				look(i, textOf(e.node))
			}
		}
	}
	for k := range p.captions {
		look(p.captions[k].at, p.captions[k].text)
	}
	return p.headingNode, p.headingShare
}

// headingWorth rates an element as the heading by its kind and by its share of the page's title.
func (p *probe) headingWorth(i int, shared float64) float64 {
	e := &p.all[i]
	level := ""
	if around := ancestor(e.node, named("h1", "h2", "h3")); around != nil {
		level = around.Data
	}
	worth := 0.6
	switch {
	case level == "h1":
		worth = 1
	case level == "h2":
		worth = 0.85
	case level == "h3" || titled(e.node) > 0:
		worth = 0.75
	}
	switch tree.Attr(e.node, "itemprop") {
	case "headline", "name":
		worth += 0.1
	}
	if e.beside {
		worth *= 0.4
	}
	if e.linkedLength()*2 > e.textLength() {
		worth *= 0.8
	}
	switch {
	case level == "h1" && p.firstHeads == 1:
		shared += 0.35
	case level == "h1":
		shared += 0.15
	case level == "h2":
		shared += 0.03
	}
	return worth * shared
}

// maxSaid bounds the page titles that headings are compared with, and likewise the names of things.
const maxSaid = 40

// names returns the page's first titles and the first names of things that fit them, in lower case.
func (p *probe) names() []string {
	titles := p.titles()
	titles = titles[:min(len(titles), maxSaid)]
	names := titles
	for _, thing := range p.things {
		for _, name := range [...]string{thing.Text("headline"), thing.Text("name")} {
			if len(names) == len(titles)+maxSaid {
				return names
			}
			name = name[:min(len(name), maxTitle)]
			name = strings.ToLower(strings.Join(strings.Fields(name), " "))
			if name != "" && (len(titles) == 0 || likenessOf(name, titles) > 0.1) {
				names = append(names, name)
			}
		}
	}
	return names
}

// likenessOf returns the text's greatest likeness to any of the names.
func likenessOf(text string, names []string) float64 {
	most := 0.0
	for _, name := range names {
		most = max(most, likeness(text, name))
	}
	return most
}

// titles returns the titles that a page states, in lower case.
func (p *probe) titles() []string {
	var names []string
	add := func(name string) {
		name = name[:min(len(name), maxTitle)] // a longer text is not a title
		if name = strings.ToLower(strings.Join(strings.Fields(name), " ")); name != "" {
			names = append(names, name)
		}
	}
	for _, css := range [...]string{`meta[property="og:title"]`, `meta[name="twitter:title"]`,
		`meta[name="title"]`} {
		for _, n := range p.sel.all(css) {
			add(tree.Attr(n, "content"))
		}
	}
	for _, n := range p.sel.all("title") {
		if n.FirstChild == nil || n.Parent == nil || n.Parent.Data != "head" {
			continue
		}
		title := n.FirstChild.Data
		add(title)
		longest := ""
		for _, part := range strings.FieldsFunc(title, isSeparator) {
			if len(strings.TrimSpace(part)) > len(longest) {
				longest = strings.TrimSpace(part)
			}
		}
		add(longest)
		for _, dash := range [...]string{" - ", " : "} {
			longest = ""
			for part := range strings.SplitSeq(title, dash) {
				if len(part) > len(longest) {
					longest = part
				}
			}
			add(longest)
		}
	}
	return names
}

// isSeparator says whether a sign separates a page's title from its site's name.
func isSeparator(r rune) bool { return strings.ContainsRune("|–—·»«•›‹", r) }

// likeness rates how much two texts have in common, from 0 to 1.
func likeness(text, name string) float64 {
	text = strings.ToLower(text)
	switch {
	case text == name:
		return 1
	case len(text) > 3 && strings.Contains(name, text):
		return float64(len(text)) / float64(len(name))
	}
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(name, notInWords) {
		words[word] = true
	}
	if len(words) == 0 {
		return 0
	}
	shared, all := 0, 0
	for word := range strings.FieldsFuncSeq(text, notInWords) {
		all++
		if words[word] {
			shared++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(shared) / float64(all) * float64(shared) / float64(max(len(words), shared))
}

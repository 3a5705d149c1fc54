package aiconf

import (
	"cmp"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/detect"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/wordset"
)

// headline is the heading of an article. First headings are often those of the site, of a section
// of it, or of a part for programs that read aloud. What has most of the page's titles is better.
func (r *reader) headline(first *html.Node) *html.Node {
	found := detect.Heading(r.data, r.page.URL)
	if found == nil || r.isSite(shownText(found, maxShown)) || r.leadsHome(found) {
		found = first
	}
	parts := map[string]bool{}
	split := parting.Split(within(r.data.Title), -1)
	for i := range split[:min(len(split), maxParts)] {
		run := ""
		for _, part := range split[i:min(len(split), maxParts)] {
			run += normal(part)
			parts[run] = true
		}
	}
	if found == nil || !r.isPart(parts, found) {
		return found
	}
	// Titles lead from the site to the article, or back: the article has the longest name.
	most, looked, home := len(normal(shownText(found, maxShown))), 0, ""
	for n := range r.data.Root.Descendants() {
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.H3:
			if looked++; looked > maxLike {
				return found
			}
			name := normal(shownText(n, maxShown))
			if r.leadsHome(n) {
				home = name // and what repeats it is the site's motto
			}
			if len(name) > most && name != home && r.isPart(parts, n) {
				found, most = n, len(name)
			}
		}
	}
	return found
}

// maxParts is how many parts of a title are looked at: headings are one or more of them.
const maxParts = 8

// leadsHome says whether a heading is a link to the site's first page, as its name is.
func (r *reader) leadsHome(heading *html.Node) bool {
	for n := range heading.Descendants() {
		if n.DataAtom == atom.A {
			at, err := url.Parse(r.data.Resolve(attrOf(n, "href")))
			return err == nil && at.Host != "" && strings.Trim(at.Path, "/") == ""
		}
	}
	return false
}

// within is the beginning of a title: what is longer is no title.
func within(title string) string { return title[:min(len(title), maxShown)] }

// isPart says whether an element has the words of one of the parts of the page's title.
func (r *reader) isPart(parts map[string]bool, n *html.Node) bool {
	shown := shownText(n, maxShown)
	name := normal(shown)
	return name != "" && parts[name] && !r.isSite(shown)
}

// namesPage says whether a text, or the longest part of it, is in one of the page's titles.
func (r *reader) namesPage(text string) bool {
	longest := ""
	for _, part := range parting.Split(text, -1) {
		if part = normal(part); len(part) > len(longest) {
			longest = part
		}
	}
	if len(longest) < minTitled {
		return false
	}
	for _, title := range [...]string{r.data.Title, r.data.MetaValue("og:title"),
		r.data.MetaValue("twitter:title")} {
		if strings.Contains(normal(within(title)), longest) {
			return true
		}
	}
	return false
}

// minLike is how much a stated name has to be like one of the page's titles, as F1 of their words.
// What is less like them stands beside the article.
const minLike = 0.25

// isOther says whether an item has a name, and that is like none of the page's titles.
func (r *reader) isOther(it *structured.Item) bool {
	name := cmp.Or(it.Text("headline"), it.Text("name"), it.Text("title"))
	if len(normal(name)) < minTitled || r.mentioned().heading == nil {
		return false
	}
	for _, title := range [...]string{titleOf(r.names.heading), r.data.Title,
		r.data.MetaValue("og:title")} {
		if title != "" && sharedWords(within(name), within(title)) >= minLike {
			return false
		}
	}
	return true
}

// sharedWords is F1 of the words of two texts.
func sharedWords(a, b string) float64 {
	words, shared, all := map[string]bool{}, 0, 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(a), isSign) {
		words[word] = true
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(b), isSign) {
		if all++; words[word] {
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(1, len(words)+all))
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// kickers are the words of what stands over or under a title, in its element.
var kickers = wordset.Of("kicker supertitle overline roofline dachzeile spitzmarke topline " +
	"pretitle subtitle subline")

// titleOf is what a heading says without what stands over and under it.
func titleOf(heading *html.Node) string {
	bare := textBut(heading, maxShown, func(n *html.Node) bool {
		return n.DataAtom == atom.Time || n.DataAtom == atom.Rt ||
			n.DataAtom == atom.Rp || hasWord(n, kickers)
	})
	if bare == "" {
		return shownText(heading, maxShown)
	}
	return bare
}

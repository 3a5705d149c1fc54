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

// headline returns an article's heading. The first heading is often that of the site, a section or
// a screen reader's region. The heading that best matches the page's titles is preferred.
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
	// A title's parts range from the site to the article. The article's name is the longest.
	most, looked, home := len(normal(shownText(found, maxShown))), 0, ""
	for n := range r.data.Root.Descendants() {
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.H3:
			if looked++; looked > maxLike {
				return found
			}
			name := normal(shownText(n, maxShown))
			if r.leadsHome(n) {
				home = name // a repetition of it is the site's motto
			}
			if len(name) > most && name != home && r.isPart(parts, n) {
				found, most = n, len(name)
			}
		}
	}
	return found
}

// maxParts bounds the examined parts of a title. A heading consists of one or more.
const maxParts = 8

// leadsHome says whether a heading links to the site's home page, as the site's name does.
func (r *reader) leadsHome(heading *html.Node) bool {
	for n := range heading.Descendants() {
		if n.DataAtom == atom.A {
			at, err := url.Parse(r.data.Resolve(attrOf(n, "href")))
			return err == nil && at.Host != "" && strings.Trim(at.Path, "/") == ""
		}
	}
	return false
}

// within returns the beginning of a title, because longer text is not a title.
func within(title string) string { return title[:min(len(title), maxShown)] }

// isPart says whether an element has the words of some parts of the page's title.
func (r *reader) isPart(parts map[string]bool, n *html.Node) bool {
	shown := shownText(n, maxShown)
	name := normal(shown)
	return name != "" && parts[name] && !r.isSite(shown)
}

// namesPage says whether the longest part of a text is in one of the page's titles.
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

// minLike is the least similarity of a stated name to one of the page's titles, as F1 of their
// words. A less similar item is beside the article.
const minLike = 0.25

// isOther says whether an item has a name that is unlike all of the page's titles.
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

// sharedWords returns the F1 score of two texts' words.
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

// kickers are the words of lines above or below a title, within its element.
var kickers = wordset.Of("kicker supertitle overline roofline dachzeile spitzmarke topline " +
	"pretitle subtitle subline")

// titleOf returns a heading's text without the lines above and below the title.
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

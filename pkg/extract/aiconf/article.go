package aiconf

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/prose"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/jsontext"
)

// What a page says of an article is said to machines in a hurry. Titles have the site's name, the
// site is the author, and a teaser is the text. Readers see it better. So a title is held against
// the heading, an author against the line below it, and the text is what a reader reads.

// publishers are the types of those who run a site.
var publishers = []string{"Organization", "NewsMediaOrganization", "Corporation", "Person"}

// wantsArticle says whether the schema asks for what only articles have.
func (r *reader) wantsArticle() bool {
	for i := range r.fields {
		if f := &r.fields[i]; f.means("articleBody") || f.means("datePublished") {
			return true
		}
	}
	return false
}

// article is the article of the page, read once.
func (r *reader) article() *prose.Article {
	if r.read == nil {
		r.read = &prose.Article{}
		if r.data.Root != nil {
			*r.read = prose.Read(r.data.Root, r.page.URL)
		}
	}
	return r.read
}

// ofArticle is the text of the article that the page is about. weak says that there is so little
// that it may be anything.
func (r *reader) ofArticle(f *field) (value []byte, weak bool) {
	found := r.article()
	return r.coerce(f, textOnly(found.Text, false)), !found.Sure
}

// nameIn is a value of the field; of a name, as its reader sees it.
func (r *reader) nameIn(f *field, value []byte) []byte {
	if value == nil || !f.means("name") {
		return value
	}
	return r.titled(f, value)
}

// titled is a name that the page states as its reader sees it: as the heading has it, or without
// the name of the site. It is nil if it is nothing but that.
func (r *reader) titled(f *field, value []byte) []byte {
	var name string
	if json.Unmarshal(value, &name) != nil {
		return value
	}
	if heading := r.mentioned().heading; heading != nil {
		shown := shownText(heading, maxShown)
		h, n := normal(shown), normal(name)
		if len(h) >= minTitled && h != n && (strings.HasPrefix(n, h) || strings.HasSuffix(n, h)) {
			return r.coerce(f, textOnly(shown, false))
		}
	}
	if strings.Contains(name, "://") {
		return nil
	}
	bare := r.unsited(name)
	if bare == name {
		return value
	}
	if bare == "" {
		return nil
	}
	return jsontext.AppendString(nil, bare)
}

// parting is what stands between a title and the site's name.
var parting = regexp.MustCompile(`\s+[|–—•·›»:-]+\s+|\s*\|\s*`)

// unsited is a title without the name of the site before or behind it.
func (r *reader) unsited(title string) string {
	title = strings.TrimSpace(title)
	if r.isSite(title) {
		return ""
	}
	parts := parting.FindAllStringIndex(title, -1)
	for _, at := range parts {
		if r.isSite(title[at[1]:]) {
			return strings.TrimSpace(title[:at[0]])
		}
	}
	if len(parts) > 0 && r.isSite(title[:parts[0][0]]) {
		return strings.TrimSpace(title[parts[0][1]:])
	}
	return title
}

// isSite says whether a text is the site's name: as it says itself, or as its address does.
func (r *reader) isSite(text string) bool {
	name := normal(text)
	if name == "" {
		return false
	}
	for _, own := range r.siteNames() {
		if name == own {
			return true
		}
	}
	return false
}

// siteNames are the names of the site in normal form.
func (r *reader) siteNames() []string {
	if r.sites != nil {
		return r.sites
	}
	r.sites = []string{}
	add := func(name string) {
		if name = normal(name); name != "" {
			r.sites = append(r.sites, name)
		}
	}
	add(r.data.MetaValue("og:site_name"))
	add(r.data.MetaValue("application-name"))
	for _, it := range r.data.Items {
		if it.Is("WebSite") {
			add(it.Text("name"))
		}
		for _, v := range it.Get("publisher") {
			if v.Kind == structured.Entity {
				add(r.data.Follow(v.Item).Text("name"))
			}
		}
	}
	if at, err := url.Parse(r.page.URL); err == nil {
		host := strings.TrimPrefix(at.Hostname(), "www.")
		add(host)
		if label, _, ok := strings.Cut(host, "."); ok {
			add(label)
		}
		if before, _, ok := cutLast(host, "."); ok {
			_, label, _ := cutLast(before, ".")
			add(label)
		}
	}
	return r.sites
}

// cutLast cuts a text at the last of the signs; without one, all of it is behind.
func cutLast(s, sign string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sign); i >= 0 {
		return s[:i], s[i+len(sign):], true
	}
	return "", s, false
}

var (
	by = regexp.MustCompile(`(?i)^(?:.*[·|,] )?(?:(?:written |posted |article |text |story )?by|` +
		`von|par|por|di|door|af|av|autor(?:in)?|author)(?:\s*:\s*|\s+)`)
	// dayBehind is a day of the week, or a number, behind a name.
	dayBehind = regexp.MustCompile(`(?:,| -| [–|·]|\s+\pL{2,10},)?\s+[0-9]{1,2}[./ ].*$`)
	// byName is a line that says who wrote what it belongs to, and nothing else.
	byName = regexp.MustCompile(`^(?:(?i:written by|by|von|par|por|di|door)\s+|` +
		`(?i:autor(?:in)?|author|text)\s*:\s*)(\p{Lu}[\pL.'’-]+(?: (?:von|van|de|der|und|and|` +
		`\p{Lu}[\pL.'’-]*)){1,6}),?$`)
)

// bylined is an author without what stands before and behind the name; "" if it is an address or
// an account.
func bylined(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "://") || strings.HasPrefix(text, "@") {
		return ""
	}
	if bare := strings.TrimSpace(by.ReplaceAllString(text, "")); bare != "" {
		text = bare
	}
	if bare := strings.TrimSpace(dayBehind.ReplaceAllString(text, "")); bare != "" {
		text = bare
	}
	return text
}

// ofAuthor is who wrote what the page is about: a person rather than the site.
func (r *reader) ofAuthor(f *field, things []*structured.Item) []byte {
	var site []byte
	look := func(value []byte) bool {
		var name string
		if value == nil {
			return false
		}
		if json.Unmarshal(value, &name) == nil && r.isSite(name) {
			if site == nil {
				site = value
			}
			return false
		}
		return true
	}
	for _, it := range things {
		value := r.ofItem(f, it)
		if value != nil && r.isByPublisher(it) {
			site = value
		} else if look(value) {
			return value
		}
	}
	for _, s := range []stated{r.ofMeta(f), r.ofPairs(f)} {
		if value := r.coerce(f, s); look(value) {
			return value
		}
	}
	if value := r.ofNamed(f); look(value) {
		return value
	}
	for _, line := range [...]string{r.linkedAuthor(), r.article().Byline, r.lineBelow()} {
		if len(line) > maxByline {
			continue
		}
		if value := r.coerce(f, textOnly(line, false)); look(value) {
			return value
		}
	}
	return site
}

// maxByline is how long an author may be, in bytes.
const maxByline = 120

// isByPublisher says whether the only author of an item is who runs a site.
func (r *reader) isByPublisher(it *structured.Item) bool {
	values := it.Get("author")
	if len(values) != 1 || values[0].Kind != structured.Entity {
		return false
	}
	return r.data.Follow(values[0].Item).Is("Organization", "NewsMediaOrganization", "Corporation")
}

// linkedAuthor is what the first link to an author says.
func (r *reader) linkedAuthor() string {
	if r.data.Root == nil {
		return ""
	}
	for n := range r.data.Root.Descendants() {
		if n.DataAtom == atom.A && attrOf(n, "rel") == "author" || n.Data == "byline" {
			if text := shownText(n, maxByline); text != "" {
				return text
			}
		}
	}
	return ""
}

// lineBelow is the author that a line below the heading names.
func (r *reader) lineBelow() string {
	heading := r.mentioned().heading
	if heading == nil {
		return ""
	}
	seen, passed := false, 0
	for n := range r.data.Root.Descendants() {
		switch {
		case n == heading:
			seen = true
		case !seen || n.Type != html.ElementNode || inLine[n.DataAtom]:
		case passed > behind:
			return ""
		default:
			text := shownText(n, maxByline)
			if m := byName.FindStringSubmatch(text); m != nil {
				return m[1]
			}
			if n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
				passed += len(n.FirstChild.Data)
			}
		}
	}
	return ""
}

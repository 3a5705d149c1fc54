package aiconf

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/prose"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/jsontext"
)

// Stated data about articles is often careless. Titles include the site's name, the site is the
// author, and a teaser is the text. The visible page is more accurate. So a title is compared with
// the heading, an author with the line below it, and the text is the visible one.

// publishers are the types of site operators.
var publishers = []string{"Organization", "NewsMediaOrganization", "Corporation", "Person"}

// wantsArticle says whether the schema asks for properties of articles only, and for no price.
func (r *reader) wantsArticle() bool {
	wants := false
	for i := range r.fields {
		switch f := &r.fields[i]; {
		case f.kind == money:
			return false
		case f.means("articleBody") || f.means("datePublished"):
			wants = true
		}
	}
	return wants
}

// article returns the page's article, read once.
func (r *reader) article() *prose.Article {
	if r.read == nil {
		r.read = &prose.Article{}
		if r.data.Root != nil {
			*r.read = prose.Read(r.data.Root, r.mentioned().heading, r.page.URL,
				r.data.MetaValue("description"), r.data.MetaValue("og:description"))
		}
	}
	return r.read
}

// ofArticle returns the text of the page's article. weak says that the text is too short to be
// certain. A stated text counts instead if it is much longer than the visible one.
func (r *reader) ofArticle(f *field, things []*structured.Item) (value []byte, weak bool) {
	found := r.article()
	for _, it := range things {
		if it.Source != structured.JSONLD && found.Sure {
			continue // scraped from the page, with everything around the text
		}
		stated := it.Text("articleBody")
		if 2*len(stated) > 3*len(found.Text) && !strings.Contains(stated, "</") {
			if !strings.Contains(stated, found.Lead) {
				stated = found.Lead + "\n\n" + stated
			}
			if value := r.coerce(f, textOnly(stated, false)); value != nil {
				return value, false
			}
		}
	}
	return r.coerce(f, textOnly(found.Text, false)), !found.Sure
}

// nameIn returns a value of the field; a name is changed to its visible form.
func (r *reader) nameIn(f *field, value []byte) []byte {
	if value == nil || !f.means("name") {
		return value
	}
	return r.titled(f, value)
}

// titled returns a stated name in its visible form: as the heading has it, or without the site's
// name. It is nil if nothing else is left.
func (r *reader) titled(f *field, value []byte) []byte {
	var name string
	if json.Unmarshal(value, &name) != nil {
		return value
	}
	if heading := r.mentioned().heading; heading != nil {
		shown := titleOf(heading)
		if r.wantsArticle() && !r.isSite(shown) {
			return r.coerce(f, textOnly(r.unsited(shown), false))
		}
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

// parting matches what separates a title from the site's name.
var parting = regexp.MustCompile(`\s+[|–—•·›»«:/-]+\s+|\s*\|\s*|\s*--+\s*`)

// unsited removes the site's name before or after a title.
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

// isSite says whether a text is the site's name, as stated or as in its address.
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

// ownership matches the words around the name of a page's owner.
var ownership = regexp.MustCompile(`(?i)copyright|©|\(c\)|&copy;|\b(?:19|20)[0-9]{2}\b|` +
	`all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos reservados`)

// siteNames returns the site's names in normal form.
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
	add(r.data.MetaValue("dc.publisher"))
	add(ownership.ReplaceAllString(r.data.MetaValue("copyright", "dc.rights", "rights"), ""))
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

// cutLast cuts a text at the last sign; without one, after is the whole text.
func cutLast(s, sign string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sign); i >= 0 {
		return s[:i], s[i+len(sign):], true
	}
	return "", s, false
}

package aiconf

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/wordset"
)

// Names have two words or more, unless a link or a label marks them as an author.
const (
	namePart = `\p{Lu}[\pL\pM.'’-]*`
	fullName = namePart + `(?: (?:von|van|de|del|della|di|da|dos|der|den|zu|el|al|bin|le|la|` +
		namePart + `)){1,5}`
	fullNames = fullName + `(?:(?:, | und | and | et | y | e | en | og | och | i | & )` +
		fullName + `){0,4}`
	// labelNames are names; behind a comma all words need capitals, since offices follow, too.
	labelNames = fullName + `(?:, ` + namePart + `(?: ` + namePart + `){1,3}|` +
		`(?: und | and | et | y | e | en | og | och | i | & )` + fullName + `){0,4}`
)

var (
	by = regexp.MustCompile(`(?i)^(?:.*[·|,] )?(?:about the author|über den autor|sobre el autor|` +
		`(?:written |posted |published |submitted |article |text |story )?by|` +
		`(?:geschrieben |text |(?:ein )?(?:gast)?(?:beitrag|artikel|kommentar) |verfasst |` +
		`eingestellt |gepostet |veröffentlicht |erstellt )?von|(?:publié |écrit |rédigé )?par|` +
		`(?:texto |escrito |publicado )?por|di|a cura di|(?:geplaatst |geschreven )?door|af|av|autor(?:in|en|es)?|authors?|auteurs?|` +
		`verfasser(?:in)?|автор|автори|作者|記者|责任编辑|文)(?:\s*[:：]\s*|\s+)`)
	// dayBehind matches a weekday or a number after a name.
	dayBehind = regexp.MustCompile(`(?:,| -| [–|·]|\s+\pL{2,10},)?\s+[0-9]{1,2}[./ ].*$`)
	// dateBehind matches a date with the month's name first, and what precedes it.
	dateBehind = regexp.MustCompile(`(?:\s+[-–|·/]+)?\s+\pL{3,10}\.? [0-9]{1,2}, [0-9]{4}.*$`)
	// agency matches a news agency's sign after a name.
	agency = regexp.MustCompile(`\s*/\s*\p{Lu}{2}[\pL-]{0,8}$|(?:,\s|\s*/\s*)(?i:dpa(?:-\pL+)?|afp|apa?|reuters|` +
		`ansa|efe|sid|kna|epd|upi|tass|ritzau|ntb|anp|belga|pap|ots)$`)
	// interviewed matches the words between the interviewee and the interviewer.
	interviewed = regexp.MustCompile(`(?i) (?:im gespräch mit|im interview mit|in conversation with|` +
		`en conversación con|in gesprek met) `)
	// company matches the legal form of a company or association, which is not a person.
	company = regexp.MustCompile(`(?:^|[\s(])(?:e\. ?V\.|GmbH|mbH|AG|KG|Inc\.?|Ltd\.?|LLC|S\.?A\.|` +
		`S\.?p\.?A\.|S\.?r\.?l\.|B\.V\.|AB|A/S|Stiftung|Foundation|Verlag|Verband)(?:$|[\s),])`)
	// pictured matches a picture credit after a name.
	pictured = regexp.MustCompile(`(?i)[ ,|–-]+(?:fotos?|photos?|illustration(?:en|s)?|bild(?:er)?)` +
		`(?: von| by| par| de|:).*$`)
	andThen = regexp.MustCompile(`(?i)(?:\s+(?:am|on|le|il|el|vom|at|follow|folgen)|` +
		`\s*[-–|·,/•]+)$`)
	// byName matches a line that only says who wrote something.
	byName = regexp.MustCompile(`^(?:(?i:(?:by ?)?(?:written |posted |published |submitted |text |` +
		`words |reporting |story |review )?by|(?:text |geschrieben |verfasst |eingestellt |` +
		`gepostet |veröffentlicht |erstellt |(?:ein(?:e)? |blog )?(?:gast|leit)?(?:beitrag|artikel|` +
		`kommentar|analyse|kolumne|glosse|rezension|bericht|reportage|essay|interview|porträt) )?` +
		`von|(?:das )?(?:interview|gespräch) führten?|(?:écrit |texte |publié |rédigé )?par|` +
		`texte de|(?:texto |escrito |publicado )?por|texto de|escribe|di|` +
		`(?:scritto|testo|pubblicato) d[ai]|(?:geschreven |tekst |geplaatst )?door|(?:skrevet |skrivet |skriven |tekst |text )?a[vf]|` +
		`kirjoittanut|napisała?|napsala?|napísala?|scris de|piše|napisao|napisala|пише|пишет|` +
		`γράφει(?: [οη])?|yazan|(?:ditulis )?oleh|bởi)[:\s]\s*)(` +
		fullNames + `),?(?:\s+(?:am|on|le|il|el|vom|in|under|unter|dans|en|for|für)\s.*|\s*[,|·–/-]?\s*[0-9].*|\s{2,}.*)?$`)
	// labelled matches a name after a label for the author.
	labelled = regexp.MustCompile(`(?:^|[\s|(])(?i:autor(?:in|ka|i)?|author|auteure?|autore|autora|` +
		`verfasser(?:in)?|interview|texto?|texte|testo|tekst|teksti|text (?:&|und|and|\+) ` +
		`(?:fotos?|photos?|bilder)|auteur|författare|skribent|forfatter|journalist|kirjoittaja|` +
		`szerző|írta|szöveg|avtor|piše|συντάκτης|συντάκτρια|κείμενο|автор|текст|yazar|yazan|` +
		`penulis|tác giả|written by|words|reporter)\s*:\s*(` + labelNames + `)(?:$|[^\pL])`)
	// labelledEast is the same for scripts without capitals.
	labelledEast = regexp.MustCompile(`(?:作者|记者|記者|责任编辑|責任編輯|文|編集|執筆|글)\s*[:：]\s*` +
		`(\pL{2,12})`)
	// behindDay matches a name after a date, on the same line.
	behindDay = regexp.MustCompile(`^[^\n]{0,14}[0-9]{4}(?:,? [0-9:]{4,5}(?: Uhr)?)?\s*[-–|·/]+\s*(` +
		fullName + `)$`)
	nameFirst = regexp.MustCompile(`^` + fullNames)
	onlyName  = regexp.MustCompile(`^` + fullNames + `$`)
)

// nobodies are authors that name nobody.
var nobodies = wordset.Of("admin administrator administrador editor author autor " +
	"follow folgen webmaster user guest gast anonymous anonym default root veröffentlicht " +
	"published")

// noName matches a time of day, a duration, and the heading of a box about an author.
var noName = regexp.MustCompile(`(?i)[0-9]{1,2}:[0-9]{2}|^(?:about the author|über den autor|` +
	`sobre el autor|à propos de l.auteur)$`)

// collectives are authors such as an editorial office; a person may be named elsewhere.
var collectives = wordset.Of("redaktion onlineredaktion redaction redacción redazione redactie " +
	"redakcja newsroom staff editorialstaff pressestelle")

// ofAuthor returns the author of what the page is about, preferably a person rather than the site.
func (r *reader) ofAuthor(f *field, things []*structured.Item) []byte {
	var site []byte
	var found []byte
	weak := false // any page may have such a line
	look := func(value []byte) bool {
		var name string
		if value == nil || json.Unmarshal(value, &name) != nil {
			found = value
			return value != nil
		}
		bare := bylined(r.unsited(name))
		if bare == "" || collectives[normal(bare)] || r.isLikeSite(bare) ||
			company.MatchString(bare) || site != nil && weak && !onlyName.MatchString(bare) ||
			site != nil && string(site) == string(value) {
			if site == nil && bylined(name) != "" {
				site = value
			}
			return false
		}
		if found = value; bare != name {
			found = r.coerce(f, textOnly(bare, false))
		}
		return true
	}
	for _, it := range things {
		value := r.ofItem(f, it)
		if value != nil && r.isByPublisher(it) {
			site = value
		} else if look(value) {
			return r.shownInstead(f, found)
		}
	}
	all := []stated{r.ofMeta(f), textOnly(r.labelledMeta(), true), r.ofPairs(f)}
	for _, name := range f.meta { // the first one may name the site
		if said := r.data.MetaValue(name); onlyName.MatchString(bylined(said)) {
			all = append(all, textOnly(said, true))
		}
	}
	for _, s := range all {
		if value := r.coerce(f, s); look(value) {
			return r.shownInstead(f, found)
		}
	}
	if value := r.ofNamed(f); look(value) {
		return found
	}
	called, many := r.calledAuthor()
	lines := []string{called, r.boxedAuthor(), r.article().Byline, r.lineBelow(), r.signed()}
	if many {
		lines = lines[3:] // readability takes the first of many names
	}
	weak = true
	for _, line := range lines {
		if len(line) > maxByline {
			continue
		}
		if value := r.coerce(f, textOnly(line, false)); look(value) {
			return found
		}
	}
	return site
}

// account matches an account name: one word of lower-case letters and digits.
var account = regexp.MustCompile(`^[a-z][a-z0-9_.-]{3,}$`)

// shownInstead returns the visible author instead of the stated one, if the stated name is nowhere
// visible or is an account name.
func (r *reader) shownInstead(f *field, stated []byte) []byte {
	var name string
	if json.Unmarshal(stated, &name) != nil || r.data.Root == nil ||
		!onlyName.MatchString(name) && !account.MatchString(name) {
		return stated
	}
	isAccount := account.MatchString(name)
	name = strings.ToLower(name)
	for n := range r.data.Root.Descendants() {
		if !isAccount && n.Type == html.TextNode && !unread[n.Parent.DataAtom] &&
			strings.Contains(strings.ToLower(n.Data), name) {
			return stated
		}
	}
	shown, many := r.calledAuthor()
	if shown = bylined(shown); many || !onlyName.MatchString(shown) || r.isLikeSite(shown) {
		return stated
	}
	return r.coerce(f, textOnly(shown, false))
}

// minSite is the length, in normal form, from which containing a site's name is no accident.
const minSite = 5

// isLikeSite says whether an author's name contains the site's name.
func (r *reader) isLikeSite(name string) bool {
	name = normal(name)
	for _, own := range r.siteNames() {
		if len(own) >= minSite && strings.Contains(name, own) {
			return true
		}
	}
	return false
}

// authorLabels are the labels of an author in metadata for link previews.
var authorLabels = wordset.Of("writtenby verfasstvon geschriebenvon von by author autor écritpar " +
	"écrit escritopor scrittoda geschrevendoor skrevetaf skrevetav skrivetav skrivenav " +
	"napisaneprzez написаноавтором автор yazan kirjoittanut 著者 投稿者 作者")

// labelledMeta returns the author from labelled metadata for link previews.
func (r *reader) labelledMeta() string {
	for _, n := range [...]string{"1", "2"} {
		if authorLabels[normal(r.data.MetaValue("twitter:label"+n))] {
			return r.data.MetaValue("twitter:data" + n)
		}
	}
	return ""
}

// maxByline bounds an author's text, in bytes.
const maxByline = 120

// isByPublisher says whether an item's only author is an organization.
func (r *reader) isByPublisher(it *structured.Item) bool {
	values := it.Get("author")
	if len(values) != 1 || values[0].Kind != structured.Entity {
		return false
	}
	return r.data.Follow(values[0].Item).Is("Organization", "NewsMediaOrganization", "Corporation")
}

// Words of elements that name an author, and of those that name others or details of one.
var (
	authorWords = wordset.Of("author authors byline autor autoren autorin autores auteur auteurs " +
		"autore verfasser redakteur contributor postedby writer journalist")
	notAuthors = wordset.Of("comment comments commentlist reply related teaser teasers card " +
		"avatar image img photo picture position role job bio description count social follow " +
		"share more other popular theme credit credits")
	authorPath = regexp.MustCompile(`/(?:authors?|autor(?:en|in|es|i|zy|ka)?|auteurs?|autores?|staff|` +
		`people|profile?|redakteure?|journalists?|journalistes?|contributors?|columnists?|` +
		`editors?|reporters?|writers?|penulis|yazar(?:lar)?|by)/[^/?#]+/?$`)
)

// maxAuthors bounds the names on a page of which the first may be the author's.
const maxAuthors = 3

// maxBylines bounds the examined elements that are named like an author's. Several expressions are
// run on each.
const maxBylines = 500

// nearHeading is the distance after the heading, in bytes of text, within which an author is the
// page's, however many others the page names.
const nearHeading = 300

// calledAuthor returns the text of the first link to an author or element named like one. many says
// that there are too many to tell which one is the author.
func (r *reader) calledAuthor() (name string, many bool) {
	if r.data.Root == nil {
		return "", false
	}
	around := map[*html.Node]bool{}
	for n := r.mentioned().heading; n != nil; n = n.Parent {
		around[n] = true
	}
	var names, near []string
	linked := ""
	seen, passed, read := false, 0, 0
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil && linked == "" && read < maxBylines; c = c.NextSibling {
			if c.Type == html.TextNode && seen {
				passed += len(strings.TrimSpace(c.Data))
			}
			seen = seen || c == r.names.heading
			if c.Type != html.ElementNode || isUnseen(c) || !around[c] && hasWord(c, notAuthors) {
				continue
			}
			text := ""
			switch {
			case attrOf(c, "rel") == "author" || c.Data == "byline":
				read++
				if linked = namedIn(c); bylined(linked) != "" {
					return
				}
				linked = ""
			case hasWord(c, authorWords) ||
				c.DataAtom == atom.A && authorPath.MatchString(attrOf(c, "href")):
				read++
				text = bylined(namedIn(c))
			}
			if onlyName.MatchString(text) {
				if linked = linkedIn(c); linked != "" {
					return
				}
				if len(names) <= maxAuthors && !slices.Contains(names, text) {
					names = append(names, text)
				}
				if seen && passed <= nearHeading && len(near) <= maxAuthors &&
					!slices.Contains(near, text) {
					near = append(near, text)
				}
				continue
			}
			visit(c)
		}
	}
	visit(r.data.Root)
	switch {
	case linked != "" || len(names) == 0:
		return linked, false
	case len(names) > maxAuthors && (len(near) == 0 || len(near) > maxAuthors):
		return "", true
	case len(names) > maxAuthors:
		return near[0], false
	}
	return names[0], false
}

// linkedIn returns the text of the first author link in an element, or "".
func linkedIn(n *html.Node) string {
	looked := 0
	for c := range n.Descendants() {
		if looked++; looked > maxBoxed {
			break
		}
		if attrOf(c, "rel") != "author" {
			continue
		}
		if text := bylined(namedIn(c)); text != "" {
			return text
		}
	}
	return ""
}

// lineBelow returns the author named by a line below the heading, or by a label anywhere.
func (r *reader) lineBelow() string {
	if r.data.Root == nil {
		return ""
	}
	seen, passed, looked, label := false, 0, 0, ""
	for n := range r.data.Root.Descendants() {
		switch {
		case n == r.mentioned().heading:
			seen = true
		case !isLine(n):
		case looked == maxLines:
			return label
		default:
			looked++
			text := shownText(n, maxByline)
			if text == "" || len(text) > maxByline {
				continue
			}
			for _, line := range [...]*regexp.Regexp{labelled, labelledEast} {
				if m := line.FindStringSubmatch(text); m != nil && label == "" {
					label = m[1]
				}
			}
			if label == "" && authorLabels[normal(text)] {
				label = besideLabel(n)
			}
			if !seen || passed > behind {
				continue
			}
			if name := bylineOf(text); name != "" {
				return name
			}
			if m := byName.FindStringSubmatch(firstLine(n)); m != nil {
				return m[1]
			}
			if n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
				passed += len(n.FirstChild.Data)
			}
		}
	}
	return label
}

// firstLine returns an element's text before its first line break; "" without one.
func firstLine(n *html.Node) string {
	var line strings.Builder
	for c := n.FirstChild; c != nil && line.Len() <= maxByline; c = c.NextSibling {
		switch {
		case c.DataAtom == atom.Br:
			return strings.Join(strings.Fields(line.String()), " ")
		case c.Type == html.TextNode:
			line.WriteString(beginning(c.Data, maxByline))
		case c.Type == html.ElementNode && !isUnseen(c):
			line.WriteString(shownText(c, maxByline))
		}
	}
	return ""
}

// boxedAuthor returns the name that heads a box about the author, or stands alone in it.
func (r *reader) boxedAuthor() string {
	if r.data.Root == nil {
		return ""
	}
	for n := range r.data.Root.Descendants() {
		if n.Type != html.ElementNode || !hasWord(n, boxes) || !hasWord(n, authorWords) {
			continue
		}
		looked := 0
		for c := range n.Descendants() {
			if looked++; looked > maxBoxed {
				break
			}
			name := strings.TrimSpace(c.Data)
			if c.Type != html.TextNode || len(name) > maxByline || noName.MatchString(name) {
				continue
			}
			if name = aboutWhom.ReplaceAllString(name, ""); onlyName.MatchString(name) {
				return name
			}
		}
	}
	return ""
}

// aboutWhom matches the words before the name in such a heading.
var aboutWhom = regexp.MustCompile(`^(?:About|Über|Zur Person|À propos de|Sobre|Acerca de|` +
	`Informazioni su|Over|Om):?\s+`)

// boxes are the words of boxes about authors. maxBoxed bounds the examined nodes of one.
var boxes = wordset.Of("bio box about info card profile")

const maxBoxed = 30

// maxLines bounds the lines of a page that are examined for one field.
const maxLines = 4_000

// maxInLine bounds the child nodes of an element that is a line of text.
const maxInLine = 12

// isLine says whether an element may be a visible line of text, judging by its name and the number
// of its child nodes.
func isLine(n *html.Node) bool {
	if n.Type != html.ElementNode || unread[n.DataAtom] ||
		inLine[n.DataAtom] && (n.DataAtom != atom.Span || !standsAlone(n)) {
		return false
	}
	nodes := 0
	for c := n.FirstChild; c != nil && nodes <= maxInLine; c = c.NextSibling {
		nodes++
	}
	return nodes > 0 && nodes <= maxInLine
}

// standsAlone says whether an element's parent has no text around it and is not itself inline.
func standsAlone(n *html.Node) bool {
	parent := n.Parent
	if parent == nil || inLine[parent.DataAtom] {
		return false
	}
	looked := 0
	for c := parent.FirstChild; c != nil && looked <= maxInLine; c = c.NextSibling {
		if looked++; c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return false
		}
	}
	return true
}

// besideLabel returns the name that follows a label, or "".
func besideLabel(label *html.Node) string {
	for n := label.NextSibling; n != nil; n = n.NextSibling {
		text := ""
		switch n.Type {
		case html.TextNode:
			text = n.Data
		case html.ElementNode:
			text = shownText(n, maxByline)
		}
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			return nameFirst.FindString(text)
		}
	}
	return ""
}

// unread are the elements whose text is not visible.
var unread = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true,
	atom.Template: true, atom.Head: true, atom.Title: true, atom.Svg: true}

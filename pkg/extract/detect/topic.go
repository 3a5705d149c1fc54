package detect

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/model"
)

// topic is what a page is about, according to its data and its layout.
type topic struct {
	kind    string // a Schema.Type, "" if unknown
	single  bool   // about one thing
	listed  bool   // about several
	rich    bool   // states more than who runs the site
	heading string // its text
}

// kinds maps schema types to the schema.org types that they cover.
var kinds = []struct {
	kind  string
	types []string
}{
	{"PRODUCT", []string{"Product", "ProductGroup", "IndividualProduct", "ProductModel",
		"Vehicle"}},
	{"JOB_POSTING", []string{"JobPosting"}},
	{"EVENT", []string{"Event", "MusicEvent", "SportsEvent", "BusinessEvent", "EducationEvent",
		"TheaterEvent", "Festival"}},
	{"REAL_ESTATE", []string{"RealEstateListing", "Apartment", "House", "SingleFamilyResidence",
		"Residence", "Accommodation"}},
	{"ARTICLE", []string{"Article", "NewsArticle", "BlogPosting", "Report", "TechArticle",
		"ScholarlyArticle"}},
	{"REVIEW", []string{"Review"}},
	{"ORGANIZATION", []string{"LocalBusiness", "Restaurant", "Store", "Hotel", "Corporation",
		"Organization"}},
}

// topicOf decides whether a page is about one thing or several.
func topicOf(data *structured.Data, p *probe, lists []list, product []model.Field,
	paged bool) topic {
	var t topic
	for _, k := range kinds {
		for _, item := range data.Items {
			if t.kind == "" && (item.Is(k.types...) || mainOf(data, item).Is(k.types...)) {
				t.kind, t.rich = k.kind, k.kind != "ORGANIZATION"
			}
		}
	}
	og := data.MetaValue("og:type")
	switch {
	case t.kind != "" && t.kind != "ORGANIZATION":
	case strings.Contains(og, "product"):
		t.kind = "PRODUCT"
	case og == "article":
		t.kind = "ARTICLE"
	}
	e := p.evidenceOf(data, lists, product, paged)
	t.listed = e.things > 1
	t.rich = t.rich || e.things == 1
	t.single = e.weight() > 0
	if n, _ := p.heading(); n != nil {
		t.heading = textOf(n)
	}
	return t
}

// mainOf returns an item's main entity, or else the item itself.
func mainOf(data *structured.Data, item *structured.Item) *structured.Item {
	for _, v := range item.Get("mainEntity") {
		if v.Item != nil {
			return data.Follow(v.Item)
		}
	}
	return item
}

// evidence distinguishes a page about one thing from a list.
type evidence struct {
	things   float64 // stated things: 1, or 2 for several
	og       bool    // its og:type is that of one thing
	dated    bool    // it states a publication date
	prose    float64 // share of its text that is long, unlinked and outside lists
	long     bool    // the prose is as long as an article
	headed   float64 // share of its title that the heading has
	list     float64 // share of its text in the best list
	items    float64 // number of the best list's items
	rows     bool    // they are table rows with links
	paged    bool
	root     bool // the site's home page
	numbered bool // its address has a page number
	sells    bool
	priced   bool // a price near its heading
}

// manyRows is the number of rows from which a table is not part of a text about one thing.
const manyRows = 10

var pageNumber = regexp.MustCompile(
	`(?i)[?&/](page|paged|p|offset|start)[=/-]?([2-9]|[1-9][0-9]+)\b`)

func (p *probe) evidenceOf(data *structured.Data, lists []list, product []model.Field,
	paged bool) evidence {
	var e evidence
	counts := map[string]int{}
	for _, thing := range p.things {
		if thing.Is("Blog", "Periodical", "ImageGallery", "Collection", "CreativeWorkSeries") {
			continue // containers
		}
		counts[thing.Source.String()+strings.Join(thing.Types, " ")]++
	}
	og := strings.ToLower(data.MetaValue("og:type"))
	e.og = og != "" && og != "website" && og != "blog" && og != "company" &&
		!strings.Contains(og, "group")
	e.dated = data.MetaValue("article:published_time", "datePublished", "pubdate", "date",
		"dc.date", "DC.date.issued", "parsely-pub-date", "sailthru.date") != ""
	var best *list
	if len(lists) > 0 {
		best = &lists[0]
		e.list = min(1, float64(p.massOf(best.items))/float64(p.text+1))
		e.items = float64(len(best.items))
		if !best.has("url") {
			e.list, e.items = e.list/3, e.items/3
		} else {
			e.rows = len(best.items) >= manyRows && best.items[0].Data == "tr"
		}
	}
	several := false
	if len(counts) > 0 {
		e.things = 1
	}
	for _, n := range counts {
		if n > 2 {
			several = true
		}
	}
	for _, item := range data.Items {
		if item.Source == structured.JSONLD &&
			item.Is("ItemList", "CollectionPage", "SearchResultsPage", "Blog") {
			several = true
		}
	}
	if several && e.list > 0.15 {
		e.things = 2
	}
	prose := p.proseOutside(best)
	e.prose = min(1, float64(prose)/float64(p.text+1))
	e.long = prose > 1_200
	_, e.headed = p.heading()
	e.paged = paged
	u, err := url.Parse(p.base.String())
	e.root = err == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
	e.numbered = pageNumber.MatchString(p.base.RequestURI())
	e.sells = p.sells(cards(lists))
	e.priced = has(product, "price")
	return e
}

// thingsOf returns the stated things that a page is about.
func thingsOf(data *structured.Data) []structured.Thing {
	var all []structured.Thing
	for _, source := range [...]structured.Source{structured.JSONLD, structured.Microdata,
		structured.RDFa} {
		if things, rank := data.Things(source); rank == structured.Main {
			all = append(all, things...)
		}
	}
	return all
}

// weight is above 0 for a page about one thing.
func (e *evidence) weight() float64 {
	w := -0.3
	switch e.things {
	case 1:
		w += 2.5
	case 2:
		w -= 2.5
	}
	w += 1.2*one(e.og) + one(e.dated) + 2*e.prose + one(e.long) + 0.5*e.headed
	w -= 2*e.list + 0.02*min(e.items, 50) + 1.5*one(e.paged) + 2*one(e.root) + one(e.numbered)
	if e.rows {
		w -= 2.5 * e.list
	}
	w += 2.5 * one(e.sells)
	switch {
	case e.priced && e.things == 2:
		w++ // it may belong to one of several
	case e.priced:
		w += 2.5
	}
	return w
}

// longBlock is the length from which a text is prose rather than a label, in bytes.
const longBlock = 80

// proseOutside returns the bytes of text in long blocks outside menus and list items.
func (p *probe) proseOutside(l *list) int {
	total := 0
	for i := 0; i < len(p.all); {
		e := &p.all[i]
		if e.beside || l != nil && l.set[e.node] {
			i = e.end
			continue
		}
		length := e.textLength()
		if e.own && length >= longBlock && e.linkedLength()*10 < length*3 && !p.holdsItems(l, i) {
			total += length
			i = e.end
			continue
		}
		i++
	}
	return total
}

// holdsItems says whether an element of the outline holds items of a list in page order.
func (p *probe) holdsItems(l *list, i int) bool {
	if l == nil {
		return false
	}
	first, _ := slices.BinarySearchFunc(l.items, i+1,
		func(n *html.Node, at int) int { return p.index[n] - at })
	return first < len(l.items) && p.index[l.items[first]] < p.all[i].end
}

// massOf returns the bytes of text in items outside menus. An item counts at most twice the median:
// the first and the last one may include text around the list.
func (p *probe) massOf(items []*html.Node) int {
	lengths := make([]int, 0, len(items))
	for _, n := range items {
		if i := p.index[n]; !p.all[i].beside {
			lengths = append(lengths, p.all[i].textLength())
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	total, most := 0, 2*lengths[len(lengths)/2]
	for _, length := range lengths {
		total += min(length, most)
	}
	return total
}

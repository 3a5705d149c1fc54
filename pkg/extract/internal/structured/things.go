package structured

import "strings"

// Thing is a thing that the page is about.
type Thing struct {
	*Item
	Position string // in its list, as written; "" outside lists
	Group    *Item  // the product group of a variant, otherwise nil
}

// Rank says how likely the page is about a thing. Products, articles, events and all types not
// named below come first. Secondary types come second, and the page itself last.
type Rank uint8

// The ranks.
const (
	Main Rank = iota
	Beside
	ThePage
	Never
)

// ranks lists the types that are not Main, in lower case.
var ranks = rankTable(map[Rank]string{
	Beside: "Organization Corporation OnlineStore OnlineBusiness NewsMediaOrganization " +
		"LocalBusiness Store Person Brand " +
		"ImageObject VideoObject AudioObject MediaObject Review CriticReview UserReview " +
		"AggregateRating Rating Offer " +
		"AggregateOffer OfferShippingDetails MerchantReturnPolicy Question Answer Comment " +
		"PropertyValue QuantitativeValue " +
		"PostalAddress GeoCoordinates ContactPoint Place MonetaryAmount DefinedTerm Thing",
	ThePage: "WebPage ItemPage CollectionPage SearchResultsPage ProfilePage AboutPage " +
		"ContactPage CheckoutPage QAPage " +
		"FAQPage MedicalWebPage MediaGallery ImageGallery VideoGallery",
	Never: "WebSite BreadcrumbList Breadcrumb ListItem SearchAction ReadAction EntryPoint " +
		"SiteNavigationElement WPHeader " +
		"WPFooter WPSideBar WebPageElement SpeakableSpecification",
})

func rankTable(types map[Rank]string) map[string]Rank {
	table := map[string]Rank{}
	for rank, list := range types {
		for t := range strings.FieldsSeq(list) {
			table[strings.ToLower(t)] = rank
		}
	}
	return table
}

// Rank returns the best rank among an item's types.
func (it *Item) Rank() Rank {
	if len(it.Types) == 0 {
		return Beside
	}
	best := Never
	for _, t := range it.Types {
		best = min(best, ranks[strings.ToLower(t)])
	}
	return best
}

// Things returns the things of one source that the page is about, in document order: those of the
// best rank that occurs. Elements of an ItemList stand for the list, and a page's mainEntity for
// the page. The variants of a ProductGroup stand for the group.
func (d *Data) Things(source Source) ([]Thing, Rank) {
	f := finder{data: d, seen: map[*Item]bool{}}
	for _, it := range d.Items {
		if it.Source == source {
			f.visit(Thing{Item: it}, Main, 0)
		}
	}
	for rank, found := range f.found {
		if len(found) > 0 {
			return found, Rank(rank)
		}
	}
	return nil, Never
}

type finder struct {
	data  *Data
	seen  map[*Item]bool
	found [Never][]Thing
}

// visit adds what an item stands for, at rank least or worse.
func (f *finder) visit(e Thing, least Rank, depth int) {
	e.Item = f.data.Follow(e.Item)
	if f.seen[e.Item] || depth > maxDepth {
		return
	}
	f.seen[e.Item] = true
	switch {
	case e.Is("ItemList", "OfferCatalog"):
		f.elements(e.Item, "itemListElement", least, depth)
		return
	case e.Is("DataFeed"):
		f.elements(e.Item, "dataFeedElement", least, depth)
		return
	case e.Is("FAQPage"):
		f.each(e.Item, "mainEntity", Thing{}, max(least, Beside), depth)
	case e.Rank() == ThePage:
		f.each(e.Item, "mainEntity", Thing{}, least, depth)
	case len(e.Get("hasVariant")) > 0 && e.Group == nil:
		before := len(f.found[max(Main, least)])
		f.each(e.Item, "hasVariant", Thing{Position: e.Position, Group: e.Item}, least, depth)
		if len(f.found[max(Main, least)]) > before {
			return
		}
	}
	if rank := max(least, e.Rank()); rank < Never {
		f.found[rank] = append(f.found[rank], e)
	}
}

// each visits the items of a property; like gives them position and group.
func (f *finder) each(it *Item, property string, like Thing, least Rank, depth int) {
	for _, v := range it.Get(property) {
		if v.Kind == Entity {
			like.Item = v.Item
			f.visit(like, least, depth+1)
		}
	}
}

// elements visits the elements of a list. An element that is only an address becomes a thing with
// that address.
func (f *finder) elements(list *Item, property string, least Rank, depth int) {
	for _, v := range list.Get(property) {
		if v.Kind != Entity {
			address := &Item{Source: list.Source, Props: []Prop{{"url", []Value{v}}}}
			f.visit(Thing{Item: address}, max(least, Beside), depth+1)
			continue
		}
		element := f.data.Follow(v.Item)
		position := element.Text("position")
		if inner := element.Get("item"); len(inner) > 0 && inner[0].Kind == Entity {
			f.visit(Thing{Item: inner[0].Item, Position: position}, least, depth+1)
			continue
		}
		if element.Is("ListItem", "DataFeedItem") || len(element.Types) == 0 {
			if !f.seen[element] {
				f.seen[element] = true
				f.found[Beside] = append(f.found[Beside], Thing{Item: element, Position: position})
			}
			continue
		}
		f.visit(Thing{Item: element, Position: position}, least, depth+1)
	}
}

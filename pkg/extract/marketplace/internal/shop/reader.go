package shop

import (
	"strings"

	"golang.org/x/net/html"
)

// Product reads a product page; ok is false if the page is not about a product. Structured data
// goes first, then what the shop system's pages are known to show, then the metadata for social
// networks. Items of lists on the page are other products, even if the page has nothing else.
func (r *Reader) Product(p *Page) (found Product, ok bool) {
	p.items = r.items(p)
	defer func() { p.items = nil }()
	p.heading = p.first(p.root, r.heading)
	found, about := p.stated(p.heading)
	var shown Product
	if p.platform != nil {
		found.fill(p.platform.data(p))
		shown = p.read(p.root, r.products[p.platform.name])
	}
	found.fill(shown)
	found.fill(p.social())
	about = about || found.Price != "" || strings.Contains(p.data.MetaValue("og:type"), "product")
	if found.Title == "" {
		found.Title = p.heading
	}
	if !about || found.Title == "" {
		return Product{}, false
	}
	if trail := p.trail(found.Title); trail != "" {
		found.Category = trail
	} else if crumbs := p.all(p.root, r.breads, 12); found.Category == "" {
		found.Category = path(crumbs, found.Title)
	}
	if found.URL = p.data.Canonical; found.URL == "" {
		found.URL = p.address
	}
	found.Platform = p.Platform()
	found.finish()
	return found, true
}

// items returns the elements that stand for list items.
func (r *Reader) items(p *Page) map[*html.Node]bool {
	if p.platform == nil {
		return nil
	}
	items := map[*html.Node]bool{}
	for _, css := range r.lists[p.platform.name] {
		for _, item := range p.query(p.root, css) {
			if p.first(item, r.heading) == "" { // some themes mark up the product itself as an item
				items[item] = true
			}
		}
	}
	return items
}

// social reads the metadata that social networks use to show links to the page.
func (p *Page) social() Product {
	found := Product{Title: p.data.MetaValue("og:title"),
		Image:        p.resolve(p.data.MetaValue("og:image", "og:image:secure_url")),
		Description:  p.data.MetaValue("og:description", "description"),
		Brand:        p.data.MetaValue("product:brand", "og:brand"),
		Availability: availability(p.data.MetaValue("product:availability", "og:availability")),
		Condition:    condition(p.data.MetaValue("product:condition"))}
	found.setAmounts(p.data.MetaValue("product:price:amount", "og:price:amount",
		"product:sale_price:amount"), "",
		p.data.MetaValue("product:price:currency", "og:price:currency"))
	return found
}

// List reads a result list: its items in the page's order, each address once.
func (r *Reader) List(p *Page) []Product {
	stated := p.listed()
	list := r.cardsOf(p)
	if len(list) == 0 {
		list = stated
	} else {
		enrich(list, stated)
	}
	seen := map[string]bool{}
	kept := []Product{}
	for _, found := range list {
		if found.Title == "" || found.URL == "" || seen[found.URL] {
			continue
		}
		seen[found.URL] = true
		found.Position, found.Platform = len(kept)+1, p.Platform()
		found.finish()
		kept = append(kept, found)
	}
	return kept
}

// cardsOf reads the items as the page shows them.
func (r *Reader) cardsOf(p *Page) []Product {
	if p.platform == nil {
		return nil
	}
	for _, css := range r.lists[p.platform.name] {
		var list []Product
		for _, card := range p.query(p.root, css) {
			if found := p.read(card, r.cards[p.platform.name]); found.Title != "" &&
				found.URL != "" {
				list = append(list, found)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// enrich adds stated data of the same products, matched by address or by title. A title that
// several products have matches none.
func enrich(list, stated []Product) {
	byURL, byTitle := map[string]*Product{}, map[string]*Product{}
	inStated, inList := titles(stated), titles(list)
	for i := range stated {
		byURL[stated[i].URL] = &stated[i]
		if title := strings.ToLower(stated[i].Title); inStated[title] == 1 && inList[title] == 1 {
			byTitle[title] = &stated[i]
		}
	}
	for i := range list {
		known := byURL[list[i].URL]
		if known == nil {
			known = byTitle[strings.ToLower(list[i].Title)]
		}
		if known != nil {
			list[i].fill(*known)
		}
	}
}

// titles counts the products with each title. A product named twice, with one address, counts once.
func titles(list []Product) map[string]int {
	counts, seen := map[string]int{}, map[[2]string]bool{}
	for i := range list {
		title := strings.ToLower(list[i].Title)
		if key := [2]string{title, list[i].URL}; !seen[key] {
			seen[key] = true
			counts[title]++
		}
	}
	return counts
}

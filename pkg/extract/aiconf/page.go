package aiconf

import (
	"encoding/json"
	"strings"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/prose"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/pattern"
)

// reader collects what one page states.
type reader struct {
	*conf
	budget  *pattern.Budget   // for the schema's patterns and for shared items
	normals map[string]string // normal forms by name
	data    *structured.Data
	page    page.Page
	nesting int
	// the rows have something that not every page has, such as a heading or an address
	firm    bool
	blobs   *blobs            // nil until needed
	names   *mentions         // likewise
	shown   *shown            // likewise
	shownTo *ground           // likewise
	prices  *[2]amount.Reader // likewise: for the page's language, and for machine format
	read    *prose.Article    // likewise
	sites   []string          // likewise
	several *bool             // likewise: whether the page is about several things
}

func newReader(c *conf, data *structured.Data, p page.Page) *reader {
	return &reader{conf: c, data: data, page: p}
}

// rows returns the rows as far as the page states them. isList says that there may be any number.
func (r *reader) rows() (list []row, isList bool) {
	things := r.listed()
	if !r.schema.IsList() && len(things) == 0 {
		only := r.single()
		if r.firm && r.isList() {
			only, r.firm = row{}, false // a list's own title and data are not a thing
		}
		if !r.firm && r.hidden {
			if list := r.detected(); len(list) > 0 {
				r.firm = true
				return list, true
			}
		}
		return []row{only}, false
	}
	for i := range things {
		if found := r.ofThing(&things[i]); len(found) > 0 {
			list = append(list, found)
		}
	}
	if len(list) == 0 {
		for _, it := range r.framework().list() {
			if found := r.ofThing(&structured.Thing{Item: it}); len(found) > 0 {
				list = append(list, found)
			}
		}
	}
	if len(list) == 0 {
		if only := r.single(); r.firm {
			list = []row{only}
		}
	}
	if len(list) == 0 {
		list = r.detected()
	}
	r.firm = len(list) > 0
	for _, found := range list {
		r.prune(found)
	}
	return list, true
}

// listed returns the things of a list page; nil if the page has no list or is about one thing.
func (r *reader) listed() []structured.Thing {
	var best []structured.Thing
	rank := structured.Never
	for _, source := range [...]structured.Source{structured.JSONLD, structured.Microdata,
		structured.RDFa} {
		if things, found := r.data.Things(source); found < rank {
			best, rank = things, found
		}
	}
	if r.schema.IsList() {
		return best
	}
	if len(best) < 2 || rank != structured.Main && best[0].Position == "" || r.isOne(best) {
		return nil
	}
	for i := range best {
		t := &best[i]
		if t.Group != nil && t.Group == best[0].Group && i == len(best)-1 {
			return nil // variants of one product
		}
		if url := t.Text("url"); t.Position == "" && url != "" && r.isPage(r.data.Resolve(url)) {
			return nil
		}
		if t.Position == "" && !t.Is(best[0].Types...) {
			return nil
		}
	}
	if best[0].Position == "" && r.article().Sure && !r.isList() {
		return nil // they are beside an article
	}
	return best
}

// isOne says whether things are about one thing: all have the same name, or one has the heading's
// name.
func (r *reader) isOne(things []structured.Thing) bool {
	one := normal(things[0].Text("name"))
	same := one != ""
	for i := range things {
		if things[i].Position != "" {
			return false
		}
		if r.isHeading(things[i].Item) {
			return true
		}
		same = same && normal(things[i].Text("name")) == one
	}
	return same
}

// minTitled is the length, in normal form, from which a name in a title is no accident.
const minTitled = 10

// isHeading says whether an item has the name in the page's heading or, if there is no heading, in
// its title.
func (r *reader) isHeading(it *structured.Item) bool {
	name := normal(it.Text("name"))
	if heading := r.mentioned().heading; heading != nil {
		shown := normal(shownText(heading, maxShown))
		return shown != "" && (name == shown ||
			r.wantsArticle() && normal(it.Text("headline")) == shown)
	}
	return len(name) >= minTitled && strings.Contains(normal(r.data.Title), name)
}

func (r *reader) isPage(url string) bool {
	url = strings.TrimSuffix(url, "/")
	return url == strings.TrimSuffix(r.page.URL, "/") ||
		url == strings.TrimSuffix(r.data.Canonical, "/")
}

// ofThing returns the row of a listed thing, made from itself and its group alone.
func (r *reader) ofThing(t *structured.Thing) row {
	found := row{}
	for i := range r.fields {
		f := &r.fields[i]
		value := r.ofItem(f, t.Item)
		if value == nil && t.Group != nil {
			value = r.ofItem(f, t.Group)
		}
		if value == nil && f.normal == "position" && t.Position != "" {
			value = r.coerce(f, textOnly(t.Position, true))
		}
		if value != nil {
			found[f.Name] = value
		}
	}
	return found
}

// single returns the row of a page about one thing.
func (r *reader) single() row {
	things := r.candidates()
	found := row{}
	for i := range r.fields {
		f := &r.fields[i]
		value, weak := r.ofPage(f, things)
		if value != nil {
			found[f.Name] = value
			r.firm = r.firm || !weak
		}
	}
	r.firm = r.firm || len(found) == len(r.fields) // all requested fields
	r.prune(found)
	return found
}

// candidates returns the items that fill a single row, best first. The first one states most of the
// schema. For variants of a product, they are the group and its first variant.
func (r *reader) candidates() []*structured.Item {
	var best *structured.Thing
	most := 0
	consider := func(t structured.Thing, rank structured.Rank) {
		score := 0
		if rank != structured.Main && r.wantsArticle() && t.Is(publishers...) {
			return
		}
		if r.wantsArticle() && r.isOther(t.Item) {
			return
		}
		for i := range r.fields {
			if r.ofItem(&r.fields[i], t.Item) == nil {
				continue
			}
			if score += 4; r.fields[i].Required {
				score += 4
			}
		}
		if score == 0 {
			return
		}
		if r.isHeading(t.Item) {
			score += headed
		}
		if score += 3 - int(rank); score > most {
			most, best = score, &t
		}
	}
	for _, source := range [...]structured.Source{structured.JSONLD, structured.Microdata,
		structured.RDFa} {
		things, rank := r.data.Things(source)
		for i, t := range things {
			if t.Group != nil {
				t.Item, t.Group = t.Group, t.Item
			}
			if i < maxCandidates {
				consider(t, rank)
			}
		}
	}
	for i, it := range r.data.Items {
		if i < maxCandidates && it.Rank() != structured.Never {
			consider(structured.Thing{Item: it}, it.Rank())
		}
	}
	if best == nil {
		return nil
	}
	items := []*structured.Item{best.Item}
	if best.Group != nil {
		items = append(items, best.Group)
	}
	return items
}

// headed is what having the heading's name adds to an item's score: more than any property.
const headed = 12

// maxCandidates bounds the items that are compared with the schema.
const maxCandidates = 200

// ofPage returns a field's value on a page about one thing. weak says that any page would have such
// a value.
func (r *reader) ofPage(f *field, things []*structured.Item) (value []byte, weak bool) {
	switch {
	case f.means("articleBody"):
		if value, weak := r.ofArticle(f, things); value != nil {
			return value, weak
		}
	case f.means("datePublished") && r.wantsArticle():
		if value := r.ofDay(f, things); value != nil {
			return value, false
		}
	case f.means("author"):
		if value := r.ofAuthor(f, things); value != nil {
			return value, false
		}
	}
	for _, it := range things {
		if value := r.nameIn(f, r.ofItem(f, it)); value != nil {
			return value, false
		}
	}
	for _, s := range []stated{r.ofMeta(f), r.ofPairs(f)} {
		if value := r.nameIn(f, r.coerce(f, s)); value != nil {
			return value, false
		}
	}
	if value := r.ofFramework(f, things); value != nil {
		return value, false
	}
	if value := r.wrapped(f, things); value != nil {
		return value, false
	}
	if f.means("name") && r.mentioned().heading != nil {
		return r.coerce(f, textOnly(titleOf(r.names.heading), false)), true
	}
	if value := r.ofNamed(f); value != nil {
		return value, false
	}
	if value := r.ofShown(f); value != nil {
		return value, false
	}
	switch {
	case f.means("name"):
		return r.coerce(f, textOnly(r.unsited(r.data.Title), false)), true
	case f.means("datePublished"):
		return r.published(f), true
	case f.means("description"):
		return r.coerce(f, textOnly(r.data.MetaValue("description"), false)), true
	case f.means("url") && r.data.Canonical != "":
		return r.coerce(f, textOnly(r.data.Canonical, true)), true
	case f.means("url"):
		return r.coerce(f, textOnly(r.page.URL, true)), true
	case f.means("language"):
		return r.coerce(f, textOnly(r.data.Lang, true)), true
	}
	return nil, true
}

// ofItem returns the value of a field that an item states.
func (r *reader) ofItem(f *field, it *structured.Item) []byte {
	for _, path := range f.paths {
		if value := r.coerce(f, stated{r.walk(f, it, path), true}); value != nil {
			return value
		}
	}
	if !r.budget.Spend(1 + len(it.Props)/propsPerStep) {
		return nil
	}
	for i := range it.Props {
		p := &it.Props[i]
		own := r.normal(p.Name) == f.normal
		if it.Source == 0 && f.concept != nil && !own { // framework data has no standard names
			own = r.words.of(p.Name) == f.concept
		}
		if own {
			if value := r.coerce(f, stated{r.verified(f, it, p.Values), true}); value != nil {
				return value
			}
		}
	}
	for i := range it.Props {
		p := &it.Props[i]
		for _, v := range p.Values {
			if v.Kind != structured.Entity {
				continue
			}
			if !r.budget.Spend(1) {
				return nil
			}
			inner := r.data.Follow(v.Item)
			if value := r.ofInner(f, p.Name, inner); value != nil {
				return value
			}
		}
	}
	return nil
}

// propsPerStep is how many properties of an item cost one step of the budget. A shared item is
// examined for each thing that shares it.
const propsPerStep = 8

// normal caches normal forms. A page has few names, and many fields need them.
func (r *reader) normal(name string) string {
	known, is := r.normals[name]
	if !is {
		if r.normals == nil {
			r.normals = map[string]string{}
		}
		known = normal(name)
		r.normals[name] = known
	}
	return known
}

// ofInner returns a field's value from an item within an item: a named value, or a member whose
// name completes the outer name.
func (r *reader) ofInner(f *field, outer string, inner *structured.Item) []byte {
	if inner.Is("PropertyValue") {
		name := inner.Text("name")
		r.budget.Spend((len(inner.Props) + len(name)) / propsPerStep)
		if !f.labels[r.normal(name)] {
			return nil
		}
		return r.coerce(f, stated{inner.Get("value"), false})
	}
	rest, begins := strings.CutPrefix(f.normal, r.normal(outer))
	if !begins || !r.budget.Spend(len(inner.Props)/propsPerStep) {
		return nil
	}
	for i := range inner.Props {
		if r.normal(inner.Props[i].Name) == rest {
			return r.coerce(f, stated{r.verified(f, inner, inner.Props[i].Values), true})
		}
	}
	return nil
}

// maxBranches bounds the items of one property on which a path is tried.
const maxBranches = 20

// walk follows a path of property names. Of several items, the first one with a result counts.
func (r *reader) walk(f *field, it *structured.Item, path []string) []structured.Value {
	values := it.Get(path[0])
	if len(path) == 1 {
		return r.verified(f, it, values)
	}
	for i, v := range values {
		if v.Kind == structured.Entity && i < maxBranches {
			if found := r.walk(f, r.data.Follow(v.Item), path[1:]); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

func (r *reader) ofMeta(f *field) stated {
	if content := r.data.MetaValue(f.meta...); content != "" {
		return r.allMeta(f, content)
	}
	for _, m := range r.data.Meta {
		before, name, ok := strings.Cut(m.Name, ":")
		if ok && (before == "og" || before == "product" || before == "article" ||
			before == "book") && normal(name) == f.normal {
			return textOnly(m.Value, true)
		}
	}
	return stated{}
}

// allMeta returns all values of the meta element whose value is first: lists repeat elements.
func (r *reader) allMeta(f *field, first string) stated {
	s := textOnly(first, true)
	for _, name := range f.meta {
		if r.data.MetaValue(name) != first {
			continue
		}
		for _, m := range r.data.Meta {
			if strings.EqualFold(m.Name, name) && m.Value != first && m.Value != "" {
				s.values = append(s.values,
					structured.Value{Kind: structured.String, Text: m.Value})
			}
		}
		break
	}
	return s
}

func (r *reader) ofPairs(f *field) stated {
	for _, p := range r.data.Pairs {
		if f.labels[normal(p.Name)] {
			return textOnly(p.Value, false)
		}
	}
	return stated{}
}

// wrappers are names of schema objects that wrap properties which pages state directly.
var wrappers = map[string]bool{"product": true, "item": true, "article": true, "offer": true,
	"offers": true, "data": true,
	"details": true, "info": true, "pricing": true, "event": true, "job": true}

// wrapped fills an object of the schema that stands for the thing itself.
func (r *reader) wrapped(f *field, things []*structured.Item) []byte {
	if !wrappers[f.normal] || len(f.members) == 0 {
		return nil
	}
	members := map[string]json.RawMessage{}
	for i := range f.members {
		m := &f.members[i]
		if value, weak := r.ofPage(m, things); value != nil && !weak {
			members[m.Name] = value
		} else if m.Required {
			return nil
		}
	}
	if len(members) == 0 {
		return nil
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil // cannot happen: the values are valid JSON
	}
	return text
}

package aiconf

import (
	"shoal.dev/shoal/pkg/extract/detect"
	"shoal.dev/shoal/pkg/extract/internal/structured"
)

// shown holds what package detect finds on a page.
type shown struct {
	thing []detect.Value
	items [][]detect.Value
}

// detection runs package detect once.
func (r *reader) detection() *shown {
	if r.shown == nil {
		r.shown = &shown{}
		if r.data.Root != nil {
			r.shown.thing, r.shown.items = detect.Shown(r.data.Root, r.page.URL)
		}
	}
	return r.shown
}

// ofShown returns a field's detected value for the page's thing, if HiddenData asks for detection.
func (r *reader) ofShown(f *field) []byte {
	if !r.hidden {
		return nil
	}
	return r.among(f, r.detection().thing)
}

// among returns a field's value among detected values.
func (r *reader) among(f *field, values []detect.Value) []byte {
	for _, v := range values {
		concept := r.words.of(v.Name)
		own := normal(v.Name) == f.normal || f.concept != nil && concept == f.concept
		// a price may include the currency
		priced := f.kind == currency && concept == r.words.of("price")
		if !own && !priced || f.kind != link && !f.looks(v.Text) {
			continue
		}
		if value := r.coerce(f, textOnly(v.Text, false)); value != nil {
			return value
		}
	}
	return nil
}

// minShown is how many fields each row of a list must have: a name alone is not enough.
const minShown = 2

// detected returns the rows of the items that repeat on a page, or none if they do not match the
// schema.
func (r *reader) detected() []row {
	var list []row
	items := r.detection().items
	for _, values := range items {
		found := row{}
		for i := range r.fields {
			if value := r.among(&r.fields[i], values); value != nil {
				found[r.fields[i].Name] = value
			}
		}
		if len(found) >= min(minShown, len(r.fields)) {
			list = append(list, found)
		}
	}
	if 2*len(list) < len(items) {
		return nil
	}
	return list
}

// isList says whether the page is about several things. It is not if its heading names one of its
// items or its article.
func (r *reader) isList() bool {
	if r.several == nil {
		several := !r.headsItem() && !r.headsArticle() && detect.IsList(r.data, r.page.URL)
		r.several = &several
	}
	return *r.several
}

// headsItem says whether the page's only stated thing has the heading's name.
func (r *reader) headsItem() bool {
	for _, source := range [...]structured.Source{structured.JSONLD, structured.Microdata,
		structured.RDFa} {
		things, rank := r.data.Things(source)
		if rank == structured.Main && len(things) == 1 && r.isHeading(things[0].Item) {
			return true
		}
	}
	return false
}

// headsArticle says whether the heading matches the page's title and heads an article that the
// schema asks for.
func (r *reader) headsArticle() bool {
	heading := r.mentioned().heading
	if heading == nil || !r.wantsArticle() || !r.article().Sure {
		return false
	}
	shown := titleOf(heading)
	return !r.isSite(shown) && r.namesPage(shown)
}

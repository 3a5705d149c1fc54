// Package ldjson owns APPLICATION_LD_JSON: rows made from the data that a page states as JSON-LD,
// without selectors.
//
// # What one row is
//
// A row is a thing that the page is about (structured.Data.Things): a top-level item of a main type
// such as Product, Article, Recipe, Event, JobPosting. The elements of an ItemList (OfferCatalog,
// DataFeed) stand for the list, a page's mainEntity for the page, the variants of a ProductGroup
// for the group. Secondary types (Organization, Person, Review, Offer, VideoObject …) make rows
// only if there is nothing better. The page itself (WebPage …) makes one only if there is nothing
// else at all. Breadcrumbs, navigation and the WebSite never make rows. Identical rows are written
// once.
//
// With tryWithHiddenData, if JSON-LD states no main thing, microdata and then RDFa are read in the
// same way.
//
// # Columns
//
//   - @type becomes the column type and @id the column id; both come first. The others follow in
//     the page's order.
//   - A member of a nested item is a column of its own, with names joined by an underscore:
//     offers_price, brand_name. Types of nested items are left out. References ({"@id": …}) are
//     followed if the page has their target; others become their id. Items deeper than 4 levels
//     are kept as JSON.
//   - A list of several scalars is a JSON array; a list of one is its element. A list that includes
//     items is an array under its own name (offers). The members of its first item are columns as
//     well (offers_price).
//   - PropertyValue items (additionalProperty) become one column each: additionalProperty_Colour.
//   - A variant takes from its group what it does not state itself. The column position is
//     an element's place in its list.
//   - Numbers stay as written; texts lose HTML's character references. null, @context and
//     @language are left out.
//   - Names lose leading underscores (only the server writes such names) and leading dollar signs.
//     They lose all quotes, backslashes and characters that hide others. They are cut at 100
//     characters. Of equal names, the first counts.
//
// # Fields
//
// itemsConfig may be left out: rows then have all columns. If it is given, it chooses and names the
// columns. A selector is the name of a column (offers_price) or a path of property names
// (offers.price, $.offers[0].price, $.offers[*].price). Without a selector, the field's name serves
// as one. A path takes the first of several items unless [*] asks for all. The kinds are TEXT, the
// value as stated, and EXISTS.
package ldjson

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// Compile checks and compiles the recipe.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	fields, faults := compileFields(r.Fields)
	if len(faults) > 0 {
		return rows.Maker{}, faults
	}
	read := func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		data, err := structured.ReadPage(pages[0])
		if err != nil {
			return rows.More{}, err
		}
		return rows.More{}, write(data, thingsOf(data, r.HiddenData), fields, out)
	}
	return rows.Maker{Read: read}, nil
}

// thingsOf returns the things that become rows. They come from the first source with a main thing,
// else from the first source with any.
func thingsOf(data *structured.Data, hidden bool) []structured.Thing {
	best, rank := data.Things(structured.JSONLD)
	if !hidden {
		return best
	}
	for _, source := range [...]structured.Source{structured.Microdata, structured.RDFa} {
		if things, r := data.Things(source); r < rank {
			best, rank = things, r
		}
	}
	return best
}

func write(data *structured.Data, things []structured.Thing, fields []field,
	out *rows.Writer) error {
	seen := make(map[[sha256.Size]byte]bool, len(things)) // hashes avoid a second copy of the rows
	work := pattern.NewBudget(out.Context(), maxWork)
	for i := range things {
		f := flattener{data: data, work: work}
		f.thing(&things[i])
		var row []byte
		if len(fields) > 0 {
			row = choose(&f, &things[i], fields)
		} else {
			row = f.row()
		}
		switch err := work.Err(); {
		case errors.Is(err, pattern.ErrExhausted):
			return fault.Wrap(fault.PageTooCostly, err, "the page's things take too long to read")
		case err != nil:
			return err
		case f.size > rows.MaxRowBytes || len(row) > rows.MaxRowBytes:
			return rows.TooLarge()
		}
		hash := sha256.Sum256(row)
		if row == nil || seen[hash] {
			continue
		}
		seen[hash] = true
		if err := out.Whole(bytes.Clone(row)); err != nil {
			return err
		}
	}
	return nil
}

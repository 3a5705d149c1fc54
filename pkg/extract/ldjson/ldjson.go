// Package ldjson owns APPLICATION_LD_JSON: rows out of the data that a page states as JSON-LD,
// without selectors.
//
// # What one row is
//
// A row is a thing that the page is about (structured.Data.Things): a top-level item of a main type
// such as Product, Article, Recipe, Event, JobPosting. The elements of an ItemList (OfferCatalog,
// DataFeed) stand for the list, a page's mainEntity for the page, the variants of a ProductGroup
// for the group. What merely comes along (Organization, Person, Review, Offer, VideoObject …) makes
// rows only where there is nothing better. The page itself (WebPage …) does so only where there is
// nothing else at all. Breadcrumbs, navigation and the WebSite never do. The same row is written
// once.
//
// With tryWithHiddenData, microdata and then RDFa are read in the same way where JSON-LD states no
// main thing.
//
// # Columns
//
//   - @type is the column type, @id is id; both come first. The others follow in the order of the
//     page.
//   - A member of a nested item is a column of its own, names joined with an underscore:
//     offers_price, brand_name. Types of nested items are left out. References ({"@id": …}) are
//     followed where the page has their target; others are their id. Deeper than 4 levels an item
//     is kept as JSON.
//   - A list of several scalars is a JSON array, of one its element. A list with items in it is an
//     array under its own name (offers), and the members of its first item are columns besides
//     (offers_price).
//   - PropertyValue items (additionalProperty) become one column each: additionalProperty_Colour.
//   - A variant takes from its group what it does not state itself. An element of a list has its
//     position there.
//   - Numbers stay as they are written, texts lose HTML's character references. null, @context and
//     @language are left out.
//   - Names lose leading underscores (only the server writes such names) and dollar signs, quotes,
//     backslashes and control characters. Of two columns of one name the first counts.
//
// # Fields
//
// itemsConfig may be left out: rows then have all columns. Where it is given, it chooses and names
// them. A selector is the name of a column (offers_price) or a path of property names
// (offers.price, $.offers[0].price, $.offers[*].price). Without one, the field's name is the
// selector. A path takes the first of several items unless [*] asks for all. Kinds are TEXT, the
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

// thingsOf are the things that become rows: those of the first source that has a main one, or else
// of the first that has any.
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
	seen := make(map[[sha256.Size]byte]bool, len(things)) // without a second copy of the rows
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

// Package aiconf owns AI_CONF: rows made by a schema instead of selectors.
//
// # What fills a property
//
// Stated data comes first, if it has the property's type. The sources are tried in this order.
// First is the item that states most of the schema (JSON-LD, microdata, RDFa), with its
// additionalProperty. It has a property by the concept that the name means (price, priceAmount and
// currentPrice are one; see concepts), or by the name itself. Then come meta elements (OpenGraph
// and the like), labelled tables and lists, and framework data. Last are elements that are named
// after what they hold (see mention). For name, url and language, the heading, the canonical
// address and the page's language count, too. Values are converted to the schema's types: numbers
// by the rules at number, truth from availability, codes only with a valid check digit. A value
// that does not fit the schema does not count as stated.
//
// The language model is asked for what is still missing. It gets the page as text (markdown) and
// the schema as the form of the answer. The page is data there: it stands between marks that it
// cannot know. An answer's row that does not fit the schema is dropped. So is a value that the page
// does not have, if that can be checked (see ground). An answer never changes what the page states.
// Without an answer, the stated values stand alone.
//
// # One row or many
//
// A schema of an array gives a row for each thing that the page lists. A schema of an object gives
// one row. But the page may state two or more main things of one type (an ItemList, or repeated
// microdata), none of them its own. Then each is a row. A listed thing is filled from its own data
// alone, never from what the page states about itself. For a list, the model is asked only if
// required properties are missing. Its rows are added to the list, but an answer that shares an
// address, a name or a number with a row fills that row.
//
// With HiddenData, what package detect would propose counts as well, after all these sources. It
// covers the page's thing or, if nothing else makes a row, the items that repeat on the page.
//
// A row that does not fit the schema is counted as rejected. A page that states nothing gives no
// row and rejects none.
package aiconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/jsontext"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/schema"
)

// conf is a compiled recipe.
type conf struct {
	hidden bool // HiddenData
	schema *schema.Schema
	fields []field
	words  lexicon
}

// Compile checks and compiles the recipe's schema.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	var faults fault.List
	if len(r.Fields) > 0 {
		faults = append(faults,
			fault.Invalid(fault.SchemaValidation, "itemsConfig",
				"AI_CONF has a schema instead of fields"))
	}
	if len(r.Schema) == 0 {
		return rows.Maker{}, append(faults,
			fault.Invalid(fault.SchemaValidation, "schema", "AI_CONF needs a schema"))
	}
	compiled, err := schema.Compile(r.Schema)
	if err != nil {
		return rows.Maker{}, append(faults,
			fault.Invalid(fault.SchemaValidation, "schema", "%v", err))
	}
	if len(faults) > 0 {
		return rows.Maker{}, faults
	}
	c := &conf{schema: compiled, words: newLexicon(), hidden: r.HiddenData}
	c.fields = c.words.fields(compiled.Properties(), 0)
	return rows.Maker{Read: c.read, Patterns: compiled.Patterns()}, nil
}

// read makes the rows of pages[0]; pages[1], if there, is the model's answer.
func (c *conf) read(pages []page.Page, out *rows.Writer) (rows.More, error) {
	data, err := structured.ReadPage(pages[0])
	if err != nil {
		return rows.More{}, err
	}
	r := newReader(c, data, pages[0])
	r.budget = pattern.NewBudget(out.Context(), schemaSteps)
	list, isList := r.rows()
	if len(pages) == 1 && r.budget.Err() == nil {
		if prompt := r.ask(list, isList); prompt != nil {
			return rows.More{Ask: &page.Ask{Prompt: prompt}}, nil
		}
	}
	rejected := 0
	if len(pages) > 1 && pages[1].Code == "" {
		answers, unfit := r.answers(pages[1].Body, isList)
		switch {
		case len(answers) > 0:
			list = c.merge(list, answers, isList)
			r.firm = r.firm ||
				slices.ContainsFunc(answers, func(answer row) bool { return len(answer) > 0 })
		case r.firm && !isList:
			unfit = 0 // the stated row stands
		}
		rejected = unfit
	}
	if err := r.budget.Err(); err != nil {
		return rows.More{}, tooSlow(err)
	}
	if !r.firm {
		return rows.More{Rejected: rejected}, nil
	}
	for _, row := range list {
		text := r.completeRow(row)
		switch {
		case r.budget.Err() != nil:
			return rows.More{}, tooSlow(r.budget.Err())
		case len(row) == 0:
		case text == nil:
			rejected++
		default:
			if err := out.Whole(text); err != nil {
				return rows.More{}, err
			}
		}
	}
	return rows.More{Rejected: rejected}, nil
}

// schemaSteps bounds the cost of a schema on one page, for its patterns and its look-ups in items:
// some 2.5 s at worst.
const schemaSteps = 50_000_000

// tooSlow returns the error of an exhausted or ended budget.
func tooSlow(err error) error {
	if errors.Is(err, pattern.ErrExhausted) {
		return fault.Wrap(fault.PageTooCostly, err,
			"the schema takes too long on this page")
	}
	return err
}

// row holds the known values of one row: JSON by property name.
type row map[string]json.RawMessage

// json writes a row with its members in the order of the schema. stored says that it is for the
// store, where names have no leading underscore.
func (c *conf) json(r row, stored bool) []byte {
	out := []byte{'{'}
	for i := range c.fields {
		value, ok := r[c.fields[i].Name]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name := c.fields[i].Name
		if stored {
			name = c.fields[i].column
		}
		out = append(jsontext.AppendString(out, name), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// prune removes the members of a row that do not fit the schema, one by one. It says whether the
// row then fits.
func (r *reader) prune(of row) bool {
	for range len(r.fields) + 1 {
		err := r.schema.Validate(r.budget, r.json(of, false))
		if err == nil {
			return true
		}
		var mismatch *schema.Mismatch
		if !errors.As(err, &mismatch) || mismatch.Property == "" || of[mismatch.Property] == nil {
			return false
		}
		delete(of, mismatch.Property)
	}
	return false
}

// completeRow returns a row as it is stored, or nil if it does not fit the schema. Missing required
// properties that may be null become null.
func (r *reader) completeRow(of row) []byte {
	if len(of) == 0 {
		return nil
	}
	r.prune(of)
	if len(of) == 0 {
		return nil
	}
	for i := range r.fields {
		if f := &r.fields[i]; f.Required && of[f.Name] == nil && len(f.Types) > 0 && f.Is("null") {
			of[f.Name] = json.RawMessage("null")
		}
	}
	if r.schema.Validate(r.budget, r.json(of, false)) != nil {
		return nil
	}
	return r.json(of, true)
}

// answers returns the rows of a model's answer that fit the schema, and the number of those that do
// not. A malformed answer counts as one of these.
func (r *reader) answers(body []byte, isList bool) (answers []row, unfit int) {
	if len(body) > rows.MaxRowBytes {
		return nil, 1
	}
	parts := []json.RawMessage{bytes.TrimSpace(body)}
	if isList {
		var list struct {
			Rows []json.RawMessage `json:"rows"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, 1
		}
		parts = list.Rows
	}
	for _, part := range parts {
		if answer := r.answer(part, isList); answer != nil {
			answers = append(answers, answer)
		} else {
			unfit++
		}
	}
	return answers, unfit
}

// answer returns one row of a model's answer without values that the page does not have. It is nil
// if the row does not fit the schema, or if a list's row has a name that the page does not have.
func (r *reader) answer(part json.RawMessage, isList bool) row {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(part, &members); err != nil {
		return nil
	}
	for i := range r.fields { // models often write null for "not on the page"
		f := &r.fields[i]
		if value := members[f.Name]; string(value) == "null" &&
			(len(f.Types) == 0 || !f.Is("null")) {
			delete(members, f.Name)
		}
	}
	if !r.fits(members) {
		return nil
	}
	answer := row{}
	for i := range r.fields {
		f := &r.fields[i]
		value := members[f.Name]
		if value == nil {
			continue
		}
		if value = r.grounded(f, value); value != nil {
			answer[f.Name] = value
		} else if isList && f.identifies {
			return nil // an invented thing
		}
	}
	return answer
}

// fits says whether members form a row that fits the schema.
func (r *reader) fits(members map[string]json.RawMessage) bool {
	text, err := json.Marshal(members)
	return err == nil && r.schema.Validate(r.budget, text) == nil
}

// merge fills missing values of rows from answers. Answers that match no row become rows.
func (c *conf) merge(list, answers []row, isList bool) []row {
	if !isList {
		fill(list[0], answers[0])
		return list
	}
	known := len(list)
	for _, answer := range answers {
		if i := c.same(list[:known], answer); i >= 0 {
			fill(list[i], answer)
		} else {
			list = append(list, answer)
		}
	}
	return list
}

func fill(r, from row) {
	for name, value := range from {
		if r[name] == nil {
			r[name] = value
		}
	}
}

// same returns the first row that shares an identifying value with other, or -1.
func (c *conf) same(list []row, other row) int {
	for i := range c.fields {
		f := &c.fields[i]
		if !f.identifies || other[f.Name] == nil {
			continue
		}
		want := normal(string(other[f.Name]))
		for at, r := range list {
			if r[f.Name] != nil && normal(string(r[f.Name])) == want {
				return at
			}
		}
	}
	return -1
}

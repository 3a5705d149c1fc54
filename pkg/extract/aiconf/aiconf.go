// Package aiconf owns AI_CONF: rows by a schema instead of selectors.
//
// # What fills a property
//
// What the page states comes first, as far as it has the property's type. The first of these
// counts: the item that states most of the schema (JSON-LD, microdata, RDFa), and its
// additionalProperty. It has a property by the concept that the name means (price, priceAmount and
// currentPrice are one; see concepts), or by the name itself. Then come meta elements (OpenGraph
// and the like), labelled tables and lists, and data of frameworks. Last are elements that are
// called after what they hold (see mention). Of name, url and language, the heading, the canonical
// address and the page's language count, too. Values take the schema's types: numbers out of texts
// by the rules at number, truth out of availability, codes only with their check digit. What does
// not fit the schema does not count as stated.
//
// What is missing then is asked of the language model, with the page as text (markdown) and the
// schema as the form of the answer. The page is data there: it stands between marks that it cannot
// know. A row of the answer that does not fit the schema is dropped. So is a value that the page
// does not have, where that can be told (see ground). What the page states is never changed by an
// answer. Without an answer the page's own words stand.
//
// # One row or many
//
// A schema of an array gives a row for each thing that the page lists. A schema of an object gives
// one row. But the page may state two or more main things of one type (an ItemList, or repeated
// microdata), none of them its own. Then each is a row. A thing of a list is filled from itself
// alone, never from what the page says of itself. The model is asked only where required properties
// are missing. Its rows are added to those of the list, and fill those with which they share an
// address, a name or a number.
//
// With HiddenData, what package detect would propose counts, too, behind all these. It is of the
// thing that the page is about, or, where nothing else makes a row, of the items that repeat on it.
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

// read makes the rows of pages[0]; pages[1] is the model's answer.
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
			unfit = 0 // what the page states makes the row
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

// schemaSteps is what a schema may cost on one page, its patterns and what it asks of items: some
// 2.5 s at worst.
const schemaSteps = 50_000_000

// tooSlow is the error of a budget that has ended.
func tooSlow(err error) error {
	if errors.Is(err, pattern.ErrExhausted) {
		return fault.Wrap(fault.PageTooCostly, err,
			"the schema takes too long on this page")
	}
	return err
}

// row is what is known of one row: JSON values by the names of properties.
type row map[string]json.RawMessage

// json writes a row with its members in the order of the schema. stored says that it becomes a row
// of the store, where names have no leading underscore.
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

// prune takes out of a row what does not fit the schema, member by member; it says whether the row
// fits then.
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

// completeRow is a row as it is stored, nil if it does not fit the schema. What is required, may be
// null and is nowhere to be found is null.
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

// answers are the rows of a model's answer that fit the schema, and how many do not. An answer of
// another form is one of these.
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

// answer is one row of a model's answer without what the page does not have. It is nil if it does
// not fit the schema, or is one of a list's with a name that the page does not have.
func (r *reader) answer(part json.RawMessage, isList bool) row {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(part, &members); err != nil {
		return nil
	}
	for i := range r.fields { // "not on the page" is often said as null
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
			return nil // a thing that is not there
		}
	}
	return answer
}

// fits says whether members make a row that fits the schema.
func (r *reader) fits(members map[string]json.RawMessage) bool {
	text, err := json.Marshal(members)
	return err == nil && r.schema.Validate(r.budget, text) == nil
}

// merge fills what is missing in rows. Answers that belong to none are rows of their own.
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

// same is the first row that has an identifying value in common with another one, -1 if none does.
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

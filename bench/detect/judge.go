package detect

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
)

// Verdict rates a proposal against the answer.
type Verdict int

// The verdicts, best first.
const (
	// Right is the expected list with a row for each item, or the one item with all its values.
	Right Verdict = iota
	// Broken has all items, but in rows that are cut, doubled, mixed or without links.
	Broken
	// Part has some of the items.
	Part
	// Another has none of the items.
	Another
	// None means no proposal.
	None
	// Verdicts is the number of verdicts.
	Verdicts
)

// String is the verdict in a table's header.
func (v Verdict) String() string {
	return [...]string{"right", "broken rows", "part", "another", "none"}[v]
}

// Judgement is the comparison of one proposal with an answer.
type Judgement struct {
	Verdict Verdict
	// Mispriced says that a row has an item's title but another price.
	Mispriced bool
}

// slack is how far the number of rows may differ from the number of items. It is a tenth, and at
// least one, since people disagree about a teaser or a pinned item.
const slack = 10

// Judge compares all rows of a proposal with the answer. Each row is a JSON object.
func (a *Answer) Judge(rows [][]byte) Judgement {
	if len(rows) == 0 {
		return Judgement{Verdict: None}
	}
	seen := make([]values, len(rows))
	for i, row := range rows {
		seen[i] = valuesOf(row)
	}
	var j Judgement
	var found, clean int
	after := -1 // the row of the previous item
	for i := range a.Items {
		at, match := a.Items[i].find(seen, after+1)
		if at < 0 {
			continue
		}
		found++
		after = at
		priced := a.Items[i].priced(seen[at])
		j.Mispriced = j.Mispriced || priced == wrong
		if match && a.Items[i].linked(seen[at]) && priced == agrees {
			clean++
		}
	}
	switch {
	case found == 0:
		j.Verdict = Another
	case found < len(a.Items):
		j.Verdict = Part
	case clean < len(a.Items) || !a.fits(len(rows)):
		j.Verdict = Broken
	}
	return j
}

// fits says whether that many rows can be one per item.
func (a *Answer) fits(rows int) bool {
	if a.Count == 0 {
		return rows == 1
	}
	off := rows - a.Count
	return max(off, -off) <= max(1, a.Count/slack)
}

// values are the texts of a row with the path of member names to each.
type values []value

type value struct{ name, text string }

func valuesOf(row []byte) values {
	var object any
	if json.Unmarshal(row, &object) != nil {
		return nil // a row that is not an object has no values
	}
	var found values
	found.add("", object)
	return found
}

func (v *values) add(name string, of any) {
	switch of := of.(type) {
	case map[string]any:
		for member, inner := range of {
			v.add(strings.ToLower(name+"_"+member), inner)
		}
	case []any:
		for _, inner := range of {
			v.add(name, inner)
		}
	case string:
		*v = append(*v, value{name, normal(of)})
	case float64:
		text, err := json.Marshal(of)
		if err == nil {
			*v = append(*v, value{name, string(text)})
		}
	}
}

// normal removes what a reader does not see.
func normal(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff'
	}), " ")
}

// find returns the first row at or after from with the item's title, as a value or within one.
// Without such a row it is -1. match says that the title is the whole value.
func (i *Item) find(rows []values, from int) (at int, match bool) {
	title := normal(i.Title)
	at = -1
	for n := from; n < len(rows); n++ {
		for _, v := range rows[n] {
			switch {
			case v.text == title:
				return n, true
			case at < 0 && strings.Contains(v.text, title):
				at = n
			}
		}
	}
	return at, false
}

// linked says whether a row has the item's link, if that link is known.
func (i *Item) linked(row values) bool {
	if i.Link == "" {
		return true
	}
	want := bare(i.Link)
	for _, v := range row {
		if bare(v.text) == want {
			return true
		}
	}
	return false
}

// bare removes the fragment, and unescapes characters: pages write many in their links that
// browsers escape.
func bare(address string) string {
	address, _, _ = strings.Cut(address, "#")
	if plain, err := url.PathUnescape(address); err == nil {
		address = plain
	}
	return strings.TrimSuffix(address, "/")
}

// pricing compares a row's prices with the item's.
type pricing int

const (
	agrees pricing = iota
	lacks          // a price of the item is missing from its member
	wrong          // the row has a price that the item does not have
)

// priced compares the members named price and listPrice.
func (i *Item) priced(row values) pricing {
	if i.Price == "" {
		return agrees
	}
	price, list := amount(i.Price), amount(i.ListPrice)
	result := lacks
	var listed bool
	for _, v := range row {
		got := amount(v.text)
		regular := strings.HasSuffix(v.name, "listprice")
		switch {
		case got == "" || !strings.HasSuffix(v.name, "price"):
		case got != price && got != list:
			return wrong
		case regular:
			listed = listed || got == list
		case got == price:
			result = agrees
		}
	}
	if list != "" && !listed {
		return lacks
	}
	return result
}

// amount returns a price's digits in minor units: "1.299,00 €", "1299" and "1299.00" are equal.
func amount(price string) string {
	var digits []rune
	decimals := -1 // digits since the last separator
	for _, r := range price {
		switch {
		case unicode.IsDigit(r):
			digits = append(digits, r)
			if decimals >= 0 {
				decimals++
			}
		case (r == '.' || r == ',') && len(digits) > 0:
			decimals = 0
		}
	}
	switch {
	case len(digits) == 0:
		return ""
	case decimals == 1:
		digits = append(digits, '0')
	case decimals != 2:
		digits = append(digits, '0', '0')
	}
	return strings.TrimLeft(string(digits), "0")
}

// Pagination says whether a proposal's next page is the answer's.
func (a *Answer) Pagination(next string) bool { return bare(next) == bare(a.Next) }

// Agreement compares two people's answers to the same pages.
type Agreement struct{ Pages, Lists, Items, Next int }

// Agree counts on how many pages of the second reading both readings agree. They can agree on
// having a list or none, on the items and nearly their number, and on the next page.
func Agree(first, again []Entry) Agreement {
	by := map[string]*Entry{}
	for i := range first {
		by[first[i].SHA256] = &first[i]
	}
	var a Agreement
	for i := range again {
		one, two := by[again[i].SHA256], &again[i]
		if one == nil {
			continue
		}
		a.Pages++
		if (one.Count == 0) == (two.Count == 0) {
			a.Lists++
		}
		if one.same(two) {
			a.Items++
		}
		if one.Pagination(two.Next) {
			a.Next++
		}
	}
	return a
}

func (e *Entry) same(other *Entry) bool {
	if (e.Count == 0) != (other.Count == 0) || e.Count > 0 && !e.fits(other.Count) ||
		len(e.Items) != len(other.Items) {
		return false
	}
	for i := range e.Items {
		if normal(e.Items[i].Title) != normal(other.Items[i].Title) {
			return false
		}
	}
	return true
}

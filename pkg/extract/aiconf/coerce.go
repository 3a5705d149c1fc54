package aiconf

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/jsontext"
)

// stated holds values as a page states them.
type stated struct {
	values  []structured.Value
	machine bool // in machine format, not in the page's language
}

// textOnly makes a statement of a single text.
func textOnly(text string, machine bool) stated {
	if text == "" {
		return stated{}
	}
	return stated{[]structured.Value{{Kind: structured.String, Text: text}}, machine}
}

// The cost of coercing a value, in steps of the budget.
const (
	perValue     = 4
	bytesPerStep = 16 // also earlier elements compared per step
)

// coerce converts a statement to a JSON value of the field; nil if that is impossible.
func (r *reader) coerce(f *field, s stated) []byte {
	if f.element == nil && !slices.Contains(f.Types, "array") {
		for _, v := range s.values {
			if !r.budget.Spend(perValue + len(v.Text)/bytesPerStep) {
				return nil
			}
			if value := r.one(f, v, s.machine); value != nil {
				return value
			}
		}
		return nil
	}
	element := f.element
	if element == nil {
		element = &field{kind: f.kind, concept: f.concept}
	}
	values := s.values
	if len(values) == 1 && values[0].Kind == structured.String &&
		(f.means("keywords") || f.means("category")) {
		values = nil
		for part := range strings.SplitSeq(s.values[0].Text, ",") {
			values = append(values,
				structured.Value{Kind: structured.String, Text: strings.TrimSpace(part)})
		}
	}
	var parts []string
	for _, v := range values {
		if len(parts) == maxElements ||
			!r.budget.Spend(perValue+(len(v.Text)+len(parts))/bytesPerStep) {
			break
		}
		if part := string(r.one(element, v, s.machine)); part != "" &&
			!slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []byte("[" + strings.Join(parts, ",") + "]")
}

// maxElements bounds the elements that one array takes from a page.
const maxElements = 1_000

// one converts one value to the first of the field's types that it fits.
func (r *reader) one(f *field, v structured.Value, machine bool) []byte {
	if len(f.Enum) > 0 {
		return r.choice(f, v)
	}
	types := f.Types
	switch {
	case len(types) == 0:
		types = []string{"string"}
		if v.Kind == structured.Number || v.Kind == structured.Bool {
			return []byte(v.Text)
		}
	case v.Kind == structured.Number && f.Is("number") && f.kind != code:
		return []byte(v.Text)
	case v.Kind == structured.Bool && f.Is("boolean"):
		return []byte(v.Text)
	}
	for _, t := range types {
		var value []byte
		switch t {
		case "string":
			if text := r.text(f, v); text != "" {
				value = jsontext.AppendString(nil, text)
			}
		case "number", "integer":
			value = []byte(r.number(f, v, machine, t == "integer"))
		case "boolean":
			value = []byte(truth(r.plain(v)))
		case "object":
			value = r.object(f, v)
		}
		if len(value) > 0 {
			return value
		}
	}
	return nil
}

// choice returns the enumeration's entry that a value means.
func (r *reader) choice(f *field, v structured.Value) []byte {
	for _, text := range [...]string{r.text(f, v), r.plain(v)} {
		want := normal(text)
		for _, e := range f.Enum {
			if want != "" && normal(e) == want {
				if f.Is("string") || !f.Is("number") {
					return jsontext.AppendString(nil, e)
				}
				return []byte(e)
			}
		}
	}
	return nil
}

// plain returns a value's text; for an item, its name, value or address.
func (r *reader) plain(v structured.Value) string {
	if v.Kind != structured.Entity {
		return strings.TrimSpace(v.Text)
	}
	it := r.data.Follow(v.Item)
	for _, name := range [...]string{"name", "value", "text", "headline", "url", "contentUrl",
		"addressLocality"} {
		if text := it.Text(name); text != "" {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// text returns a value as a string in the field's form.
func (r *reader) text(f *field, v structured.Value) string {
	text := r.plain(v)
	if v.Kind == structured.Entity && f.kind == link {
		it := r.data.Follow(v.Item)
		text = ""
		for _, name := range [...]string{"url", "contentUrl", "@id"} {
			if text == "" {
				text = it.Text(name)
			}
		}
	}
	switch f.kind {
	case link:
		return r.link(text)
	case currency:
		return currencyOf(text, r.amounts(false))
	case code:
		return checked(text)
	case stock:
		return availability(text)
	case date:
		return dateIn(text, f.Format, r.readsMonthFirst())
	}
	if f.means("author") {
		text = bylined(text)
	}
	switch f.Format {
	case "uri", "url", "iri", "uri-reference":
		return r.link(text)
	case "date", "date-time":
		return dateIn(text, f.Format, r.readsMonthFirst())
	case "email":
		if !strings.Contains(text, "@") {
			return ""
		}
	}
	if v.Kind == structured.Entity {
		return text + unitOf(r.data.Follow(v.Item))
	}
	return text
}

// unitOf returns the unit of a QuantitativeValue, with a leading space.
func unitOf(it *structured.Item) string {
	if it.Text("value") == "" || it.Text("name") != "" {
		return ""
	}
	for _, name := range [...]string{"unitText", "unitCode", "currency"} {
		if unit := it.Text(name); unit != "" {
			if known := map[string]string{"KGM": "kg", "GRM": "g", "CMT": "cm", "MMT": "mm",
				"MTR": "m", "LTR": "l", "LBR": "lb",
				"MTK": "m²"}[unit]; known != "" {
				unit = known
			}
			return " " + unit
		}
	}
	return ""
}

func (r *reader) link(text string) string {
	text = r.data.Resolve(text)
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return text
	}
	return ""
}

// number returns a value as a number. A whole number loses zeros after the decimal point.
func (r *reader) number(f *field, v structured.Value, machine, whole bool) string {
	text := v.Text
	if v.Kind == structured.Entity {
		it := r.data.Follow(v.Item)
		for _, name := range [...]string{"value", "price", "ratingValue", "minValue", "name"} {
			if values := it.Get(name); len(values) > 0 && values[0].Kind != structured.Entity {
				return r.number(f, values[0], machine, whole)
			}
		}
		return ""
	}
	if v.Kind != structured.Number {
		kind := f.kind
		if whole && kind != money {
			kind = count
		}
		text = number(text, kind, r.amounts(machine), f.isMost())
	}
	if before, after, ok := strings.Cut(text, "."); whole && ok {
		if strings.Trim(after, "0") != "" {
			return ""
		}
		text = before
	}
	if whole && strings.ContainsAny(text, "eE") {
		return ""
	}
	return text
}

// object converts an item to an object of the schema. A plain text becomes its name.
func (r *reader) object(f *field, v structured.Value) []byte {
	it := &structured.Item{Props: []structured.Prop{{Name: "name", Values: []structured.Value{v}}}}
	if v.Kind == structured.Entity {
		it = r.data.Follow(v.Item)
	} else if v.Kind != structured.String {
		return nil
	}
	if r.nesting++; r.nesting > maxNesting {
		r.nesting--
		return nil
	}
	defer func() { r.nesting-- }()
	out := []byte{'{'}
	for i := range f.members {
		m := &f.members[i]
		value := r.ofItem(m, it)
		if value == nil {
			if m.Required {
				return nil
			}
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendString(out, m.Name), ':')
		out = append(out, value...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// truths and lies are in normal form. lies are tried first, since "not available" contains
// "available".
var (
	lies = strings.Fields("false no nein non niet nej outofstock soldout discontinued backorder " +
		"preorder presale ausverkauft " +
		"nichtlieferbar nichtverfügbar nichtauflager notavailable notinstock unavailable épuisé " +
		"rupturedestock agotado esaurito uitverkocht")
	truths = strings.Fields("true yes ja oui sí si instock limitedavailability onlineonly " +
		"instoreonly madetoorder auflager " +
		"sofortlieferbar lieferbar verfügbar available enstock disponible disponibile opvoorraad")
)

// truth reads a text as a boolean; "" if it is neither.
func truth(text string) string {
	switch text {
	case "1", "true":
		return "true"
	case "0", "false":
		return "false"
	}
	text = normal(availability(text))
	if text == "" || len(text) > 60 {
		return ""
	}
	for _, lie := range lies {
		if text == lie || len(lie) > 4 && strings.Contains(text, lie) {
			return "false"
		}
	}
	for _, t := range truths {
		if text == t || len(t) > 4 && strings.Contains(text, t) {
			return "true"
		}
	}
	return ""
}

// availability removes the address part of a schema.org term.
func availability(text string) string {
	if at := strings.LastIndexByte(text, '/'); at >= 0 &&
		strings.Contains(strings.ToLower(text), "schema.org") {
		return text[at+1:]
	}
	return text
}

// checked returns an article number with a valid check digit, without spaces and hyphens; "" for
// anything else.
func checked(text string) string {
	number := strings.NewReplacer(" ", "", "-", "").Replace(text)
	if len(number) == 10 {
		sum := 0
		for i := range len(number) {
			d := int(number[i] - '0')
			if i == 9 && (number[i] == 'X' || number[i] == 'x') {
				d = 10
			} else if d < 0 || d > 9 {
				return ""
			}
			sum += (10 - i) * d
		}
		if sum%11 != 0 {
			return ""
		}
		return number
	}
	if !slices.Contains([]int{8, 12, 13, 14}, len(number)) {
		return ""
	}
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if d < 0 || d > 9 {
			return ""
		}
		if i%2 == 1 {
			d *= 3
		}
		sum += d
	}
	if sum%10 != 0 || strings.Trim(number, "0") == "" {
		return ""
	}
	return number
}

// layouts are unambiguous date formats.
var layouts = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
	"2006-01-02T15:04", "2006-01-02 15:04:05",
	"2006-01-02", "2006/01/02", "2.1.2006", "2 January 2006", "2 Jan 2006", "January 2, 2006",
	"Jan 2, 2006", time.RFC1123, time.RFC1123Z}

var isoDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

// hasZone says whether a date read with this layout names its zone. Only GMT and UTC are
// unambiguous; other abbreviations mean different zones to different readers.
func hasZone(layout string, at time.Time) bool {
	if layout == time.RFC1123 {
		name, _ := at.Zone()
		return name == "UTC" || name == "GMT"
	}
	return strings.Contains(layout, "Z07") || strings.HasSuffix(layout, "-0700")
}

// dateIn returns a date in the schema's format, or the text itself if there is no format; "" if it
// is not a date.
func dateIn(text, format string, monthFirst bool) string {
	if format != "date" && format != "date-time" {
		return text
	}
	for _, layout := range layouts {
		at, err := time.ParseInLocation(layout, text, time.UTC)
		switch {
		case err != nil:
		case format == "date" && isoDate.MatchString(text):
			return text[:len("2006-01-02")] // the day as written, in its own zone
		case format == "date":
			return at.Format(time.DateOnly)
		case hasZone(layout, at):
			return at.Format(time.RFC3339)
		case isoDate.MatchString(text):
			return text // no zone is known
		}
	}
	if format == "date" && len(text) <= maxDated {
		return dayIn(text, monthFirst)
	}
	return ""
}

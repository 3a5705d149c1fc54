package ldjson

import (
	"strings"
	"unicode"

	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/jsontext"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/utf8text"
)

// maxLevels is the depth down to which members of nested items become columns. maxNested is the
// depth down to which items kept as JSON nest.
const (
	maxLevels = 4
	maxNested = 16
)

// maxWork bounds the work for a page's rows, at several times what a page of the largest rows
// takes. A step is one byte written or one value looked at. References make small pages costlier:
// many things may share a large one, and its columns count for each of them.
const (
	maxWork     = 4 * rows.MaxPageBytes
	perProperty = 16 // steps
)

// column is a name and a JSON value.
type column struct {
	name  string
	value []byte
}

// flattener turns one thing into columns.
type flattener struct {
	data    *structured.Data
	work    *pattern.Budget // shared by all things of the page
	columns []column
	places  map[string]int // indexes into columns, by name
	size    int
	group   *structured.Item   // its columns follow those of its variant
	path    []*structured.Item // items around the current one; references may be circular
}

// ended says that nothing more is added: the row is too large or the work is spent.
func (f *flattener) ended() bool { return f.size > rows.MaxRowBytes || f.work.Err() != nil }

// thing makes the columns of a thing.
func (f *flattener) thing(t *structured.Thing) {
	f.places = map[string]int{}
	f.add("type", scalars(texts(t.Types)))
	if t.ID != "" {
		f.add("id", jsontext.AppendString(nil, t.ID))
	}
	f.group = t.Group
	f.item("", t.Item)
	if t.Group != nil {
		f.item("", t.Group, "hasVariant", "variesBy")
	}
	if t.Position != "" {
		f.add("position", scalar(structured.Value{Kind: kindOf(t.Position), Text: t.Position}))
	}
}

func kindOf(position string) structured.Kind {
	for _, r := range position {
		if r < '0' || r > '9' {
			return structured.String
		}
	}
	if position == "" || position[0] == '0' && len(position) > 1 {
		return structured.String
	}
	return structured.Number
}

func texts(list []string) []structured.Value {
	values := make([]structured.Value, len(list))
	for i, s := range list {
		values[i] = structured.Value{Kind: structured.String, Text: s}
	}
	return values
}

// add adds a column unless its name is taken or the name or value is empty.
func (f *flattener) add(name string, value []byte) {
	if !f.work.Spend(len(value)) || name == "" || value == nil || f.size > rows.MaxRowBytes {
		return
	}
	if _, again := f.places[name]; again {
		return
	}
	f.places[name] = len(f.columns)
	f.size += len(name) + len(value) + len(`"":,`)
	f.columns = append(f.columns, column{name, value})
}

// row returns the columns as a JSON object, or nil if there is nothing but a type.
func (f *flattener) row() []byte {
	if len(f.columns) == 0 || len(f.columns) == 1 && f.columns[0].name == "type" || f.ended() {
		return nil
	}
	row := make([]byte, 0, f.size+2)
	for i, c := range f.columns {
		if i == 0 {
			row = append(row, '{')
		} else {
			row = append(row, ',')
		}
		row = append(jsontext.AppendString(row, c.name), ':')
		row = append(row, c.value...)
	}
	return append(row, '}')
}

// item makes columns of an item's properties.
func (f *flattener) item(prefix string, it *structured.Item, without ...string) {
	if f.isOpen(it) && (it != f.group || prefix != "") {
		return
	}
	f.path = append(f.path, it)
	defer func() { f.path = f.path[:len(f.path)-1] }()
	for i := range it.Props {
		if f.ended() {
			break
		}
		if p := &it.Props[i]; !contains(without, p.Name) {
			f.property(prefix, p)
		}
	}
}

// isOpen says whether an item's members are being written just now.
func (f *flattener) isOpen(it *structured.Item) bool {
	for _, open := range f.path {
		if open == it {
			return true
		}
	}
	return it == f.group && it != nil
}

func (f *flattener) property(prefix string, p *structured.Prop) {
	name := columnName(p.Name)
	if !f.work.Spend(perProperty+len(p.Values)) || name == "" {
		return
	}
	name = prefix + name
	first := f.firstItem(p.Values)
	switch {
	case first == nil:
		f.add(name, scalars(p.Values))
	case first.Is("PropertyValue") && f.named(name, p.Values):
	default:
		if len(p.Values) > 1 || len(f.path) >= maxLevels {
			f.add(name, f.list(p.Values))
		}
		if len(first.Props) == 0 {
			f.add(name, jsontext.AppendString(nil, first.ID)) // a reference to outside the page
		} else if len(f.path) < maxLevels {
			if first.ID != "" {
				f.add(name+"_id", jsontext.AppendString(nil, first.ID))
			}
			f.item(name+"_", first)
		}
	}
}

func (f *flattener) firstItem(values []structured.Value) *structured.Item {
	for _, v := range values {
		if v.Kind == structured.Entity {
			return f.data.Follow(v.Item)
		}
	}
	return nil
}

// named makes a column of each PropertyValue; false if any has no name or holds an item.
func (f *flattener) named(prefix string, values []structured.Value) bool {
	type pair struct{ name, value string }
	var pairs []pair
	for _, v := range values {
		if v.Kind != structured.Entity {
			return false
		}
		it := f.data.Follow(v.Item)
		name := columnName(it.Text("name"))
		if name == "" {
			name = columnName(it.Text("propertyID"))
		}
		given := it.Get("value")
		f.work.Spend(perProperty + len(it.Props) + len(given))
		if name == "" || f.firstItem(given) != nil {
			return false
		}
		pairs = append(pairs, pair{prefix + "_" + name, string(scalars(given))})
	}
	for _, p := range pairs {
		if p.value != "" {
			f.add(p.name, []byte(p.value))
		}
	}
	return true
}

// scalars returns one value, an array of several, or nil for none.
func scalars(values []structured.Value) []byte {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return scalar(values[0])
	}
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, scalar(v)...)
	}
	return append(out, ']')
}

func scalar(v structured.Value) []byte {
	if v.Kind == structured.String {
		return jsontext.AppendString(nil, v.Text)
	}
	return []byte(v.Text)
}

// list returns values that include items, as JSON.
func (f *flattener) list(values []structured.Value) []byte {
	out := f.appendValues(nil, values, len(f.path))
	if len(values) == 1 {
		return out
	}
	return append(append([]byte{'['}, out...), ']')
}

func (f *flattener) appendValues(dst []byte, values []structured.Value, depth int) []byte {
	for i, v := range values {
		if f.size+len(dst) > rows.MaxRowBytes {
			f.size = rows.MaxRowBytes + 1
			break
		}
		if !f.work.Spend(1 + len(v.Text)) {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.Kind == structured.Entity {
			dst = f.appendItem(dst, v.Item, depth+1)
		} else {
			dst = append(dst, scalar(v)...)
		}
	}
	return dst
}

// appendItem appends an item as a JSON object. An item nested too deep or in itself becomes its id.
func (f *flattener) appendItem(dst []byte, it *structured.Item, depth int) []byte {
	it = f.data.Follow(it)
	if f.isOpen(it) || depth > maxNested {
		return jsontext.AppendString(dst, it.ID)
	}
	f.path = append(f.path, it)
	defer func() { f.path = f.path[:len(f.path)-1] }()
	comma, names := byte('{'), map[string]bool{}
	member := func(name string, value []byte) {
		if value == nil || names[name] { // of equal names the first counts
			return
		}
		names[name] = true
		dst = append(jsontext.AppendString(append(dst, comma), name), ':')
		dst = append(dst, value...)
		comma = ','
	}
	member("type", scalars(texts(it.Types)))
	if it.ID != "" {
		member("id", jsontext.AppendString(nil, it.ID))
	}
	for i := range it.Props {
		name := columnName(it.Props[i].Name)
		if name == "" {
			continue
		}
		if !f.work.Spend(perProperty) || f.ended() {
			break
		}
		value := f.appendValues(nil, it.Props[i].Values, depth)
		if len(it.Props[i].Values) > 1 {
			value = append(append([]byte{'['}, value...), ']')
		}
		member(name, value)
	}
	if comma == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// columnName turns a property's name into a column's name. It drops forbidden characters first,
// because they may hide characters that no name may begin with.
func columnName(name string) string {
	if strings.IndexFunc(name, notInName) >= 0 {
		name = strings.Map(func(r rune) rune {
			if notInName(r) {
				return -1
			}
			return r
		}, name)
	}
	name = strings.TrimLeftFunc(name,
		func(r rune) bool { return unicode.IsSpace(r) || r == '_' || r == '$' || r == '@' })
	return utf8text.CutName(strings.TrimSpace(name), maxName)
}

// maxName is how many characters of a property's name a page may put into a column's name.
const maxName = 100

func notInName(r rune) bool { return utf8text.Hides(r) || r == '"' || r == '\\' }

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

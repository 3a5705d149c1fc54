package detect

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// Bounds of the search in JSON.
const (
	maxDepth      = 8
	maxJSONFields = 40
	maxNested     = 4  // objects around a column
	sampled       = 50 // elements of an array that are examined
	maxAlike      = 3  // objects of a list in which further lists are looked for
)

// table is an array of objects in a JSON body.
type table struct {
	path   string
	fields []model.Field
	score  int
	count  int  // number of elements
	named  bool // they have titles
}

// tables finds the arrays of objects in a value at a path, the most informative first.
func tables(value *structured.JSON, path string) []table {
	var found []table
	var walk func(v *structured.JSON, path string, depth int)
	walk = func(v *structured.JSON, path string, depth int) {
		if depth > maxDepth {
			return
		}
		switch v.Kind {
		case structured.Array:
			if isElement(v) {
				// A page nests elements deeply, so that their levels do not count.
				walk(&v.Members[elementProps].Value, path+"["+strconv.Itoa(elementProps)+"]",
					max(0, depth-2))
				return
			}
			few := len(v.Members)
			if t, ok := tableOf(v, path+"[*]"); ok {
				found = append(found, t)
				few = min(few, maxAlike)
			}
			for i := range v.Members[:few] {
				walk(&v.Members[i].Value, path+"[*]", depth+1)
			}
		case structured.Object:
			found = append(found, typedTables(v, path)...)
			for i := range v.Members {
				walk(&v.Members[i].Value, path+step(v.Members[i].Name), depth+1)
			}
		}
	}
	walk(value, path, 0)
	slices.SortStableFunc(found, func(a, b table) int { return b.score - a.score })
	// Several elements may lead to the same path.
	seen := map[string]bool{}
	found = slices.DeleteFunc(found, func(t table) bool {
		again := seen[t.path]
		seen[t.path] = true
		return again
	})
	return found[:min(len(found), keptLists)]
}

// elementProps is the place of an element's data in Next.js's streamed data.
const elementProps = 3

// isElement says whether an array is an element of Next.js's streamed data: ["$", type, key, {…}].
func isElement(v *structured.JSON) bool {
	return len(v.Members) > elementProps && v.Members[0].Value.Kind == structured.String &&
		v.Members[0].Value.Text == "$"
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// step writes a member's name as a step of a JSONPath.
func step(name string) string {
	if plainName.MatchString(name) {
		return "." + name
	}
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)
	return "['" + quoted + "']"
}

// typedTables groups an object's members by their GraphQL type. GraphQL caches keep objects of
// several types in one object, keyed by id.
func typedTables(v *structured.JSON, path string) (found []table) {
	byType := map[string]*structured.JSON{}
	var order []string
	for i := range v.Members {
		kind := v.Members[i].Value.Get("__typename")
		if kind == nil || kind.Kind != structured.String || !plainName.MatchString(kind.Text) {
			continue
		}
		if byType[kind.Text] == nil {
			byType[kind.Text] = &structured.JSON{Kind: structured.Array}
			order = append(order, kind.Text)
		}
		all := byType[kind.Text]
		all.Members = append(all.Members, v.Members[i])
	}
	for _, kind := range order[:min(len(order), maxNested)] {
		if len(byType[kind].Members) < minItems {
			continue
		}
		if t, ok := tableOf(byType[kind], path+"[?@.__typename == '"+kind+"']"); ok {
			found = append(found, t)
		}
	}
	return found
}

// tableOf makes fields of an array of objects whose elements are at path.
func tableOf(array *structured.JSON, path string) (table, bool) {
	objects := []*structured.JSON{}
	for i := range array.Members[:min(len(array.Members), sampled)] {
		if v := &array.Members[i].Value; v.Kind == structured.Object && len(v.Members) > 0 {
			objects = append(objects, v)
		}
	}
	if len(objects) == 0 || len(objects)*2 < min(len(array.Members), sampled) {
		return table{}, false
	}
	columns := columnsOf(objects)
	// The first field makes the rows, so every element must have it.
	at := slices.IndexFunc(columns,
		func(c column) bool { return c.have == len(objects) && c.title })
	if at < 0 {
		at = slices.IndexFunc(columns, func(c column) bool { return c.have == len(objects) })
	}
	if at < 0 || len(columns) < 2 {
		return table{}, false
	}
	first := columns[at]
	columns = append([]column{first}, slices.Delete(columns, at, at+1)...)
	t := table{path: path, count: len(array.Members),
		score: min(len(array.Members), 100) * min(len(columns), 12)}
	for _, c := range columns[:min(len(columns), maxJSONFields)] {
		t.fields = append(t.fields,
			model.Field{Name: c.name, Selector: path + c.path, Kind: model.Text})
		t.named = t.named || c.title
		if c.title || c.price {
			t.score *= 2
		}
	}
	return t, true
}

// column is a scalar member of the elements, or of an object nested in them.
type column struct {
	name, path   string
	have         int
	title, price bool
	first        string // its first value
	varies       bool   // it has another value, too
}

// columnsOf returns the informative columns of the objects, under unique names.
func columnsOf(objects []*structured.JSON) []column {
	all := columnSet{byPath: map[string]*column{}}
	for _, object := range objects {
		all.addMembers(object, "", "", 0)
	}
	names := map[string]bool{}
	var columns []column
	for _, c := range all.order {
		if c.name = shortName(c.name); c.name == "" || c.have == 0 {
			continue
		}
		if c.have == len(objects) && len(objects) >= minConstant && !c.varies && !c.price &&
			!isCurrency(c.name) {
			continue // constant in all objects
		}
		for n := 2; names[c.name]; n++ {
			c.name = strings.TrimRight(c.name, "0123456789") + strconv.Itoa(n)
		}
		names[c.name] = true
		columns = append(columns, *c)
	}
	return columns
}

// columnSet collects the columns of objects, in order of appearance.
type columnSet struct {
	byPath map[string]*column
	order  []*column
}

// addMembers adds the members of v and of the objects in it. name and path are those of v.
func (s *columnSet) addMembers(v *structured.JSON, name, path string, depth int) {
	for i := range v.Members {
		m := &v.Members[i]
		full := strings.TrimLeft(m.Name, "_$")
		if full == "" || !printable(m.Name) {
			continue
		}
		if name != "" {
			full = name + "_" + full
		}
		at := path + step(m.Name)
		switch m.Value.Kind {
		case structured.Object:
			if depth < maxNested {
				s.addMembers(&m.Value, full, at, depth+1)
			}
			continue
		case structured.Array:
			if len(m.Value.Members) > 0 && m.Value.Members[0].Value.Kind == structured.Object {
				continue
			}
		}
		c := s.byPath[at]
		if c == nil {
			lower := strings.ToLower(m.Name)
			c = &column{name: full, path: at, price: strings.Contains(lower, "price"),
				title: depth == 0 && slices.Contains(titleNames, lower)}
			s.byPath[at] = c
			s.order = append(s.order, c)
		}
		c.note(&m.Value)
	}
}

// titleNames are common names of an object's title, in lower case.
var titleNames = []string{"title", "name", "headline", "productname", "product_name",
	"displayname", "label"}

// note counts one object's value.
func (c *column) note(v *structured.JSON) {
	if isEmpty(v) {
		return
	}
	if c.have++; c.have == 1 {
		c.first = v.Text
	}
	c.varies = c.varies || v.Text != c.first || v.Kind == structured.Array
}

// isEmpty says whether a value carries no information.
func isEmpty(v *structured.JSON) bool {
	switch v.Kind {
	case structured.Null:
		return true
	case structured.String:
		return strings.TrimSpace(v.Text) == ""
	case structured.Array:
		return len(v.Members) == 0
	}
	return false
}

func isCurrency(name string) bool { return strings.Contains(strings.ToLower(name), "currency") }

// printable says whether a member's name can be part of a selector, which people and agents read.
func printable(name string) bool {
	return len(name) <= 100 &&
		!strings.ContainsFunc(name,
			func(r rune) bool {
				return utf8text.Hides(r) || r == '"' || r == '\\' || r == '\ufffd'
			})
}

// object makes fields of a body that is one object.
func object(value *structured.JSON) []model.Field {
	if value.Kind != structured.Object {
		return nil
	}
	var fields []model.Field
	for _, c := range columnsOf([]*structured.JSON{value}) {
		if len(fields) < maxJSONFields {
			fields = append(fields,
				model.Field{Name: c.name, Selector: "$" + c.path, Kind: model.Text})
		}
	}
	if len(fields) < 2 {
		return nil
	}
	return fields
}

// isJSON says whether a page is JSON, by its media type or its content.
func isJSON(p page.Page) bool {
	body := p.Start()
	return strings.HasSuffix(p.Media(), "json") || len(body) > 0 &&
		(body[0] == '{' || body[0] == '[') && json.Valid(body)
}

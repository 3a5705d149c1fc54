package schema

import "slices"

// A row's steps are bounded for the memory that its check takes. The library keeps an error of some
// 400 bytes for each value that does not fit a schema.
const (
	maxRowSteps = 2_000_000
	schemaSteps = 10 // to check a value against a schema: some 500 ns
	textShare   = 8  // bytes of a text that are measured or parsed for a step: 6 to 8 ns each
	regexSteps  = 100_000
)

// work says what checking a value against a schema takes at most. The check of a row has no other
// bound: 1,900 alternatives for each of 4,000 elements would take seconds and gigabytes.
type work struct {
	own    int // steps without those of other schemas
	unique bool
	reads  bool    // a text's length or format
	regex  bool    // texts are to be regular expressions, and the library compiles them
	same   []*work // schemas of the value itself
	named  map[string]*work
	other  []*work // of any member of an object
	rest   []*work // of members that are not named
	names  []*work // of members' names
	prefix []*work // of the first elements
	items  []*work // of every element
}

// workOf returns the work of a schema. made holds what exists already, since schemas may recur.
func (c *check) workOf(n *node, made map[*node]*work) *work {
	if w := made[n]; w != nil {
		return w
	}
	w := &work{own: schemaSteps + n.get("enum").values() + n.get("const").values(),
		named: map[string]*work{}}
	made[n] = w
	if unique := n.get("uniqueItems"); unique != nil {
		w.unique = unique.scalar == true
	}
	format := n.get("format")
	w.reads = format != nil || n.get("minLength") != nil || n.get("maxLength") != nil
	w.regex = format.text() == "regex"
	if ref := n.get("$ref"); ref != nil {
		w.same = append(w.same, c.workOf(c.target(ref.text()), made))
	}
	n.each(false, func(path string, schema *node) {
		part := c.workOf(schema, made)
		switch key := keyOf(path); {
		case slices.Contains(sameValue, key):
			w.same = append(w.same, part)
		case key == "properties":
			w.named[path[len("properties."):]] = part
		case key == "prefixItems" || key == "items" && n.get(key).array:
			w.prefix = append(w.prefix, part)
		case key == "items" || key == "additionalItems" || key == "unevaluatedItems" ||
			key == "contains":
			w.items = append(w.items, part)
		case key == "additionalProperties" || key == "unevaluatedProperties":
			w.rest = append(w.rest, part)
		case key == "propertyNames":
			w.names = append(w.names, part)
		default:
			w.other = append(w.other, part)
		}
	})
	return w
}

// values returns how many JSON values one has, itself included; 0: it is not there.
func (n *node) values() int {
	if n == nil {
		return 0
	}
	count := 1
	for _, m := range n.members {
		count += m.values()
	}
	return count
}

// steps returns what checking a value takes at most. It stops counting beyond most.
func (w *work) steps(value any, most int) int {
	steps := w.own
	add := func(part *work, value any) {
		if steps <= most {
			steps += part.steps(value, most-steps)
		}
	}
	for _, part := range w.same {
		add(part, value)
	}
	switch v := value.(type) {
	case string:
		if w.reads {
			steps += len(v) / textShare
		}
		if w.regex {
			steps += regexSteps
		}
	case map[string]any:
		steps += len(v) // the library notes which of them no schema has looked at
		for name, member := range v {
			if part := w.named[name]; part != nil {
				add(part, member)
			} else {
				for _, part := range w.rest {
					add(part, member)
				}
			}
			for _, part := range w.other {
				add(part, member)
			}
			for _, part := range w.names {
				add(part, name)
			}
		}
	case []any:
		steps += len(v)
		if w.unique {
			steps += sizeOf(v)
		}
		for i, element := range v {
			if i < len(w.prefix) {
				add(w.prefix[i], element)
			}
			for _, part := range w.items {
				add(part, element)
			}
		}
	}
	return steps
}

// sizeOf returns how many JSON values one has, itself included, and what its texts count.
func sizeOf(value any) int {
	size := 1
	switch v := value.(type) {
	case string:
		size += len(v) / textShare
	case map[string]any:
		for _, member := range v {
			size += sizeOf(member)
		}
	case []any:
		for _, element := range v {
			size += sizeOf(element)
		}
	}
	return size
}

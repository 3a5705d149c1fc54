package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// found is a schema with its JSON pointer, "" for the document itself.
type found struct {
	node *node
	path string
}

// rowOf returns the schema of a row: the document's, or that of the elements if it describes an
// array.
func (c *check) rowOf(root *node) found {
	row, field := found{node: root}, "content"
	if items := c.follow(root).get("items"); c.follow(root).get("properties") == nil &&
		items != nil && items.object {
		if c.follow(root) != root {
			c.report("content", "an array must be described by the document itself, not "+
				"by a reference")
		}
		row, field = found{items, "/items"}, "content.items"
	}
	properties := c.follow(row.node).get("properties")
	if properties == nil || !properties.object || len(properties.names) == 0 {
		c.report(field+".properties", "the properties of a row are needed")
		return row
	}
	columns := map[string]bool{}
	for _, name := range properties.names {
		if problem := badName(name); problem != "" {
			c.report(field+".properties", "%.100q: %s", name, problem)
		}
		column := model.ColumnOf(name)
		if columns[column] {
			c.report(field+".properties", "%.100q: another property has this name; leading "+
				"underscores do not count", name)
		}
		columns[column] = true
	}
	return row
}

// badName says what is wrong with the name of a row's property, which becomes a column.
func badName(name string) string {
	column := model.ColumnOf(name)
	switch {
	case strings.TrimSpace(column) == "":
		return "a name is needed; leading underscores do not count"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("a name has at most %d characters", maxName)
	case strings.HasPrefix(column, "$"):
		return "names that begin with $ are reserved for the operators of filters"
	case strings.ContainsFunc(name,
		func(r rune) bool { return utf8text.Hides(r) || r == '"' || r == '\\' }):
		return `a name must not have control characters, " or \`
	}
	return ""
}

// follow returns a schema, or what it refers to.
func (c *check) follow(n *node) *node {
	for range MaxDepth {
		ref := n.get("$ref")
		if ref == nil {
			break
		}
		target := c.target(ref.text())
		if target == nil {
			break
		}
		n = target
	}
	return n
}

// list counts what is listed. It reports whether more may be.
func (c *check) list() bool {
	if c.listed++; c.listed == maxListed+1 {
		c.report("content", "describes more than %d properties once its references are followed",
			maxListed)
	}
	return c.listed <= maxListed
}

// properties lists the properties of an object's schema, including those of allOf.
func (c *check) properties(n *node, depth int) []Property {
	n = c.follow(n)
	if depth > MaxDepth || c.open[n] || !c.list() { // list recursive properties only once
		return nil
	}
	c.open[n] = true
	defer delete(c.open, n)
	return c.members(n, depth)
}

// members lists the properties of an object's schema that is open.
func (c *check) members(n *node, depth int) []Property {
	var list []Property
	required := map[string]bool{}
	add := func(p Property) {
		if !slices.ContainsFunc(list, func(q Property) bool { return q.Name == p.Name }) {
			list = append(list, p)
		}
	}
	if names := n.get("required"); names != nil {
		for _, m := range names.members {
			required[m.text()] = true
		}
	}
	if properties := n.get("properties"); properties != nil {
		for i, name := range properties.names {
			p := c.property(properties.members[i], depth+1)
			p.Name, p.Required = name, required[name]
			add(p)
		}
	}
	if all := n.get("allOf"); all != nil {
		for _, part := range all.members {
			for _, p := range c.properties(part, depth+1) {
				p.Required = p.Required || required[p.Name]
				add(p)
			}
		}
	}
	return list
}

func (c *check) property(n *node, depth int) Property {
	n = c.follow(n)
	p := Property{Types: c.types(n, depth), Title: n.get("title").text(),
		Description: n.get("description").text(), Format: n.get("format").text()}
	values := n.get("enum")
	if constant := n.get("const"); constant != nil {
		values = &node{members: []*node{constant}}
	}
	if values != nil {
		for _, v := range values.members {
			switch s := v.scalar.(type) {
			case string:
				p.Enum = append(p.Enum, s)
			case json.Number:
				p.Enum = append(p.Enum, s.String())
			}
		}
	}
	if depth > MaxDepth || c.open[n] || !c.list() {
		return p
	}
	c.open[n] = true
	defer delete(c.open, n)
	p.Properties = c.members(n, depth)
	if items := n.get("items"); items != nil && items.object {
		element := c.property(items, depth+1)
		p.Items = &element
	}
	return p
}

// types returns the types that a schema, or its alternatives, name.
func (c *check) types(n *node, depth int) []string {
	var types []string
	add := func(names ...string) {
		for _, t := range names {
			if t != "" && !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if t := n.get("type"); t != nil {
		add(t.text())
		for _, m := range t.members {
			add(m.text())
		}
		return types
	}
	if depth > MaxDepth || !c.list() {
		return nil
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		if choices := n.get(key); choices != nil {
			for _, choice := range choices.members {
				add(c.types(c.follow(choice), depth+1)...)
			}
		}
	}
	if len(types) == 0 && n.get("properties") != nil {
		add("object")
	}
	return types
}

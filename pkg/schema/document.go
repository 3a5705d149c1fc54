package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// node is a JSON value that keeps the order of its members.
type node struct {
	scalar  any // string, json.Number, bool or nil, if neither object nor array
	object  bool
	array   bool
	names   []string // of an object's values
	members []*node
}

func (n *node) get(name string) *node {
	if n == nil || !n.object {
		return nil
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.names[i] == name {
			return n.members[i]
		}
	}
	return nil
}

func (n *node) text() string {
	if n == nil {
		return ""
	}
	s, _ := n.scalar.(string)
	return s
}

var (
	errTooDeep = fmt.Errorf("nests deeper than %d", MaxDepth)
	errTooMany = fmt.Errorf("has more than %d values", maxNodes)
)

// parse reads one JSON value.
func parse(document []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	left := maxNodes
	root, err := parseValue(d, &left, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind its end")
	}
	return root, nil
}

func parseValue(d *json.Decoder, left *int, depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, errTooDeep
	}
	if *left--; *left < 0 {
		return nil, errTooMany
	}
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return &node{scalar: token}, nil
	}
	n := &node{object: delim == '{', array: delim == '['}
	for d.More() {
		if n.object {
			name, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("is not JSON: %w", err)
			}
			// Token returns only names before the values of an object
			n.names = append(n.names, name.(string))
		}
		member, err := parseValue(d, left, depth+1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	return n, nil
}

// check collects the faults of a document.
type check struct {
	root    *node
	id      identity
	anchors map[string]*node
	named   int // number of properties
	sizes   map[*node]extent
	open    map[*node]bool // schemas being expanded or listed
	listed  int            // properties, and schemas looked at for their types
	targets map[string]*node
	faults  fault.List

	patterns map[string]*pattern.Pattern // by source
	total    pattern.Total
}

func (c *check) report(path, format string, args ...any) {
	if len(c.faults) < 20 {
		c.faults = append(c.faults, fault.Invalid(fault.SchemaValidation, path, format, args...))
	}
}

func newCheck(document []byte) (*check, error) {
	if len(document) > MaxBytes {
		return nil, invalid("content", "is larger than %d bytes", MaxBytes)
	}
	root, err := parse(document)
	if err != nil {
		return nil, invalid("content", "%s", err)
	}
	if !root.object {
		return nil, invalid("content", "must be a JSON object")
	}
	c := &check{root: root, anchors: map[string]*node{}, sizes: map[*node]extent{},
		open:     map[*node]bool{},
		targets:  map[string]*node{},
		patterns: map[string]*pattern.Pattern{}}
	if c.id, err = identify(root.get("$id").text()); err != nil {
		return nil, invalid("content.$id", "is no address")
	}
	c.walk(root, "content")
	if len(c.faults) == 0 {
		done := map[*node]bool{}
		c.reach(root, map[*node]bool{}, func(n *node) { c.refuseCircles(n, done) })
	}
	if len(c.faults) == 0 {
		if c.expand(root).schemas > maxExpanded {
			c.report("content", "describes more than %d values once its references are followed",
				maxExpanded)
		}
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c, nil
}

// Keywords under which a schema holds other schemas.
var (
	schemaKeys = []string{"not", "if", "then", "else", "additionalProperties", "items", "contains",
		"propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"}
	listKeys  = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	mapKeys   = []string{"properties", "patternProperties", "dependentSchemas", "dependencies"}
	storeKeys = []string{"$defs", "definitions"}
)

// each visits the schemas directly inside one. stores also includes those that are only there for
// references.
func (n *node) each(stores bool, visit func(path string, schema *node)) {
	for i, key := range n.names {
		switch member := n.members[i]; {
		case member.object && slices.Contains(schemaKeys, key):
			visit(key, member)
		case member.array && slices.Contains(listKeys, key):
			for i, e := range member.members {
				visit(key+"["+strconv.Itoa(i)+"]", e)
			}
		case member.object && (slices.Contains(mapKeys, key) || stores &&
			slices.Contains(storeKeys, key)):
			for i, e := range member.members {
				visit(key+"."+member.names[i], e)
			}
		}
	}
}

// walk checks every schema of the document.
func (c *check) walk(n *node, path string) {
	if !n.object {
		return
	}
	for i, key := range n.names {
		at, member := path+"."+key, n.members[i]
		switch key {
		case "$ref":
			if _, ok := c.id.fragment(member.text()); !ok {
				c.report(at, "references must not leave the document: they begin with # or its $id")
			}
		case "$dynamicRef", "$recursiveRef":
			c.report(at, "is not supported; use $ref")
		case "$id", "id":
			if n != c.root && member.scalar != nil {
				c.report(at, "only the whole document may have an identifier")
			}
		case "$anchor":
			c.anchors[member.text()] = n
		case "pattern":
			c.pattern(at, member.text())
		case "patternProperties":
			for _, name := range member.names {
				c.pattern(at, name)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			if number, ok := member.scalar.(json.Number); ok && !saneNumber(string(number)) {
				c.report(at, "is out of range")
			}
		case "enum", "const":
			if !member.sane() {
				c.report(at, "a number is out of range")
			}
		case "properties":
			if c.named += len(member.names); c.named > MaxProperties {
				c.report(at, "more than %d properties in all", MaxProperties)
				return
			}
		}
	}
	n.each(true, func(key string, schema *node) { c.walk(schema, path+"."+key) })
}

func (c *check) pattern(path, source string) {
	if c.patterns[source] != nil || c.total.Size() > pattern.MaxTotal { // it was reported
		return
	}
	compiled, err := c.total.Compile(source, func(source string) (*pattern.Pattern, error) {
		return pattern.Compile(source, maxPattern)
	})
	if err != nil {
		c.report(path, "is no regular expression (RE2) of its bounds: %v", err)
		return
	}
	c.patterns[source] = compiled
}

func (n *node) sane() bool {
	if number, ok := n.scalar.(json.Number); ok {
		return saneNumber(string(number))
	}
	for _, m := range n.members {
		if !m.sane() {
			return false
		}
	}
	return true
}

// identity is a document's own address: its $id, resolved against location.
type identity struct{ *url.URL }

// identify resolves the $id of a document, "" if it has none.
func identify(id string) (identity, error) {
	base, err := url.Parse(location)
	if err != nil {
		return identity{}, err
	}
	at, err := base.Parse(id)
	if err != nil {
		return identity{}, err
	}
	at.Fragment, at.RawFragment = "", ""
	return identity{at}, nil
}

// fragment returns a reference's decoded fragment; false if it leads out of the document.
func (id identity) fragment(ref string) (string, bool) {
	to, err := id.Parse(ref)
	if err != nil {
		return "", false
	}
	fragment := to.Fragment
	to.Fragment, to.RawFragment = "", ""
	return fragment, to.String() == id.String()
}

// target returns the schema that a reference means, nil if there is none.
func (c *check) target(ref string) *node {
	n, known := c.targets[ref]
	if !known {
		n = c.find(ref)
		c.targets[ref] = n
	}
	return n
}

func (c *check) find(ref string) *node {
	fragment, _ := c.id.fragment(ref)
	if fragment == "" {
		return c.root
	}
	pointer, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return c.anchors[fragment]
	}
	n := c.root
	for part := range strings.SplitSeq(pointer, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case n == nil:
			return nil
		case n.object:
			n = n.get(part)
		default:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n.members) {
				return nil
			}
			n = n.members[i]
		}
	}
	return n
}

// reach visits the schemas reachable from one, each once, itself first.
func (c *check) reach(n *node, seen map[*node]bool, visit func(*node)) {
	if seen[n] {
		return
	}
	seen[n] = true
	visit(n)
	if ref := n.get("$ref"); ref != nil {
		if target := c.target(ref.text()); target != nil {
			c.reach(target, seen, visit)
		} else {
			c.report("content", "there is no %.100q in the document", ref.text())
		}
	}
	n.each(false, func(_ string, schema *node) { c.reach(schema, seen, visit) })
}

// refuseCircles reports schemas that a value must fit before it can fit them. done says whether
// visited schemas are finished.
func (c *check) refuseCircles(n *node, done map[*node]bool) {
	if over, visited := done[n]; visited {
		if !over {
			c.report("content", "references lead in a circle")
		}
		return
	}
	done[n] = false
	if ref := n.get("$ref"); ref != nil {
		if target := c.target(ref.text()); target != nil {
			c.refuseCircles(target, done)
		}
	}
	n.each(false, func(path string, schema *node) {
		if slices.Contains(sameValue, keyOf(path)) {
			c.refuseCircles(schema, done)
		}
	})
	done[n] = true
}

// sameValue are the keywords for schemas of the value itself, not of its parts.
var sameValue = []string{"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas",
	"dependencies"}

// keyOf returns the keyword at the start of a path of each.
func keyOf(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
}

// extent is the size of a schema with its references followed.
type extent struct {
	schemas int // number of schemas in it
	again   int // number of references back into itself or its parents, for one value
}

// expand computes a schema's extent. It follows recursion once. It refuses a schema that would
// check a value against the same schema more than once. The work would double with each level of
// the value.
func (c *check) expand(n *node) extent {
	if size, ok := c.sizes[n]; ok {
		return size
	}
	if c.open[n] {
		return extent{schemas: 1, again: 1}
	}
	c.open[n] = true
	defer delete(c.open, n)
	size, property := extent{schemas: 1}, 0
	if ref := n.get("$ref"); ref != nil {
		target := c.expand(c.target(ref.text()))
		size = extent{schemas: 1 + target.schemas, again: target.again}
	}
	n.each(false, func(path string, schema *node) {
		part := c.expand(schema)
		size.schemas = min(size.schemas+part.schemas, maxExpanded+1)
		if keyOf(path) == "properties" || keyOf(path) == "prefixItems" { // each for another value
			property = max(property, part.again)
		} else {
			size.again += part.again
		}
	})
	if size.again += property; size.again > 1 {
		c.report("content", "recursion must hold a value against a schema no more than once")
		size.again = 1
	}
	c.sizes[n] = size
	return size
}

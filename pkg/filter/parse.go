package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// Parse parses a filter from its JSON form and checks it. An empty object is the nil Node. Its
// errors have the code invalid_filter and name the invalid place as a path that begins with
// `filters`.
func Parse(data []byte) (Node, error) {
	if len(data) > MaxBytes {
		return nil, invalid("filters", "at most %d bytes are allowed", MaxBytes)
	}
	if !utf8.Valid(data) {
		return nil, invalid("filters", "not valid UTF-8")
	}
	p := parser{tokens: json.NewDecoder(bytes.NewReader(data))}
	p.tokens.UseNumber()
	if err := p.open("filters", '{', "an object"); err != nil {
		return nil, err
	}
	nodes, err := p.conditions("filters", 1)
	if err != nil {
		return nil, err
	}
	if _, err := p.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("filters", "nothing may follow the object")
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return all(nodes), nil
}

func invalid(path, format string, args ...any) error {
	return fault.Invalid(fault.InvalidFilter, path, format, args...)
}

// all returns the conjunction of one or more nodes.
func all(nodes []Node) Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return And(nodes)
}

type parser struct {
	tokens   *json.Decoder
	nodes    int
	patterns pattern.Total
}

// conditions reads the members of an open object to its end: fields and groups.
func (p *parser) conditions(path string, depth int) ([]Node, error) {
	if depth > MaxDepth {
		return nil, invalid(path, "nested more than %d deep", MaxDepth)
	}
	var nodes []Node
	err := p.members(path, func(name, path string) error {
		var node Node
		var err error
		if strings.HasPrefix(name, "$") {
			node, err = p.group(name, path, depth)
		} else {
			node, err = p.field(name, path)
		}
		nodes = append(nodes, node)
		return err
	})
	return nodes, err
}

// members calls visit for each member of an open object, with its name and path.
func (p *parser) members(path string, visit func(name, path string) error) error {
	seen := map[string]bool{}
	for p.tokens.More() {
		token, err := p.token(path)
		if err != nil {
			return err
		}
		name := token.(string) // in an object, the decoder accepts only a name here
		at := path + "." + name
		if seen[name] {
			return invalid(at, "given twice")
		}
		seen[name] = true
		if err := visit(name, at); err != nil {
			return err
		}
	}
	_, err := p.token(path)
	return err
}

func (p *parser) group(name, path string, depth int) (Node, error) {
	if name != "$and" && name != "$or" && name != "$nor" {
		return nil, invalid(path, "unknown group: use $and, $or or $nor")
	}
	if err := p.count(path); err != nil {
		return nil, err
	}
	if err := p.open(path, '[', "an array of objects"); err != nil {
		return nil, err
	}
	var nodes []Node
	for p.tokens.More() {
		at := fmt.Sprintf("%s[%d]", path, len(nodes))
		if err := p.open(at, '{', "an object"); err != nil {
			return nil, err
		}
		conditions, err := p.conditions(at, depth+1)
		if err != nil {
			return nil, err
		}
		if len(conditions) == 0 {
			return nil, invalid(at, "must not be empty")
		}
		nodes = append(nodes, all(conditions))
	}
	if _, err := p.token(path); err != nil {
		return nil, err
	}
	switch {
	case len(nodes) == 0:
		return nil, invalid(path, "must not be empty")
	case name == "$or":
		return Or(nodes), nil
	case name == "$nor":
		return Nor(nodes), nil
	}
	return all(nodes), nil
}

func (p *parser) field(name, path string) (Node, error) {
	if err := checkField(name, path); err != nil {
		return nil, err
	}
	token, err := p.token(path)
	if err != nil {
		return nil, err
	}
	if token != json.Delim('{') {
		if err := p.count(path); err != nil {
			return nil, err
		}
		value, err := valueOf(token, path)
		return Compare{Field: name, Op: Eq, Values: []Value{value}}, err
	}
	var nodes []Node
	err = p.members(path, func(op, path string) error {
		node, err := p.compare(name, Op(strings.TrimPrefix(op, "$")), path)
		nodes = append(nodes, node)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, invalid(path, "names no operator")
	}
	return all(nodes), nil
}

// IsField reports whether a field can have this name in filters and sorts. It has 1 to
// MaxFieldBytes bytes, and no control characters, quotes or backslashes.
func IsField(name string) bool {
	return name != "" && len(name) <= MaxFieldBytes && !strings.ContainsFunc(name, unspeakable)
}

func unspeakable(r rune) bool { return unicode.IsControl(r) || r == '"' || r == '\\' }

func checkField(name, path string) error {
	switch {
	case name == "":
		return invalid(path, "a field name must not be empty")
	case len(name) > MaxFieldBytes:
		return invalid("filters", "a field name has more than %d bytes", MaxFieldBytes)
	case !IsField(name):
		return invalid(path, `a field name must not have control characters, " or \`)
	}
	return nil
}

func (p *parser) compare(field string, op Op, path string) (Node, error) {
	if err := p.count(path); err != nil {
		return nil, err
	}
	c := Compare{Field: field, Op: op}
	var err error
	switch op {
	case In, Nin, Between:
		c.Values, err = p.values(path)
	case Eq, Ne, Gt, Gte, Lt, Lte, Exists, Contains, StartsWith, EndsWith, Regex:
		var token json.Token
		if token, err = p.token(path); err != nil {
			return nil, err
		}
		c.Values = make([]Value, 1)
		c.Values[0], err = valueOf(token, path)
	default:
		return nil, invalid(path, "unknown operator")
	}
	if err != nil {
		return nil, err
	}
	if err := c.check(path); err != nil {
		return nil, err
	}
	if op == Regex {
		if c.Pattern, err = pattern.Compile(c.Values[0].Text, MaxPattern); err == nil {
			err = p.patterns.Add(c.Pattern.Size())
		}
		if err != nil {
			return nil, invalid(path, "not an RE2 pattern: %v", err)
		}
	}
	return c, nil
}

// check checks the operands for the operator.
func (c Compare) check(path string) error {
	kind := Null
	if len(c.Values) > 0 {
		kind = c.Values[0].Kind
	}
	switch c.Op {
	case Gt, Gte, Lt, Lte:
		if kind != Number && kind != Text {
			return invalid(path, "takes a number or text")
		}
	case Between:
		if len(c.Values) != 2 || kind != c.Values[1].Kind || kind != Number && kind != Text {
			return invalid(path, "takes an array of two numbers or two texts")
		}
	case Exists:
		if kind != Bool {
			return invalid(path, "takes true or false")
		}
	case Contains, StartsWith, EndsWith, Regex:
		if kind != Text {
			return invalid(path, "takes text")
		}
		if c.Op == Regex && utf8.RuneCountInString(c.Values[0].Text) > MaxPattern {
			return invalid(path, "a pattern has at most %d characters", MaxPattern)
		}
		if c.Op != Regex && len(c.Values[0].Text) > MaxPartBytes {
			return invalid(path, "takes at most %d bytes", MaxPartBytes)
		}
	}
	return nil
}

// values reads an array of operands.
func (p *parser) values(path string) ([]Value, error) {
	if err := p.open(path, '[', "an array"); err != nil {
		return nil, err
	}
	var values []Value
	for p.tokens.More() {
		if len(values) == MaxOperands {
			return nil, invalid(path, "at most %d values are allowed", MaxOperands)
		}
		at := fmt.Sprintf("%s[%d]", path, len(values))
		token, err := p.token(at)
		if err != nil {
			return nil, err
		}
		value, err := valueOf(token, at)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	_, err := p.token(path)
	return values, err
}

func valueOf(token json.Token, path string) (Value, error) {
	switch token := token.(type) {
	case nil:
		return Value{Kind: Null}, nil
	case bool:
		return Value{Kind: Bool, Bool: token}, nil
	case string:
		return Value{Kind: Text, Text: token}, nil
	case json.Number:
		number, ok := ParseNumber(token.String())
		if !ok {
			return Value{}, invalid(path, "the number is out of range")
		}
		return Value{Kind: Number, Number: number}, nil
	}
	return Value{}, invalid(path, "takes null, a boolean, a number or text")
}

func (p *parser) count(path string) error {
	if p.nodes++; p.nodes > MaxNodes {
		return invalid(path, "a filter has at most %d conditions and groups", MaxNodes)
	}
	return nil
}

// open reads the delimiter that must come next.
func (p *parser) open(path string, delim json.Delim, what string) error {
	token, err := p.token(path)
	if err != nil {
		return err
	}
	if token != delim {
		return invalid(path, "must be %s", what)
	}
	return nil
}

func (p *parser) token(path string) (json.Token, error) {
	token, err := p.tokens.Token()
	if err != nil {
		return nil, invalid(path, "malformed JSON")
	}
	return token, nil
}

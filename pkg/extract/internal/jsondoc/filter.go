package jsondoc

import (
	"errors"
	"fmt"
	"regexp/syntax"

	"shoal.dev/shoal/pkg/pattern"
)

// or reads the condition of a filter.
func (p *parser) or() (logical, error) {
	if err := p.deeper(); err != nil {
		return logical{}, err
	}
	defer func() { p.depth-- }()
	return p.chain("||", logicalOr,
		func() (logical, error) { return p.chain("&&", logicalAnd, p.basic) })
}

// chain reads conditions joined by an operator.
func (p *parser) chain(op string, k logicalKind, next func() (logical, error)) (logical, error) {
	all := logical{kind: k}
	for {
		l, err := next()
		if err != nil {
			return all, err
		}
		all.of = append(all.of, l)
		before := p.i
		p.skipSpace()
		if !p.acceptText(op) {
			p.i = before
			break
		}
		p.skipSpace()
	}
	if len(all.of) == 1 {
		return all.of[0], nil
	}
	return all, nil
}

// basic reads a condition in parentheses, a test or a comparison.
func (p *parser) basic() (logical, error) {
	if p.acceptText("!") {
		p.skipSpace()
		var l logical
		var err error
		if p.peek() == '(' {
			l, err = p.parenthesis()
		} else {
			l, err = p.test()
		}
		return logical{kind: logicalNot, of: []logical{l}}, err
	}
	if p.peek() == '(' {
		return p.parenthesis()
	}
	start := p.i
	if name := p.function(); name == "match" || name == "search" {
		return p.match(name == "match")
	}
	p.i = start
	var left operand
	var err error
	if c := p.peek(); c == '@' || c == '$' {
		p.i++
		left.kind = operandQuery
		left.query, err = p.query(c == '@')
	} else {
		left, err = p.operand()
	}
	if err != nil {
		return logical{}, err
	}
	before := p.i
	p.skipSpace()
	switch op := p.comparison(); {
	case op == "" && left.kind == operandQuery:
		p.i = before
		return logical{kind: logicalExists, query: left.query}, nil
	case op == "":
		return logical{}, p.unexpected("a comparison")
	case left.kind == operandQuery && !left.query.isSingular():
		return logical{}, errSeveral
	default:
		return p.compare(left, op)
	}
}

var errSeveral = errors.New("a path that may choose several values cannot be compared")

func (p *parser) parenthesis() (logical, error) {
	p.i++
	p.skipSpace()
	l, err := p.or()
	if err != nil {
		return l, err
	}
	p.skipSpace()
	return l, p.expect(")")
}

func (p *parser) comparison() string {
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if p.acceptText(op) {
			return op
		}
	}
	return ""
}

// compare reads the right side of a comparison.
func (p *parser) compare(left operand, op string) (logical, error) {
	p.skipSpace()
	right, err := p.operand()
	return logical{kind: logicalCompare, left: left, op: op, right: right}, err
}

// test reads what may follow "!": a query that must choose something, or a function with a boolean
// result.
func (p *parser) test() (logical, error) {
	if c := p.peek(); c == '@' || c == '$' {
		p.i++
		q, err := p.query(c == '@')
		return logical{kind: logicalExists, query: q}, err
	}
	if name := p.function(); name == "match" || name == "search" {
		return p.match(name == "match")
	}
	return logical{}, p.unexpected("a path, match( or search(")
}

// function reads a function's name and opening parenthesis, or returns "" if there is none.
func (p *parser) function() string {
	end := p.i
	for end < len(p.s) && ('a' <= p.s[end] && p.s[end] <= 'z' || end > p.i &&
		(p.s[end] == '_' || isDigit(p.s[end]))) {
		end++
	}
	if end == p.i || end >= len(p.s) || p.s[end] != '(' {
		return ""
	}
	name := p.s[p.i:end]
	p.i = end + 1
	return name
}

// operand reads a value: a literal, a query that chooses at most one, or a function that returns a
// value.
func (p *parser) operand() (operand, error) {
	switch c := p.peek(); {
	case c == '@' || c == '$':
		p.i++
		q, err := p.query(c == '@')
		if err == nil && !q.isSingular() {
			err = errSeveral
		}
		return operand{kind: operandQuery, query: q}, err
	case c == '"' || c == '\'':
		s, err := p.str()
		return operand{literal: value{kind: kindString, node: None, text: s}}, err
	case c == '-' || isDigit(c):
		n, err := p.number()
		return operand{literal: n}, err
	}
	start := p.i
	switch name := p.function(); name {
	case "length":
		arg, err := p.argument()
		return operand{kind: operandLength, arg: &arg}, err
	case "count", "value":
		q, err := p.nodes()
		k := operandCount
		if name == "value" {
			k = operandValue
		}
		return operand{kind: k, query: q}, err
	case "match", "search":
		p.i = start
		return operand{}, fmt.Errorf("what %s() gives cannot be compared", name)
	case "":
		for word, k := range map[string]kind{"null": kindNull, "false": kindFalse,
			"true": kindTrue} {
			if p.acceptText(word) {
				return operand{literal: value{kind: k, node: None}}, nil
			}
		}
		return operand{}, p.unexpected("a value")
	default:
		return operand{}, fmt.Errorf("unknown function %.40s()", name)
	}
}

// argument reads a function's only argument, a value, and the closing parenthesis.
func (p *parser) argument() (operand, error) {
	if err := p.deeper(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	p.skipSpace()
	arg, err := p.operand()
	if err != nil {
		return arg, err
	}
	p.skipSpace()
	return arg, p.expect(")")
}

// nodes reads a function's only argument, a query, and the closing parenthesis.
func (p *parser) nodes() (query, error) {
	p.skipSpace()
	c := p.peek()
	if c != '@' && c != '$' {
		return query{}, p.unexpected("a path")
	}
	p.i++
	q, err := p.query(c == '@')
	if err != nil {
		return q, err
	}
	p.skipSpace()
	return q, p.expect(")")
}

// match reads the arguments of match() and search(): a text and a pattern.
func (p *parser) match(whole bool) (logical, error) {
	l := logical{kind: logicalMatch, whole: whole}
	p.skipSpace()
	var err error
	if l.left, err = p.operand(); err != nil {
		return l, err
	}
	p.skipSpace()
	if err := p.expect(","); err != nil {
		return l, err
	}
	if l.right, err = p.argument(); err != nil {
		return l, err
	}
	if l.right.kind == operandLiteral {
		l.pattern, err = p.patterns.Compile(l.right.literal.text,
			func(source string) (*pattern.Pattern, error) { return compilePattern(source, whole) })
		if errors.Is(err, pattern.ErrTooLarge) || errors.Is(err, pattern.ErrTooMany) {
			return l, fmt.Errorf("a pattern of a filter: %w", err)
		}
		l.broken = err != nil || l.right.literal.kind != kindString
	}
	return l, nil
}

// compilePattern compiles a regular expression of RFC 9485, whose dot matches no line end.
func compilePattern(source string, whole bool) (*pattern.Pattern, error) {
	tree, err := pattern.Parse(source, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, err
	}
	notLineEnd, err := syntax.Parse(`[^\n\r]`, syntax.Perl)
	if err != nil {
		return nil, err
	}
	replacePoints(tree.Regexp, notLineEnd)
	if whole {
		tree.Regexp = &syntax.Regexp{Op: syntax.OpConcat,
			Sub: []*syntax.Regexp{{Op: syntax.OpBeginText}, tree.Regexp, {Op: syntax.OpEndText}}}
	}
	return tree.Compile()
}

func replacePoints(tree, by *syntax.Regexp) {
	if tree.Op == syntax.OpAnyChar {
		*tree = *by
		return
	}
	for _, sub := range tree.Sub {
		replacePoints(sub, by)
	}
}

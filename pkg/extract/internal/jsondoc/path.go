package jsondoc

import "shoal.dev/shoal/pkg/pattern"

// Path is a compiled JSONPath. It is safe for concurrent use.
type Path struct {
	query    query
	patterns int
}

// Patterns is the size of the path's regular expressions, as pattern.Total counts it.
func (p *Path) Patterns() int { return p.patterns }

// query is a path: from the root, or in a filter from the value at hand.
type query struct {
	relative bool
	segments []segment
}

type segment struct {
	selectors  []selector
	descendant bool // applies to the value and everything in it
}

type selectorKind uint8

const (
	byName selectorKind = iota
	byWildcard
	byIndex
	bySlice
	byFilter
)

// selector chooses among the elements or members of a value. Which of its members count depends on
// the kind.
type selector struct {
	kind       selectorKind
	name       string
	index      int
	start, end *int // nil where it is left out
	step       int
	filter     *logical
}

type logicalKind uint8

const (
	logicalOr logicalKind = iota
	logicalAnd
	logicalNot
	logicalExists  // of query
	logicalCompare // of left and right
	logicalMatch   // of left, a text, with right, a pattern
)

// logical is what is true or false.
type logical struct {
	kind        logicalKind
	of          []logical // of or, and, not
	query       query
	left, right operand
	op          string // of compare: ==, !=, <, <=, >, >=
	whole       bool   // match: all of the text has to fit, not only a part (search)
	pattern     *pattern.Pattern
	broken      bool // match: the pattern is no expression, so that nothing fits
}

type operandKind uint8

const (
	operandLiteral operandKind = iota
	operandQuery               // the value of a query that chooses one at most
	operandLength              // of arg
	operandCount               // of query's values
	operandValue               // of query, if it chooses just one
)

// operand is a value: what is compared, or what a function is given.
type operand struct {
	kind    operandKind
	literal value
	query   query
	arg     *operand
}

// value is a node's value, or a literal. A kind other than kindNothing tells what it is.
type value struct {
	kind kind
	node Node // None for literals and for what functions give
	text string
	num  float64 // of numbers
}

// isSingular says whether a query chooses one value at most by its form.
func (q *query) isSingular() bool {
	for i := range q.segments {
		s := &q.segments[i]
		if s.descendant || len(s.selectors) != 1 || s.selectors[0].kind != byName &&
			s.selectors[0].kind != byIndex {
			return false
		}
	}
	return true
}

package jsondoc

import "shoal.dev/shoal/pkg/pattern"

// Path is a compiled JSONPath. It is safe for concurrent use.
type Path struct {
	query    query
	patterns int
}

// Patterns returns the size of the path's regular expressions, as pattern.Total counts it.
func (p *Path) Patterns() int { return p.patterns }

// query is a path: from the root or, in a filter, from the current value.
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

// selector chooses among the elements or members of a value. Its kind determines which of its
// fields count.
type selector struct {
	kind       selectorKind
	name       string
	index      int
	start, end *int // nil if omitted
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

// logical is a condition.
type logical struct {
	kind        logicalKind
	of          []logical // of or, and, not
	query       query
	left, right operand
	op          string // of compare: ==, !=, <, <=, >, >=
	whole       bool   // match: the whole text must match, not only a part (search)
	pattern     *pattern.Pattern
	broken      bool // match: the pattern is invalid, so nothing matches
}

type operandKind uint8

const (
	operandLiteral operandKind = iota
	operandQuery               // the value of a query that chooses at most one
	operandLength              // the length of arg
	operandCount               // the number of query's values
	operandValue               // the value of query, if it chooses exactly one
)

// operand is a side of a comparison, or an argument of a function.
type operand struct {
	kind    operandKind
	literal value
	query   query
	arg     *operand
}

// value is a node's value, or a literal or result. kindNothing means that there is none.
type value struct {
	kind kind
	node Node // None for literals and for results of functions
	text string
	num  float64 // of numbers
}

// isSingular says whether a query's form lets it choose at most one value.
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

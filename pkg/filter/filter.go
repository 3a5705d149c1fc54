// Package filter owns the filter tree (decision 18): the one form in which every filter of the API
// is parsed, checked and printed. Each row store prints it to its own SQL; the package runs none.
// Match defines what a filter means, and the stores are tested against it.
//
// # Meaning
//
// A row is a flat JSON object. A field name names one member: a dot is a part of the name, never a
// path.
//
// A value is null, a boolean, a number, text, or other (an array or an object). A missing member
// counts as null for every operator but exists. Values of different kinds are never equal, and
// never less or greater than each other, with one exception. Text that is a number (see
// ParseNumber) also counts as that number if the operand is a number. The converse does not hold: a
// text operand only compares with text. Numbers are compared as 64-bit floats, text by its UTF-8
// bytes. Text that looks like a date is text.
//
//   - eq, in: some operand equals the value. null equals null and missing.
//   - ne, nin: not eq, not in; so they hold for missing members unless null is an operand.
//   - gt, gte, lt, lte, between (both ends included): operands are numbers or text, between has two
//     of one kind.
//   - exists: the member exists, even as null, or does not.
//   - contains, startsWith, endsWith: for text only, whatever the case: letters are equal that
//     Unicode's simple folding makes equal (see Fold), as under (?i) in RE2.
//   - regex: for text only: RE2, found anywhere, case matters unless the pattern says (?i).
//
// Negations ($nor, ne, nin) are the exact opposite of what they negate: there is no third truth
// value.
package filter

import "shoal.dev/shoal/pkg/pattern"

// Bounds of decision 18, and further ones.
const (
	MaxDepth      = 8         // nesting of objects of conditions, including the outermost
	MaxNodes      = 100       // comparisons and groups
	MaxOperands   = 1_000     // of in and nin
	MaxPattern    = 256       // characters of a regex
	MaxPartBytes  = 32 << 10  // of the operand of contains, startsWith and endsWith
	MaxFieldBytes = 1 << 10   // of a field name: 256 characters of any kind
	MaxBytes      = 256 << 10 // of a whole filter
)

// Node is a checked filter: an And, Or, Nor or Compare. A nil Node passes everything.
type Node interface{ node() }

// And holds when every node holds. It has at least one.
type And []Node

// Or holds when some node holds. It has at least one.
type Or []Node

// Nor holds when no node holds. It has at least one.
type Nor []Node

// Op is a comparison.
type Op string

// The comparisons.
const (
	Eq         Op = "eq"
	Ne         Op = "ne"
	Gt         Op = "gt"
	Gte        Op = "gte"
	Lt         Op = "lt"
	Lte        Op = "lte"
	In         Op = "in"
	Nin        Op = "nin"
	Exists     Op = "exists"
	Contains   Op = "contains"
	StartsWith Op = "startsWith"
	EndsWith   Op = "endsWith"
	Regex      Op = "regex"
	Between    Op = "between"
)

// Compare compares a field with operands: two for Between, up to MaxOperands for In and Nin (even
// none), one boolean for Exists, one otherwise.
type Compare struct {
	Field   string
	Op      Op
	Values  []Value
	Pattern *pattern.Pattern // for Regex; otherwise nil
}

// Each visits the comparisons of a node, in their original order, until visit fails. Its error is
// visit's. A nil node has no comparisons.
func Each(node Node, visit func(Compare) error) error {
	var inside []Node
	switch n := node.(type) {
	case And:
		inside = n
	case Or:
		inside = n
	case Nor:
		inside = n
	case Compare:
		return visit(n)
	}
	for _, n := range inside {
		if err := Each(n, visit); err != nil {
			return err
		}
	}
	return nil
}

// Kind is the kind of a Value.
type Kind uint8

// The kinds of operands.
const (
	Null Kind = iota
	Bool
	Number
	Text
)

// Value is an operand. Only the field of its kind is set.
type Value struct {
	Kind   Kind
	Bool   bool
	Number float64
	Text   string
}

func (And) node()     {}
func (Or) node()      {}
func (Nor) node()     {}
func (Compare) node() {}

package filter

import (
	"slices"

	"shoal.dev/shoal/pkg/pattern"
)

// Loosen returns a filter that passes what node passes, and more. Where node asks for less or more
// than a number, it also passes texts as HoldsNumber does. fields are those that node compares so;
// without any, the filter is node.
func Loosen(node Node) (loose Node, fields []string) {
	loosenAll := func(nodes []Node) []Node {
		all := make([]Node, len(nodes))
		for i, n := range nodes {
			inner, more := Loosen(n)
			all[i] = inner
			for _, field := range more {
				if !slices.Contains(fields, field) {
					fields = append(fields, field)
				}
			}
		}
		return all
	}
	switch n := node.(type) {
	case And:
		return And(loosenAll(n)), fields
	case Or:
		return Or(loosenAll(n)), fields
	case Compare:
		switch n.Op {
		case Gt, Gte, Lt, Lte, Between:
			if n.Values[0].Kind == Number {
				return Or{n, HoldsNumber(n.Field)}, []string{n.Field}
			}
		}
	}
	return node, nil // what Nor excludes, it also excludes as text
}

// digit finds a digit in a text.
var digit = func() *pattern.Pattern {
	compiled, err := pattern.Compile(`[0-9]`, MaxPattern)
	if err != nil {
		panic(err) // it is a constant
	}
	return compiled
}()

// HoldsNumber returns a filter for texts with digits that are no numbers, such as 10.50 €.
func HoldsNumber(field string) Node {
	zero := []Value{{Kind: Number}}
	return And{
		Compare{Field: field, Op: Regex, Values: []Value{{Kind: Text, Text: digit.String()}},
			Pattern: digit},
		Nor{Compare{Field: field, Op: Gte, Values: zero}, Compare{Field: field, Op: Lt,
			Values: zero}},
	}
}

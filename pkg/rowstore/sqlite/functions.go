package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// newDriver is a SQLite driver with the functions that filters and sorts need. All but the last
// take a document and the name of a member:
//
//	text(doc, name)      the member's text, NULL if it is not text
//	number(doc, name)    its number, or the number that its text spells, else NULL
//	literal(doc, name)   'null', 'true' or 'false'; 'null' when it is not there, NULL for others
//	present(doc, name)   whether it is there
//	sort_key(doc, name)  what it sorts by: REAL for numbers, TEXT for text, INTEGER for booleans,
//	                     an empty BLOB for arrays and objects, NULL for null and when it is not
//	                     there
//	order_key(doc, name) the same, of a text its first rowstore.KeyBytes
//	equals(doc, name, operand)  whether it is that text
//	contains(doc, name, part), starts_with(…), ends_with(…)  whether it is such text, whatever the
//	                     case; part is folded
//	matches(doc, name, number)  whether it is text that the pattern of that number matches
//	parsed(operand)      the number that an operand's text is
//
// SQLite's own functions for JSON make a tree of the whole document first, compare text with
// numbers, and read numbers their own way.
func newDriver(patterns *patterns) (*sqlite.Driver, error) {
	// Text arguments are views into SQLite's memory, so no function may keep one.
	functions := map[string]sqlite.FunctionImpl{
		"text":        {NArgs: 2, Scalar: ofMember(text)},
		"number":      {NArgs: 2, Scalar: ofMember(number)},
		"literal":     {NArgs: 2, Scalar: ofMember(literal)},
		"present":     {NArgs: 2, Scalar: ofMember(present)},
		"sort_key":    {NArgs: 2, Scalar: ofMember(sortKey)},
		"order_key":   {NArgs: 2, Scalar: ofMember(orderKey)},
		"equals":      {NArgs: 3, Scalar: equals},
		"contains":    {NArgs: 3, Scalar: ofText(folded(strings.Contains))},
		"starts_with": {NArgs: 3, Scalar: ofText(folded(strings.HasPrefix))},
		"ends_with":   {NArgs: 3, Scalar: ofText(folded(strings.HasSuffix))},
		"matches":     {NArgs: 3, Scalar: patterns.match},
		"parsed":      {NArgs: 1, Scalar: parsed},
	}
	engine := &sqlite.Driver{}
	for name, function := range functions {
		function.Deterministic, function.VolatileArgs = true, true
		if err := engine.RegisterFunction(name, &function); err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
	}
	return engine, nil
}

// scalar is a function in the form that SQLite calls.
type scalar = func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error)

// ofMember makes a function of a member's value, as written in the document.
func ofMember(of func(value string, found bool) driver.Value) scalar {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		doc, _ := args[0].(string)
		name, _ := args[1].(string)
		return of(document.Find(doc, name)), nil
	}
}

// ofText makes a test of a member's text; other values fail it.
func ofText(test func(text, operand string) (bool, error)) scalar {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		doc, _ := args[0].(string)
		name, _ := args[1].(string)
		operand, _ := args[2].(string)
		value, _ := document.Find(doc, name)
		text, ok := document.Text(value)
		if !ok {
			return false, nil
		}
		return test(text, operand)
	}
}

// equals searches the member only if the document contains its text: most documents do not. In a
// document without escapes, every text appears literally.
func equals(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	doc, _ := args[0].(string)
	name, _ := args[1].(string)
	operand, _ := args[2].(string)
	if !strings.Contains(doc, operand) && strings.IndexByte(doc, '\\') < 0 &&
		utf8.ValidString(doc) {
		return false, nil
	}
	value, _ := document.Find(doc, name)
	text, ok := document.Text(value)
	return ok && text == operand, nil
}

func text(value string, _ bool) driver.Value {
	if text, ok := document.Text(value); ok {
		return text
	}
	return nil
}

func number(value string, _ bool) driver.Value {
	if text, ok := document.Text(value); ok {
		value = text
	}
	if n, ok := filter.ParseNumber(value); ok {
		return n
	}
	return nil
}

func parsed(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	operand, _ := args[0].(string)
	if n, ok := filter.ParseNumber(operand); ok {
		return n, nil
	}
	return nil, nil
}

func literal(value string, found bool) driver.Value {
	switch {
	case !found:
		return "null"
	case value == "null" || value == "true" || value == "false":
		return value
	}
	return nil
}

func present(_ string, found bool) driver.Value { return found }

func sortKey(value string, found bool) driver.Value {
	if n := number(value, found); n != nil {
		return n
	}
	if text := text(value, found); text != nil {
		return text
	}
	switch {
	case !found || value == "null":
		return nil
	case value == "true":
		return int64(1)
	case value == "false":
		return int64(0)
	}
	return []byte{}
}

func orderKey(value string, found bool) driver.Value {
	key := sortKey(value, found)
	if text, ok := key.(string); ok {
		return text[:min(len(text), rowstore.KeyBytes)]
	}
	return key
}

func folded(test func(text, part string) bool) func(text, part string) (bool, error) {
	return func(text, part string) (bool, error) { return test(filter.Fold(text), part), nil }
}

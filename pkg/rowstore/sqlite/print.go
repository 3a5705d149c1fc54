package sqlite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// printFilter writes a filter as a condition on the column doc, with its arguments. Every part is
// true or false, never NULL, so that NOT inverts it. Its patterns are registered with query.
func printFilter(n filter.Node, query *matching) (condition string, args []any) {
	p := printer{query: query}
	p.node(n)
	return p.text.String(), p.args
}

// printSort writes the ORDER BY terms of a sort, place last, with their arguments. In either
// direction, values keep the order of their classes: numbers, text, booleans, other values, none.
func printSort(sorts []rowstore.Sort) (terms string, args []any) {
	var p printer
	for _, s := range sorts {
		p.text.WriteString("CASE typeof(")
		p.of("sort_key", s.Field)
		p.text.WriteString(") WHEN 'real' THEN 0 WHEN 'text' THEN 1 WHEN 'integer' THEN 2 WHEN " +
			"'blob' THEN 3 ELSE 4 END, ")
		p.of("sort_key", s.Field)
		if s.Descending {
			p.text.WriteString(" DESC")
		}
		p.text.WriteString(", ")
	}
	p.text.WriteString("place")
	return p.text.String(), p.args
}

type printer struct {
	query *matching
	text  strings.Builder
	args  []any
}

func (p *printer) arg(value any) {
	p.text.WriteByte('?')
	p.args = append(p.args, value)
}

// of writes a call of a function of a member, with further arguments if any (see newDriver).
func (p *printer) of(function, field string, more ...any) {
	p.text.WriteString(function + "(doc, ")
	p.arg(field)
	for _, value := range more {
		p.text.WriteString(", ")
		p.arg(value)
	}
	p.text.WriteByte(')')
}

func (p *printer) node(n filter.Node) {
	switch n := n.(type) {
	case nil:
		p.text.WriteString("TRUE")
	case filter.And:
		p.group(n, " AND ")
	case filter.Or:
		p.group(n, " OR ")
	case filter.Nor:
		p.text.WriteString("NOT ")
		p.group(n, " OR ")
	case filter.Compare:
		p.compare(n)
	default:
		panic(fmt.Sprintf("row store: filter node %T", n))
	}
}

func (p *printer) group(nodes []filter.Node, join string) {
	p.text.WriteByte('(')
	for i, n := range nodes {
		if i > 0 {
			p.text.WriteString(join)
		}
		p.node(n)
	}
	p.text.WriteByte(')')
}

func (p *printer) compare(c filter.Compare) {
	switch c.Op {
	case filter.Eq, filter.In:
		p.anyOf(c)
	case filter.Ne, filter.Nin:
		p.text.WriteString("NOT ")
		p.anyOf(c)
	case filter.Gt:
		p.order(c, " > ", c.Values[0])
	case filter.Gte:
		p.order(c, " >= ", c.Values[0])
	case filter.Lt:
		p.order(c, " < ", c.Values[0])
	case filter.Lte:
		p.order(c, " <= ", c.Values[0])
	case filter.Between:
		p.text.WriteByte('(')
		p.order(c, " >= ", c.Values[0])
		p.text.WriteString(" AND ")
		p.order(c, " <= ", c.Values[1])
		p.text.WriteByte(')')
	case filter.Exists:
		if !c.Values[0].Bool {
			p.text.WriteString("NOT ")
		}
		p.of("present", c.Field)
	case filter.Contains:
		p.of("contains", c.Field, filter.Fold(c.Values[0].Text))
	case filter.StartsWith:
		p.of("starts_with", c.Field, filter.Fold(c.Values[0].Text))
	case filter.EndsWith:
		p.of("ends_with", c.Field, filter.Fold(c.Values[0].Text))
	case filter.Regex:
		p.of("matches", c.Field, p.query.number(c.Pattern))
	default:
		panic("row store: filter operator " + string(c.Op))
	}
}

func (p *printer) order(c filter.Compare, sign string, operand filter.Value) {
	p.text.WriteByte('(')
	if operand.Kind == filter.Text {
		p.of("text", c.Field)
		p.text.WriteString(sign)
		p.arg(operand.Text)
	} else {
		p.of("number", c.Field)
		p.text.WriteString(sign)
		p.arg(operand.Number)
	}
	p.text.WriteString(" IS TRUE)")
}

// anyOf writes that the field equals one of the operands, with one term per kind of operand.
// Several operands of a kind travel as one JSON array, since SQLite limits the number of arguments.
// Numbers in it are text, so that one parser reads both them and the documents.
func (p *printer) anyOf(c filter.Compare) {
	var numbers, texts, literals []any
	for _, v := range c.Values {
		switch v.Kind {
		case filter.Null:
			literals = append(literals, "null")
		case filter.Bool:
			literals = append(literals, strconv.FormatBool(v.Bool))
		case filter.Number:
			numbers = append(numbers, v.Number)
		case filter.Text:
			texts = append(texts, v.Text)
		}
	}
	p.text.WriteByte('(')
	p.oneOf("number", c.Field, numbers, "parsed(value)")
	if len(texts) == 1 {
		p.of("equals", c.Field, texts[0])
		p.text.WriteString(" OR ")
	} else {
		p.oneOf("text", c.Field, texts, "value")
	}
	p.oneOf("literal", c.Field, literals, "value")
	p.text.WriteString("FALSE)")
}

// oneOf writes that a function of a member returns one of some operands, if there are any. value
// converts an element of the JSON array.
func (p *printer) oneOf(function, field string, operands []any, value string) {
	if len(operands) == 0 {
		return
	}
	p.of(function, field)
	if len(operands) == 1 {
		p.text.WriteString(" = ")
		p.arg(operands[0])
	} else {
		p.text.WriteString(" IN (SELECT " + value + " FROM json_each(")
		p.list(operands)
		p.text.WriteString("))")
	}
	p.text.WriteString(" IS TRUE OR ")
}

func (p *printer) list(operands []any) {
	texts := make([]string, len(operands))
	for i, operand := range operands {
		texts[i] = fmt.Sprint(operand)
		if n, ok := operand.(float64); ok {
			texts[i] = strconv.FormatFloat(n, 'g', -1, 64)
		}
	}
	encoded, err := json.Marshal(texts)
	if err != nil {
		panic(fmt.Sprintf("row store: a list of texts does not encode: %v", err)) // cannot happen
	}
	p.arg(string(encoded))
}

package sqlite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// printFilter writes a filter as a condition on the column doc, with its arguments. Every part of it is true or false,
// never NULL, so that NOT is the opposite.
func printFilter(n filter.Node) (condition string, args []any) {
	var p printer
	p.node(n)
	return p.text.String(), p.args
}

// printSort writes the ORDER BY terms of a sort, place last, with their arguments. Classes of values keep their order
// whatever the direction: numbers, text, booleans, other values, none.
func printSort(sorts []rowstore.Sort) (terms string, args []any) {
	var p printer
	for _, s := range sorts {
		p.text.WriteString("CASE typeof(sort_key(doc -> ")
		p.path(s.Field)
		p.text.WriteString(")) WHEN 'real' THEN 0 WHEN 'text' THEN 1 WHEN 'integer' THEN 2 WHEN 'blob' THEN 3 ELSE 4 END, " +
			"sort_key(doc -> ")
		p.path(s.Field)
		p.text.WriteString(")")
		if s.Descending {
			p.text.WriteString(" DESC")
		}
		p.text.WriteString(", ")
	}
	p.text.WriteString("place")
	return p.text.String(), p.args
}

type printer struct {
	text strings.Builder
	args []any
}

func (p *printer) arg(value any) {
	p.text.WriteByte('?')
	p.args = append(p.args, value)
}

// path writes the JSON path of a field. A quote or backslash would end it early: no key that the path names has one.
func (p *printer) path(field string) { p.arg(`$."` + field + `"`) }

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
		p.text.WriteString("(doc -> ")
		p.path(c.Field)
		if c.Values[0].Bool {
			p.text.WriteString(" IS NOT NULL)")
		} else {
			p.text.WriteString(" IS NULL)")
		}
	case filter.Contains:
		p.call("contains", c)
	case filter.StartsWith:
		p.call("starts_with", c)
	case filter.EndsWith:
		p.call("ends_with", c)
	case filter.Regex:
		p.text.WriteString("(regexp(")
		p.arg(c.Values[0].Text)
		p.text.WriteString(", ")
		p.textOf(c.Field)
		p.text.WriteString(") IS TRUE)")
	default:
		panic("row store: filter operator " + string(c.Op))
	}
}

// textOf writes the field's text, NULL when it is none. Without the guard SQLite would give any value as text, and rank
// any text above any number.
func (p *printer) textOf(field string) {
	p.text.WriteString("CASE json_type(doc, ")
	p.path(field)
	p.text.WriteString(") WHEN 'text' THEN doc ->> ")
	p.path(field)
	p.text.WriteString(" END")
}

func (p *printer) numberOf(field string) {
	p.text.WriteString("number(doc -> ")
	p.path(field)
	p.text.WriteByte(')')
}

func (p *printer) order(c filter.Compare, sign string, operand filter.Value) {
	p.text.WriteByte('(')
	if operand.Kind == filter.Text {
		p.textOf(c.Field)
		p.text.WriteString(sign)
		p.arg(operand.Text)
	} else {
		p.numberOf(c.Field)
		p.text.WriteString(sign)
		p.arg(operand.Number)
	}
	p.text.WriteString(" IS TRUE)")
}

func (p *printer) call(function string, c filter.Compare) {
	p.text.WriteString("(" + function + "(")
	p.textOf(c.Field)
	p.text.WriteString(", ")
	p.arg(filter.Fold(c.Values[0].Text))
	p.text.WriteString(") IS TRUE)")
}

// anyOf writes that some operand equals the field: one term for each kind of operand there is. Operands travel as one
// JSON array a kind, as SQLite bounds the number of arguments; numbers in it are text, so that the same parser reads
// them as reads the documents.
func (p *printer) anyOf(c filter.Compare) {
	var numbers, texts, literals []string
	for _, v := range c.Values {
		switch v.Kind {
		case filter.Null:
			literals = append(literals, "null")
		case filter.Bool:
			literals = append(literals, strconv.FormatBool(v.Bool))
		case filter.Number:
			numbers = append(numbers, strconv.FormatFloat(v.Number, 'g', -1, 64))
		case filter.Text:
			texts = append(texts, v.Text)
		}
	}
	p.text.WriteByte('(')
	if len(numbers) > 0 {
		p.numberOf(c.Field)
		p.text.WriteString(" IN (SELECT number(value) FROM json_each(")
		p.list(numbers)
		p.text.WriteString(")) IS TRUE OR ")
	}
	if len(texts) > 0 {
		p.textOf(c.Field)
		p.text.WriteString(" IN (SELECT value FROM json_each(")
		p.list(texts)
		p.text.WriteString(")) IS TRUE OR ")
	}
	if len(literals) > 0 {
		p.text.WriteString("ifnull(doc -> ")
		p.path(c.Field)
		p.text.WriteString(", 'null') IN (SELECT value FROM json_each(")
		p.list(literals)
		p.text.WriteString(")) OR ")
	}
	p.text.WriteString("FALSE)")
}

func (p *printer) list(texts []string) {
	encoded, err := json.Marshal(texts)
	if err != nil {
		panic(fmt.Sprintf("row store: a list of texts does not encode: %v", err)) // cannot be
	}
	p.arg(string(encoded))
}

package clickhouse

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"strings"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// printFilter writes a filter as a condition on the field columns. Nothing in it is ever NULL, so
// that NOT inverts it.
func printFilter(n filter.Node) string {
	p := printer{column: column}
	p.node(n)
	return p.String()
}

// printSort writes the ORDER BY terms of a sort, the place last. In either direction, values keep
// the order of their classes: numbers, text, booleans, other values, none.
func printSort(sorts []rowstore.Sort) string { return printSortBy(sorts, "_block_number, pos") }

// printSortBy is printSort with the columns that break ties.
func printSortBy(sorts []rowstore.Sort, ties string) string {
	var p printer
	for _, s := range sorts {
		direction := ""
		if s.Descending {
			direction = " DESC"
		}
		kind := column(s.Field, "kind")
		fmt.Fprintf(&p, "transform(%s, [%d, %d, %d, %d, %d, %d], [0, 0, 1, 2, 2, 3], 4), if(%s "+
			">= %d, %s, 0)%s, "+
			"if(%s = %d, %s, '')%s, if(%s = %d, 1, 0)%s, ",
			kind, kindNumber, kindNumericText, kindText, kindFalse, kindTrue, kindOther,
			kind, kindNumber, column(s.Field, "num"), direction,
			kind, kindText, column(s.Field, "text"), direction,
			kind, kindTrue, direction)
	}
	p.WriteString(ties)
	return p.String()
}

// column returns a part of a field: its kind, num or text; 0 or empty if the row lacks it.
func column(field, part string) string {
	b := bucketOf(field)
	return fmt.Sprintf("`f%d.%s`[indexOf(`f%d.key`, %s)]", b, part, b, text(field))
}

type printer struct {
	strings.Builder
	// column returns a part of a field, like the function column.
	column func(field, part string) string
	// listed writes a comparison with a field that lacks such parts. nil: all have them.
	listed func(filter.Compare) (condition string, is bool)
	// nonzero holds the fields that a condition beside or around the current one already requires
	// to be a number other than 0.
	nonzero map[string]bool
}

func (p *printer) node(n filter.Node) {
	switch n := n.(type) {
	case nil:
		p.WriteString("1")
	case filter.And:
		p.all(n)
	case filter.Or:
		p.group(n, " OR ")
	case filter.Nor:
		p.WriteString("NOT ")
		p.group(n, " OR ")
	case filter.Compare:
		p.compare(n)
	default:
		panic(fmt.Sprintf("row store: filter node %T", n))
	}
}

// all writes that every node holds. What one node excludes, the others need not test again.
func (p *printer) all(nodes []filter.Node) {
	outside := p.nonzero
	p.nonzero = map[string]bool{}
	maps.Copy(p.nonzero, outside)
	for _, n := range nodes {
		if c, ok := n.(filter.Compare); ok && excludesZero(c) {
			p.nonzero[c.Field] = true
		}
	}
	p.group(nodes, " AND ")
	p.nonzero = outside
}

// excludesZero reports whether a comparison is an order that excludes 0.
func excludesZero(c filter.Compare) bool {
	sign, ordered := signs[c.Op]
	return ordered && c.Values[0].Kind == filter.Number && !meetsOrder(0, sign, c.Values[0].Number)
}

// signs are the SQL signs of orders.
var signs = map[filter.Op]string{filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

func (p *printer) group(nodes []filter.Node, join string) {
	p.WriteByte('(')
	for i, n := range nodes {
		if i > 0 {
			p.WriteString(join)
		}
		p.node(n)
	}
	p.WriteByte(')')
}

func (p *printer) compare(c filter.Compare) {
	if p.listed != nil {
		if condition, is := p.listed(c); is {
			p.WriteString(condition)
			return
		}
	}
	switch c.Op {
	case filter.Eq, filter.In:
		p.anyOf(c)
	case filter.Ne, filter.Nin:
		p.WriteString("NOT ")
		p.anyOf(c)
	case filter.Gt, filter.Gte, filter.Lt, filter.Lte:
		p.order(c.Field, signs[c.Op], c.Values[0])
	case filter.Between:
		p.all([]filter.Node{filter.Compare{Field: c.Field, Op: filter.Gte, Values: c.Values[:1]},
			filter.Compare{Field: c.Field, Op: filter.Lte, Values: c.Values[1:]}})
	case filter.Exists:
		sign := "="
		if c.Values[0].Bool {
			sign = "!="
		}
		fmt.Fprintf(p, "(%s %s 0)", p.column(c.Field, "kind"), sign)
	case filter.Contains, filter.StartsWith, filter.EndsWith:
		folded := filter.Fold(c.Values[0].Text)
		condition := part(c.Op, p.column(c.Field, "text"), folded)
		p.WriteString(p.ofText(c.Field, folded == "", condition))
	case filter.Regex:
		match := "match(" + p.column(c.Field, "text") + ", " + text(pattern(c.Values[0].Text)) + ")"
		p.WriteString(p.ofText(c.Field, c.Pattern.Unpaid(""), match))
	default:
		panic("row store: filter operator " + string(c.Op))
	}
}

// ofText writes a condition that only text may meet. Other values have an empty text, so their kind
// is tested only if empty text meets the condition. Reading a second column costs as much as
// reading the first.
func (p *printer) ofText(field string, empty bool, condition string) string {
	if empty {
		condition = fmt.Sprintf("%s IN (%d, %d) AND %s", p.column(field, "kind"), kindText,
			kindNumericText, condition)
	}
	return "(" + condition + ")"
}

// ofNumber is ofText for numbers: other values have the number 0.
func (p *printer) ofNumber(field string, zero bool, condition string) string {
	if zero {
		condition = fmt.Sprintf("%s >= %d AND %s", p.column(field, "kind"), kindNumber, condition)
	}
	return "(" + condition + ")"
}

func (p *printer) order(field, sign string, operand filter.Value) {
	if operand.Kind == filter.Text {
		empty := sign == "<=" || sign == "<" && operand.Text != "" || sign == ">=" &&
			operand.Text == ""
		condition := p.column(field, "text") + " " + sign + " " + text(operand.Text)
		p.WriteString(p.ofText(field, empty, condition))
		return
	}
	zero := meetsOrder(0, sign, operand.Number) && !p.nonzero[field]
	condition := p.column(field, "num") + " " + sign + " " + number(operand.Number)
	p.WriteString(p.ofNumber(field, zero, condition))
}

// meetsOrder reports whether n compares with than as sign says.
func meetsOrder(n float64, sign string, than float64) bool {
	switch sign {
	case "<":
		return n < than
	case "<=":
		return n <= than
	case ">":
		return n > than
	default:
		return n >= than
	}
}

// anyOf writes that the field equals one of the operands, with one term per kind of operand.
func (p *printer) anyOf(c filter.Compare) {
	var numbers, texts, kinds []string
	zero, empty := false, false
	for _, v := range c.Values {
		switch {
		case v.Kind == filter.Null:
			kinds = append(kinds, "0", fmt.Sprint(kindNull))
		case v.Kind == filter.Number:
			numbers = append(numbers, number(v.Number))
			zero = zero || v.Number == 0
		case v.Kind == filter.Text:
			texts = append(texts, text(v.Text))
			empty = empty || v.Text == ""
		case v.Bool:
			kinds = append(kinds, fmt.Sprint(kindTrue))
		default:
			kinds = append(kinds, fmt.Sprint(kindFalse))
		}
	}
	var terms []string
	if len(numbers) > 0 {
		terms = append(terms, p.ofNumber(c.Field, zero, p.column(c.Field, "num")+oneOf(numbers)))
	}
	if len(texts) > 0 {
		terms = append(terms, p.ofText(c.Field, empty, p.column(c.Field, "text")+oneOf(texts)))
	}
	if len(kinds) > 0 {
		terms = append(terms, p.column(c.Field, "kind")+oneOf(kinds))
	}
	switch len(terms) {
	case 0:
		p.WriteString("0")
	case 1: // any OR makes the server search the whole primary key
		p.WriteString(terms[0])
	default:
		p.WriteString("(" + strings.Join(terms, " OR ") + ")")
	}
}

// oneOf writes a comparison with literals. A single literal needs no set.
func oneOf(literals []string) string {
	if len(literals) == 1 {
		return " = " + literals[0]
	}
	return " IN (" + strings.Join(literals, ",") + ")"
}

// part writes a case-insensitive condition on text. folded is the part, already folded.
func part(op filter.Op, column, folded string) string {
	if !foldsByByte(folded) {
		quoted := pattern(`(?is)` + anchored(op, regexp.QuoteMeta(folded)))
		return "match(" + column + ", " + text(quoted) + ")"
	}
	switch op {
	case filter.StartsWith:
		column = fmt.Sprintf("substring(%s, 1, %d)", column, len(folded))
	case filter.EndsWith:
		column = fmt.Sprintf("right(%s, %d)", column, len(folded))
	}
	if folded == "" {
		return "1"
	}
	// 10% faster than positionCaseInsensitive
	return "position(lower(" + column + "), " + text(folded) + ") > 0"
}

func anchored(op filter.Op, quoted string) string {
	switch op {
	case filter.StartsWith:
		return `\A` + quoted
	case filter.EndsWith:
		return quoted + `\z`
	}
	return quoted
}

// foldsByByte reports whether folding ASCII letters is enough for a text. With k and s it is not:
// the Kelvin sign and the long s fold to them.
func foldsByByte(folded string) bool {
	for i := range len(folded) {
		if c := folded[i]; c >= 0x80 || c == 'k' || c == 's' {
			return false
		}
	}
	return true
}

// pattern rewrites a pattern so that it means the same to the server as to Go. It contains every
// flag, and every class is spelled out.
func pattern(source string) string {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		// the filter's own parser has accepted it
		panic(fmt.Sprintf("row store: pattern %q does not parse: %v", source, err))
	}
	return tree.String()
}

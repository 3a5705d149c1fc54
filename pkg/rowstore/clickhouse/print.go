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
// that NOT is the opposite.
func printFilter(n filter.Node) string {
	p := printer{column: column}
	p.node(n)
	return p.String()
}

// printSort writes the ORDER BY terms of a sort, the place last. Classes of values keep their order
// whatever the direction: numbers, text, booleans, other values, none.
func printSort(sorts []rowstore.Sort) string { return printSortBy(sorts, "_block_number, pos") }

// printSortBy is printSort with what ties are broken by.
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

// column is a part of a field: its kind, num or text; 0 or empty when the row does not have it.
func column(field, part string) string {
	b := bucketOf(field)
	return fmt.Sprintf("`f%d.%s`[indexOf(`f%d.key`, %s)]", b, part, b, text(field))
}

type printer struct {
	strings.Builder
	// column is a part of a field, as the function of that name writes it for rows.
	column func(field, part string) string
	// listed writes what stands for a comparison with a field without such parts. Nil: all have.
	listed func(filter.Compare) (condition string, is bool)
	// nonzero are fields of which a condition beside, or around, what is written asks for a number
	// that is not 0.
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

// all writes that every node holds. What one of them excludes the others need not ask for again.
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

// excludesZero says whether a comparison is an order that 0 does not meet.
func excludesZero(c filter.Compare) bool {
	sign, ordered := signs[c.Op]
	return ordered && c.Values[0].Kind == filter.Number && !meetsOrder(0, sign, c.Values[0].Number)
}

// signs are the orders in SQL.
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

// ofText is a condition that only text can meet. What is no text has an empty one. Its kind is
// asked for only if that meets the condition, since a second column to read costs as much as the
// first.
func (p *printer) ofText(field string, empty bool, condition string) string {
	if empty {
		condition = fmt.Sprintf("%s IN (%d, %d) AND %s", p.column(field, "kind"), kindText,
			kindNumericText, condition)
	}
	return "(" + condition + ")"
}

// ofNumber is ofText for numbers: what is none has a zero.
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

// meetsOrder says whether a number is less, greater, or not, than another.
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

// anyOf writes that some operand equals the field: one term for each kind of operand there is.
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
	case 1: // an OR, of whatever, makes the server search all of the primary key
		p.WriteString(terms[0])
	default:
		p.WriteString("(" + strings.Join(terms, " OR ") + ")")
	}
}

// oneOf is a comparison with literals. One needs no set to look it up in.
func oneOf(literals []string) string {
	if len(literals) == 1 {
		return " = " + literals[0]
	}
	return " IN (" + strings.Join(literals, ",") + ")"
}

// part is a condition on text, whatever the case: folded is the part, folded.
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
	// a tenth less than positionCaseInsensitive
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

// foldsByByte says whether ASCII's upper and lower case are all there is to the folding of text.
// They are not with k and s, which the Kelvin sign and the long s fold to.
func foldsByByte(folded string) bool {
	for i := range len(folded) {
		if c := folded[i]; c >= 0x80 || c == 'k' || c == 's' {
			return false
		}
	}
	return true
}

// pattern writes a pattern so that it means in the server what it means in Go. Every flag is in it,
// and every class is spelled out.
func pattern(source string) string {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		// the filter's own parser has seen it
		panic(fmt.Sprintf("row store: pattern %q does not parse: %v", source, err))
	}
	return tree.String()
}

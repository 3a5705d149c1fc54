package dom

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/antchfx/xpath"
)

// XPath is a compiled expression of XPath 1.0, which sees what CSS selectors see: no comments, no contents of template.
// It is safe for concurrent use.
type XPath struct {
	exprs  sync.Pool // of *xpath.Expr, which are not
	scalar bool
}

// Match is what an expression has chosen: an element, an attribute or a text. Its Elem is None if there is nothing.
type Match struct {
	Elem    Elem  // the element, or that of the attribute or text
	attr    int32 // in attrs, -1 for none
	text    int32 // in texts, up to textEnd, -1 for none
	textEnd int32
}

// NoMatch is the match of what has chosen nothing.
var NoMatch = Match{Elem: None, attr: -1, text: -1}

// MatchOf is an element as a match.
func MatchOf(e Elem) Match { return Match{Elem: e, attr: -1, text: -1} }

// IsElem says whether the match is an element.
func (m Match) IsElem() bool { return m.Elem != None && m.attr < 0 && m.text < 0 }

// xpathFunctions are those of XPath 1.0, and of later versions what is usual and takes and gives no more than its
// arguments' size. Others of the library would let an expression or a page grow texts without bound.
var xpathFunctions = []string{"boolean", "ceiling", "concat", "contains", "count", "ends-with", "false", "floor", "last",
	"local-name", "lower-case", "name", "namespace-uri", "normalize-space", "not", "number", "position", "round",
	"starts-with", "string", "string-length", "substring", "substring-after", "substring-before", "sum", "translate", "true"}

// nodeTests look like functions.
var nodeTests = []string{"comment", "node", "processing-instruction", "text"}

// CompileXPath compiles an expression.
func CompileXPath(expr string) (*XPath, error) {
	if err := checkFunctions(expr); err != nil {
		return nil, err
	}
	compiled, err := xpath.Compile(expr)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "xpath: "))
	}
	x := &XPath{}
	x.exprs.New = func() any {
		again, err := xpath.Compile(expr)
		if err != nil {
			panic(fmt.Errorf("an expression that was compiled before: %w", err))
		}
		return again
	}
	x.exprs.Put(compiled)
	var d Document
	if err := d.Parse(nil); err != nil {
		return nil, err
	}
	value := x.evaluate(&d, None)
	if d.failed != nil {
		return nil, d.failed
	}
	_, isSet := value.([]Match)
	x.scalar = !isSet
	return x, nil
}

// checkFunctions refuses functions that are not in the list.
func checkFunctions(expr string) error {
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '"' || c == '\'':
			end := strings.IndexByte(expr[i+1:], c)
			if end < 0 {
				return errors.New("a text without its closing quote")
			}
			i += end + 1
		case c == '(':
			before := strings.TrimRight(expr[:i], whitespace)
			name := before[strings.LastIndexFunc(before, func(r rune) bool {
				return !(r == '-' || r == '.' || r == '_' || r == ':' || r >= 0x80 || isLetter(byte(r)) || '0' <= r && r <= '9')
			})+1:]
			switch name {
			case "", "and", "or", "div", "mod":
				continue
			}
			name = name[strings.LastIndex(name, "::")+1:]
			name = strings.TrimPrefix(name, ":")
			if !slices.Contains(xpathFunctions, name) && !slices.Contains(nodeTests, name) {
				return fmt.Errorf("unknown function %.40s()", name)
			}
		}
	}
	return nil
}

// IsScalar says whether the expression gives a text, a number or a truth value instead of choosing something.
func (x *XPath) IsScalar() bool { return x.scalar }

// evaluate evaluates the expression at e, or at the document for None. What goes wrong is the document's failure.
func (x *XPath) evaluate(d *Document, e Elem) (value any) {
	defer func() {
		if failure := recover(); failure != nil && d.steps >= 0 {
			d.failed = fmt.Errorf("the XPath expression fails: %v", failure)
		}
	}()
	expr := x.exprs.Get().(*xpath.Expr)
	value = expr.Evaluate(d.navigate(e))
	if set, ok := value.(*xpath.NodeIterator); ok {
		value = d.gather(set)
	}
	x.exprs.Put(expr) // not after a panic, which leaves it somewhere in between
	return value
}

// All are the expression's matches, each once, in the document's order.
func (x *XPath) All(d *Document) []Match {
	all, _ := x.evaluate(d, None).([]Match)
	return all
}

// gather puts what an expression chooses in order.
func (d *Document) gather(set *xpath.NodeIterator) []Match {
	all := []Match{}
	for set.MoveNext() {
		if n, ok := set.Current().(*navigator); ok && n.elem != None {
			all = append(all, n.match())
		}
	}
	slices.SortFunc(all, d.compare)
	return slices.Compact(all)
}

// compare is the order of two matches in the document.
func (d *Document) compare(a, b Match) int {
	// An element comes before its attributes, and these before all that it holds; it begins behind as many texts as it
	// has noted.
	if a.text >= 0 && b.text >= 0 {
		return cmp.Compare(a.text, b.text)
	}
	if a.text >= 0 {
		return -d.compare(b, a)
	}
	if b.text < 0 {
		return cmp.Or(cmp.Compare(a.Elem, b.Elem), cmp.Compare(a.attr, b.attr))
	}
	if d.elems[a.Elem].text <= b.text {
		return -1
	}
	return 1
}

// Value is what a scalar expression gives at e, or in the whole document for Whole: a string, a float64 or a bool.
func (x *XPath) Value(d *Document, e Elem) any {
	if e == Whole {
		e = None
	}
	value := x.evaluate(d, e)
	if n, ok := value.(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return nil
	}
	return value
}

// AppendMatch appends a match's text as AppendText does.
func (d *Document) AppendMatch(dst []byte, m Match) []byte {
	switch {
	case m.attr >= 0:
		return AppendCollapsed(dst, d.value(m.attr))
	case m.text >= 0:
		return AppendCollapsed(dst, string(d.appendTexts(nil, m.text, m.textEnd)))
	}
	return d.AppendText(dst, m.Elem)
}

// AppendCollapsed appends a text with each run of white space as one space, none at its start or end.
func AppendCollapsed(dst []byte, s string) []byte {
	c := collapser{dst: dst, start: len(dst)}
	c.add(s)
	return c.dst
}

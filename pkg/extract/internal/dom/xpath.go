package dom

import (
	"math"
	"slices"
)

// XPath is a compiled expression of XPath 1.0. It sees what CSS selectors see: no comments and no
// contents of template. It is safe for concurrent use.
type XPath struct{ root *expression }

// Match is an element, an attribute or a text that an expression has chosen. Elem is None if there
// is nothing.
type Match struct {
	Elem    Elem  // the element, or the parent of the attribute or text
	attr    int32 // index in attrs, -1 for none
	text    int32 // index in texts, up to textEnd; -1 for none
	textEnd int32
}

// NoMatch is the match of an expression that has chosen nothing.
var NoMatch = Match{Elem: None, attr: -1, text: -1}

// MatchOf returns an element as a match.
func MatchOf(e Elem) Match { return Match{Elem: e, attr: -1, text: -1} }

// IsElem says whether the match is an element.
func (m Match) IsElem() bool { return m.Elem != None && m.attr < 0 && m.text < 0 }

// nodeTests look like function calls.
var nodeTests = []string{"comment", "node", "processing-instruction", "text"}

// CompileXPath compiles an expression. Errors name what is not supported: variables, other
// functions, the namespace axis.
func CompileXPath(expr string) (*XPath, error) {
	root, err := parseXPath(expr)
	if err != nil {
		return nil, err
	}
	return &XPath{root}, nil
}

// IsVain says whether the expression chooses nothing on every page, since it asks for comments or
// processing instructions.
func (x *XPath) IsVain() bool { return x.root.isVain() }

// isVain says whether the expression has no node, is the empty text, or is false on every page.
func (e *expression) isVain() bool {
	vain := func(e *expression) bool { return e.isVain() }
	switch e.op {
	case "/":
		return slices.ContainsFunc(e.args, vain) || slices.ContainsFunc(e.steps,
			func(s step) bool { return s.test == "none()" || slices.ContainsFunc(s.filters, vain) })
	case "|", "or":
		return vain(e.args[0]) && vain(e.args[1])
	case "and":
		return vain(e.args[0]) || vain(e.args[1])
	case "(":
		return slices.Contains([]string{"boolean", "normalize-space", "string"}, e.name) &&
			slices.ContainsFunc(e.args, func(arg *expression) bool {
				// "false" is a text
				return vain(arg) && (e.name == "boolean" || arg.kind != isTruth)
			})
	case "=", "!=", "<", "<=", ">", ">=": // nodes are compared one by one
		vain := func(e *expression) bool { return e.kind == isNodes && e.isVain() }
		return slices.ContainsFunc(e.args, vain) && e.args[0].kind != isTruth &&
			e.args[1].kind != isTruth
	}
	return false
}

// IsScalar says whether the expression gives a text, a number or a boolean instead of choosing
// nodes.
func (x *XPath) IsScalar() bool { return x.root.kind != isNodes }

// evaluate evaluates the expression at e, or at the document for None. If it ends early, the
// document holds the error.
func (x *XPath) evaluate(d *Document, e Elem) (value any) {
	defer func() {
		if failure := recover(); failure != nil && failure != any(errTooSlow) {
			panic(failure)
		}
	}()
	d.fillNodes()
	at := spot{0, -1}
	if e != None {
		at.node = d.xpath.of[e]
	}
	v := evaluation{d: d, known: map[*expression][]spot{}}
	return v.eval(x.root, focus{at: at, index: 1, all: 1})
}

// All returns the expression's matches, each once, in document order.
func (x *XPath) All(d *Document) []Match {
	places, _ := x.evaluate(d, None).([]spot)
	all := make([]Match, 0, len(places))
	for _, p := range places {
		if p.node > 0 { // not the document itself
			all = append(all, d.matchAt(p))
		}
	}
	return all
}

// Value returns the value of a scalar expression at e, or in the whole document for Whole: a
// string, a float64 or a bool. It is nil for NaN and infinities.
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
		return d.appendCollapsed(dst, d.value(m.attr))
	case m.text >= 0:
		for i := range d.texts[m.text:m.textEnd] {
			d.payDecoding(d.texts[int(m.text)+i].s)
		}
		if !d.goesOn() {
			return dst
		}
		return d.appendCollapsed(dst, string(d.appendTexts(nil, m.text, m.textEnd)))
	}
	return d.AppendText(dst, m.Elem)
}

// appendCollapsed is AppendCollapsed with its cost charged.
func (d *Document) appendCollapsed(dst []byte, s string) []byte {
	d.steps -= len(s) / bytesPerStep
	return AppendCollapsed(dst, s)
}

// AppendCollapsed appends a text with each run of white space as one space, and none at its start
// or end.
func AppendCollapsed(dst []byte, s string) []byte {
	c := collapser{dst: dst, start: len(dst)}
	c.add(s)
	return c.dst
}

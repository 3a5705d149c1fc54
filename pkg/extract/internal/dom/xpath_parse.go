package dom

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is the type of an expression's result. In XPath 1.0 the expression alone determines it.
type kind uint8

const (
	isNodes kind = iota
	isText
	isNumber
	isTruth
)

// expression is a part of an XPath expression.
type expression struct {
	op    string // "" for literals, "/" for paths, "(" for calls, else the operator
	kind  kind
	value any // of a literal
	args  []*expression
	call  func(v *evaluation, args []*expression, f focus) any // of a call
	name  string                                               // of a call
	// of a path, which starts at args[0] if there is one
	absolute bool
	steps    []step
	position bool // it depends on position() or last()
}

// step is one step of a path. Filters after an expression in parentheses are a step on the axis
// filter.
type step struct {
	// a name, "*", "prefix:*", "text()" or "node()"; "none()" for nodes that no page has
	axis, test string
	filters    []*expression
	placed     bool // a filter depends on positions
	siblings   bool // the axis leads to siblings
	counted    bool // it leads far, and depends on no positions or on last() alone
}

var axes = []string{"ancestor", "ancestor-or-self", "attribute", "child", "descendant",
	"descendant-or-self", "following",
	"following-sibling", "parent", "preceding", "preceding-sibling", "self"}

// xpathParser reads tokens. A token is a name, a number, a quoted text, or a sign.
type xpathParser struct {
	tokens []string
	at     int
}

func parseXPath(s string) (*expression, error) {
	tokens, err := tokenize(s)
	if err != nil {
		return nil, err
	}
	p := &xpathParser{tokens: tokens}
	e, err := p.binary(0)
	if err == nil && p.peek() != "" {
		err = p.unexpected()
	}
	return e, err
}

func isNameByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func tokenize(s string) ([]string, error) {
	var tokens []string
	for i := 0; i < len(s); {
		from := i
		switch c := s[i]; {
		case strings.IndexByte(whitespace, c) >= 0:
			i++
			continue
		case c == '"' || c == '\'':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return nil, errors.New("a text without its closing quote")
			}
			i += end + 2
		case isDigit(c) || c == '.' && i+1 < len(s) && isDigit(s[i+1]):
			for i < len(s) && isDigit(s[i]) {
				i++
			}
			if i < len(s) && s[i] == '.' {
				for i++; i < len(s) && isDigit(s[i]); i++ {
				}
			}
		case isLetter(c) || c == '_' || c >= 0x80:
			for i < len(s) && isNameByte(s[i]) {
				i++
			}
			if i+1 < len(s) && s[i] == ':' && (isNameByte(s[i+1]) || s[i+1] == '*') { // a prefix
				for i++; i < len(s) && isNameByte(s[i]); i++ {
				}
				if s[i-1] == ':' {
					i++ // the star
				}
			}
		case c == '$':
			return nil, errors.New("variables are not supported")
		case i+1 < len(s) && slices.Contains([]string{"//", "::", "..", "!=", "<=", ">="},
			s[i:i+2]):
			i += 2
		case strings.IndexByte("/.()[]@,*|+-=<>", c) >= 0:
			i++
		default:
			return nil, fmt.Errorf("unexpected %q", c)
		}
		tokens = append(tokens, s[from:i])
	}
	return tokens, nil
}

func (p *xpathParser) look(ahead int) string {
	if p.at+ahead < len(p.tokens) {
		return p.tokens[p.at+ahead]
	}
	return ""
}

func (p *xpathParser) peek() string { return p.look(0) }

func (p *xpathParser) acceptToken(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at++
	return true
}

func (p *xpathParser) expect(token string) error {
	if !p.acceptToken(token) {
		return fmt.Errorf("%s is missing before %s", token, p.here())
	}
	return nil
}

func (p *xpathParser) here() string {
	if p.peek() == "" {
		return "the end"
	}
	return fmt.Sprintf("%.40q", p.peek())
}

func (p *xpathParser) unexpected() error { return fmt.Errorf("unexpected %s", p.here()) }

// levels are the binary operators, by increasing precedence.
var levels = [...]struct {
	signs []string
	kind  kind
}{
	{[]string{"or"}, isTruth}, {[]string{"and"}, isTruth}, {[]string{"=", "!="}, isTruth},
	{[]string{"<", "<=", ">", ">="}, isTruth},
	{[]string{"+", "-"}, isNumber}, {[]string{"*", "div", "mod"}, isNumber},
}

func (p *xpathParser) binary(level int) (*expression, error) {
	if level == len(levels) {
		return p.negative()
	}
	left, err := p.binary(level + 1)
	for err == nil && slices.Contains(levels[level].signs, p.peek()) {
		op := p.peek()
		p.at++
		var right *expression
		if right, err = p.binary(level + 1); err == nil {
			left = join(op, levels[level].kind, left, right)
		}
	}
	return left, err
}

// join makes a binary operator. It rewrites a comparison of a path across the page with a literal
// into the question whether the path has a node that fits.
func join(op string, kind kind, left, right *expression) *expression {
	e := &expression{op: op, kind: kind, args: []*expression{left, right},
		position: left.position || right.position}
	switch op {
	case "or", "and":
		e.args[0], e.args[1] = left.asked(), right.asked()
	case "=", "!=", "<", "<=", ">", ">=":
		at := slices.IndexFunc(e.args, func(arg *expression) bool { return arg.op != "" })
		if at < 0 || e.args[1-at].op != "" {
			return e
		}
		path := e.args[at]
		if path.op == "|" {
			either := slices.Clone(e.args)
			e.args[at], either[at] = path.args[0], path.args[1]
			return join("or", isTruth, join(op, kind, e.args[0], e.args[1]),
				join(op, kind, either[0], either[1]))
		}
		if !path.crosses() {
			return e
		}
		e.args[at] = &expression{op: "/"}
		e.args[at].add(step{axis: "self", test: "node()"})
		return &expression{op: "(", kind: isTruth, name: "boolean",
			call: functions["boolean"].call, args: []*expression{path.with(e).asked()}}
	}
	return e
}

// crosses says whether the expression is a relative path whose first step leads across the page and
// depends on no positions.
func (e *expression) crosses() bool {
	return e.op == "/" && !e.absolute && len(e.args) == 0 && len(e.steps) > 0 &&
		!e.steps[0].placed && slices.Contains(across, e.steps[0].axis)
}

// with returns a path with one more filter on its last step.
func (e *expression) with(filter *expression) *expression {
	path := &expression{op: "/"}
	for i, s := range e.steps {
		if i == len(e.steps)-1 {
			s.filters = append(slices.Clip(s.filters), filter)
		}
		path.add(s)
	}
	return path
}

// asked rewrites an expression of which only the truth matters. A path across the page becomes one
// step whose filter is the rest of the path, so the rest is evaluated once for a node.
func (e *expression) asked() *expression {
	if e.op == "|" {
		return join("or", isTruth, e.args[0], e.args[1])
	}
	if !e.crosses() || len(e.steps) == 1 {
		return e
	}
	path := &expression{op: "/"}
	path.add(e.steps[0])
	return path.with(&expression{op: "/", steps: e.steps[1:]})
}

func (p *xpathParser) negative() (*expression, error) {
	if p.acceptToken("-") {
		e, err := p.negative()
		if err != nil {
			return nil, err
		}
		return &expression{op: "negative", kind: isNumber, args: []*expression{e},
			position: e.position}, nil
	}
	left, err := p.path()
	for err == nil && p.acceptToken("|") {
		var right *expression
		if right, err = p.path(); err == nil {
			if left.kind != isNodes || right.kind != isNodes {
				return nil, errors.New("| joins nodes only")
			}
			left = &expression{op: "|", args: []*expression{left, right}, position: left.position ||
				right.position}
		}
	}
	return left, err
}

// path reads a path, which may begin with a literal, a call or an expression in parentheses.
func (p *xpathParser) path() (*expression, error) {
	token := p.peek()
	call := p.look(1) == "(" && token != "" && (isLetter(token[0]) || token[0] == '_') &&
		!slices.Contains(nodeTests, token)
	var start *expression
	var err error
	switch {
	case token == "":
		return nil, p.unexpected()
	case token[0] == '"' || token[0] == '\'':
		start = &expression{kind: isText, value: token[1 : len(token)-1]}
		p.at++
	case isDigit(token[0]) || token[0] == '.' && len(token) > 1 && token != "..":
		number, _ := strconv.ParseFloat(token, 64) // infinite if it is too large
		start = &expression{kind: isNumber, value: number}
		p.at++
	case call:
		start, err = p.call()
	case token == "(":
		p.at++
		if start, err = p.binary(0); err == nil {
			err = p.expect(")")
		}
	default:
		return p.location(&expression{op: "/"}, true)
	}
	if err != nil {
		return nil, err
	}
	next := p.peek()
	if next != "[" && next != "/" && next != "//" {
		return start, nil
	}
	if start.kind != isNodes {
		return nil, fmt.Errorf("%s stands behind a value, which is no node", p.here())
	}
	e := &expression{op: "/", args: []*expression{start}, position: start.position}
	if next == "[" {
		filters, err := p.filters()
		if err != nil {
			return nil, err
		}
		e.add(step{axis: "filter", test: "node()", filters: filters})
	}
	return p.location(e, false)
}

// call reads a function call.
func (p *xpathParser) call() (*expression, error) {
	name := p.peek()
	f, known := functions[name]
	if !known {
		return nil, fmt.Errorf("unknown function %.40s()", name)
	}
	p.at += 2
	e := &expression{op: "(", kind: f.kind, call: f.call, name: name,
		position: name == "position" || name == "last"}
	for p.peek() != ")" {
		if len(e.args) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		if f.nodes && arg.kind != isNodes {
			return nil, fmt.Errorf("%s() takes nodes", name)
		}
		if f.kind == isTruth && f.most == 1 { // not() and boolean()
			arg = arg.asked()
		}
		e.args, e.position = append(e.args, arg), e.position || arg.position
	}
	p.at++
	if len(e.args) < f.least || len(e.args) > f.most {
		return nil, fmt.Errorf("%s() does not take %d arguments", name, len(e.args))
	}
	return e, nil
}

// location reads the steps of a path; begins says that nothing precedes them.
func (p *xpathParser) location(e *expression, begins bool) (*expression, error) {
	all := step{axis: "descendant-or-self", test: "node()"}
	switch {
	case begins && p.acceptToken("/"):
		e.absolute = true
		if t := p.peek(); t == "" || t != "*" && t != "@" && t != "." && t != ".." &&
			!isLetter(t[0]) && t[0] != '_' && t[0] < 0x80 {
			return e, nil
		}
	case begins && p.acceptToken("//"):
		e.absolute = true
		e.add(all)
	case begins:
	case p.acceptToken("/"):
	case p.acceptToken("//"):
		e.add(all)
	default:
		return e, nil
	}
	for {
		s, err := p.step()
		if err != nil {
			return nil, err
		}
		e.add(s)
		if p.acceptToken("//") {
			e.add(all)
		} else if !p.acceptToken("/") {
			return e, nil
		}
	}
}

// add adds a step. It turns .//x into descendant::x unless a filter depends on positions.
func (e *expression) add(s step) {
	for _, f := range s.filters {
		s.placed = s.placed || f.kind == isNumber || f.position
	}
	if last := len(e.steps) - 1; last >= 0 {
		switch before := e.steps[last]; {
		case before.test != "node()" || len(before.filters) > 0:
		case before.axis == "self":
			e.steps = e.steps[:last]
		case before.axis == "descendant-or-self" && !s.placed && s.axis == "child":
			s.axis = "descendant"
			e.steps = e.steps[:last]
		}
	}
	s.siblings = strings.HasSuffix(s.axis, "-sibling")
	s.counted = slices.Contains(across, s.axis) &&
		(!s.placed || len(s.filters) == 1 && s.filters[0].name == "last")
	e.steps = append(e.steps, s)
}

func (p *xpathParser) step() (step, error) {
	if p.acceptToken(".") {
		return step{axis: "self", test: "node()"}, nil
	}
	if p.acceptToken("..") {
		return step{axis: "parent", test: "node()"}, nil
	}
	s := step{axis: "child"}
	if p.acceptToken("@") {
		s.axis = "attribute"
	} else if p.look(1) == "::" {
		if s.axis = p.peek(); !slices.Contains(axes, s.axis) {
			return s, fmt.Errorf("unknown axis %.40s", s.axis)
		}
		p.at += 2
	}
	test := p.peek()
	switch {
	case slices.Contains(nodeTests, test) && p.look(1) == "(":
		p.at += 2
		if test == "processing-instruction" && p.peek() != ")" {
			p.at++
		}
		if s.test = test + "()"; test != "text" && test != "node" {
			s.test = "none()"
		}
		if err := p.expect(")"); err != nil {
			return s, err
		}
	case test == "*" || test != "" && (isLetter(test[0]) || test[0] == '_' || test[0] >= 0x80):
		s.test = test
		p.at++
	default:
		return s, fmt.Errorf("a name is missing before %s", p.here())
	}
	var err error
	s.filters, err = p.filters()
	return s, err
}

func (p *xpathParser) filters() (filters []*expression, err error) {
	for p.acceptToken("[") {
		f, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		if err := p.expect("]"); err != nil {
			return nil, err
		}
		filters = append(filters, f.asked())
	}
	return filters, nil
}

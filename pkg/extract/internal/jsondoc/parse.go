package jsondoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/pattern"
)

// maxNesting bounds the nesting of filters, brackets and functions.
const maxNesting = 20

// Compile compiles a path. Errors name the position. Its regular expressions are added to patterns,
// even if it is refused.
func Compile(path string, patterns *pattern.Total) (*Path, error) {
	p, before := &parser{s: path, patterns: patterns}, patterns.Size()
	if !utf8.ValidString(path) {
		return nil, fmt.Errorf("the path is not UTF-8")
	}
	if p.peek() != '$' {
		return nil, p.unexpected("$")
	}
	p.i++
	q, err := p.query(false)
	if err == nil && p.i < len(p.s) {
		err = p.unexpected("the end")
	}
	if err != nil {
		return nil, err
	}
	return &Path{query: q, patterns: patterns.Size() - before}, nil
}

type parser struct {
	s     string
	i     int
	depth int

	patterns *pattern.Total
}

func (p *parser) unexpected(wanted string) error {
	if p.i >= len(p.s) {
		return fmt.Errorf("%s expected at the end", wanted)
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.i:])
	return fmt.Errorf("%s expected at character %d, not %q", wanted,
		utf8.RuneCountInString(p.s[:p.i])+1, r)
}

func (p *parser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// acceptText skips a text if it comes next.
func (p *parser) acceptText(text string) bool {
	if !strings.HasPrefix(p.s[p.i:], text) {
		return false
	}
	p.i += len(text)
	return true
}

func (p *parser) expect(text string) error {
	if !p.acceptText(text) {
		return p.unexpected(text)
	}
	return nil
}

func (p *parser) skipSpace() { p.i = space(p.s, p.i) }

// query reads the segments after $ or @.
func (p *parser) query(relative bool) (query, error) {
	q := query{relative: relative}
	for {
		before := p.i
		p.skipSpace()
		var s segment
		var err error
		switch {
		case p.acceptText(".."):
			s.descendant = true
			if p.peek() == '[' {
				s.selectors, err = p.brackets()
			} else {
				s.selectors, err = p.shorthand()
			}
		case p.acceptText("."):
			s.selectors, err = p.shorthand()
		case p.peek() == '[':
			s.selectors, err = p.brackets()
		default:
			p.i = before
			return q, nil
		}
		if err != nil {
			return q, err
		}
		q.segments = append(q.segments, s)
	}
}

// shorthand reads the name or * after a dot.
func (p *parser) shorthand() ([]selector, error) {
	if p.acceptText("*") {
		return []selector{{kind: byWildcard}}, nil
	}
	start := p.i
	for p.i < len(p.s) && (isNameStart(p.s[p.i]) || p.i > start && isDigit(p.s[p.i])) {
		p.i++
	}
	if p.i == start {
		return nil, p.unexpected("a name or *")
	}
	return []selector{{kind: byName, name: p.s[start:p.i]}}, nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isNameStart(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' || b >= utf8.RuneSelf
}

// deeper counts a nested construct.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxNesting {
		return fmt.Errorf("more than %d nested filters, brackets and functions", maxNesting)
	}
	return nil
}

func (p *parser) brackets() ([]selector, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.i++
	var all []selector
	for {
		p.skipSpace()
		s, err := p.selector()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		p.skipSpace()
		if p.acceptText("]") {
			return all, nil
		}
		if !p.acceptText(",") {
			return nil, p.unexpected("] or ,")
		}
	}
}

func (p *parser) selector() (s selector, err error) {
	switch c := p.peek(); {
	case c == '*':
		p.i++
		return selector{kind: byWildcard}, nil
	case c == '"' || c == '\'':
		s.name, err = p.str()
		return s, err
	case c == '?':
		p.i++
		p.skipSpace()
		filter, err := p.or()
		return selector{kind: byFilter, filter: &filter}, err
	}
	start, err := p.integer()
	if err != nil {
		return s, err
	}
	before := p.i
	p.skipSpace()
	if !p.acceptText(":") {
		if p.i = before; start == nil {
			return s, p.unexpected("a selector")
		}
		return selector{kind: byIndex, index: *start}, nil
	}
	return p.slice(start)
}

// slice reads the rest of a slice after its first colon.
func (p *parser) slice(start *int) (s selector, err error) {
	s = selector{kind: bySlice, start: start, step: 1}
	p.skipSpace()
	if s.end, err = p.integer(); err != nil {
		return s, err
	}
	before := p.i
	p.skipSpace()
	if !p.acceptText(":") {
		p.i = before
		return s, nil
	}
	before = p.i
	p.skipSpace()
	step, err := p.integer()
	if step == nil {
		p.i = before
	} else {
		s.step = *step
	}
	return s, err
}

// integer reads an integer if there is one. It refuses leading zeros, -0, and integers that a
// float64 cannot hold exactly.
func (p *parser) integer() (*int, error) {
	start := p.i
	digits := start
	if p.peek() == '-' {
		digits++
	}
	end := digits
	for end < len(p.s) && isDigit(p.s[end]) {
		end++
	}
	if end == start {
		return nil, nil
	}
	const most = 1<<53 - 1
	n, err := strconv.Atoi(p.s[start:end])
	if err != nil || n > most || n < -most || p.s[digits] == '0' && end > start+1 {
		return nil, p.unexpected("an integer")
	}
	p.i = end
	return &n, nil
}

// str reads a string in single or double quotes.
func (p *parser) str() (string, error) {
	quote := p.s[p.i]
	var text []byte
	for p.i++; p.i < len(p.s); {
		switch c := p.s[p.i]; {
		case c == quote:
			p.i++
			return string(text), nil
		case c == '\\':
			var err error
			if text, err = p.escape(text, quote); err != nil {
				return "", err
			}
		case c < ' ':
			return "", p.unexpected("the string's end")
		default:
			text = append(text, c)
			p.i++
		}
	}
	return "", p.unexpected("the string's end")
}

// escape reads a backslash and appends the character that it escapes.
func (p *parser) escape(text []byte, quote byte) ([]byte, error) {
	p.i++
	c := p.peek()
	if c == quote || c == '\\' || c == '/' {
		p.i++
		return append(text, c), nil
	}
	if at := strings.IndexByte("bfnrt", c); at >= 0 && c != 0 {
		p.i++
		return append(text, "\b\f\n\r\t"[at]), nil
	}
	if c != 'u' {
		return nil, p.unexpected("an escaped character")
	}
	r, ok := p.codeUnit()
	if ok && 0xd800 <= r && r < 0xdc00 {
		var low rune
		if ok = p.peek() == '\\' && p.i+1 < len(p.s) && p.s[p.i+1] == 'u'; ok {
			p.i++
			low, ok = p.codeUnit()
		}
		if ok = ok && 0xdc00 <= low && low < 0xe000; ok {
			return utf8.AppendRune(text, 0x10000+(r-0xd800)<<10+(low-0xdc00)), nil
		}
	}
	if !ok || 0xdc00 <= r && r < 0xe000 {
		return nil, p.unexpected("four hexadecimal digits of a character")
	}
	return utf8.AppendRune(text, r), nil
}

// codeUnit reads a u and four hexadecimal digits.
func (p *parser) codeUnit() (rune, bool) {
	if p.i+5 > len(p.s) {
		return 0, false
	}
	digits := p.s[p.i+1 : p.i+5]
	code, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || strings.ContainsAny(digits, "+_") {
		return 0, false
	}
	p.i += 5
	return rune(code), true
}

// number reads a number in a filter.
func (p *parser) number() (value, error) {
	start := p.i
	end := start
	digits := func() bool {
		from := end
		for end < len(p.s) && isDigit(p.s[end]) {
			end++
		}
		return end > from
	}
	if p.peek() == '-' {
		end++
	}
	first := end
	ok := digits() && (p.s[first] != '0' || end == first+1)
	if ok && end < len(p.s) && p.s[end] == '.' {
		end++
		ok = digits()
	}
	if ok && end < len(p.s) && p.s[end]|0x20 == 'e' {
		end++
		if end < len(p.s) && (p.s[end] == '+' || p.s[end] == '-') {
			end++
		}
		ok = digits()
	}
	n, err := strconv.ParseFloat(p.s[start:end], 64)
	if !ok || err != nil && !math.IsInf(n, 0) {
		return value{}, p.unexpected("a number")
	}
	p.i = end
	return value{kind: kindNumber, node: None, num: n, text: p.s[start:end]}, nil
}

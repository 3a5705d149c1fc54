package dom

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/pattern"
)

// cssParser reads selectors. depth bounds the nesting of :not(…) and the like.
type cssParser struct {
	s     string
	i     int
	depth int

	patterns *pattern.Total
}

const maxNesting = 20

// maxPattern bounds a regular expression, in characters. Selectors are rarely longer.
const maxPattern = 2_048

func (p *cssParser) unexpected(wanted string) error {
	if p.i >= len(p.s) {
		return fmt.Errorf("%s expected at the end", wanted)
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.i:])
	return fmt.Errorf("%s expected at character %d, not %q", wanted,
		utf8.RuneCountInString(p.s[:p.i])+1, r)
}

func (p *cssParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// skipSpace skips white space and comments; it says whether there were any.
func (p *cssParser) skipSpace() bool {
	start := p.i
	for p.i < len(p.s) {
		if strings.IndexByte(whitespace, p.s[p.i]) >= 0 {
			p.i++
			continue
		}
		comment, found := strings.CutPrefix(p.s[p.i:], "/*")
		end := strings.Index(comment, "*/")
		if !found || end < 0 {
			break
		}
		p.i += end + len("/**/")
	}
	return p.i > start
}

func (p *cssParser) list() (selectorList, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, fmt.Errorf("more than %d nested selectors", maxNesting)
	}
	defer func() { p.depth-- }()
	var list selectorList
	for {
		s, err := p.complex()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
		if p.peek() != ',' {
			return list, nil
		}
		p.i++
	}
}

func (p *cssParser) complex() (complexSelector, error) {
	var s complexSelector
	for combinator := byte(0); ; {
		p.skipSpace()
		c, err := p.compound()
		if err != nil {
			return s, err
		}
		s.compounds = append(s.compounds, c)
		if combinator != 0 {
			s.combinators = append(s.combinators, combinator)
		}
		combinator = 0
		if p.skipSpace() {
			combinator = ' '
		}
		switch next := p.peek(); next {
		case '>', '+', '~':
			combinator = next
			p.i++
		case ',', ')', 0:
			combinator = 0
		}
		if combinator == 0 {
			slices.Reverse(s.compounds)
			slices.Reverse(s.combinators)
			return s, nil
		}
	}
}

func (p *cssParser) compound() (compound, error) {
	var c compound
	start := p.i
	switch b := p.peek(); {
	case b == '*':
		p.i++
	case b == '\\' || b == '-' || isNameStart(b):
		name, err := p.identifier()
		if err != nil {
			return c, err
		}
		c.name = lowerASCII(name)
		c.tag = tagOf(c.name)
	}
	for {
		var err error
		switch p.peek() {
		case '#':
			p.i++
			var id string
			id, err = p.nameChars()
			if c.hasID && c.id != id {
				c.pseudos = append(c.pseudos, pseudo{kind: pseudoNever})
			}
			c.id, c.hasID = id, true
		case '.':
			p.i++
			var class string
			class, err = p.identifier()
			c.classes = append(c.classes, class)
		case '[':
			p.i++
			var t attrTest
			t, err = p.attr()
			c.attrs = append(c.attrs, t)
		case ':':
			p.i++
			var ps pseudo
			ps, err = p.pseudo()
			c.pseudos = append(c.pseudos, ps)
		default:
			if p.i == start {
				return c, p.unexpected("a selector")
			}
			return c, nil
		}
		if err != nil {
			return c, err
		}
	}
}

func isNameStart(b byte) bool { return isLetter(b) || b == '_' || b >= utf8.RuneSelf }

func isNameChar(b byte) bool { return isNameStart(b) || b == '-' || '0' <= b && b <= '9' }

func (p *cssParser) identifier() (string, error) {
	i := p.i
	for i < len(p.s) && p.s[i] == '-' {
		i++
	}
	if i >= len(p.s) || !isNameStart(p.s[i]) && p.s[i] != '\\' {
		p.i = i
		return "", p.unexpected("a name")
	}
	return p.nameChars()
}

func (p *cssParser) nameChars() (string, error) {
	var name []byte
	for p.i < len(p.s) {
		if b := p.s[p.i]; isNameChar(b) {
			name = append(name, b)
			p.i++
			continue
		} else if b != '\\' {
			break
		}
		escaped, err := p.escape()
		if err != nil {
			return "", err
		}
		name = append(name, escaped...)
	}
	if len(name) == 0 {
		return "", p.unexpected("a name")
	}
	return string(name), nil
}

// escape reads a backslash and returns the character that it escapes.
func (p *cssParser) escape() (string, error) {
	p.i++
	hex := p.i
	for hex < len(p.s) && hex < p.i+6 &&
		strings.IndexByte("0123456789abcdefABCDEF", p.s[hex]) >= 0 {
		hex++
	}
	if hex > p.i {
		code, _ := strconv.ParseUint(p.s[p.i:hex], 16, 32) // six hex digits at most
		p.i = hex
		if strings.HasPrefix(p.s[p.i:], "\r\n") {
			p.i += 2
		} else if b := p.peek(); b != 0 && strings.IndexByte(whitespace, b) >= 0 {
			p.i++
		}
		return string(rune(code)), nil
	}
	if b := p.peek(); b == 0 || b == '\n' || b == '\r' || b == '\f' {
		return "", p.unexpected("an escaped character")
	}
	_, size := utf8.DecodeRuneInString(p.s[p.i:])
	p.i += size
	return p.s[p.i-size : p.i], nil
}

// word reads a quoted string or an identifier.
func (p *cssParser) word() (string, error) {
	quote := p.peek()
	if quote != '"' && quote != '\'' {
		return p.identifier()
	}
	p.i++
	var text []byte
	for p.i < len(p.s) {
		switch b := p.s[p.i]; b {
		case quote:
			p.i++
			return string(text), nil
		case '\n', '\r', '\f':
			return "", p.unexpected("the string's end")
		case '\\':
			if n := lineEnd(p.s[p.i+1:]); n > 0 {
				p.i += 1 + n
				continue
			}
			escaped, err := p.escape()
			if err != nil {
				return "", err
			}
			text = append(text, escaped...)
		default:
			text = append(text, b)
			p.i++
		}
	}
	return "", p.unexpected("the string's end")
}

func lineEnd(s string) int {
	switch {
	case strings.HasPrefix(s, "\r\n"):
		return 2
	case s != "" && (s[0] == '\n' || s[0] == '\r' || s[0] == '\f'):
		return 1
	}
	return 0
}

// attr reads an attribute test after its "[".
func (p *cssParser) attr() (attrTest, error) {
	p.skipSpace()
	name, err := p.identifier()
	if err != nil {
		return attrTest{}, err
	}
	t := attrTest{name: lowerASCII(name)}
	p.skipSpace()
	if p.peek() == ']' {
		p.i++
		return t, nil
	}
	if t.op = p.peek(); t.op != '=' {
		if strings.IndexByte("!~|^$*#", t.op) < 0 || p.i+1 >= len(p.s) || p.s[p.i+1] != '=' {
			return t, p.unexpected("an operator")
		}
		p.i++
	}
	p.i++
	p.skipSpace()
	if t.op == '#' {
		t.re, err = p.regexp()
	} else {
		t.value, err = p.word()
	}
	if err != nil {
		return t, err
	}
	p.skipSpace()
	if b := p.peek(); b == 'i' || b == 'I' {
		t.fold = true
		p.i++
		p.skipSpace()
	}
	return t, p.expect(']')
}

func (p *cssParser) expect(b byte) error {
	if p.peek() != b {
		return p.unexpected(strconv.QuoteRune(rune(b)))
	}
	p.i++
	return nil
}

// regexp reads a regular expression (RE2) up to an unmatched closing bracket.
func (p *cssParser) regexp() (*pattern.Pattern, error) {
	depth, i := 0, p.i
	for ; i < len(p.s); i++ {
		switch p.s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		if depth < 0 {
			break
		}
	}
	re, err := p.patterns.Compile(p.s[p.i:i], func(source string) (*pattern.Pattern, error) {
		return pattern.Compile(source, maxPattern)
	})
	p.i = i
	return re, err
}

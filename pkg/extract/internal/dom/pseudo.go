package dom

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// pseudo reads a pseudo-class after its ":".
func (p *cssParser) pseudo() (pseudo, error) {
	if p.peek() == ':' {
		return pseudo{}, fmt.Errorf("pseudo-elements select no element")
	}
	name, err := p.identifier()
	if err != nil {
		return pseudo{}, err
	}
	name = lowerASCII(name)
	if ps, ok := simplePseudos[name]; ok {
		return ps, nil
	}
	if p.peek() != '(' {
		return pseudo{}, fmt.Errorf("unknown pseudo-class :%s", name)
	}
	p.i++
	p.skipSpace()
	ps, err := p.function(name)
	if err != nil {
		return ps, err
	}
	p.skipSpace()
	return ps, p.expect(')')
}

var simplePseudos = map[string]pseudo{
	"first-child":   {kind: pseudoNth, b: 1},
	"last-child":    {kind: pseudoNth, b: 1, last: true},
	"first-of-type": {kind: pseudoNth, b: 1, ofType: true},
	"last-of-type":  {kind: pseudoNth, b: 1, ofType: true, last: true},
	"only-child":    {kind: pseudoOnly},
	"only-of-type":  {kind: pseudoOnly, ofType: true},
	"empty":         {kind: pseudoEmpty},
	"root":          {kind: pseudoRoot},
	"link":          {kind: pseudoLink},
	"any-link":      {kind: pseudoLink},
	"input":         {kind: pseudoInput},
	"enabled":       {kind: pseudoEnabled},
	"disabled":      {kind: pseudoDisabled},
	"checked":       {kind: pseudoChecked},
	"visited":       {kind: pseudoNever},
	"hover":         {kind: pseudoNever},
	"active":        {kind: pseudoNever},
	"focus":         {kind: pseudoNever},
	"target":        {kind: pseudoNever},
}

// function reads the argument of a functional pseudo-class.
func (p *cssParser) function(name string) (ps pseudo, err error) {
	switch name {
	case "not", "is", "where", "has", "haschild":
		ps.kind = map[string]pseudoKind{"not": pseudoNot, "is": pseudoIs, "where": pseudoIs,
			"has":      pseudoHas,
			"haschild": pseudoHasChild}[name]
		ps.list, err = p.list()
	case "nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type":
		ps.kind = pseudoNth
		ps.last = strings.Contains(name, "last")
		ps.ofType = strings.HasSuffix(name, "of-type")
		ps.a, ps.b, err = p.nth()
	case "contains", "containsown":
		ps.kind, ps.own = pseudoContains, name == "containsown"
		ps.text, err = p.word()
		ps.text = strings.ToLower(ps.text)
	case "matches", "matchesown":
		ps.kind, ps.own = pseudoMatches, name == "matchesown"
		ps.re, err = p.regexp()
	case "lang":
		ps.kind = pseudoLang
		ps.text, err = p.word()
		ps.text = strings.ToLower(ps.text)
	default:
		err = fmt.Errorf("unknown pseudo-class :%s(…)", name)
	}
	return ps, err
}

// nth reads an+b, odd or even.
func (p *cssParser) nth() (a, b int, err error) {
	rest := lowerASCII(p.s[p.i:min(p.i+len("even"), len(p.s))])
	for _, word := range []struct {
		name string
		a, b int
	}{{"odd", 2, 1}, {"even", 2, 0}} {
		if strings.HasPrefix(rest, word.name) {
			p.i += len(word.name)
			return word.a, word.b, nil
		}
	}
	sign := p.sign()
	n, given, err := p.integer()
	if err != nil {
		return 0, 0, err
	}
	if p.peek()|0x20 != 'n' {
		if !given {
			return 0, 0, p.unexpected("a number, odd or even")
		}
		return 0, sign * n, nil
	}
	p.i++
	if !given {
		n = 1
	}
	a = sign * n
	p.skipSpace()
	if c := p.peek(); c != '+' && c != '-' {
		return a, 0, nil
	}
	sign = p.sign()
	p.skipSpace()
	if b, given, err = p.integer(); err == nil && !given {
		err = p.unexpected("a number")
	}
	return a, sign * b, err
}

func (p *cssParser) sign() int {
	switch p.peek() {
	case '-':
		p.i++
		return -1
	case '+':
		p.i++
	}
	return 1
}

func (p *cssParser) integer() (n int, given bool, err error) {
	start := p.i
	for p.peek() >= '0' && p.peek() <= '9' {
		p.i++
	}
	if p.i == start {
		return 0, false, nil
	}
	n, err = strconv.Atoi(p.s[start:p.i])
	if err != nil || n > math.MaxInt32 {
		return 0, true, fmt.Errorf("the number %.20s is too large", p.s[start:p.i])
	}
	return n, true, nil
}

package pattern

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// instructionsPerStep is how many instructions a step executes for a byte.
	instructionsPerStep = 4
	// leastCost is the least cost of a byte, in steps.
	leastCost = 4
	// atOnce is the highest cost of a match that is paid in advance and never interrupted: half a
	// second. Go's regexp is several times as fast on a string as on a reader.
	atOnce = 10_000_000
)

// Unpaid matches a text without a budget. It is for texts and patterns that are otherwise known to
// be short.
func (p *Pattern) Unpaid(text string) bool { return p.re.MatchString(text) }

// price returns the cost of a byte, in steps.
func (p *Pattern) price() int { return max(leastCost, p.weight/instructionsPerStep) }

// cost returns the highest cost of one match in a text, in steps.
func (p *Pattern) cost(text string) int { return (len(text) + 1) * p.price() }

// Match reports whether a text has a match. If the budget ends first, it returns false, and the
// result is meaningless.
func (p *Pattern) Match(b *Budget, text string) bool {
	if cost := p.cost(text); cost <= atOnce {
		return b.Spend(cost) && p.re.MatchString(text)
	}
	found := p.re.MatchReader(&paid{b: b, price: p.price(), text: text})
	return found && b.err == nil
}

// Find returns the first match, like regexp's FindStringSubmatchIndex. It also returns nil if the
// budget ends first.
func (p *Pattern) Find(b *Budget, text string) []int {
	if cost := p.cost(text); cost <= atOnce {
		if !b.Spend(cost) {
			return nil
		}
		return p.re.FindStringSubmatchIndex(text)
	}
	match := p.re.FindReaderSubmatchIndex(&paid{b: b, price: p.price(), text: text})
	if b.err != nil {
		return nil
	}
	return match
}

// paid reads a text and pays for each byte. It ends early when the budget is spent.
type paid struct {
	b     *Budget
	price int
	text  string
	at    int
}

func (r *paid) ReadRune() (rune, int, error) {
	if r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	char, size := utf8.DecodeRuneInString(r.text[r.at:])
	if !r.b.Spend(size * r.price) {
		return 0, 0, io.EOF
	}
	r.at += size
	return char, size, nil
}

// Replacer replaces the matches of a pattern. It is safe for concurrent use.
type Replacer struct {
	first *Pattern
	// next finds a match after the first character. That character is there for \b, ^ and other
	// assertions that look back.
	next        *regexp.Regexp
	replacement string
	groups      int // the most groups in replacement
}

// NewReplacer makes a Replacer. In the replacement, $1 or ${name} stand for groups, and $$ for a
// dollar sign.
func NewReplacer(p *Pattern, replacement string) (*Replacer, error) {
	next, err := regexp.Compile(`\A(?s:.)(?s:.*?)(` + p.String() + `)`)
	if err != nil {
		return nil, err
	}
	return &Replacer{first: p, next: next, replacement: replacement,
		groups: strings.Count(replacement, "$")}, nil
}

// Replace returns the text with every match replaced, like regexp's ReplaceAllString. It is false
// if the result would exceed most bytes. If the budget ends first, the result is meaningless. Each
// byte is paid for whenever it is read. A pattern may read the whole rest of the text for each of
// its matches.
func (r *Replacer) Replace(b *Budget, text string, most int) (clean string, ok bool) {
	var out []byte
	done, at := 0, 0 // end of what was copied, and where the next match may begin
	for match := r.first.Find(b, text); match != nil; match = r.after(b, text, at) {
		out = append(out, text[done:match[0]]...)
		if match[1] > done || match[0] == 0 { // no empty match right after another match
			if len(out)+len(r.replacement)+r.groups*(match[1]-match[0]) > most {
				return "", false
			}
			out = r.first.re.ExpandString(out, r.replacement, text, match)
		}
		done = match[1]
		_, size := utf8.DecodeRuneInString(text[at:])
		if at = max(done, at+size, at+1); at > len(text) {
			break
		}
	}
	if len(out)+len(text)-done > most {
		return "", false
	}
	return string(append(out, text[done:]...)), true
}

// after returns the first match at or after a place, nil if there is none.
func (r *Replacer) after(b *Budget, text string, at int) []int {
	_, size := utf8.DecodeLastRuneInString(text[:at])
	from := at - size
	found := r.next.FindReaderSubmatchIndex(&paid{b: b, price: r.first.price(), text: text[from:]})
	if found == nil || b.err != nil {
		return nil
	}
	match := found[2:]
	for i := range match {
		if match[i] >= 0 {
			match[i] += from
		}
	}
	return match
}

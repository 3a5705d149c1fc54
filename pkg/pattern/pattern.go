// Package pattern owns the regular expressions of customers (RE2): only it compiles them, within
// bounds, and matches them at a price that a Budget pays. It does not know what a pattern is for,
// nor the codes of refusals.
package pattern

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a pattern. A few characters, such as (\pL{100}){10}, can produce very many
// instructions.
const (
	// MaxSize is the largest size of a compiled pattern: its instructions and the range ends of its
	// classes. Many groups count extra.
	MaxSize = 10_000
	// MaxTotal is the most instructions and ranges of all patterns of one scraper, or of one
	// schema, together.
	MaxTotal = 5 * MaxSize
	// groupsPerSize is how many capture groups double the memory that matching takes per
	// instruction.
	groupsPerSize = 8
)

// Errors of Compile, besides syntax errors.
var (
	ErrTooLarge = errors.New("its repetitions, classes and groups make it too large")
	ErrTooMany  = fmt.Errorf("the patterns are too large together: at most %d instructions and "+
		"ranges are allowed", MaxTotal)
)

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	re     *regexp.Regexp
	size   int // counted in a Total
	weight int // work per byte
}

// Compile compiles a pattern of at most most characters.
func Compile(source string, most int) (*Pattern, error) {
	if n := utf8.RuneCountInString(source); n > most {
		return nil, fmt.Errorf("it has %d characters, at most %d are allowed", n, most)
	}
	tree, err := Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return tree.compile(source)
}

// Tree is a pattern that was parsed. It may be changed before it is compiled.
type Tree struct {
	*syntax.Regexp
	parsing int // what parsing took
}

// Parse parses a pattern. Its error is ErrTooLarge, before anything is done, if that would take
// long.
func Parse(source string, flags syntax.Flags) (*Tree, error) {
	parsing := parsingOf(source)
	if parsing > MaxSize {
		return nil, ErrTooLarge
	}
	tree, err := syntax.Parse(source, flags)
	if err != nil {
		return nil, err
	}
	return &Tree{tree, parsing}, nil
}

// Compile compiles the pattern.
func (t *Tree) Compile() (*Pattern, error) {
	if sizeOf(t.Regexp) > MaxSize {
		return nil, ErrTooLarge
	}
	return t.compile(t.String())
}

func (t *Tree) compile(source string) (*Pattern, error) {
	tree := t.Regexp
	// Before anything is expanded.
	if size := sizeOf(tree); size+size*tree.MaxCap()/groupsPerSize > MaxSize {
		return nil, ErrTooLarge
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return &Pattern{re: re, size: max(len(program.Inst)+rangesOf(tree), t.parsing),
		weight: weightOf(program)}, nil
}

// What parsing takes is counted like a size; MaxSize of it is some 5 ms.
const (
	namedClass = 500 // a class of a name that the tables below do not have
	foldedRun  = 10  // characters of a range that are folded for a count of 1
	// the parser folds characters between these (regexp/syntax)
	firstFold = 0x41
	lastFold  = 0x1e943
)

// parsingOf estimates what parsing takes. It grows with what a pattern names, not with what comes
// of it: [\pL\pL] is one class, merged from two tables. Under (?i) the parser folds the characters
// of a range one by one. Behind the first class all dashes count, though some are no ranges.
func parsingOf(source string) int {
	cost, folds, classes := 0, false, false
	for i := range len(source) {
		rest := source[i:]
		switch {
		case strings.HasPrefix(rest, `\p`), strings.HasPrefix(rest, `\P`):
			cost += tableOf(rest[2:])
		case strings.HasPrefix(rest, "(?"):
			flags := strings.TrimLeft(rest[2:], "imsU-")
			folds = folds || strings.Contains(rest[2:len(rest)-len(flags)], "i")
		case rest[0] == '[':
			classes = true
		case folds && classes && rest[0] == '-':
			from, to := max(startOf(source[:i]), firstFold), min(endOf(rest[1:]), lastFold)
			cost += max(0, int(to-from)) / foldedRun
		}
	}
	return cost
}

// tableOf returns the ranges of the class whose name a pattern continues with.
func tableOf(rest string) int {
	name := rest[:min(len(rest), 1)]
	if name == "{" {
		name, _, _ = strings.Cut(rest[1:], "}")
	}
	name = strings.TrimPrefix(name, "^")
	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		return namedClass
	}
	return len(table.R16) + len(table.R32)
}

// startOf returns the first character of a range, at whose dash a pattern was cut.
func startOf(source string) rune {
	if at := strings.LastIndex(source, `\x`); at >= 0 {
		before, escape := source[:at], source[at:]
		escaped := (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1 // the backslash itself
		if ends := len(escape) == len(`\xHH`) ||
			strings.IndexByte(escape, '}') == len(escape)-1; ends && !escaped {
			return endOf(escape)
		}
	}
	start, _ := utf8.DecodeLastRuneInString(source)
	return start
}

// endOf returns the character that a pattern continues with.
func endOf(rest string) rune {
	digits, escaped := strings.CutPrefix(rest, `\x`)
	if !escaped {
		end, _ := utf8.DecodeRuneInString(rest)
		return end
	}
	if digits, braced := strings.CutPrefix(digits, "{"); braced {
		digits, _, _ = strings.Cut(digits, "}")
		end, err := strconv.ParseUint(digits, 16, 32)
		if err != nil {
			return unicode.MaxRune // no character: the parser refuses it
		}
		return rune(min(end, unicode.MaxRune))
	}
	end, _ := strconv.ParseUint(digits[:min(len(digits), 2)], 16, 32)
	return rune(end) // 0: the parser refuses it
}

// sizeOf estimates the compiled size of a tree, and stops counting above MaxSize.
func sizeOf(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		if size += sizeOf(sub); size > MaxSize {
			return size
		}
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return size
}

// rangesOf counts the range ends in a tree. Repetitions share them.
func rangesOf(tree *syntax.Regexp) int {
	ranges := len(tree.Rune)
	for _, sub := range tree.Sub {
		ranges += rangesOf(sub)
	}
	return ranges
}

// weightOf counts a program's instructions. Those that search many ranges for a character count
// extra.
func weightOf(program *syntax.Prog) int {
	weight := 0
	for i := range program.Inst {
		weight += 1 + bits.Len(uint(len(program.Inst[i].Rune)))/4
	}
	return weight
}

// Size returns what the pattern counts in a Total: its instructions, and the range ends that they
// share.
func (p *Pattern) Size() int { return p.size }

// Groups returns the number of capture groups in the pattern.
func (p *Pattern) Groups() int { return p.re.NumSubexp() }

// String returns the pattern's source.
func (p *Pattern) String() string { return p.re.String() }

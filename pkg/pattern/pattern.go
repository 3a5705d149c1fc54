// Package pattern owns the regular expressions of customers (RE2): it alone compiles them, under
// bounds, and matches them at a price that a Budget pays. It does not own what a pattern is for,
// nor the codes of what is refused.
package pattern

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Bounds of a pattern. A few characters, such as (\pL{100}){10}, can ask for a great many
// instructions.
const (
	// MaxSize bounds what a pattern compiles to: its instructions and the ends of the ranges of its
	// classes, more for many groups.
	MaxSize = 10_000
	// MaxTotal bounds the instructions and ranges of all patterns of one scraper, or of one schema,
	// together.
	MaxTotal = 5 * MaxSize
	// groupsPerSize is how many capture groups double the memory that matching takes for an
	// instruction.
	groupsPerSize = 8
)

// Errors of Compile, beside those of the syntax.
var (
	ErrTooLarge = errors.New("its repetitions, classes and groups make it too large")
	ErrTooMany  = fmt.Errorf("the patterns are too large together: at most %d instructions and "+
		"ranges are allowed", MaxTotal)
)

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	re     *regexp.Regexp
	size   int // what it counts for in a Total
	weight int // what it looks at for a byte
}

// Compile compiles a pattern of up to most characters.
func Compile(source string, most int) (*Pattern, error) {
	if n := utf8.RuneCountInString(source); n > most {
		return nil, fmt.Errorf("it has %d characters, at most %d are allowed", n, most)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return compile(tree, source)
}

// CompileTree compiles a pattern that was parsed, and possibly changed since.
func CompileTree(tree *syntax.Regexp) (*Pattern, error) {
	if sizeOf(tree) > MaxSize {
		return nil, ErrTooLarge
	}
	return compile(tree, tree.String())
}

func compile(tree *syntax.Regexp, source string) (*Pattern, error) {
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
	return &Pattern{re: re, size: len(program.Inst) + rangesOf(tree), weight: weightOf(program)},
		nil
}

// sizeOf estimates what a tree compiles to, and stops counting above MaxSize.
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

// rangesOf counts the ends of a tree's ranges. Repetitions share them.
func rangesOf(tree *syntax.Regexp) int {
	ranges := len(tree.Rune)
	for _, sub := range tree.Sub {
		ranges += rangesOf(sub)
	}
	return ranges
}

// weightOf counts a program's instructions; those that look a character up in many ranges count for
// more.
func weightOf(program *syntax.Prog) int {
	weight := 0
	for i := range program.Inst {
		weight += 1 + bits.Len(uint(len(program.Inst[i].Rune)))/4
	}
	return weight
}

// Size is what the pattern counts for in a Total: its instructions, and the ends of the ranges that
// they share.
func (p *Pattern) Size() int { return p.size }

// Groups is how many capture groups the pattern has.
func (p *Pattern) Groups() int { return p.re.NumSubexp() }

// String is the pattern's source.
func (p *Pattern) String() string { return p.re.String() }

// Total adds the sizes of the patterns that are kept together. The zero Total has none.
type Total struct{ size int }

// Size is what was added.
func (t *Total) Size() int { return t.size }

// Add counts a pattern's Size, or that of several; its error is ErrTooMany.
func (t *Total) Add(size int) error {
	if t.size += size; t.size > MaxTotal {
		return ErrTooMany
	}
	return nil
}

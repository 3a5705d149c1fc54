package filter

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// maxPatternSize bounds what a pattern compiles to, in instructions and ranges of its classes: a few characters, such
// as (\pL{100}){10}, can ask for a great many.
const maxPatternSize = 10_000

var errPatternTooLarge = errors.New("its repetitions make it too large")

// compilePattern compiles an RE2 pattern.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if patternSize(tree) > maxPatternSize {
		return nil, errPatternTooLarge
	}
	return regexp.Compile(pattern)
}

// patternSize estimates what a tree compiles to, and stops counting above maxPatternSize.
func patternSize(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		if size += patternSize(sub); size > maxPatternSize {
			return size
		}
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return size
}

package house_test

import (
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of Go files: a tab is as wide as four columns.
const (
	widest  = 100 // columns of a line
	longest = 500 // lines of a file
	literal = 30  // bytes of a string literal that may make a line wider
)

// TestFilesAreReadOnAScreen bounds the length of lines and files. Only a literal may make a line
// wider: struct tags, pages and messages are not broken.
func TestFilesAreReadOnAScreen(t *testing.T) {
	for _, s := range sources(t) {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(lines) > longest {
			t.Errorf("%s has %d lines, at most %d", s.path, len(lines), longest)
		}
		var literals map[int]bool
		for i, line := range lines {
			columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			if columns <= widest {
				continue
			}
			if literals == nil {
				literals = linesOfLiterals(text)
			}
			if !literals[i+1] {
				t.Errorf("%s:%d is %d columns wide, at most %d", s.path, i+1, columns, widest)
			}
		}
	}
}

// linesOfLiterals returns the lines, from 1, that contain part of a raw string or of a long one.
func linesOfLiterals(text []byte) map[int]bool {
	lines := map[int]bool{}
	file := token.NewFileSet().AddFile("", 1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, kind, said := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind != token.STRING || said[0] == '"' && len(said) < literal {
			continue
		}
		for first, n := file.Line(pos), 0; n <= strings.Count(said, "\n"); n++ {
			lines[first+n] = true
		}
	}
}

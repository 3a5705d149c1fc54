package house_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const longestSentence = 25 // words

// TestSentencesAreShort keeps comments and documents readable: one thought per sentence.
func TestSentencesAreShort(t *testing.T) {
	hold := func(name string, lines []string) {
		for _, sentence := range tooLong(lines) {
			t.Errorf("%s has a sentence of more than %d words: %s", name, longestSentence,
				sentence)
		}
	}
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			var lines []string
			for _, comment := range group.List {
				lines = append(lines, commentLines(comment.Text)...)
			}
			hold(s.path, lines)
		}
	}
	for name, text := range texts(t) {
		if filepath.Ext(name) == ".md" {
			hold(name, proseLines(text))
		}
	}
}

// TestLongSentencesAreSeen tests the check: what it counts, and what it ignores.
func TestLongSentencesAreSeen(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for text, want := range map[string]int{
		words(25) + ".":                       0,
		words(26) + ".":                       1,
		words(13) + "\n" + words(13):          1,
		words(13) + ". " + words(13) + ".":    0,
		words(13) + "\n\n" + words(13):        0,
		"- " + words(13) + "\n- " + words(13): 0,
		"| " + words(13) + " | " + words(13):  0,
		"```\n" + words(26) + "\n```":         0,
		words(24) + " `" + words(9) + "`":     0,
		"| " + strings.Repeat("`word` ", 26):  0,
		"## " + words(13) + "\n" + words(13):  0,
		words(24) + ", e.g. " + words(3):      1,
	} {
		if got := len(tooLong(proseLines(text))); got != want {
			t.Errorf("%d long sentences, want %d, in %q", got, want, text)
		}
	}
	code := commentLines("//go:generate " + words(26))[0] + commentLines("//\t" + words(26))[0]
	if code != "" {
		t.Errorf("a directive and code are taken for prose: %q", code)
	}
}

// longestHeading is in bytes.
const longestHeading = 60

// command matches the beginning of a command in a document.
var command = regexp.MustCompile(`bin/shoal |make [a-z]|go test `)

// TestDocumentsKeepTheirLines finds what a reflow of prose breaks: a paragraph joined to its
// heading, or two commands on one line.
func TestDocumentsKeepTheirLines(t *testing.T) {
	for name, text := range texts(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			switch {
			case strings.HasPrefix(line, "    ") && len(command.FindAllString(line, -1)) > 1:
				t.Errorf("%s has two commands in a line: %s", name, line)
			case strings.HasPrefix(line, "## ") && len(line) > longestHeading:
				t.Errorf("%s has a heading longer than %d bytes: %s", name, longestHeading, line)
			}
		}
	}
}

// commentLines returns the lines of a comment's prose; directives and code become empty lines.
func commentLines(comment string) []string {
	if block, ok := strings.CutPrefix(comment, "/*"); ok {
		return strings.Split(strings.TrimSuffix(block, "*/"), "\n")
	}
	line, isProse := strings.CutPrefix(comment, "// ")
	if !isProse || strings.HasPrefix(line, "Code generated") ||
		strings.HasPrefix(line, "   ") {
		return []string{""}
	}
	return []string{line}
}

var notProse = regexp.MustCompile("(?ms)^ *```.*?^ *```|<!--.*?-->|\\A---\n.*?^---$")

// indented matches indented code after an empty line.
var indented = regexp.MustCompile(`(?m)^\n(?: {4,}[^\s*-].*\n(?:\s*\n)*)+`)

// proseLines returns a document's lines without its code; table cells become lines.
func proseLines(text string) []string {
	var lines []string
	text = indented.ReplaceAllString(notProse.ReplaceAllString(text, "\n"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			line = strings.ReplaceAll(line, "|", "\n\n")
		}
		lines = append(lines, strings.Split(line, "\n")...)
	}
	return lines
}

var (
	startsBlock = regexp.MustCompile(`^\s*(?:[-*+] |\d+[.)] |#+ |>|$)`)
	oneWord     = regexp.MustCompile("`[^`]*`|https?://\\S+[^\\s.,;:)]")
	target      = regexp.MustCompile(`\]\([^)\s]*\)`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')*\]]*\s+`)
	shortened   = strings.NewReplacer("e.g. ", "eg ", "i.e. ", "ie ", "etc. ", "etc ")
	hasLetter   = regexp.MustCompile(`[\pL\d]`)
)

// tooLong are the sentences of more than longestSentence words.
func tooLong(lines []string) []string {
	var found []string
	var block strings.Builder
	for i, line := range append(lines, "") {
		if startsBlock.MatchString(line) || i == len(lines) {
			found = append(found, longOf(block.String())...)
			block.Reset()
		}
		if !strings.HasPrefix(line, "#") { // a heading ends with its line
			block.WriteString(startsBlock.ReplaceAllString(line, "") + " ")
		}
	}
	return found
}

func longOf(block string) []string {
	block = target.ReplaceAllString(oneWord.ReplaceAllString(block, "code"), "]")
	var found []string
	for _, sentence := range sentenceEnd.Split(shortened.Replace(block), -1) {
		words, names := 0, 0
		for _, word := range strings.Fields(sentence) {
			if hasLetter.MatchString(word) {
				words++
			}
			if word == "code" {
				names++
			}
		}
		if words > longestSentence && names < words { // names alone are a list
			found = append(found, strings.Join(strings.Fields(sentence), " "))
		}
	}
	return found
}

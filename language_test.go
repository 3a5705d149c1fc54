package house_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const longestSentence = 25 // words

// longSentences are the files that still have longer sentences, and how many. A number only falls,
// and a file without any leaves the table.
var longSentences = map[string]int{
	"apiserver/internal/operation/body.go":                       1,
	"apiserver/internal/operation/events.go":                     1,
	"apiserver/internal/operation/exchange.go":                   1,
	"apiserver/internal/operation/operation.go":                  1,
	"bench/README.md":                                            24,
	"bench/detect/README.md":                                     4,
	"bench/detect/judge.go":                                      2,
	"bench/main.go":                                              1,
	"bench/measure/history_load.go":                              1,
	"bench/peers/README.md":                                      8,
	"bench/peers_jobs.go":                                        1,
	"controlplane/internal/state/archive.go":                     3,
	"controlplane/internal/state/succeed.go":                     1,
	"docs/interface/README.md":                                   1,
	"docs/interface/operations.md":                               31,
	"pkg/extract/aiconf/aiconf.go":                               7,
	"pkg/extract/aiconf/framework.go":                            1,
	"pkg/extract/aiconf/grounded.go":                             2,
	"pkg/extract/aiconf/mentions.go":                             1,
	"pkg/extract/aiconf/named.go":                                1,
	"pkg/extract/aiconf/number.go":                               1,
	"pkg/extract/aiconf/page.go":                                 1,
	"pkg/extract/aiconf/shop_test.go":                            1,
	"pkg/extract/bench_test.go":                                  1,
	"pkg/extract/catalog.go":                                     1,
	"pkg/extract/contacts/address.go":                            2,
	"pkg/extract/contacts/contacts.go":                           3,
	"pkg/extract/contacts/data.go":                               1,
	"pkg/extract/contacts/doubt.go":                              1,
	"pkg/extract/contacts/links.go":                              1,
	"pkg/extract/detect/detect.go":                               3,
	"pkg/extract/detect/heading.go":                              1,
	"pkg/extract/detect/jsonnext.go":                             1,
	"pkg/extract/detect/naming.go":                               1,
	"pkg/extract/detect/next.go":                                 6,
	"pkg/extract/detect/outline.go":                              2,
	"pkg/extract/detect/owntext.go":                              1,
	"pkg/extract/detect/prices.go":                               2,
	"pkg/extract/detect/probe.go":                                3,
	"pkg/extract/detect/product.go":                              1,
	"pkg/extract/detect/shown.go":                                1,
	"pkg/extract/detect/titles.go":                               1,
	"pkg/extract/detect/topic.go":                                1,
	"pkg/extract/detection_shops_test.go":                        1,
	"pkg/extract/detection_test.go":                              1,
	"pkg/extract/detection_web_test.go":                          1,
	"pkg/extract/extract.go":                                     3,
	"pkg/extract/hostile_test.go":                                1,
	"pkg/extract/ldjson/ldjson.go":                               2,
	"pkg/extract/link.go":                                        1,
	"pkg/extract/marketplace/internal/shop/page.go":              1,
	"pkg/extract/marketplace/internal/shop/platforms.go":         1,
	"pkg/extract/marketplace/internal/shop/shoptest/shoptest.go": 2,
	"pkg/extract/marketplace/marketplace.go":                     1,
	"pkg/extract/marketplace/search/search.go":                   1,
	"pkg/extract/multiple/multiple.go":                           2,
	"pkg/extract/stated_web_test.go":                             1,
}

// TestSentencesAreShort keeps comments and documents readable: one thought a sentence.
func TestSentencesAreShort(t *testing.T) {
	found := map[string][]string{}
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			var lines []string
			for _, comment := range group.List {
				lines = append(lines, commentLines(comment.Text)...)
			}
			found[s.path] = append(found[s.path], tooLong(lines)...)
		}
	}
	for name, text := range texts(t) {
		if filepath.Ext(name) == ".md" {
			found[name] = tooLong(proseLines(text))
		}
	}
	for name, sentences := range found {
		if len(sentences) > longSentences[name] {
			t.Errorf("%s has %d sentences of more than %d words, at most %d:\n\t%s", name,
				len(sentences), longestSentence, longSentences[name],
				strings.Join(sentences, "\n\t"))
		}
	}
	for name, held := range longSentences {
		if len(found[name]) < held {
			t.Errorf("%s has %d long sentences, not %d: lower its number", name,
				len(found[name]), held)
		}
	}
}

// TestLongSentencesAreSeen shows the check what it has to count, and what it has to leave alone.
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

// command begins a command of code in a document.
var command = regexp.MustCompile(`bin/shoal |make [a-z]|go test `)

// TestDocumentsKeepTheirLines finds what a reflow of prose does to headings and code: a paragraph
// behind its heading, or two commands, become one line.
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

// commentLines are the lines of a comment's prose; directives and code become empty lines.
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

// indented are lines of code behind an empty line.
var indented = regexp.MustCompile(`(?m)^\n(?: {4,}[^\s*-].*\n(?:\s*\n)*)+`)

// proseLines are the lines of a document without its code; a table's cells are lines apart.
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
		words := 0
		for _, word := range strings.Fields(sentence) {
			if hasLetter.MatchString(word) {
				words++
			}
		}
		if words > longestSentence {
			found = append(found, strings.Join(strings.Fields(sentence), " "))
		}
	}
	return found
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

var (
	documentedCommand = regexp.MustCompile("\\bshoal ([a-z][^|#`)\n]*)")
	documentedFlag    = regexp.MustCompile("(?:^| )--([a-z][a-z-]*)")
)

// Scripts are told of every exit code, by the help and by the documents.
func TestExitCodesAreTold(t *testing.T) {
	declared, err := os.ReadFile("internal/terminal/terminal.go")
	if err != nil {
		t.Fatal(err)
	}
	told, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	help := strings.Replace(description, "6 to 9 ", "6 7 8 9 ", 1)
	_, help, _ = strings.Cut(help, "Exit codes:")
	codes := regexp.MustCompile(`(?m)^\tExit\w+ += (\d+)`).FindAllSubmatch(declared, -1)
	if len(codes) == 0 {
		t.Error("no exit code is declared")
	}
	for _, code := range codes {
		if !strings.Contains(string(told), "\n| "+string(code[1])+" | ") {
			t.Errorf("docs/running.md has no exit code %s", code[1])
		}
		if !slices.Contains(strings.Fields(help), string(code[1])) {
			t.Errorf("shoal --help has no exit code %s", code[1])
		}
	}
}

// What the documents tell people to type is there.
func TestDocumentedCommandsAreThere(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("shoal"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, document := range documents(t) {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range documentedCommand.FindAllStringSubmatch(string(content), -1) {
			node := parser.Model.Node
			for _, word := range strings.Fields(match[1]) {
				at := slices.IndexFunc(node.Children,
					func(n *kong.Node) bool { return n.Name == word })
				if at < 0 && node != parser.Model.Node && len(node.Children) > 0 &&
					!strings.HasPrefix(word, "-") {
					t.Errorf("%s: %q: %q has no command %q", document, match[0], node.FullPath(),
						word)
				}
				if at < 0 {
					break
				}
				node = node.Children[at]
			}
			if node == parser.Model.Node {
				continue // a word of a sentence, or the name of an image
			}
			found++
			for _, flag := range documentedFlag.FindAllStringSubmatch(match[1], -1) {
				if !slices.ContainsFunc(slices.Concat(node.AllFlags(false)...),
					func(f *kong.Flag) bool { return f.Name == flag[1] }) {
					t.Errorf("%s: %q: %q has no flag --%s", document, match[0], node.FullPath(),
						flag[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands were found in the documents", found)
	}
}

// documents are those for people who type commands, but for what is written from the commands
// themselves. Decisions tell of some commands that are not there yet.
func documents(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "bench/*.md", "deploy/*.md", "deploy/monitoring/*.md",
		"docs/*.md", "docs/how-to/*.md",
		"docs/operations/*.md", "examples/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return slices.DeleteFunc(names,
		func(name string) bool { return filepath.Base(name) == "configuration.md" })
}

var identityServed = regexp.MustCompile(`shoal serve --identity (\S+)`)

// TestDocumentedIdentitiesAreWhereTheyAreServedFrom types what a document tells an operator of a
// new cluster: the identities that its nodes are started with are there then.
func TestDocumentedIdentitiesAreWhereTheyAreServedFrom(t *testing.T) {
	document, err := os.ReadFile("../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newShell(t)
	t.Chdir(t.TempDir())
	served := 0
	for line := range strings.Lines(string(document)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "shoal" && words[1] == "cluster" &&
			(words[2] == "init" || words[2] == "cert") {
			b.shoal(words[1:]...).want(t, terminal.ExitOK, "")
		}
		if match := identityServed.FindStringSubmatch(line); match != nil {
			served++
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s: no command before it has written that file", match[0])
			}
		}
	}
	if served == 0 {
		t.Error("the document serves no identity")
	}
}

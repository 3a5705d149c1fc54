package house_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lookers are the helpers with which tests look for what a machine may lack.
var lookers = []string{"browser", "netns"}

// TestWhatLooksForToolsIsNamed keeps the short run of `make tooled` whole. That run tests without
// any tool what the race detector tests with all of them, by the names of tests alone.
func TestWhatLooksForToolsIsNamed(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + ` +:= (.*)$`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return string(found[1])
	}
	folders := strings.Fields(value("TOOLS"))
	names := regexp.MustCompile(strings.Trim(value("TOOLED"), "'"))
	raced := regexp.MustCompile(strings.ReplaceAll(value("RACY"), "$$", "$"))
	seen := 0
	for _, s := range sources(t) {
		if !s.test || !raced.MatchString("/"+s.dir) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !looksForTools(f) {
				continue
			}
			seen++
			switch {
			case !slices.Contains(folders, "./"+s.dir):
				t.Errorf("%s: %s looks for a tool: name the folder in TOOLS", s.path, f.Name.Name)
			case strings.HasPrefix(f.Name.Name, "Test") && !names.MatchString(f.Name.Name):
				t.Errorf("%s: %s looks for a tool and is not called as TOOLED says", s.path,
					f.Name.Name)
			}
		}
	}
	if seen < 5 {
		t.Fatalf("only %d tests that look for tools are seen", seen)
	}
}

// looksForTools says whether a function calls one of the helpers.
func looksForTools(f *ast.FuncDecl) (looks bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if selected, ok := n.(*ast.SelectorExpr); ok {
			id, ok := selected.X.(*ast.Ident)
			looks = looks || ok && slices.Contains(lookers, id.Name) &&
				slices.Contains([]string{"Path", "Alone"}, selected.Sel.Name)
		}
		return true
	})
	return looks
}

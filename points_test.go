package house_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestEveryPointIsKilledAt: each named point that shipping code passes is in a test that ends the
// process there, or a call as the process would.
func TestEveryPointIsKilledAt(t *testing.T) {
	killed := map[string]bool{}
	var passed []string
	for _, s := range sources(t) {
		switch {
		case s.test:
			for _, name := range pointsIn(writtenIn(s.file)) {
				killed[name] = true
			}
		case s.path == "pkg/work/kinds.go":
			for _, kind := range constantsOf(s.file) { // pkg/work passes points around a step
				passed = append(passed, "work."+kind+".before_step", "work."+kind+".after_step")
			}
		case !forTests(s.dir):
			passed = append(passed, pointsOf(s.file)...)
		}
	}
	if len(passed) < 80 {
		t.Errorf("only %d points are seen: the walk misses most", len(passed))
	}
	for _, name := range passed {
		// Tests name the writes of SQLite, and translate for ClickHouse (storePoint).
		if !killed[name] && !killed[strings.Replace(name, "_insert", "_commit", 1)] {
			t.Errorf("%s is passed, and no test kills there", name)
		}
	}
}

// pointsOf returns the names that a file passes to a function point or Point.
func pointsOf(file *ast.File) (names []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || called.Sel.Name != "point" && called.Sel.Name != "Point" {
			return true
		}
		names = append(names, writtenIn(call.Args[0])...)
		return true
	})
	return names
}

// constantsOf returns the strings that are constants of a file.
func constantsOf(file *ast.File) (all []string) {
	for _, declaration := range file.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.CONST {
			all = append(all, writtenIn(d)...)
		}
	}
	return all
}

// writtenIn returns the strings that are written in a part of a file.
func writtenIn(part ast.Node) (all []string) {
	ast.Inspect(part, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// counted is how a test says at which pass it kills.
var counted = regexp.MustCompile(`:\d+$`)

// pointsIn returns the points that a test's strings may name. Some name a beginning and several
// ends.
func pointsIn(all []string) (names []string) {
	var begins []string
	for _, text := range all {
		text = strings.TrimPrefix(counted.ReplaceAllString(text, ""), "=")
		if strings.HasSuffix(text, ".") && len(text) > 1 {
			begins = append(begins, text)
		}
		names = append(names, text)
	}
	for _, end := range names {
		for _, begin := range begins {
			names = append(names, begin+end)
		}
	}
	return names
}

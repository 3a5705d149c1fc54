package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// compilesPatterns are the libraries that compile regular expressions found in their input, and the
// only packages that may use them. Each of these rejects such expressions, passes them to
// pkg/pattern, or gives the library only our own texts.
var compilesPatterns = map[string][]string{
	"github.com/andybalholm/cascadia": {"pkg/extract/detect",
		"pkg/extract/marketplace/internal/shop", "bench"},
	"github.com/antchfx/xpath":                 {"pkg/extract/internal/dom"},
	"github.com/antchfx/htmlquery":             {},
	"github.com/PuerkitoBio/goquery":           {"bench"},
	"github.com/theory/jsonpath":               {},
	"github.com/santhosh-tekuri/jsonschema/v6": {"pkg/schema"},
	"github.com/dlclark/regexp2":               {},
	"regexp/syntax": {"pkg/pattern", "pkg/extract/internal/jsondoc",
		"pkg/rowstore/clickhouse"},
}

// TestOnlyOnePlaceCompilesPatterns keeps customers' regular expressions within the bounds of
// pkg/pattern. Elsewhere only constants and package variables are compiled, which no input reaches.
func TestOnlyOnePlaceCompilesPatterns(t *testing.T) {
	compilers := []string{"Compile", "MustCompile", "CompilePOSIX", "MustCompilePOSIX", "Match",
		"MatchString", "MatchReader"}
	all := sources(t)
	constants := constantNames(all)
	for _, s := range all {
		if s.test || forTests(s.dir) {
			continue
		}
		for _, imported := range s.imports {
			if homes, compiles := compilesPatterns[imported]; compiles && !under(s.dir, homes...) {
				t.Errorf("%s imports %s, which compiles regular expressions: they go through "+
					"pkg/pattern, which alone bounds them",
					s.path, imported)
			}
		}
		if s.dir == "pkg/pattern" || !slices.Contains(s.imports, "regexp") ||
			ownPatterns[s.path] != "" {
			continue
		}
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok || !isCallOf(call, "regexp", compilers) {
					return true
				}
				if !isConstant(call.Args[0], constants[s.dir]) {
					t.Errorf("%s: %s compiles what is no constant: input goes through "+
						"pkg/pattern, which alone bounds it", s.path, f.Name.Name)
				}
				return true
			})
		}
	}
}

// ownPatterns are the files that compile our own texts within functions, and what these texts are.
var ownPatterns = map[string]string{
	"apiserver/internal/operation/shape.go": "tags of our structs",
	"pkg/extract/contacts/foreign.go":       "our lists of words",
}

// constantNames returns the names of constants declared anywhere in each folder.
func constantNames(all []source) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	for _, s := range all {
		if names[s.dir] == nil {
			names[s.dir] = map[string]bool{}
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			if d, ok := node.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						names[s.dir][name.Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

func isCallOf(call *ast.CallExpr, library string, names []string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	left, ok := selector.X.(*ast.Ident)
	return ok && left.Name == library && slices.Contains(names, selector.Sel.Name)
}

// isConstant says whether an expression is a literal, a constant, or a sum of them.
func isConstant(e ast.Expr, constants map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BinaryExpr:
		return isConstant(e.X, constants) && isConstant(e.Y, constants)
	case *ast.ParenExpr:
		return isConstant(e.X, constants)
	}
	return false
}

func TestIsConstant(t *testing.T) {
	constants := map[string]bool{"word": true}
	for text, want := range map[string]bool{"`a`": true, "`a` + word": true, "(word)": true,
		"`a` + input": false, "input": false,
		"f(`a`)": false, "s.pattern": false} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if isConstant(e, constants) != want {
			t.Errorf("%s: constant %v, want %v", text, !want, want)
		}
	}
}

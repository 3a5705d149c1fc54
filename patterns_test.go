package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"
)

// compilesPatterns are the libraries that compile regular expressions found in their input, and the
// only folders or files that may use them. Each of these rejects such expressions, passes them to
// pkg/pattern, or gives the library only our own texts. The latter are files, and import no model:
// they take no field of a customer.
var compilesPatterns = map[string][]string{
	"github.com/andybalholm/cascadia": {"pkg/extract/detect/selector.go",
		"pkg/extract/marketplace/internal/shop/selector.go", "bench"},
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
	all := sources(t)
	constants := constantNames(all)
	for _, s := range all {
		if s.test || forTests(s.dir) {
			continue
		}
		for _, imported := range s.imports {
			homes, compiles := compilesPatterns[imported]
			if compiles && (!under(s.path, homes...) || slices.Contains(homes, s.path) &&
				slices.Contains(s.imports, "shoal.dev/shoal/pkg/model")) {
				t.Errorf("%s imports %s, which compiles regular expressions: they go through "+
					"pkg/pattern, which alone bounds them",
					s.path, imported)
			}
		}
		if s.dir == "pkg/pattern" || ownPatterns[s.path] != "" {
			continue
		}
		for _, use := range compilesInput(s.file, constants[s.dir]) {
			t.Errorf("%s: %s compiles what is no constant: input goes through pkg/pattern, which "+
				"alone bounds it", s.path, use)
		}
		for _, use := range unpaid(s.file) {
			if unpaidMatches[s.path] == "" {
				t.Errorf("%s: %s matches without a budget: only texts and patterns known to be "+
					"short do", s.path, use)
			}
		}
	}
}

// unpaidMatches are the files that match customers' patterns without a budget, and in what.
var unpaidMatches = map[string]string{
	"pkg/schema/validator.go":          "in the schema itself, by the patterns of its language",
	"pkg/rowstore/clickhouse/print.go": "in no text at all",
}

// unpaid returns the uses of pattern's matching without a budget.
func unpaid(file *ast.File) (found []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Unpaid" {
			found = append(found, s.Sel.Name)
		}
		return true
	})
	return found
}

// compilers are the functions of regexp that compile their first argument.
var compilers = []string{"Compile", "MustCompile", "CompilePOSIX", "MustCompilePOSIX", "Match",
	"MatchString", "MatchReader"}

// compilesInput returns the uses of compilers that input may reach, under whatever name the file
// imports them. These are calls in functions with what is no constant, and compilers as values.
func compilesInput(file *ast.File, constants map[string]bool) (found []string) {
	name := importedAs(file, "regexp")
	if name == "" {
		return nil
	}
	if name == "." {
		return []string{"an import without a name"}
	}
	isCompiler := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok || !slices.Contains(compilers, s.Sel.Name) {
			return false
		}
		left, ok := s.X.(*ast.Ident)
		return ok && left.Name == name
	}
	harmless := map[ast.Expr]bool{} // what a call that no input reaches calls
	var inspect func(root ast.Node, inside bool)
	inspect = func(root ast.Node, inside bool) {
		ast.Inspect(root, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				if !inside {
					inspect(node, true)
					return false
				}
			case *ast.CallExpr:
				if isCompiler(node.Fun) && len(node.Args) > 0 {
					harmless[node.Fun] = !inside || isConstant(node.Args[0], constants)
				}
			case *ast.SelectorExpr:
				if isCompiler(node) && !harmless[node] {
					found = append(found, node.Sel.Name)
				}
			}
			return true
		})
	}
	inspect(file, false)
	return found
}

// importedAs returns the name under which a file imports a package, "" if it does not.
func importedAs(file *ast.File, wanted string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(wanted) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(wanted)
	}
	return ""
}

func TestCompilesInput(t *testing.T) {
	for text, want := range map[string]bool{
		`import "regexp"; var a = regexp.MustCompile(b + "c")`:                          false,
		`import "regexp"; func f() { regexp.MustCompile("c") }`:                         false,
		`import "regexp"; func f(s string) { regexp.MustCompile(s) }`:                   true,
		`import "regexp"; var f = func(s string) { regexp.MustCompile(s) }`:             true,
		`import "regexp"; func f() { g(func(s string) { regexp.MatchString(s, "") }) }`: true,
		`import "regexp"; var f = regexp.Compile`:                                       true,
		`import "regexp"; func f() { g(regexp.Compile) }`:                               true,
		`import re "regexp"; func f(s string) { re.Compile(s) }`:                        true,
		`import . "regexp"; func f(s string) { Compile(s) }`:                            true,
		`import "other"; func f(s string) { regexp.Compile(s) }`:                        false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := compilesInput(file, nil); len(found) > 0 != want {
			t.Errorf("%s: %v", text, found)
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

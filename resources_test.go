package house_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// services are the packages of the API that know no requests: handlers and background work call
// them.
var services = []string{"apiserver/internal/launch", "apiserver/internal/trial",
	"apiserver/internal/ownership", "apiserver/internal/plans"}

// TestDomainServicesKnowNoHTTP: what a launch or a trial is does not depend on how it is requested.
func TestDomainServicesKnowNoHTTP(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !under(s.dir, services...) {
			continue
		}
		seen[s.dir] = true
		for _, imported := range s.imports {
			if knowsHTTP(imported) {
				t.Errorf("%s imports %s: a domain service gets what a request asks for, and "+
					"answers it or a fault of the catalogue; it knows no request", s.path, imported)
			}
		}
	}
	for _, dir := range services {
		if !seen[dir] {
			t.Errorf("no file in %s: the rule has lost what it guards", dir)
		}
	}
}

// knowsHTTP says whether a package speaks HTTP or has handlers.
func knowsHTTP(imported string) bool {
	if under(imported, "net/http", "github.com/valyala/fasthttp") {
		return true
	}
	ours, inside := strings.CutPrefix(imported, module+"/")
	return inside && under(ours, "apiserver") && !under(ours, services...) &&
		ours != "apiserver/internal/auth"
}

func TestKnowsHTTP(t *testing.T) {
	for imported, want := range map[string]bool{
		"net/http":                               true,
		"net/http/httptest":                      true,
		"github.com/valyala/fasthttp":            true,
		"net/netip":                              false,
		module + "/apiserver":                    true,
		module + "/apiserver/api":                true,
		module + "/apiserver/api/runs":           true,
		module + "/apiserver/internal/operation": true,
		module + "/apiserver/internal/limits":    true,
		module + "/apiserver/internal/auth":      false,
		module + "/apiserver/internal/launch":    false,
		module + "/controlplane/client":          false,
		module + "/pkg/rowstore":                 false,
	} {
		if got := knowsHTTP(imported); got != want {
			t.Errorf("%s: knows HTTP %v, want %v", imported, got, want)
		}
	}
}

// TestResourcesAreHandedWhatTheyUse: every declared need of the API's resources and services is
// used. Each field is read somewhere in its package.
func TestResourcesAreHandedWhatTheyUse(t *testing.T) {
	fields, used := map[string][]string{}, map[string][]string{}
	for _, s := range sources(t) {
		if s.test || !under(s.dir, append([]string{"apiserver/api"}, services...)...) {
			continue
		}
		for _, name := range []string{"Resource", "Launcher", "Trials"} {
			named, embeds := fieldsOf(s.file, name)
			if embeds {
				t.Errorf("%s embeds something in %s: nobody sees then what it uses", s.path, name)
			}
			fields[s.dir] = append(fields[s.dir], named...)
		}
		used[s.dir] = append(used[s.dir], selected(s.file)...)
	}
	resources := 0
	for dir, names := range fields {
		if under(dir, "apiserver/api") && dir != "apiserver/api" {
			resources++
		}
		for _, name := range names {
			if !slices.Contains(used[dir], name) {
				t.Errorf("%s is handed %s and does not use it", dir, name)
			}
		}
	}
	if resources < 10 {
		t.Errorf("only %d resources found in apiserver/api", resources)
	}
}

// fieldsOf returns the names of the fields of a struct that a file declares; embeds says that some
// fields are embedded.
func fieldsOf(file *ast.File, name string) (names []string, embeds bool) {
	ast.Inspect(file, func(node ast.Node) bool {
		declared, ok := node.(*ast.TypeSpec)
		if !ok || declared.Name.Name != name {
			return true
		}
		if made, ok := declared.Type.(*ast.StructType); ok {
			for _, field := range made.Fields.List {
				embeds = embeds || len(field.Names) == 0
				for _, ident := range field.Names {
					names = append(names, ident.Name)
				}
			}
		}
		return false
	})
	return names, embeds
}

// selected returns the names that a file selects from values, not from packages.
func selected(file *ast.File) (names []string) {
	var packages []string
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			packages = append(packages, path.Base(imported))
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			left, named := selector.X.(*ast.Ident)
			if !named || !slices.Contains(packages, left.Name) {
				names = append(names, selector.Sel.Name)
			}
		}
		return true
	})
	return names
}

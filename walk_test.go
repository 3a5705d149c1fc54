package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is one Go file of the repository.
type source struct {
	path    string // from the root, with slashes
	dir     string
	test    bool // its name ends with _test.go
	file    *ast.File
	imports []string
}

// sources are the Go files of the repository.
func sources(t *testing.T) []source {
	t.Helper()
	found, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d Go files found: the walk does not see the repository", len(found))
	}
	return found
}

// parsed is done once for all tests: none of them changes a file.
var parsed = sync.OnceValues(parse)

func parse() ([]source, error) {
	var found []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if unwritten(name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		s := source{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			file: file}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		found = append(found, s)
		return nil
	})
	return found, err
}

// unwritten says whether a folder, by its path from the root, holds what nobody writes: clients has
// what generators make.
func unwritten(dir string) bool {
	switch dir = filepath.ToSlash(dir); dir {
	case ".":
		return false
	case "data", "bin", "dist", "bench/results", "clients":
		return true
	}
	base := path.Base(dir)
	return strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules"
}

// TestUnwritten: a folder is passed over for where it is, as a package may be called data.
func TestUnwritten(t *testing.T) {
	for dir, want := range map[string]bool{
		".": false, "apiserver/api/data": false, "cmd/bin": false, "data": true, "bin": true,
		"bench/results": true, "clients": true, ".git": true, "bench/.peers": true,
		"e2e/testdata": true, "clients/typescript/node_modules": true,
	} {
		if unwritten(dir) != want {
			t.Errorf("unwritten(%q) is %v", dir, !want)
		}
	}
	seen := slices.ContainsFunc(sources(t), func(s source) bool {
		return s.dir == "apiserver/api/data"
	})
	if !seen {
		t.Error("no file of apiserver/api/data is seen")
	}
}

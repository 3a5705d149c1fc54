package house_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhatLooksForToolsIsNamed keeps the short run of `make tooled` complete. That run repeats,
// without any tool, what the race detector tests with all of them. It selects by test names alone.
func TestWhatLooksForToolsIsNamed(t *testing.T) {
	folders := strings.Fields(madeOf(t, "TOOLS"))
	names := regexp.MustCompile(strings.Trim(madeOf(t, "TOOLED"), "'"))
	raced := regexp.MustCompile(madeOf(t, "RACY"))
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

// TestWhatIsLeftToLoneIsRun: tests that the race detector skips by name run without it, and every
// name and folder matches a test.
func TestWhatIsLeftToLoneIsRun(t *testing.T) {
	folders := strings.Fields(madeOf(t, "LONE"))
	names := regexp.MustCompile(strings.Trim(madeOf(t, "LONELY"), "'"))
	raced := regexp.MustCompile(madeOf(t, "RACY"))
	serial := regexp.MustCompile(madeOf(t, "SERIAL"))
	called, used := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		if !s.test || !raced.MatchString("/"+s.dir) || serial.MatchString("/"+s.dir) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !names.MatchString(f.Name.Name) {
				continue
			}
			called[f.Name.Name], used["./"+s.dir] = true, true
			if !slices.Contains(folders, "./"+s.dir) {
				t.Errorf("%s: %s is not run: name the folder in LONE", s.path, f.Name.Name)
			}
		}
	}
	for _, folder := range folders {
		if !used[folder] {
			t.Errorf("LONE names %s, where no test is called as LONELY says", folder)
		}
	}
	plain := regexp.MustCompile(`[(|](\w+)`)
	for _, name := range plain.FindAllStringSubmatch(madeOf(t, "LONELY"), -1) {
		if !called["Test"+name[1]] {
			t.Errorf("LONELY names Test%s, which is no test", name[1])
		}
	}
}

// TestTurnsAreTests: what takes turns in CI are tests of the cluster, each in one turn.
func TestTurnsAreTests(t *testing.T) {
	var called []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.dir == "e2e/cluster" {
				called = append(called, f.Name.Name)
			}
		}
	}
	seen := map[string]bool{}
	for _, turn := range []string{"TURN_1", "TURN_2", "TURN_3"} {
		for name := range strings.SplitSeq(madeOf(t, turn), "|") {
			if !slices.Contains(called, "Test"+name) || seen[name] {
				t.Errorf("%s names %s, which is no test or has another turn", turn, name)
			}
			seen[name] = true
		}
	}
}

// madeOf returns a variable of the Makefile.
func madeOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` +:= (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.ReplaceAll(string(found[1]), "$$", "$")
}

// looking are the functions that look for a tool.
var looking = []string{"browser.Path", "tool.Need", "exec.LookPath"}

// looksForTools says whether a function looks for a tool: a test that has none may skip, and must
// leave nothing open then.
func looksForTools(f *ast.FuncDecl) (looks bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		looks = looks || slices.Contains(looking, selectorOf(n))
		return true
	})
	return looks
}

// selectorOf returns what a node selects of a package, such as exec.LookPath; "": nothing.
func selectorOf(n ast.Node) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := s.X.(*ast.Ident); ok {
		return id.Name + "." + s.Sel.Name
	}
	return ""
}

// suiteTools are tools that only suites with a machine of their own look for.
var suiteTools = map[string]string{"prometheus": "make watched"}

// TestWhatIsLookedForIsTold: the last line of make test names every tool that tests may lack. What
// tool.Need looks for is tested there.
func TestWhatIsLookedForIsTold(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Fields(madeOf(t, "BROWSERS"))
	for _, name := range regexp.MustCompile(`command -v ([\w-]+)`).FindAllSubmatch(text, -1) {
		told = append(told, string(name[1]))
	}
	seen := 0
	for _, s := range sources(t) {
		if !s.test && !forTests(s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || selectorOf(call.Fun) != "exec.LookPath" {
				return true
			}
			if name, ok := call.Args[0].(*ast.BasicLit); ok {
				seen++
				name := strings.Trim(name.Value, "`\"")
				if !slices.Contains(told, name) && suiteTools[name] == "" {
					t.Errorf("%s looks for %s, which LEFT_OUT in the Makefile does not tell", s.path,
						name)
				}
			}
			return true
		})
	}
	if seen < 2 {
		t.Fatalf("only %d searches are seen", seen)
	}
}

// ofSQLite are crash tests that do not involve the row store, and one that copies its directory.
var ofSQLite = []string{"Subscriptions", "TopUps", "Plans", "Tickets", "Notices", "Work",
	"ARestore"}

// TestKillsRunOnBothStores: every crash test on SQLite also runs on ClickHouse, in CI or at night.
func TestKillsRunOnBothStores(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var onServer []string
	for _, line := range regexp.MustCompile(`\$\(CRASHES\) '.*CrashesOf\(([^)]*)\)`).
		FindAllSubmatch(text, -1) {
		onServer = append(onServer, strings.Split(string(line[1]), "|")...)
	}
	var killed []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.dir == "e2e" {
				if of, ok := strings.CutPrefix(f.Name.Name, "TestCrashesOf"); ok {
					killed = append(killed, of)
				}
			}
		}
	}
	slices.Sort(killed)
	named := slices.Sorted(slices.Values(append(onServer, ofSQLite...)))
	if !slices.Equal(named, killed) {
		t.Errorf("make cluster and make crash-stores name %q, the tests are %q", named, killed)
	}
	for _, target := range []string{"crash-stores", "scale-stores", "readback"} {
		if !regexp.MustCompile(`(?m)^nightly:.* ` + target + ` `).Match(text) {
			t.Errorf("make nightly has no %s", target)
		}
	}
}

package house_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhatLooksForToolsIsTestedWithoutThem: the first step of CI tests where no tool is found. It
// leaves out what the race detector tests later, when tools are there: but nothing that looks for
// one, or starts what does.
func TestWhatLooksForToolsIsTestedWithoutThem(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	raced, tools := variable(t, makefile, "RACY"), variable(t, makefile, "TOOLS")
	looks, tested := map[string]bool{}, map[string]bool{}
	imports, ofTests := map[string][]string{}, map[string][]string{}
	for _, s := range sources(t) {
		if s.test {
			tested[s.dir] = true
			ofTests[s.dir] = append(ofTests[s.dir], s.imports...)
		} else {
			imports[s.dir] = append(imports[s.dir], s.imports...)
			looks[s.dir] = looks[s.dir] || slices.Contains(uses(s, "os/exec"), "LookPath")
		}
	}
	left := 0
	for dir := range tested {
		if at := module + "/" + dir; !raced.MatchString(at) || tools.MatchString(at) {
			continue
		}
		left++
		seen, next := map[string]bool{}, append([]string{module + "/" + dir}, ofTests[dir]...)
		for len(next) > 0 {
			from, ours := strings.CutPrefix(next[len(next)-1], module+"/")
			next = next[:len(next)-1]
			if !ours || seen[from] {
				continue
			}
			seen[from] = true
			next = append(next, imports[from]...)
			if looks[from] {
				t.Errorf("%s reaches %s, which looks for a tool: TOOLS in the Makefile lacks it",
					dir, from)
			}
		}
	}
	if left == 0 {
		t.Error("nothing is left out: the expressions of the Makefile are not understood")
	}
}

// variable is the regular expression that a variable of the Makefile is.
func variable(t *testing.T, makefile []byte, name string) *regexp.Regexp {
	t.Helper()
	set := regexp.MustCompile(`(?m)^` + name + ` *:= (.*)$`).FindSubmatch(makefile)
	if set == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return regexp.MustCompile(strings.ReplaceAll(string(set[1]), "$$", "$"))
}

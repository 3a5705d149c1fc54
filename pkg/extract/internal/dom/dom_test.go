package dom

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

func attrsSorted(lines []string) []string { return lines }

func TestReal(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("REAL_PAGES"))
	odd := 0
	for _, f := range files {
		b, _ := os.ReadFile(f)
		var d Document
		d.Reset()
		if !d.build.run(&d, strings.TrimPrefix(string(b), "\ufeff")) {
			odd++
			t.Logf("odd: %s", f)
			continue
		}
		o, err := parseOracle(string(b))
		if err != nil {
			t.Fatal(err)
		}
		x, y := d.dump(), o.dump()
		for i := range x {
			if i >= len(y) || norm(x[i]) != norm(y[i]) {
				w := ""
				if i < len(y) {
					w = y[i]
				}
				t.Errorf("%s: element %d\n got %.600s\nwant %.600s", f, i, x[i], w)
				break
			}
		}
		if len(x) != len(y) {
			t.Errorf("%s: %d elements, want %d", f, len(x), len(y))
		}
	}
	t.Logf("%d of %d odd", odd, len(files))
}

// x/net/html sorts the attributes of formatting elements
func norm(s string) string { f := strings.Fields(s); sort.Strings(f); return strings.Join(f, " ") }

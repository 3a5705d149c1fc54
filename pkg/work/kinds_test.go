package work_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/work"
)

// TestKindsAreDocumented: the documents say what every kind does, and which role does it.
func TestKindsAreDocumented(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	table, runbook := read("architecture.md"), read("operations/ShoalWorkStuck.md")
	for _, kind := range work.Kinds() {
		role := work.Role(kind)
		if role == "controlplane" {
			role = "the leader"
		}
		if !strings.Contains(table, "| `"+kind+"` | "+role) {
			t.Errorf("the architecture does not say that %s is done by %s", kind, role)
		}
		if strings.Count(runbook, "`"+kind+"`") < 2 {
			t.Errorf("the runbook does not say what %s does, and whose it is", kind)
		}
	}
}

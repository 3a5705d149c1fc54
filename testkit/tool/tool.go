// Package tool decides what happens to a test that needs a program of the machine.
package tool

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// told are the programs whose absence make test tells at its end (LEFT_OUT in the Makefile).
var told = []string{"curl", "python3"}

// Need skips a test whose program is not on PATH. Continuous integration (CI is set) has all
// programs, so the test fails there. The exception is .ci/bare, which hides them (CI is bare).
func Need(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(told, name) {
		t.Fatalf("%s is not among the tools that make test tells of", name)
	}
	_, err := exec.LookPath(name)
	if err == nil {
		return
	}
	if ci := os.Getenv("CI"); ci != "" && ci != "bare" {
		t.Fatal(err)
	}
	t.Skipf("%s is not there; make test says so", name)
}

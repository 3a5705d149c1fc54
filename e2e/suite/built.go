package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"shoal.dev/shoal/testkit/process"
)

// Built is the binary for a package's tests, built once, by the first test that needs it.
type Built struct {
	dir  string
	once sync.Once
	path string
	err  error
}

// Main runs the tests with at most that many in parallel, and returns the exit code. The binary
// exists while they run.
func (b *Built) Main(m *testing.M, parallel int) int {
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err)
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "shoal-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // the system cleans up leftovers
	return code
}

// Path returns the binary's path. With race it has the race detector.
func (b *Built) Path(t *testing.T, race bool) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = process.Build(context.Background(), b.dir, race) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

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

// Built is the binary of a package's tests, built once, by the first test that asks for it.
type Built struct {
	dir  string
	once sync.Once
	path string
	err  error
}

// Main runs the tests, at most so many that are parallel at a time, and answers the code to exit
// with. The binary lasts as long as they run.
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
	_ = os.RemoveAll(dir) // what is left is the system's to clean
	return code
}

// Path is where the binary is. With race it looks for races.
func (b *Built) Path(t *testing.T, race bool) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = process.Build(context.Background(), b.dir, race) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

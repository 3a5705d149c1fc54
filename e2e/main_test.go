package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"shoal.dev/shoal/testkit/process"
)

// The flags. By default the suite is as long as a commit can wait for.
var (
	exactness = flag.Bool("exactness", false, "run 100,000 addresses on 1,000 hosts")
	scale     = flag.Bool("scale", false, "run the tests of scale: a million addresses, slow hosts")
	manyLinks = flag.Int("scale-links", 1_000_000, "addresses of the test of scale")
	seeds     = flag.Int("crash-seeds", 3, "kills at each named point")
	losses    = flag.Int("loss-seeds", 2, "runs over a log that loses records, of each kind")
	prebuilt  = flag.String("binary", "", "test this binary instead of building one")
	race      = flag.Bool("race-binary", false, "build the binary with the race detector")
)

func TestMain(m *testing.M) {
	// Most of a crash test is waiting for a process.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "shoal-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // what is left is the system's to clean
	os.Exit(code)
}

// built is the binary, built once, by the first test that asks for it.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func binary(t *testing.T) string {
	t.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	built.once.Do(func() {
		built.path,
			built.err = process.Build(context.Background(), built.dir, *race)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

package e2e

import (
	"flag"
	"os"
	"testing"

	"shoal.dev/shoal/e2e/suite"
)

// The flags. By default the suite runs as long as a commit can wait.
var (
	exactness = flag.Bool("exactness", false, "run 100,000 addresses on 1,000 hosts")
	scale     = flag.Bool("scale", false, "run the tests of scale: a million addresses, slow hosts")
	manyLinks = flag.Int("scale-links", 1_000_000, "addresses of the test of scale")
	seeds     = flag.Int("crash-seeds", 1, "kills at each named point")
	losses    = flag.Int("loss-seeds", 2, "runs over a log that loses records, of each kind")
	prebuilt  = flag.String("binary", "", "test this binary instead of building one")
	onServer  = flag.String("clickhouse", "", "keep rows on the ClickHouse server of this URL "+
		"instead of SQLite: what copies data directories is not for it")
	atOnce = flag.Bool("archive-at-once", false, "history leaves the state at once, where a test "+
		"does not say otherwise")
	race = flag.Bool("race-binary", false, "build the binary with the race detector")
)

func TestMain(m *testing.M) {
	// A crash test mostly waits for a process, or for the lease of a dead one.
	os.Exit(built.Main(m, 8))
}

var built suite.Built

func binary(t *testing.T) string {
	t.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	return built.Path(t, *race)
}

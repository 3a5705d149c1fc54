package measure_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/bench/measure"
)

var years = flag.Bool("years", false, "judge a hundredth of years of use (make years)")

// TestYearsOfUse judges a hundredth of the runs of 'shoal bench history', of a tenth of its
// customers. On SQLite pages have its aims. The heap has a tenth of them. ClickHouse is measured
// where there is one. Its pages depend on how far it has merged, which takes it minutes.
func TestYearsOfUse(t *testing.T) {
	if !*years {
		t.Skip("make years")
	}
	const (
		share  = 10
		worked = 10 // MB that a process takes once it has worked, however few its customers are
	)
	m := &measure.History{Runs: []int{0, 100_000}, Live: 1_000, Customers: 1_000, Active: 1_000,
		Scrapers: 10_000, Recipes: 100, Reads: 500, WriteRate: 50, Time: 20 * time.Second,
		Stores: []string{"sqlite"}, ClickhouseURL: os.Getenv("CLICKHOUSE_URL")}
	if m.ClickhouseURL != "" {
		m.Stores = append(m.Stores, "clickhouse")
	}
	on := &measure.Bench{Program: program, Dir: t.TempDir(), Say: t.Logf}
	report := measure.NewReport("history", "test", "make years")
	if err := m.Measure(t.Context(), on, report); err != nil {
		t.Fatal(err)
	}
	t.Log(report.Text())
	judged := 0
	for _, aim := range report.Aims {
		switch {
		case strings.Contains(aim.What, "page of history or ledger") &&
			!strings.Contains(aim.What, "clickhouse"):
			judged++
		case aim.Unit == "MB":
			aim.Limit = aim.Limit/share + worked
		default:
			continue // it depends on the machine
		}
		if aim.Measured > aim.Limit {
			t.Errorf("%s: %.3g %s, at most %.3g", aim.What, aim.Measured, aim.Unit, aim.Limit)
		}
	}
	if judged != 2 {
		t.Errorf("%d kinds of pages were judged", judged)
	}
}

package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/bench/measure"
	"shoal.dev/shoal/testkit/process"
)

var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the product, for services and webs.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "shoal-measure")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = process.Build(context.Background(), dir, false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestMeasures runs every measure at minimal size: it tests whether they work, not how fast they
// are. A short run skips slow ones.
func TestMeasures(t *testing.T) {
	for _, c := range []struct {
		name    string
		measure measure.Measure
		lines   string // that its report must contain
	}{
		{"extract", &measure.Extract{Time: 5 * time.Millisecond}, "CSS, product, 300 KB"},
		{"fetch", &measure.Fetch{Pages: 100, Concurrency: 8}, "28 KB, TLS"},
		{"cold", &measure.Cold{Hosts: 20, Concurrency: 4, Chain: "both"}, "RSA"},
		{"loop", &measure.Loop{Pages: 500, Rounds: 1, Mixed: true}, "the web as it is"},
		{"api", &measure.API{ReadRate: 100, WriteRate: 20, Time: time.Second, Connections: 8},
			"replace a scraper"},
		{"list", &measure.List{Addresses: []int{1000}, Hosts: 10}, "1,000"},
		{"frontier", &measure.Frontier{Addresses: 2000, Hosts: 500},
			"the web sees the first request"},
		{"rows", &measure.Rows{Rows: 1000, Batch: 500, Reads: 2}, "count: nested"},
		{"history", &measure.History{Runs: []int{0, 500}, Live: 100, Customers: 40, Active: 20,
			Scrapers: 200, Recipes: 5, Reads: 10, WriteRate: 100,
			Time: 200 * time.Millisecond, Stores: []string{"sqlite"}}, "500: ledger, by cursor of the largest customer"},
		{"raft", &measure.Raft{Time: 50 * time.Millisecond, Writers: []int{1, 4}}, "fsync alone"},
		{"soak", &measure.Soak{Time: time.Second, Runs: 2, Kills: 8 * time.Second, Seed: 6},
			"runs, all exact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && slices.Contains([]string{"loop", "api", "history"}, c.name) {
				t.Skip("takes long")
			}
			on := &measure.Bench{Program: program, Dir: t.TempDir(), Say: t.Logf}
			report := measure.NewReport(c.name, "test", "shoal bench "+c.name)
			if err := c.measure.Measure(t.Context(), on, report); err != nil {
				t.Fatal(err)
			}
			text := report.Text()
			t.Log(text)
			if !strings.Contains(text, c.lines) {
				t.Errorf("the report has no line %q", c.lines)
			}
			path, err := report.Save(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var read measure.Report
			if encoded, err := os.ReadFile(path + ".json"); err != nil ||
				json.Unmarshal(encoded, &read) != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
			if read.Bench != c.name || read.Machine == "" || read.Command == "" ||
				len(read.Tables) != len(report.Tables) {
				t.Errorf("%+v", read)
			}
		})
	}
}

// TestCluster needs the real services, as in make cluster; without them it expects an error that
// names what is missing.
func TestCluster(t *testing.T) {
	m := &measure.Cluster{Pages: 500, Fetchers: 2, RedisAddr: os.Getenv("REDIS_ADDR"),
		ClickhouseURL: os.Getenv("CLICKHOUSE_URL"),
		ServicePIDs:   os.Getenv("SERVICE_PIDS")}
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		m.KafkaBrokers = strings.Split(brokers, ",")
	}
	on := &measure.Bench{Program: program, Dir: t.TempDir(), Say: t.Logf}
	report := measure.NewReport("cluster", "test", "shoal bench cluster")
	err := m.Measure(t.Context(), on, report)
	if m.RedisAddr != "" && m.ClickhouseURL != "" && len(m.KafkaBrokers) > 0 {
		if err != nil || !strings.Contains(report.Text(), "fetch2") {
			t.Errorf("%v\n%s", err, report.Text())
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "a cluster needs") ||
		os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
		t.Errorf("without services: %v", err)
	}
}

func TestFlagsOutOfRange(t *testing.T) {
	for _, m := range []measure.Measure{&measure.Extract{}, &measure.Fetch{Pages: 1},
		&measure.Loop{Pages: 1}, &measure.Cold{Hosts: 1}, &measure.API{},
		&measure.List{Addresses: []int{0}, Hosts: 1}, &measure.Frontier{Hosts: 1},
		&measure.Rows{Rows: 1}, &measure.Raft{}, &measure.History{},
		&measure.Soak{Time: time.Second},
		&measure.Soak{Time: time.Second, Runs: 1, Kills: -time.Second},
		&measure.List{Addresses: []int{5_000_001}, Hosts: 1}, &measure.Raft{Time: time.Second},
		&measure.Raft{Time: time.Second, Writers: []int{-1}},
		&measure.Raft{Time: time.Second, Writers: []int{1}, Dir: "/nonexistent"},
		&measure.API{Time: time.Second, Connections: 1},
		&measure.API{Time: time.Second, Connections: 1, WriteRate: -1},
		&measure.API{Time: time.Second, Connections: 1, ReadRate: math.NaN(), WriteRate: 1},
		&measure.API{Time: time.Second, Connections: 1, ReadRate: 1, Workers: -1}} {
		on := &measure.Bench{Program: program, Dir: t.TempDir(), Say: t.Logf}
		err := m.Measure(t.Context(), on, measure.NewReport("test", "test", "test"))
		if !errors.Is(err, measure.ErrFlags) || !strings.Contains(err.Error(), "--") {
			t.Errorf("%T: %v", m, err)
		}
	}
}

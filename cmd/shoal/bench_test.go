package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/bench/measure"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestBench(t *testing.T) {
	b := newShell(t)
	dir := t.TempDir()
	got := b.shoal("bench", "raft", "--time", "20ms", "--writers", "1,2", "--json", "--out", dir)
	got.want(t, terminal.ExitOK, "raft: 2 callers", "Written to")
	var report measure.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	if report.Bench != "raft" ||
		!strings.HasPrefix(report.Command, "shoal bench raft --time 20ms") ||
		len(report.Tables) != 1 ||
		report.Load == "" || report.Version == "" {
		t.Errorf("%+v", report)
	}
	for _, kind := range []string{"md", "json"} {
		if files, err := filepath.Glob(filepath.Join(dir, "*-raft."+kind)); err != nil ||
			len(files) != 1 {
			t.Errorf("saved %v, %v", files, err)
		}
	}
	b.shoal("bench", "raft", "--time", "20ms", "--writers", "1").want(t, terminal.ExitOK,
		"| fsync alone |")
	b.shoal("bench", "list", "--hosts", "0").want(t, terminal.ExitUsage, "--hosts: out of range")
	b.shoal("bench", "detect", "--pages", t.TempDir()).want(t, terminal.ExitFailed,
		"want at least 90%")
	t.Setenv("KAFKA_BROKERS", "")
	b.shoal("bench", "cluster", "--redis-addr", "127.0.0.1:1").want(t, terminal.ExitFailed,
		"KAFKA_BROKERS")
}

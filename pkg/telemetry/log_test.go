package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func TestLogIsJSONWithNodeAndRole(t *testing.T) {
	m := NewMetrics()
	var out bytes.Buffer
	log, err := NewLog(&out, LogConfig{Format: JSONLog, Node: "f1"}, m)
	if err != nil {
		t.Fatal(err)
	}
	role := ForRole(log, "fetcher")
	role.Debug("unseen")
	role.Warn("run closed", "job", "j1")
	role.WithGroup("g").Error("failed", "status", 500)
	role.Log(t.Context(), slog.LevelError+4, "worse")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var first map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"node": "f1", "role": "fetcher", "job": "j1",
		"level": "WARN", "msg": "run closed"} {
		if first[key] != want {
			t.Errorf("%s is %v, want %v", key, first[key], want)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines, want 3: %s", len(lines), out.String())
	}
	for level, want := range map[string]float64{"debug": 0, "info": 0, "warn": 1, "error": 2} {
		if got := value(t, m, "shoal_node_log_lines_total", "level="+level); got != want {
			t.Errorf("%g lines of level %s, want %g", got, level, want)
		}
	}
}

func TestUnknownLogFormatIsRefused(t *testing.T) {
	if _, err := NewLog(&bytes.Buffer{}, LogConfig{Format: "xml"}, nil); err == nil {
		t.Error("it is taken")
	}
}

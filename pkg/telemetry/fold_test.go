package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// said logs a line with a time.
func said(t *testing.T, log *slog.Logger, at time.Time, message string, args ...any) {
	t.Helper()
	record := slog.NewRecord(at, slog.LevelWarn, message, 0)
	record.Add(args...)
	if err := log.Handler().Handle(context.Background(), record); err != nil {
		t.Fatal(err)
	}
}

func foldedTo(out *strings.Builder) *slog.Logger {
	return slog.New(newFoldedLog(slog.NewTextHandler(out, nil)))
}

func TestRepeatsAreFolded(t *testing.T) {
	var out strings.Builder
	log, at := foldedTo(&out), time.Unix(1e9, 0)
	for i := range 858 {
		said(t, log.With("role", "controlplane"), at.Add(time.Duration(i)*50*time.Millisecond),
			"failed to heartbeat", "peer", "cp2",
			"backoff", time.Duration(i)*time.Millisecond, "error",
			fmt.Errorf("read 127.0.0.1:%d: refused", 40_000+i))
	}
	said(t, log.With("role", "controlplane"), at.Add(time.Second), "failed to heartbeat", "peer",
		"cp3")
	said(t, log.With("role", "fetcher"), at.Add(time.Second), "failed to heartbeat", "peer", "cp2",
		"backoff", time.Second,
		"error", errors.New("read 127.0.0.1:1: refused"))
	said(t, log, at.Add(2*foldFor), "another")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines, want the first, two others, the repeats and another:\n%s", len(lines),
			out.String())
	}
	if !strings.Contains(lines[3], "peer=cp2 ") ||
		!strings.Contains(lines[3], "127.0.0.1:40857: ") ||
		!strings.HasSuffix(lines[3], " repeated=857") {
		t.Errorf("the repeats are told so: %s", lines[3])
	}
	said(t, log.With("role", "controlplane"), at.Add(3*foldFor), "failed to heartbeat", "peer",
		"cp3")
	if got := strings.Count(out.String(), "peer=cp3"); got != 2 {
		t.Errorf("a line stands %d times, want once a minute", got)
	}
}

func TestFoldsAreBounded(t *testing.T) {
	var out strings.Builder
	log, at := foldedTo(&out), time.Unix(1e9, 0)
	for i := range 3 * foldMost {
		for range 2 {
			said(t, log, at.Add(time.Duration(i)*time.Millisecond), "line", "n", i)
		}
	}
	if kept := len(log.Handler().(foldedLog).folds.lines); kept != foldMost {
		t.Errorf("%d lines are remembered, want %d", kept, foldMost)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3*foldMost+2*foldMost {
		t.Errorf("%d lines: what is forgotten has not told its repeats", lines)
	}
}

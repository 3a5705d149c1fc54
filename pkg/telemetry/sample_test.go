package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// kept is a handler that keeps lines with their numbers.
type kept struct{ lines []string }

func (*kept) Enabled(context.Context, slog.Level) bool { return true }
func (k *kept) WithAttrs([]slog.Attr) slog.Handler     { return k }
func (k *kept) WithGroup(string) slog.Handler          { return k }

func (k *kept) Handle(_ context.Context, record slog.Record) error {
	line := record.Level.String() + " " + record.Message
	record.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	k.lines = append(k.lines, line)
	return nil
}

func TestLogUnderLoad(t *testing.T) {
	var to kept
	log := newSampledLog(&to)
	begun := time.Unix(1_000, 0)
	say := func(at time.Time, level slog.Level, message string, times int) (lines []string) {
		t.Helper()
		to.lines = nil
		for range times {
			if err := log.Handle(t.Context(), slog.NewRecord(at, level, message, 0)); err != nil {
				t.Fatal(err)
			}
		}
		return to.lines
	}
	calls := say(begun, slog.LevelInfo, "call", 1_000)
	if len(calls) != sampleFirst+10 || calls[0] != "INFO call" ||
		!slices.Contains(calls, "INFO call oneOf=100") {
		t.Errorf("of 1,000 calls in a second %d are told: %q", len(calls), calls)
	}
	if lines := say(begun, slog.LevelInfo, "run closed", 1); len(lines) != 1 {
		t.Errorf("another message: %q", lines)
	}
	for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError} {
		if lines := say(begun, level, "call", 500); len(lines) != 500 {
			t.Errorf("%d of 500 lines of level %s", len(lines), level)
		}
	}
	if lines := say(begun.Add(time.Second), slog.LevelInfo, "call", 15); len(lines) != 15 {
		t.Errorf("%d of 15 calls in the next second", len(lines))
	}
}

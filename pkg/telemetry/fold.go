package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// foldFor is how long a line stands for its repetitions.
	foldFor = time.Minute
	// foldMost is the most lines that are remembered. Beyond it the oldest is forgotten.
	foldMost = 512
	// sweepEvery is how often expired lines are looked for.
	sweepEvery = 10 * time.Second
)

// foldedLog writes a line once a minute, however often it is logged, and then the number of
// repetitions. Lines are the same if their level, message and attributes are. Durations do not
// count, nor do numbers in errors, such as ports, attempts and times.
type foldedLog struct {
	slog.Handler
	within string // attributes and groups of the handler, as part of the key
	folds  *folds
}

// folds holds the lines of the last minute.
type folds struct {
	mu    sync.Mutex
	lines map[string]*fold
	swept time.Time
}

type fold struct {
	handler slog.Handler
	newest  slog.Record
	began   time.Time
	repeats int // that were not written
}

func newFoldedLog(to slog.Handler) foldedLog {
	return foldedLog{Handler: to, folds: &folds{lines: map[string]*fold{}}}
}

// Handle implements slog.Handler.
func (h foldedLog) Handle(ctx context.Context, record slog.Record) error {
	key := h.key(record)
	h.folds.mu.Lock()
	over := h.folds.sweep(record.Time)
	if f := h.folds.lines[key]; f != nil {
		f.newest = record.Clone()
		f.repeats++
		h.folds.mu.Unlock()
		return tellRepeats(ctx, over)
	}
	over = append(over, h.folds.add(key, &fold{handler: h.Handler, began: record.Time})...)
	h.folds.mu.Unlock()
	if err := tellRepeats(ctx, over); err != nil {
		return err
	}
	return h.Handler.Handle(ctx, record)
}

// sweep forgets the lines whose minute is over, and returns those with repetitions.
func (f *folds) sweep(now time.Time) (over []*fold) {
	if now.Sub(f.swept) < sweepEvery {
		return nil
	}
	f.swept = now
	for key, line := range f.lines {
		if now.Sub(line.began) < foldFor {
			continue
		}
		delete(f.lines, key)
		if line.repeats > 0 {
			over = append(over, line)
		}
	}
	return over
}

// add remembers a line, in place of the oldest one if there are too many.
func (f *folds) add(key string, line *fold) (over []*fold) {
	if len(f.lines) >= foldMost {
		oldest := ""
		for other, one := range f.lines {
			if oldest == "" || one.began.Before(f.lines[oldest].began) {
				oldest = other
			}
		}
		if f.lines[oldest].repeats > 0 {
			over = append(over, f.lines[oldest])
		}
		delete(f.lines, oldest)
	}
	f.lines[key] = line
	return over
}

// tellRepeats writes the folded repetitions, in the words of the newest line.
func tellRepeats(ctx context.Context, over []*fold) error {
	for _, f := range over {
		record := f.newest.Clone()
		record.AddAttrs(slog.Int("repeated", f.repeats))
		if err := f.handler.Handle(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

func (h foldedLog) key(record slog.Record) string {
	var key strings.Builder
	key.WriteString(record.Level.String() + "\n" + record.Message + h.within)
	record.Attrs(func(a slog.Attr) bool {
		writeAttr(&key, a)
		return true
	})
	return key.String()
}

func writeAttr(key *strings.Builder, a slog.Attr) {
	value := a.Value.Resolve()
	key.WriteString("\n" + a.Key + "=")
	switch told, isError := value.Any().(error); {
	case value.Kind() == slog.KindDuration:
	case isError:
		key.WriteString(strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, told.Error()))
	default:
		key.WriteString(value.String())
	}
}

// WithAttrs implements slog.Handler.
func (h foldedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	var within strings.Builder
	within.WriteString(h.within)
	for _, a := range attrs {
		writeAttr(&within, a)
	}
	return foldedLog{Handler: h.Handler.WithAttrs(attrs), within: within.String(), folds: h.folds}
}

// WithGroup implements slog.Handler.
func (h foldedLog) WithGroup(name string) slog.Handler {
	return foldedLog{Handler: h.Handler.WithGroup(name), within: h.within + "\n" + name + "/",
		folds: h.folds}
}

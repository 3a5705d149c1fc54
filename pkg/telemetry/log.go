package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// LogConfig configures a process's log. The zero value writes text from level info on.
type LogConfig struct {
	Format string       // "text" (the default) or "json": one object per line
	Level  slog.Leveler // nil: info
	Node   string       // appears on every line
}

// The formats.
const (
	TextLog = "text"
	JSONLog = "json"
)

// NewLog makes the log of a process. It counts lines. Lines that repeat within a minute are written
// once, and once more with their number. Frequent lines below warnings are sampled. Roles add their
// name (ForRole), lines about a run "job", lines about an API call "correlationId".
func NewLog(to io.Writer, config LogConfig, metrics *Metrics) (*slog.Logger, error) {
	var handler slog.Handler
	options := &slog.HandlerOptions{Level: config.Level}
	switch config.Format {
	case JSONLog:
		handler = slog.NewJSONHandler(to, options)
	case TextLog, "":
		handler = slog.NewTextHandler(to, options)
	default:
		return nil, fmt.Errorf("telemetry: log format %q is neither %s nor %s", config.Format,
			TextLog, JSONLog)
	}
	lines := metrics.Counters("shoal_node_log_lines_total", "Lines logged.", "level")
	counted := countedLog{Handler: newSampledLog(newFoldedLog(handler)),
		lines: map[slog.Level]prometheus.Counter{}}
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn,
		slog.LevelError} {
		counted.lines[level] = lines.WithLabelValues(strings.ToLower(level.String()))
	}
	return slog.New(counted).With("node", config.Node), nil
}

// ForRole returns a process's log for one of its roles.
func ForRole(logger *slog.Logger, role string) *slog.Logger {
	return logger.With("role", role)
}

// countedLog counts lines by level. A level between two of the four counts as the lower one.
type countedLog struct {
	slog.Handler
	lines map[slog.Level]prometheus.Counter
}

// Handle implements slog.Handler.
func (h countedLog) Handle(ctx context.Context, record slog.Record) error {
	level := slog.LevelDebug
	for _, l := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if record.Level >= l {
			level = l
		}
	}
	h.lines[level].Inc()
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h countedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return countedLog{Handler: h.Handler.WithAttrs(attrs), lines: h.lines}
}

// WithGroup implements slog.Handler.
func (h countedLog) WithGroup(name string) slog.Handler {
	return countedLog{Handler: h.Handler.WithGroup(name), lines: h.lines}
}

package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// sampleFirst is how many lines of a message are written per second, at info and below.
	sampleFirst = 20
	// sampleEach is how many further lines one written line stands for.
	sampleEach = 100
	// sampleMost is the most messages that are counted. Lines of other messages are written.
	sampleMost = 256
)

// sampledLog thins out frequent messages. It writes the first lines of a message in each second,
// and then one of many, which says so. Warnings and errors are all written.
type sampledLog struct {
	slog.Handler
	messages *messages
}

// messages counts the lines of this second.
type messages struct {
	mu      sync.RWMutex
	counted map[string]*atomic.Int64 // lines by message
	second  atomic.Int64             // to which the counts belong
}

func newSampledLog(to slog.Handler) sampledLog {
	return sampledLog{Handler: to, messages: &messages{counted: map[string]*atomic.Int64{}}}
}

// Handle implements slog.Handler.
func (h sampledLog) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		return h.Handler.Handle(ctx, record)
	}
	switch n := h.messages.count(record.Message, record.Time); {
	case n <= sampleFirst:
	case n%sampleEach != 0:
		return nil
	default:
		record = record.Clone()
		record.AddAttrs(slog.Int("oneOf", sampleEach))
	}
	return h.Handler.Handle(ctx, record)
}

// count returns which line of its message this is within its second.
func (m *messages) count(message string, at time.Time) int64 {
	if second := at.Unix(); m.second.Swap(second) != second {
		m.mu.Lock()
		clear(m.counted)
		m.mu.Unlock()
	}
	m.mu.RLock()
	count := m.counted[message]
	m.mu.RUnlock()
	if count != nil {
		return count.Add(1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counted[message] == nil {
		if len(m.counted) >= sampleMost {
			return 1
		}
		m.counted[message] = &atomic.Int64{}
	}
	return m.counted[message].Add(1)
}

// WithAttrs implements slog.Handler.
func (h sampledLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sampledLog{Handler: h.Handler.WithAttrs(attrs), messages: h.messages}
}

// WithGroup implements slog.Handler.
func (h sampledLog) WithGroup(name string) slog.Handler {
	return sampledLog{Handler: h.Handler.WithGroup(name), messages: h.messages}
}

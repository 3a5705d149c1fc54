// Package reading owns what becomes of a panic in code that reads what a site sent: it is that page's end, never the
// process's. The page is counted, told in one line of the log, and kept in a directory for a look.
package reading

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/telemetry"
)

// Bounds of what is kept for a look.
const (
	maxKept  = 32       // pages, the newest
	maxBytes = 64 << 20 // of all of them together
	maxPage  = 16 << 20 // of one page; what is behind is cut off
)

// Where kept pages end: the bytes as they were read, and what is known of them.
const (
	pageSuffix  = ".page"
	storySuffix = ".txt"
)

// Config is what a Guard works with.
type Config struct {
	Dir     string             // where pages are kept, made when needed; "": nowhere
	Clock   clock.Clock        // nil: the system's
	Logger  *slog.Logger       // may be nil
	Metrics *telemetry.Metrics // may be nil
}

// Guard runs readers. It is safe for concurrent use.
type Guard struct {
	config Config
	panics prometheus.Counter

	mu     sync.Mutex // guards the directory
	number int        // of the pages that this process has kept
}

// New makes a guard.
func New(config Config) *Guard {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{config: config, panics: config.Metrics.Counters("shoal_fetcher_reader_panics_total",
		"Pages whose reading panicked; their bytes are in the data directory, under unreadable.").WithLabelValues()}
}

// Page is what is read.
type Page struct {
	URL         string
	ContentType string
	Body        []byte
}

// Run calls read, whose panic it turns into a fault with the code unparsable. It guards this goroutine alone: whatever else
// read starts needs a guard of its own.
func (g *Guard) Run(p Page, read func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			g.panics.Inc()
			kept := g.keep(p, fmt.Sprintf("address: %s\ncontent type: %s\npanic: %v\n\n%s", p.URL, p.ContentType, value, debug.Stack()))
			g.config.Logger.Error("fetcher: reading a page panicked", "url", p.URL, "panic", fmt.Sprint(value), "kept", kept)
			err = fault.New(fault.PageUnparsable, "The page cannot be read.")
		}
	}()
	read()
	return nil
}

// keep writes a page and its story, and returns where; "" when that was not possible.
func (g *Guard) keep(p Page, story string) string {
	if g.config.Dir == "" {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.number++
	name := fmt.Sprintf("%s-%04d", g.config.Clock.Now().UTC().Format("20060102T150405.000000"), g.number)
	at := filepath.Join(g.config.Dir, name)
	err := os.MkdirAll(g.config.Dir, 0o700)
	if err == nil {
		err = errors.Join(os.WriteFile(at+pageSuffix, p.Body[:min(len(p.Body), maxPage)], 0o600),
			os.WriteFile(at+storySuffix, []byte(story), 0o600), g.trim())
	}
	if err != nil {
		g.config.Logger.Warn("fetcher: an unreadable page cannot be kept", "error", err)
		return ""
	}
	return at + pageSuffix
}

// trim removes the oldest pages beyond the bounds. It needs mu.
func (g *Guard) trim() error {
	entries, err := os.ReadDir(g.config.Dir) // by name, which is by age
	if err != nil {
		return err
	}
	kept, bytes := 0, int64(0)
	for _, entry := range slices.Backward(entries) {
		name, isPage := strings.CutSuffix(entry.Name(), pageSuffix)
		info, err := entry.Info()
		if !isPage || err != nil {
			continue
		}
		kept, bytes = kept+1, bytes+info.Size()
		if kept <= maxKept && bytes <= maxBytes {
			continue
		}
		at := filepath.Join(g.config.Dir, name)
		if err := errors.Join(os.Remove(at+pageSuffix), os.Remove(at+storySuffix)); err != nil {
			return err
		}
	}
	return nil
}

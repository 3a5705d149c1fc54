// Package reading handles panics in code that reads outside data, such as pages and records. A
// panic ends that piece of work, never the process. It is counted and logged, and the data is kept
// for inspection.
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

// Bounds of what is kept for inspection.
const (
	maxKept  = 32       // pages, the newest
	maxBytes = 64 << 20 // of all of them together
	maxPage  = 16 << 20 // of one page; the rest is cut off
	maxStack = 4 << 10  // of a stack in the log; the kept story has it all
)

// Suffixes of kept pages: the bytes as read, and the story of the panic.
const (
	pageSuffix  = ".page"
	storySuffix = ".txt"
)

// Config configures a Guard.
type Config struct {
	Dir     string             // where pages are kept, created if needed; "": nowhere
	Clock   clock.Clock        // nil: the system's
	Logger  *slog.Logger       // may be nil
	Metrics *telemetry.Metrics // may be nil
}

// Guard runs the readers at one place. It is safe for concurrent use.
type Guard struct {
	shared *shared
	where  string
	panics prometheus.Counter
}

// shared is common to the guards of a process.
type shared struct {
	config Config
	panics *prometheus.CounterVec // by where

	mu     sync.Mutex // guards the directory
	number int        // number of pages that this process has kept
}

// New makes a process's guard for a place, where: a role's name.
func New(where string, config Config) *Guard {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &shared{config: config, panics: config.Metrics.Counters("shoal_reader_panics_total",
		"Pages and records that made their reader panic. Their bytes are in the data directory, "+
			"under unreadable.", "where")}
	return s.guard(where)
}

func (s *shared) guard(where string) *Guard {
	return &Guard{shared: s, where: where, panics: s.panics.WithLabelValues(where)}
}

// For returns the guard for another place in the process. It keeps pages in the same directory,
// under the same bounds.
func (g *Guard) For(where string) *Guard { return g.shared.guard(where) }

// Panic is a caught panic.
type Panic struct {
	Value any
	Stack []byte // of its origin
}

// Catch calls run and returns its panic; nil: there was none. A caller that cannot handle it panics
// with it again.
func Catch(run func()) (caught *Panic) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *Panic: // from another goroutine, with that one's stack
			caught = value
		default:
			caught = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	run()
	return nil
}

// Error implements error, so that the runtime prints the value and its stack if the panic is raised
// again and not caught.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Page is the data to read.
type Page struct {
	URL         string
	ContentType string
	Body        []byte
	Record      func() []byte // makes the body if it is kept; nil: use Body
}

// Run calls read, and turns its panic into a fault with the code unparsable. It guards only this
// goroutine: others that read starts need their own guard.
func (g *Guard) Run(p Page, read func()) error {
	caught := Catch(read)
	if caught == nil {
		return nil
	}
	g.panics.Inc()
	if p.Record != nil {
		p.Body = p.body()
	}
	kept := g.shared.keep(p, fmt.Sprintf("where: %s\naddress: %s\ncontent type: %s\npanic: %s",
		g.where, p.URL, p.ContentType, caught))
	g.shared.config.Logger.Error("reading panicked", "where", g.where, "url", p.URL, "panic",
		fmt.Sprint(caught.Value), "kept", kept,
		"stack", string(caught.Stack[:min(len(caught.Stack), maxStack)]))
	return fault.New(fault.PageUnparsable, "The page cannot be read.")
}

// body makes the body; it is empty if not even encoding works.
func (p Page) body() (body []byte) {
	_ = Catch(func() { body = p.Record() })
	return body
}

// keep writes a page and its story, and returns their path; "" if that failed.
func (s *shared) keep(p Page, story string) string {
	if s.config.Dir == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	name := fmt.Sprintf("%s-%04d", s.config.Clock.Now().UTC().Format("20060102T150405.000000"),
		s.number)
	at := filepath.Join(s.config.Dir, name)
	err := os.MkdirAll(s.config.Dir, 0o700)
	if err == nil {
		err = errors.Join(os.WriteFile(at+pageSuffix, p.Body[:min(len(p.Body), maxPage)], 0o600),
			os.WriteFile(at+storySuffix, []byte(story), 0o600), s.trim())
	}
	if err != nil {
		s.config.Logger.Warn("reading: an unreadable page cannot be kept", "error", err)
		return ""
	}
	return at + pageSuffix
}

// trim removes the oldest pages beyond the bounds. The caller holds mu.
func (s *shared) trim() error {
	entries, err := os.ReadDir(s.config.Dir) // by name, and thus by age
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
		at := filepath.Join(s.config.Dir, name)
		if err := errors.Join(os.Remove(at+pageSuffix), os.Remove(at+storySuffix)); err != nil {
			return err
		}
	}
	return nil
}

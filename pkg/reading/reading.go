// Package reading owns what becomes of a panic in code that reads what came from outside, a page or
// a record. It is the end of that piece of work, never the process's. It is counted, told in the
// log, and its bytes are kept for a look.
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
	maxStack = 4 << 10  // of a stack in the log; the kept story has all of it
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

// Guard runs the readers of one place. It is safe for concurrent use.
type Guard struct {
	shared *shared
	where  string
	panics prometheus.Counter
}

// shared is what the guards of a process have in common.
type shared struct {
	config Config
	panics *prometheus.CounterVec // by where

	mu     sync.Mutex // guards the directory
	number int        // of the pages that this process has kept
}

// New makes a guard of a process, for its place where: a role's name.
func New(where string, config Config) *Guard {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &shared{config: config, panics: config.Metrics.Counters("shoal_reader_panics_total",
		"Pages and records whose reading panicked; their bytes are in the data directory, "+
			"under unreadable.", "where")}
	return s.guard(where)
}

func (s *shared) guard(where string) *Guard {
	return &Guard{shared: s, where: where, panics: s.panics.WithLabelValues(where)}
}

// For is the guard of another place of the process: it keeps in the same directory, under the same
// bounds.
func (g *Guard) For(where string) *Guard { return g.shared.guard(where) }

// Panic is one that was caught.
type Panic struct {
	Value any
	Stack []byte // of where it came from
}

// Catch calls run and returns its panic; nil: there was none. Who has no use for what it catches
// panics with it again.
func Catch(run func()) (caught *Panic) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *Panic: // from another goroutine, with the stack of that one
			caught = value
		default:
			caught = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	run()
	return nil
}

// Error implements error: so the runtime prints the value and its stack when nobody catches the
// panic a second time.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Page is what is read.
type Page struct {
	URL         string
	ContentType string
	Body        []byte
	Record      func() []byte // makes the body when it is kept; nil: Body is it
}

// Run calls read, whose panic it turns into a fault with the code unparsable. It guards this
// goroutine alone: whatever else read starts needs a guard of its own.
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

// body makes the body; of what cannot even be encoded there is none.
func (p Page) body() (body []byte) {
	_ = Catch(func() { body = p.Record() })
	return body
}

// keep writes a page and its story, and returns where; "" when that was not possible.
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

// trim removes the oldest pages beyond the bounds. It needs mu.
func (s *shared) trim() error {
	entries, err := os.ReadDir(s.config.Dir) // by name, which is by age
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

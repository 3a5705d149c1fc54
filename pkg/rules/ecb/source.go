package ecb

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
)

// RecentURL is where the bank publishes the last three months. A re-extracted page uses the rates
// of its own day, and bodies are kept for 30 days.
const RecentURL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist-90d.xml"

// Times of refreshing.
const (
	again   = time.Hour        // after a failure
	timeout = 10 * time.Second // of one attempt
)

// sharedKey is the key of the document in the shared cache.
const sharedKey = "ecb recent"

// Config configures a Source. Zero values mean the defaults.
type Config struct {
	URL    string       // default: RecentURL
	Clock  clock.Clock  // default: the system's
	Logger *slog.Logger // default: none
	// Shared keeps the newest table for all processes; nil: each process asks on its own.
	Shared cache.Values
}

// Rates provides the newest table: a Source, or one fixed table.
type Rates interface {
	Table(ctx context.Context) *Table
}

// Table returns the table itself.
func (t *Table) Table(context.Context) *Table { return t }

// Source provides the newest table available. It requests nothing before a table is needed. It is
// safe for concurrent use.
type Source struct {
	client *egress.Client
	config Config

	mu    sync.Mutex
	table *Table
	due   time.Time // of the next attempt
	busy  bool      // an attempt is under way
}

// NewSource begins with the bundled table.
func NewSource(client *egress.Client, config Config) *Source {
	if config.URL == "" {
		config.URL = RecentURL
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{client: client, config: config, table: Bundled()}
}

// Table returns the newest known table. Once a day one caller waits while it is read, up to 10
// seconds. The others use the previous one, and so does everybody if the bank cannot be reached.
func (s *Source) Table(ctx context.Context) *Table {
	now := s.config.Clock.Now()
	s.mu.Lock()
	table := s.table
	if s.busy || now.Before(s.due) {
		s.mu.Unlock()
		return table
	}
	s.busy = true
	s.mu.Unlock()

	fresh, err := s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	switch {
	case ctx.Err() != nil: // the caller's end says nothing about the bank
	case err != nil:
		s.due = now.Add(again)
		s.config.Logger.Warn("ecb: reference rates could not be read; older ones are used", "date",
			table.Date(), "error", err)
	default:
		s.due = nextDay(now)
		if fresh.Date() >= s.table.Date() {
			s.table = fresh
		}
	}
	return s.table
}

// read asks the shared cache, then the bank.
func (s *Source) read(ctx context.Context) (*Table, error) {
	if s.config.Shared != nil {
		if document, found := s.config.Shared.Get(ctx, sharedKey); found {
			if table, err := Parse(document); err == nil {
				return table, nil
			}
		}
	}
	response, err := s.client.Do(ctx,
		&egress.Request{URL: s.config.URL, Deadline: time.Now().Add(timeout), MaxBody: maxBytes})
	if err != nil {
		return nil, fmt.Errorf("ecb: ask for rates: %w", err)
	}
	defer response.Release()
	if response.Status != 200 {
		return nil, fmt.Errorf("ecb: ask for rates: status %d", response.Status)
	}
	table, err := Parse(response.Body)
	if err == nil && s.config.Shared != nil {
		now := s.config.Clock.Now()
		s.config.Shared.Set(ctx, sharedKey, append([]byte(nil), response.Body...),
			nextDay(now).Sub(now))
	}
	return table, err
}

// nextDay returns when the next day's rates become valid. Until then any table is current.
func nextDay(now time.Time) time.Time {
	return now.UTC().Add(-counts).Truncate(24 * time.Hour).Add(24*time.Hour + counts)
}

// Package unit owns the work on one task: a chain of units, each a page with what it takes to get
// its rows. It says where the unit goes next, by which tier, and what its requests are made of. It
// also says what follows from an answer, and what is put to a language model. A chain is worked on
// by one caller at a time, so nothing here is guarded. What chains share is internal/memo's.
// Whether and when it may ask is its Lease's to say (internal/hold).
package unit

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/keeping"
	"shoal.dev/shoal/fetcher/internal/memo"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/turns"
)

// Lease is the hold on a chain's task, during a turn.
type Lease interface {
	// IsFresh says whether a request may start.
	IsFresh() bool
	// MayHop says whether one may start now where a redirect leads to, whose robots.txt asks for a
	// delay between two starts; 0: for none.
	MayHop(host string, pace frontier.Pace, delay time.Duration) bool
	// DelayHost lets at least a time pass between two starts at a host.
	DelayHost(host string, delay time.Duration)
	// BeginReading says that a page of so many bytes has come. The hosts asked for it are not kept
	// waiting while it is read, until EndReading.
	BeginReading(bytes int64, answer frontier.Answer)
	EndReading(bytes int64)
	// KeepBytes counts bytes that are kept until the unit's page, or until ForgetBytes.
	KeepBytes(bytes int64)
	ForgetBytes()
}

// View is what is read of one state of the control plane.
type View interface {
	Cluster() *client.Cluster
	Job(id ids.ID) *client.Job
	Entry(id ids.ID) *client.Entry
	Recipe(scraper ids.ID, revision uint32) *client.Recipe
}

// Web is the world outside: one try at a page, and what robots.txt says. It is safe for concurrent
// use.
type Web interface {
	// Tiers are the ways of fetching that there are.
	Tiers() model.TierSet
	// Fetch makes one try. Its error is a *web.Failure, web.ErrBusy, or the error of BeforeHop or
	// of ctx as it is.
	Fetch(ctx context.Context, req web.Request) (*web.Page, error)
	// KnowsRules says that CheckRules of a canonical address would answer without a request.
	KnowsRules(url string) bool
	// CheckRules is nil when robots.txt allows a canonical address, with the delay that it asks for
	// between two starts. It is asked for a caller, as in web.Request. Its error is a *web.Failure,
	// or ctx's.
	CheckRules(ctx context.Context, caller, url string) (delay time.Duration, err error)
	// Leave says that nothing is to be asked of an authority for now: what is kept open to it may
	// be closed.
	Leave(authority string)
}

// Model is a language model. Ask gives the JSON of an answer to a customer's question; its errors
// have page codes.
type Model interface {
	Ask(ctx context.Context, customer, system, user string, schema json.RawMessage) ([]byte, error)
}

// Config is what Units work with. All but Model, Keeper, Metrics and
// Tracer have to be given.
type Config struct {
	// View is this node's copy of the state.
	View func() View
	// Fresh holds everything that was applied anywhere before the call.
	Fresh func(ctx context.Context) (View, error)
	Web   Web
	IDs   ids.Source // safe for concurrent use

	Pace    frontier.Pace // of a host, unless a scraper asks for another
	MaxPace frontier.Pace // the most that a scraper may ask for

	Model     Model // answers the prompts of extractions; nil: nobody does
	Questions int   // to the model at once

	Keeper *keeping.Keeper // of bodies; nil: none are kept

	Rates       ecb.Rates     // for currency rules
	Extractions int           // at once
	Timeout     time.Duration // of one try at a page, redirects included

	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	Tracer  *telemetry.Tracer
	Reader  *reading.Guard // runs what reads pages
	// Reading is called as a page is read, for tests that panic there.
	Reading func(p extract.Page)
	// Point is called with the name of each step's end, for tests that end the process there.
	Point func(name string)
}

// MaxDiscoveries bounds the discoveries under way at once (specification 2.3).
const MaxDiscoveries = 3

// Units is what the chains of a process share.
type Units struct {
	config      Config
	recipes     *memo.Recipes[recipe]
	tokens      *memo.Tokens
	hosts       *memo.Hosts
	extracting  *turns.Places // one for each extraction
	asking      *turns.Line   // one for each question to the model
	discovering *turns.Line   // one for each discovery
	metrics     *metrics
	counts      counters
}

// New makes Units that have not begun anything.
func New(config Config) *Units {
	return &Units{
		config: config,
		recipes: memo.NewRecipes(memo.MaxRecipes, func(r model.Recipe) (*recipe, int) {
			compiled := config.compile(r, compileRecipe)
			return compiled, compiled.size
		}),
		tokens:      memo.NewTokens(config.Clock),
		hosts:       memo.NewHosts(memo.MaxHosts),
		extracting:  turns.New(config.Extractions, config.Clock),
		asking:      turns.NewLine(config.Questions, 4*questionWait),
		discovering: turns.NewLine(MaxDiscoveries, 4*discoveryWait),
		metrics:     newMetrics(config.Metrics),
	}
}

// Tally is what was done since the start.
type Tally struct {
	Pages     uint64 // pages passed on, whatever their outcome
	Delivered uint64
	Errored   uint64
	Cancelled uint64
	Retries   uint64 // tries after the first of a page
	Bytes     uint64 // of bodies, off the wire
	Turns     int64  // under way
}

type counters struct {
	pages, delivered, errored, cancelled, retries, bytes atomic.Uint64
	turns                                                atomic.Int64
}

// Tally is safe to call at any time.
func (u *Units) Tally() Tally {
	c := &u.counts
	return Tally{Pages: c.pages.Load(), Delivered: c.delivered.Load(),
		Errored: c.errored.Load(), Cancelled: c.cancelled.Load(), Retries: c.retries.Load(),
		Bytes: c.bytes.Load(), Turns: c.turns.Load()}
}

// countPage counts a page that is passed on.
func (u *Units) countPage(p *model.Page) {
	u.counts.pages.Add(1)
	u.metrics.countPage(p)
	switch p.Outcome {
	case model.Delivered:
		u.counts.delivered.Add(1)
	case model.Errored:
		u.counts.errored.Add(1)
	case model.Cancelled:
		u.counts.cancelled.Add(1)
	}
}

// PagesPassed counts the pages passed on since the start.
func (u *Units) PagesPassed() uint64 { return u.counts.pages.Load() }

// paceFor is what a scraper gets of a host: the default unless it asks for another, and never more
// than the most. Scrapers of before may ask for less than the least, for which no host is
// remembered long enough.
func (c *Config) paceFor(asked frontier.Pace) frontier.Pace {
	pace := c.Pace
	if asked.Rate > 0 {
		pace.Rate = atMost(max(asked.Rate, model.MinRequestsPerSecond), c.MaxPace.Rate)
	}
	if asked.Connections > 0 {
		pace.Connections = atMost(asked.Connections, c.MaxPace.Connections)
	}
	return pace
}

func atMost[N int | float64](asked, most N) N {
	if most > 0 {
		return min(asked, most)
	}
	return asked
}

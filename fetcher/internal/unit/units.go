// Package unit owns the work on one task: a chain of units, each a page with the requests for its
// rows. It decides where the unit goes next, by which tier and with which request. It also decides
// what follows from a response, and what to ask a language model. A chain has one caller at a time,
// so nothing here is locked. internal/memo has what chains share. The Lease says whether and when a
// request may start (internal/hold).
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

// Lease is the hold's side of a chain's task during a turn.
type Lease interface {
	// IsFresh says whether a request may start.
	IsFresh() bool
	// MayHop says whether a request may start now at a redirect's host, and counts it if so. delay
	// is the Crawl-delay of the host's robots.txt; 0: none.
	MayHop(host string, pace frontier.Pace, delay time.Duration) bool
	// DelayHost sets the least time between two starts at a host.
	DelayHost(host string, delay time.Duration)
	// BeginReading reports a page of this many bytes, and frees its hosts while it is read, until
	// EndReading.
	BeginReading(bytes int64, answer frontier.Answer)
	EndReading(bytes int64)
	// KeepBytes counts bytes that are kept until the unit's page or ForgetBytes.
	KeepBytes(bytes int64)
	ForgetBytes()
}

// View is the part of the control plane's state that is read here.
type View interface {
	Cluster() *client.Cluster
	Job(id ids.ID) *client.Job
	Entry(id ids.ID) *client.Entry
	Recipe(scraper ids.ID, revision uint32) *client.Recipe
}

// Web makes one try at a page, and checks robots.txt. It is safe for concurrent use.
type Web interface {
	// Tiers returns the available tiers.
	Tiers() model.TierSet
	// Fetch makes one try. Its error is a *web.Failure, web.ErrBusy, or the unchanged error of
	// BeforeHop or ctx.
	Fetch(ctx context.Context, req web.Request) (*web.Page, error)
	// KnowsRules says whether CheckRules of a canonical address would answer without a request.
	KnowsRules(url string) bool
	// CheckRules returns nil if robots.txt allows a canonical address, and the delay that it asks
	// for between two starts. caller is as in web.Request. Its error is a *web.Failure or ctx's.
	CheckRules(ctx context.Context, caller, url string) (delay time.Duration, err error)
	// Leave says that nobody needs an authority for now, so that its idle connections may be
	// closed.
	Leave(authority string)
}

// Model is a language model. Ask returns the JSON of an answer to a customer's question; its errors
// have page codes.
type Model interface {
	Ask(ctx context.Context, customer, system, user string, schema json.RawMessage) ([]byte, error)
}

// Config configures Units. All fields but Model, Keeper, Metrics and Tracer are required.
type Config struct {
	// View returns this node's copy of the state.
	View func() View
	// Fresh returns a view that holds everything applied anywhere before the call.
	Fresh func(ctx context.Context) (View, error)
	Web   Web
	IDs   ids.Source // safe for concurrent use

	Pace    frontier.Pace // of a host, unless a scraper asks for another
	MaxPace frontier.Pace // the most that a scraper may ask for

	Model     Model // answers the prompts of extractions; nil: no model
	Questions int   // concurrent, to the model

	Keeper *keeping.Keeper // keeps bodies; nil: none are kept

	Rates       ecb.Rates     // for currency rules
	Extractions int           // concurrent
	Timeout     time.Duration // of one try at a page, redirects included

	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	Tracer  *telemetry.Tracer
	Reader  *reading.Guard // guards the reading of pages
	// Reading is called when a page is read, for tests that panic there.
	Reading func(p extract.Page)
	// Point is called at kill points, for crash tests.
	Point func(name string)
}

// MaxDiscoveries bounds the concurrent discoveries (specification 2.3).
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

// New makes the Units of a process.
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

// Tally says what was done since the start.
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

// Tally returns the present tally. It is safe to call at any time.
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

// PagesPassed returns the number of pages passed on since the start.
func (u *Units) PagesPassed() uint64 { return u.counts.pages.Load() }

// paceFor returns a scraper's pace at a host: the default unless it asks for another, within
// MaxPace. Old scrapers may ask for less than the minimum, for which hosts are not remembered long
// enough.
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

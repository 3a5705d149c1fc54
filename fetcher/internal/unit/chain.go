package unit

import (
	"slices"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// Chain is a task being worked on: a start address and the pages that follow from it, one at a
// time. Whoever has its turn has it alone.
type Chain struct {
	units *Units
	task  *model.Task
	made  *model.Page // encoded last

	left     uint32   // pages that the dispatch may still fetch
	seen     []uint64 // content hashes, as in model.Continuation
	known    []uint64 // row hashes, as in model.Continuation
	rendered bool     // as in model.Continuation
	visited  []uint64 // hashes of the addresses of this dispatch

	unit  model.Unit
	url   string // the unit's address, as listed or as the pagination made it
	fetch fetchState
	// charge is the run's at the request under way, for pages of the start address's domain. By
	// tier plain a unit is charged as the run's endpoint is, if it has one.
	charge model.PageCharge
	// scraper is the one that values for requests are kept for, at the request under way.
	scraper ids.ID
	// keep says whose the bodies are that the request under way brings; no Days: none is kept. read
	// are those of the page at hand that are to be kept with it.
	keep bodies.Pack
	read []bodies.Page
}

// fetchState is the work on one page.
type fetchState struct {
	at       string        // canonical: the address to ask next, where redirects have led
	as       *curl.Request // of a curl scraper: the request that a redirect led to; nil before any
	hops     int
	permit   bool // the start that robots.txt needed has been taken
	began    time.Time
	spent    time.Duration // of the try under way
	tries    []model.Try
	failures int // of this tier
	// Of a curl scraper: what has to be read first, if anything, and the values that the try under
	// way was made with. Also whether they have been renewed for this page.
	discovery *discovery
	values    map[string]string
	renewed   bool
	tier      int        // place in the task's tiers
	by        model.Tier // what brought the unit's own page, once it is there
	busy      int        // times in a row that the tier could take no more
	wire      int64
	hash      []byte // SHA-256 of the newest body of the unit's own page, nil without one
	why       string // in words, why the newest try brought no row; "" where its code says it all

	until time.Time      // the unit's time is over, zero: it has no limit
	pages []extract.Page // of the unit, read before the one at hand
	asked string         // canonical address of the page at hand, "" for the unit's own

	prompt *extract.Prompt // to the language model, not answered yet
}

// BeginChain begins a task: what it asks first, "" where it cannot be begun, and at which pace.
func (u *Units) BeginChain(task *model.Task) (c *Chain, host string, pace frontier.Pace) {
	c = &Chain{units: u, task: task, left: task.Budget, unit: model.Unit{Seq: task.Seq},
		url: task.URL}
	if from := task.From; from != nil {
		c.unit.Page, c.url = from.Page, from.URL
		c.seen, c.known, c.rendered = slices.Clone(from.Seen), slices.Clone(from.KnownRows),
			from.Rendered
	}
	canonical, err := address.Canonical(c.url)
	if err != nil {
		return c, "", pace
	}
	c.fetch.at = canonical
	pace = u.config.Pace
	if r := u.recipes.Find(u.config.View(), task.Scraper, task.Revision); r != nil {
		pace = u.config.paceFor(paceOf(&r.Source)) // nobody waits here until it is compiled
	}
	return c, address.AuthorityOf(canonical), pace
}

// Cancel makes the record that answers the task of an ended run.
func (c *Chain) Cancel() []byte { return c.encode(c.cancelledPage()) }

// Refuse makes the record that answers a task whose address is none.
func (c *Chain) Refuse() []byte { return c.encode(c.erroredPage(fault.PageInvalidURL)) }

// encode makes the record of a page that no turn has made.
func (c *Chain) encode(p *model.Page) []byte {
	c.made = p
	return stream.EncodePage(*p)
}

// CountPage counts the page that was encoded last.
func (c *Chain) CountPage() { c.units.countPage(c.made) }

// HasBegun says that a request of the page at hand was made.
func (c *Chain) HasBegun() bool { return len(c.fetch.tries) > 0 || c.fetch.hops > 0 }

// HasPermit says that robots.txt was read for the page at hand, whose own request comes next: over
// the same connection, where it comes soon enough.
func (c *Chain) HasPermit() bool { return c.fetch.permit && !c.HasBegun() }

// Until is when the unit's time is over; zero: it has no limit.
func (c *Chain) Until() time.Time { return c.fetch.until }

// Host is where the chain's next request goes; "": to no host.
func (c *Chain) Host() string {
	if c.fetch.prompt != nil {
		return ""
	}
	if d := c.fetch.discovery; d != nil {
		return address.AuthorityOf(d.at)
	}
	return address.AuthorityOf(c.fetch.at)
}

// target is the address that the chain asks next, and what it is asked for with; nil is a GET.
func (t *Turn) target() (at string, as *curl.Request) {
	if t.recipe.curl == nil || t.fetch.as != nil || t.fetch.asked != "" {
		return t.fetch.at, t.fetch.as
	}
	at, as = t.fetch.at, t.recipe.curl.For(t.recipe.curl.URL, t.fetch.at)
	if value, given := paramOf(at, t.recipe.bodyParam); t.recipe.bodyParam != "" && given {
		at, as = withoutParam(at, t.recipe.bodyParam), as.WithBodyParam(t.recipe.bodyParam, value)
	}
	return at, as
}

// page is a page of the chain's unit with everything but its outcome.
func (c *Chain) page() *model.Page {
	now := c.units.config.Clock.Now()
	p := &model.Page{Job: c.task.Job, Unit: c.unit, Fetch: c.units.config.IDs.New(), URL: c.url,
		Tries: c.fetch.tries, Bytes: clamp(c.fetch.wire), At: now.UnixMicro(),
		BodyHash: c.fetch.hash}
	if !c.fetch.began.IsZero() {
		p.Millis = clamp(now.Sub(c.fetch.began).Milliseconds())
	}
	if len(p.Tries) > 0 {
		p.Status = p.Tries[len(p.Tries)-1].Status
	}
	return p
}

// erroredPage is the last page of a chain that failed.
func (c *Chain) erroredPage(code fault.Code) *model.Page {
	p := c.page()
	p.Outcome, p.Code, p.Last, p.Detail = model.Errored, string(code), true, c.fetch.why
	return p
}

// cancelledPage answers the task of an ended run. It is no page of it.
func (c *Chain) cancelledPage() *model.Page {
	return &model.Page{Job: c.task.Job, Unit: c.unit, Outcome: model.Cancelled, URL: c.url,
		Last: true}
}

// address is the canonical address of the unit.
func (c *Chain) address() string {
	canonical, err := address.Canonical(c.url)
	if err != nil {
		return c.url // never begun
	}
	return canonical
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }

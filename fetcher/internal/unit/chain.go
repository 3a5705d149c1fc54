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

// Chain is a task in work: a start address and the pages that follow from it, one at a time. Only
// the holder of its turn uses it.
type Chain struct {
	units *Units
	task  *model.Task
	made  *model.Page // page encoded last

	left     uint32   // pages that this dispatch may still fetch
	seen     []uint64 // content hashes, as in model.Continuation
	known    []uint64 // row hashes, as in model.Continuation
	rendered bool     // as in model.Continuation
	visited  []uint64 // hashes of the addresses in this dispatch

	unit  model.Unit
	url   string // the unit's address, as listed or made by the pagination
	fetch fetchState
	// charge is the run's charge for pages of the start address's domain, set by each request. By
	// tier plain a unit is charged as the run's endpoint, if it has one.
	charge model.PageCharge
	// scraper owns the discovered values for requests, set by each request.
	scraper ids.ID
	// keep says for whom the bodies of the current request are kept; Days 0: nobody. read are the
	// bodies to keep with the current page.
	keep bodies.Pack
	read []bodies.Page
}

// fetchState is the state of the work on one page.
type fetchState struct {
	at       string        // canonical: the address to fetch next, after redirects
	as       *curl.Request // curl scrapers: the request after a redirect; nil before any
	hops     int
	permit   bool // the start that robots.txt needed was taken
	began    time.Time
	spent    time.Duration // on the current try
	tries    []model.Try
	failures int // by this tier
	// For curl scrapers: what must be read first, the values of the current try, and whether they
	// were already renewed for this page.
	discovery *discovery
	values    map[string]string
	renewed   bool
	tier      int        // index in the usable tiers
	by        model.Tier // the tier that brought the unit's own page
	busy      int        // times in a row that the tier was full
	wire      int64
	hash      []byte // SHA-256 of the unit's own page, newest body; nil: none
	why       string // why the newest try had no row, in words; "": the code says it

	until time.Time      // end of the unit's time; zero: no limit
	pages []extract.Page // of the unit, read before the current one
	asked string         // canonical address of the current page; "": the unit's own

	prompt *extract.Prompt // for the language model, not answered yet
}

// BeginChain begins a task. host is asked first, "" if the task cannot be begun.
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
		pace = u.config.paceFor(paceOf(&r.Source)) // does not wait for the recipe to be compiled
	}
	return c, address.AuthorityOf(canonical), pace
}

// Cancel returns the record that answers a task of an ended run.
func (c *Chain) Cancel() []byte { return c.encode(c.cancelledPage()) }

// Refuse returns the record that answers a task with an invalid address.
func (c *Chain) Refuse() []byte { return c.encode(c.erroredPage(fault.PageInvalidURL)) }

// encode encodes a page that no turn has made.
func (c *Chain) encode(p *model.Page) []byte {
	c.made = p
	return stream.EncodePage(*p)
}

// CountPage counts the page that was encoded last.
func (c *Chain) CountPage() { c.units.countPage(c.made) }

// HasBegun says whether a request of the current page was made.
func (c *Chain) HasBegun() bool { return len(c.fetch.tries) > 0 || c.fetch.hops > 0 }

// HasPermit says whether only robots.txt was read for the current page. Its own request comes next,
// over the same connection if it comes soon.
func (c *Chain) HasPermit() bool { return c.fetch.permit && !c.HasBegun() }

// Until returns the end of the unit's time; zero: no limit.
func (c *Chain) Until() time.Time { return c.fetch.until }

// Host returns the host of the chain's next request; "": none.
func (c *Chain) Host() string {
	if c.fetch.prompt != nil {
		return ""
	}
	if d := c.fetch.discovery; d != nil {
		return address.AuthorityOf(d.at)
	}
	return address.AuthorityOf(c.fetch.at)
}

// target returns the address and request that the chain makes next; a nil request is a GET.
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

// page returns a page of the chain's unit without an outcome.
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

// erroredPage returns the last page of a chain that failed.
func (c *Chain) erroredPage(code fault.Code) *model.Page {
	p := c.page()
	p.Outcome, p.Code, p.Last, p.Detail = model.Errored, string(code), true, c.fetch.why
	return p
}

// cancelledPage answers a task of an ended run. It does not count as a page of the run.
func (c *Chain) cancelledPage() *model.Page {
	return &model.Page{Job: c.task.Job, Unit: c.unit, Outcome: model.Cancelled, URL: c.url,
		Last: true}
}

// address returns the canonical address of the unit.
func (c *Chain) address() string {
	canonical, err := address.Canonical(c.url)
	if err != nil {
		return c.url // the chain was never begun
	}
	return canonical
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }

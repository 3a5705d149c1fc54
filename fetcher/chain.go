package fetcher

import (
	"context"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// chain is a task being worked on: a start address and the pages that follow from it, one at a
// time. Whoever works on it has it alone; done, begun and down are guarded by the fetcher's mu.
type chain struct {
	item  frontier.Item
	shard *shard
	task  *model.Task
	done  bool // its final page is in the outbox
	begun bool // while it waits: a request of its page has been made
	down  bool // its shard is being released, and its page is another fetcher's to begin
	// invalid is why the task cannot be begun.
	invalid *fault.Code
	kept    int64 // bytes of pages that wait for another one of their unit; guarded by mu
	// abandon ends the request under way of a trial, whose caller may go away; nil: there is none.
	// It is guarded by mu.
	abandon context.CancelCauseFunc

	left     uint32   // pages that the dispatch may still fetch
	seen     []uint64 // content hashes, as in model.Continuation
	known    []uint64 // row hashes, as in model.Continuation
	rendered bool     // as in model.Continuation
	visited  []uint64 // hashes of the addresses of this dispatch

	unit  model.Unit
	url   string // the unit's address, as listed or as the pagination made it
	fetch fetchState
	// charge is the run's at the request under way. By tier plain a unit is charged as the run's
	// endpoint is, if it has one.
	charge model.Charge
	// scraper is the one that values for requests are kept for, at the request under way.
	scraper ids.ID
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
	// Of a curl scraper: what has to be read first, if anything; the values that the try under way
	// was made with; and whether they have been renewed for this page.
	discovery *discovery
	values    map[string]string
	renewed   bool
	tier      int        // place in the task's tiers
	by        model.Tier // what brought the unit's own page, once it is there
	busy      int        // times in a row that the tier could take no more
	wire      int64

	until time.Time      // the unit's time is over, zero: it has no limit
	pages []extract.Page // of the unit, read before the one at hand
	asked string         // canonical address of the page at hand, "" for the unit's own

	prompt *extract.Prompt // to the language model, not answered yet
}

// begin starts the unit's time.
func (c *chain) begin(now time.Time, r *recipe, job *client.Job) {
	c.fetch.began = now
	_, within := r.extractor.Limits()
	if job.Trial() && within == 0 {
		within = model.TrialTime
	}
	if within > 0 {
		c.fetch.until = now.Add(within)
	}
}

// newChain begins a task. Its errors show when it is taken in.
func (f *Fetcher) newChain(view View, s *shard, task *model.Task) *chain {
	c := &chain{shard: s, task: task, left: task.Budget, unit: model.Unit{Seq: task.Seq},
		url: task.URL}
	if from := task.From; from != nil {
		c.unit.Page, c.url = from.Page, from.URL
		c.seen, c.known, c.rendered = slices.Clone(from.Seen), slices.Clone(from.KnownRows),
			from.Rendered
	}
	c.item = frontier.Item{Customer: task.Customer, Job: task.Job, Value: c}
	canonical, err := address.Canonical(c.url)
	if err != nil {
		code := fault.PageInvalidURL
		c.invalid = &code
		return c
	}
	c.fetch.at = canonical
	var asked Pace
	if r := f.recipes.get(view, task.Scraper, task.Revision); r != nil {
		asked = r.pace
	}
	c.item.Host, c.item.Pace = address.AuthorityOf(canonical), f.config.paceFor(asked)
	return c
}

// request is the address that the chain asks next, and what it is asked for with; nil is a GET.
func (c *chain) request(r *recipe) (at string, as *curl.Request) {
	if r.curl == nil || c.fetch.as != nil || c.fetch.asked != "" {
		return c.fetch.at, c.fetch.as
	}
	at, as = c.fetch.at, r.curl.For(r.curl.URL, c.fetch.at)
	if value, given := paramOf(at, r.bodyParam); r.bodyParam != "" && given {
		at, as = withoutParam(at, r.bodyParam), as.WithBodyParam(r.bodyParam, value)
	}
	return at, as
}

// pageOf is a page of the chain's unit with everything but its outcome.
func (c *chain) pageOf(f *Fetcher) model.Page {
	now := f.config.Clock.Now()
	p := model.Page{Job: c.task.Job, Unit: c.unit, Fetch: f.config.IDs.New(), URL: c.url,
		Tries: c.fetch.tries,
		Bytes: clamp(c.fetch.wire), At: now.UnixMicro()}
	if !c.fetch.began.IsZero() {
		p.Millis = clamp(now.Sub(c.fetch.began).Milliseconds())
	}
	if len(p.Tries) > 0 {
		p.Status = p.Tries[len(p.Tries)-1].Status
	}
	return p
}

// errored is the last page of a chain that failed.
func (c *chain) errored(f *Fetcher, code fault.Code) model.Page {
	p := c.pageOf(f)
	p.Outcome, p.Code, p.Last = model.Errored, string(code), true
	return p
}

// cancelledPage answers the task of an ended run. It is no page of it.
func cancelledPage(c *chain) model.Page {
	return model.Page{Job: c.task.Job, Unit: c.unit, Outcome: model.Cancelled, URL: c.url,
		Last: true}
}

// content is what a page's answer held.
type content struct {
	final  string // canonical
	rows   [][]byte
	link   string // to the next page
	cursor string // of the next page
	body   uint64 // hash of the body, of a paginated scraper

	priceRow string // "" when nothing is charged
	quantity uint32
}

// follow makes the chain's next page of a page that was read, and advances the chain when it goes
// on.
func (c *chain) follow(f *Fetcher, r *recipe, secret uint64, got content) model.Page {
	p := c.pageOf(f)
	if (c.fetch.hops > 0 || len(c.fetch.pages) > 0) && got.final != c.address() {
		p.Final = got.final
	}
	if r.pager != nil {
		p.URLHash = hashURL(c.address(), secret)
	}
	rows := hashRows(r, secret, got.rows)
	switch {
	case len(got.rows) == 0 && c.unit.Page == 0:
		p.Outcome, p.Code, p.Last = model.Errored, string(fault.PageNoRows), true
		return p
	case c.unit.Page > 0 && (len(got.rows) == 0 || slices.Contains(c.seen, got.body) ||
		c.knows(rows)):
		p.Outcome, p.Last = model.Empty, true
		return p
	}
	p.Outcome, p.Rows, p.PriceRow, p.Quantity = model.Delivered, got.rows, got.priceRow,
		got.quantity
	c.visited = append(c.visited, p.URLHash)
	next := c.nextURL(r, got, secret)
	if next == "" {
		p.Last = true
		return p
	}
	c.seen = newest(append(c.seen, got.body), model.MaxSeen)
	c.known = newest(append(c.known, rows...), model.MaxKnownRows)
	c.rendered = c.fetch.by.Renders()
	p.Next = &model.Continuation{Page: c.unit.Page + 1, URL: next, Seen: slices.Clone(c.seen),
		KnownRows: slices.Clone(c.known),
		Rendered:  c.rendered}
	c.left--
	p.Spent = c.left == 0
	c.unit.Page, c.url, c.fetch = p.Next.Page, next, fetchState{at: next}
	return p
}

// nextURL is where the chain goes on, canonical; "" where it ends.
func (c *chain) nextURL(r *recipe, got content, secret uint64) string {
	if r.pager == nil || c.unit.Page+1 >= r.maxPages {
		return ""
	}
	start, err := address.Canonical(c.task.URL)
	if err != nil {
		return ""
	}
	next, err := address.Canonical(r.pager.next(start, c.unit.Page+1, got.link, got.cursor))
	if err != nil || slices.Contains(c.visited, hashURL(next, secret)) {
		return ""
	}
	return next
}

// knows says that all rows are those of the chain's last pages.
func (c *chain) knows(rows []uint64) bool {
	return !slices.ContainsFunc(rows,
		func(row uint64) bool { return !slices.Contains(c.known, row) })
}

// hashRows is nil for a scraper without pagination.
func hashRows(r *recipe, secret uint64, rows [][]byte) []uint64 {
	if r.pager == nil {
		return nil
	}
	hashes := make([]uint64, len(rows))
	for i, row := range rows {
		hashes[i] = xxh3.HashSeed(row, secret)
	}
	return hashes
}

// hashURL is the seeded hash of a canonical address, never 0.
func hashURL(address string, secret uint64) uint64 {
	return max(xxh3.HashStringSeed(address, secret), 1)
}

// address is the canonical address of the unit.
func (c *chain) address() string {
	canonical, err := address.Canonical(c.url)
	if err != nil {
		return c.url // never begun
	}
	return canonical
}

// newest keeps the last elements, in memory of their own.
func newest(list []uint64, most int) []uint64 {
	return slices.Clone(list[max(0, len(list)-most):])
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }

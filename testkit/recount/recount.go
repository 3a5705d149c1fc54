// Package recount proves a run of the product exact, page by page, without asking the product what
// is right. The synthetic web's truth says what a run must find, and the web's log says what it
// requested. The product's report is compared with both. It owns the comparison; its caller gathers
// what the product reports.
package recount

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/synthweb"
)

// Job is a job record, as the API shows it.
type Job struct {
	ID            string `json:"id"`
	ScraperID     string `json:"scraperId"`
	GroupID       string `json:"groupId"`
	State         string `json:"state"`
	SuccessLinks  int64  `json:"successLinks"`
	ErrorLinks    int64  `json:"errorLinks"`
	TotalLinks    int64  `json:"totalLinks"`
	ItemsQuantity int64  `json:"itemsQuantity"`
	TotalRequests int64  `json:"totalRequests"`
	Duration      *int64 `json:"duration"`
	StopReason    string `json:"stopReason"`
	ErrorMessage  string `json:"errorMessage"`
}

// LinkError is an errored link, as the API shows it.
type LinkError struct {
	URL    string `json:"url"`
	Status *int   `json:"status"`
	Error  string `json:"error"`
}

// Wallet is a wallet, as the API shows it.
type Wallet struct {
	BalanceMicros         int64 `json:"balanceMicros"`
	FreeRequestsRemaining int64 `json:"freeRequestsRemaining"`
}

// Transaction is an entry of the ledger, as the API shows it.
type Transaction struct {
	ID                 string `json:"id"`
	Type               string `json:"type"`
	Status             string `json:"status"`
	AmountMicros       int64  `json:"amountMicros"`
	FreeRequestsDelta  int64  `json:"freeRequestsDelta"`
	BalanceAfterMicros *int64 `json:"balanceAfterMicros"`
	Source             string `json:"source"`
	JobID              string `json:"jobId"`
	Lines              []Line `json:"lines"`
}

// Line is the part of a transaction at one price.
type Line struct {
	Label           string `json:"label"`
	Pages           int64  `json:"pages"`
	FreePages       int64  `json:"freePages"`
	UnitPriceMicros int64  `json:"unitPriceMicros"`
	AmountMicros    int64  `json:"amountMicros"`
}

// Run is what was requested, and what may have happened to it.
type Run struct {
	Web  *synthweb.Web
	URLs []string // each once, in the order of the list

	Pagination model.Pagination
	// Truth returns what an address must give if the web itself cannot say: pages of Config.Texts,
	// rows of other fields.
	Truth func(address string) (synthweb.Truth, error)
	// Ignore names fields that depend on the time, not on the page.
	Ignore []string

	Price int64 // micros for a page by tier plain
	// Charge is how pages are charged; the zero value: once, at the price of tier plain.
	Charge model.Charge
	// Uncharged says, by its rows, that a delivered page costs nothing; nil: every page costs.
	Uncharged func(rows []synthweb.Row) bool
	Free      int64 // the wallet's free requests before the run

	// Partial: the run ended before its list did. What it has must still be exact.
	Partial bool
	// Deaths are the times at which the process was seen dead, in order. A page whose record
	// survived is never fetched again.
	Deaths []time.Time
	// Lossy: records of the log were dropped or repeated, so pages may be fetched again without a
	// death.
	Lossy bool
	// Lost are the addresses of lost fetchers: another fetcher may request what they had requested.
	Lost []netip.Addr
	// Shared: other runs use the same web, so its log does not show what this run requested.
	Shared bool

	Attempts int // tries at a page that fails, at most; default 3
	// between requests to a host, as in synthweb.HostCount; 0: not checked
	MinGap         time.Duration
	MaxConnections int // to a host; 0: not checked
	// MaxRefetched bounds the pages fetched again after each death, or for all of Lost; 0: not
	// checked.
	MaxRefetched int
}

// Reported is what the product reports of the run once it has ended.
type Reported struct {
	Job    Job
	Rows   []map[string]any // in the order of the cursor read
	Errors []LinkError
	// Entry is the run's ledger entry.
	Entry Transaction
	// Records are the page records; nil if the caller could not read them.
	Records []rowstore.Record
}

// Summary is what the recount counted.
type Summary struct {
	Links, Delivered, Errored, Rows int
	Uncharged                       int   // of Delivered
	Charged                         int64 // micros
	Requests                        int   // of pages, robots.txt aside
	Refetched                       int   // pages fetched again without need
}

// String is the summary in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%d links: %d pages delivered, %d errored, %d rows, %d micros, %d "+
		"requests, %d fetched again",
		s.Links, s.Delivered, s.Errored, s.Rows, s.Charged, s.Requests, s.Refetched)
}

// maxProblems is how many differences an error lists.
const maxProblems = 25

// Error lists the differences between the truth and a report.
type Error struct {
	Problems []string // at most maxProblems
	Count    int
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("the recount differs in %d places:\n  %s", e.Count,
		strings.Join(e.Problems, "\n  "))
	if e.Count > len(e.Problems) {
		text += "\n  …"
	}
	return text
}

// Check compares a report with the truth. Its error is an *Error, unless the web's own log is
// incomplete or the list is not from that web.
func Check(run Run, reported Reported) (Summary, error) {
	if run.Attempts == 0 {
		run.Attempts = 3
	}
	if run.Truth == nil {
		run.Truth = run.Web.Truth
	}
	c := &check{run: run, got: reported}
	if err := c.expect(); err != nil {
		return Summary{}, err
	}
	c.rows()
	c.errors()
	c.outcomes()
	c.records()
	c.counters()
	c.money()
	if !run.Shared {
		if err := c.requests(); err != nil {
			return Summary{}, err
		}
	}
	return c.sum, c.err()
}

// check is one recount in progress.
type check struct {
	run Run
	got Reported

	chains []chain
	pages  map[string]*page // by normalized address
	order  []*page          // of all chains, in their order

	sum      Summary
	problems Error
}

// chain is the pages that begin at one address of the list.
type chain struct {
	pages []*page
	// extra is the page past the chain's end that is requested although it is not part of the
	// chain; "" for none.
	extra string
}

// page is what is known of one page.
type page struct {
	truth synthweb.Page
	class synthweb.Class
	seq   int
	last  bool // of its chain

	rows   []map[string]any
	errors []LinkError
}

// charge returns the price row of a page's record and how often it counts: "" and 0 if it costs
// nothing.
func (c *check) charge(p *page) (row string, quantity uint32) {
	if p.truth.Outcome != model.Delivered || c.run.Uncharged != nil &&
		c.run.Uncharged(p.truth.Rows) {
		return "", 0
	}
	return c.run.Charge.Of(model.Plain)
}

func (c *check) problem(format string, args ...any) {
	c.problems.Count++
	if len(c.problems.Problems) < maxProblems {
		c.problems.Problems = append(c.problems.Problems, fmt.Sprintf(format, args...))
	}
}

// expect lists the pages that the truth has.
func (c *check) expect() error {
	c.pages = make(map[string]*page, len(c.run.URLs))
	c.chains = make([]chain, 0, len(c.run.URLs))
	for seq, address := range c.run.URLs {
		truth, err := c.run.Truth(address)
		if err != nil {
			return fmt.Errorf("recount: %w", err)
		}
		made := c.chainOf(truth)
		for _, p := range made.pages {
			p.seq = seq
			key := form(p.truth.URL)
			if c.pages[key] != nil {
				return fmt.Errorf("recount: %s is in the list twice", p.truth.URL)
			}
			c.pages[key] = p
			c.order = append(c.order, p)
		}
		c.chains = append(c.chains, made)
	}
	c.sum.Links = len(c.chains)
	return nil
}

// chainOf cuts a truth to what the pagination follows (decision 14). With counted pages, a missing
// page marks the chain's end: it is requested, but not part of the chain.
func (c *check) chainOf(truth synthweb.Truth) chain {
	pages, most := truth.Pages, c.run.Pagination.MaxPages()
	pages = pages[:min(len(pages), most)]
	var made chain
	switch end := pages[len(pages)-1]; {
	case len(pages) > 1 && c.run.Pagination.Counts() &&
		(end.Status == http.StatusNotFound || end.Status == http.StatusGone):
		pages, made.extra = pages[:len(pages)-1], form(end.URL)
	case c.run.Pagination.Type == model.URLPageParam && len(pages) < most &&
		end.Outcome == model.Delivered:
		made.extra = fmt.Sprintf("%s?page=%d", form(truth.URL), len(pages)+1)
	}
	for i := range pages {
		made.pages = append(made.pages,
			&page{truth: pages[i], class: truth.Class, last: i == len(pages)-1})
	}
	return made
}

// form returns an address as the synthetic web's log counts it: a first page is the same with and
// without its number.
func form(address string) string { return strings.TrimSuffix(address, "?page=1") }

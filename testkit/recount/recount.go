// Package recount proves a run of the product exact, page by page, without asking the product what
// is right. What a run must find is the synthetic web's truth, and what it asked for is in that
// web's own log. What it reports is compared with both. It owns the comparison; who calls it
// gathers what the product reports.
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

// Line is what a transaction says of one price.
type Line struct {
	Label           string `json:"label"`
	Pages           int64  `json:"pages"`
	FreePages       int64  `json:"freePages"`
	UnitPriceMicros int64  `json:"unitPriceMicros"`
	AmountMicros    int64  `json:"amountMicros"`
}

// Run is what was asked for, and what may have happened to it.
type Run struct {
	Web  *synthweb.Web
	URLs []string // each once, in the order of the list

	Pagination model.Pagination
	// Truth is what an address must come to, where that is not what the web itself says: pages of
	// Config.Texts, rows of other fields.
	Truth func(address string) (synthweb.Truth, error)
	// Ignore names fields that follow from the moment, not from the page.
	Ignore []string

	Price int64 // micros of the price row that pages by tier plain cost
	// Charge is how pages are charged: the zero value once by the row of tier plain.
	Charge model.Charge
	// Uncharged says of a delivered page, by its rows, that it costs nothing all the same; nil:
	// none does.
	Uncharged func(rows []synthweb.Row) bool
	Free      int64 // free requests that the wallet had before

	// Partial: the run was ended before its list was. What it has must be exact all the same.
	Partial bool
	// Deaths are when the process was seen dead, in order. What a page record survived is never
	// fetched again.
	Deaths []time.Time
	// Lossy: records of the log were dropped or repeated, so that pages may be fetched again
	// without a death.
	Lossy bool
	// Lost are the addresses of fetchers that were lost: what one of them asked for may be asked
	// for again, by another.
	Lost []netip.Addr
	// Shared: other runs ask the same web, so that its log does not tell what this one asked for.
	Shared bool

	Attempts int // tries at a page that fails, at most; default 3
	// between requests to a host, as synthweb.HostCount says; 0: not checked
	MinGap         time.Duration
	MaxConnections int // to a host; 0: not checked
	// MaxRefetched bounds the pages fetched again after each death, or for all of Lost; 0: not
	// checked.
	MaxRefetched int
}

// Reported is what the product says of the run once it has ended.
type Reported struct {
	Job    Job
	Rows   []map[string]any // in the order of the cursor read
	Errors []LinkError
	// Entry is the run's ledger entry.
	Entry Transaction
	// Records are the page records; nil when the caller could not read them.
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

// maxProblems is how many differences an error tells.
const maxProblems = 25

// Error is every difference between the truth and a report.
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

// Check compares. Its error is an *Error, unless the web's own log is not whole or the list is not
// of that web.
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

// check is one recount under way.
type check struct {
	run Run
	got Reported

	chains []chain
	pages  map[string]*page // by address in one form
	order  []*page          // of all chains, in their order

	sum      Summary
	problems Error
}

// chain is what begins at one address of the list.
type chain struct {
	pages []*page
	// extra is the page past the chain's end that is asked for although it is no part of the chain;
	// "" for none.
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

// charge is the price row of a page's record and how often it counts: "" and 0 for one that costs
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

// expect lays out the pages that the truth has.
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

// chainOf cuts a truth to what the pagination follows of it (decision 14). Where pages are counted,
// one behind the first that does not exist is what stands behind the last one.
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

// form is an address as the synthetic web's log counts it: a first page is the same with and
// without its number.
func form(address string) string { return strings.TrimSuffix(address, "?page=1") }

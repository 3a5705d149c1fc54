package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"shoal.dev/shoal/pkg/model"
)

// Identity is the owner of the credential.
type Identity struct {
	CustomerRef string `json:"customerRef"`
	Scope       string `json:"scope"`
}

// Group is the part of a GroupDTO that the command line reads and writes. If DataTable is empty,
// the server names it.
type Group struct {
	ID                  string `json:"id,omitempty"`
	Name                string `json:"name"`
	DataTable           string `json:"dataTable,omitempty"`
	StartType           string `json:"startType"`
	ShouldMatchProducts bool   `json:"shouldMatchProducts"`
}

// Scraper is the part of a ScraperDTO that the command line reads and writes.
type Scraper struct {
	ID       string `json:"id,omitempty"`
	GroupRef string `json:"groupRef"`
	model.Scraper
}

// Job is a job record. Times are ISO 8601; Duration is in milliseconds, null while the run goes on.
type Job struct {
	ID            string `json:"id"`
	ScraperID     string `json:"scraperId"`
	GroupID       string `json:"groupId"`
	State         string `json:"state"`
	Started       string `json:"started"`
	Finished      string `json:"finished"`
	SuccessLinks  int64  `json:"successLinks"`
	ErrorLinks    int64  `json:"errorLinks"`
	TotalLinks    int64  `json:"totalLinks"`
	ItemsQuantity int64  `json:"itemsQuantity"`
	TotalRequests int64  `json:"totalRequests"`
	Duration      *int64 `json:"duration"`
	ChargedMicros *int64 `json:"chargedMicros"` // nil: it is another customer's
	ErrorMessage  string `json:"errorMessage"`
	StopReason    string `json:"stopReason"`

	JSON json.RawMessage `json:"-"` // the record as received
}

// UnmarshalJSON also keeps the record as received.
func (j *Job) UnmarshalJSON(data []byte) error {
	type plain Job
	j.JSON = bytes.Clone(data)
	return json.Unmarshal(data, (*plain)(j))
}

// Final says whether the run is over.
func (j *Job) Final() bool { return model.JobState(j.State).Final() }

// LinkError is a link that ended with an error; Status is the site's HTTP status, null without one.
// Place is where reading continues after it.
type LinkError struct {
	URL    string `json:"url"`
	Status *int   `json:"status"`
	Error  string `json:"error"`
	Code   string `json:"code"`
	Place  string `json:"place,omitempty"`

	JSON json.RawMessage `json:"-"` // the error as received
}

// UnmarshalJSON also keeps the error as received.
func (l *LinkError) UnmarshalJSON(data []byte) error {
	type plain LinkError
	l.JSON = bytes.Clone(data)
	return json.Unmarshal(data, (*plain)(l))
}

// Wallet is the customer's money, in micros.
type Wallet struct {
	BalanceMicros         int64  `json:"balanceMicros"`
	Currency              string `json:"currency"`
	FreeRequestsRemaining int64  `json:"freeRequestsRemaining"`
	LowBalance            bool   `json:"lowBalance"`
}

// Transaction is a line of the wallet's ledger, in micros. BalanceAfterMicros is null while it is
// OPEN.
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
	CreatedAt          string `json:"createdAt"`
}

// Line is the part of a transaction at one price.
type Line struct {
	Label           string `json:"label"`
	Pages           int64  `json:"pages"`
	FreePages       int64  `json:"freePages"`
	UnbilledPages   int64  `json:"unbilledPages"`
	UnitPriceMicros int64  `json:"unitPriceMicros"`
	AmountMicros    int64  `json:"amountMicros"`
}

// Launch is the answer to a list run.
type Launch struct {
	JobID             string `json:"jobId"`
	ScraperID         string `json:"scraperId"`
	Tag               string `json:"tag,omitempty"`
	LinksQueued       int64  `json:"linksQueued"`
	DuplicatesDropped int64  `json:"duplicatesDropped"`
	Status            string `json:"status"`
}

// Status describes the server for people.
type Status struct {
	Node     string           `json:"node"`
	Roles    []string         `json:"roles"`
	Leader   string           `json:"leader"`
	Term     uint64           `json:"term"`
	Applied  uint64           `json:"applied"`
	Commands uint64           `json:"commands"`
	Shards   int              `json:"shards"`
	Owned    int              `json:"owned"`
	OpenJobs int              `json:"openJobs"`
	Out      int64            `json:"out"`
	Lag      map[string]int64 `json:"lag"`
	// Pages and PageErrors count what was settled since Node started: all delivered or errored
	// pages, and the errored ones.
	Pages      uint64 `json:"pages"`
	PageErrors uint64 `json:"pageErrors"`
}

// Node is a node of the cluster as the leader sees it. LeaseAgeMillis is null if it was never
// heard, GoneMillis while it is there, Lag if it did not report.
type Node struct {
	Name           string   `json:"name"`
	Roles          []string `json:"roles"`
	Version        string   `json:"version"`
	Capacity       uint32   `json:"capacity"`
	Tiers          []string `json:"tiers"`
	Boot           string   `json:"boot"`
	Draining       bool     `json:"draining"`
	State          string   `json:"state"`
	Shards         int      `json:"shards"`
	Moving         int      `json:"moving"`
	Open           int      `json:"open"`
	PagesPerSecond float64  `json:"pagesPerSecond"`
	LeaseAgeMillis *int64   `json:"leaseAgeMillis"`
	GoneMillis     *int64   `json:"goneMillis"`
	Suffrage       string   `json:"suffrage"`
	Lag            *uint64  `json:"lag"`
}

// Recount compares a run's ledger entry with what its page records add up to, in micros.
type Recount struct {
	JobID         string `json:"jobId"`
	LedgerMicros  int64  `json:"ledgerMicros"`
	RecountMicros int64  `json:"recountMicros"`
	Equal         bool   `json:"equal"`
	Unreadable    bool   `json:"unreadable,omitempty"`
	Undone        bool   `json:"undone,omitempty"`
	RecountItems  uint64 `json:"recountItems"`
}

// Reconciliation is the comparison of the ledger with the payment provider, and with itself.
type Reconciliation struct {
	ProviderAsked   bool               `json:"providerAsked"`
	Days            int                `json:"days"`
	Payments        int64              `json:"payments"`
	Reversals       int64              `json:"reversals"`
	Wallets         int64              `json:"wallets"`
	Entries         int64              `json:"entries"`
	Differences     []LedgerDifference `json:"differences"`
	MoreDifferences int64              `json:"moreDifferences"`
}

// LedgerDifference is a difference from the expected state, in micros.
type LedgerDifference struct {
	Kind        string `json:"kind"`
	CustomerRef string `json:"customerRef"`
	Subject     string `json:"subject"`
	HereMicros  int64  `json:"hereMicros"`
	WantMicros  int64  `json:"wantMicros"`
}

// Answer is an answer of the API: the part that the command line reads, and all of it as received.
type Answer[T any] struct {
	Value  T
	JSON   json.RawMessage
	Reason string // why a page had no rows, "" if the server does not say
}

// tell takes what the server says in headers.
func (a *Answer[T]) tell(header http.Header) {
	// The header is a Go string literal without its quotes.
	if reason, err := strconv.Unquote(`"` + header.Get("Shoal-Reason") + `"`); err == nil {
		a.Reason = reason
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Answer[T]) UnmarshalJSON(data []byte) error {
	a.JSON = bytes.Clone(data)
	return json.Unmarshal(data, &a.Value)
}

// MarshalJSON writes the answer as received.
func (a Answer[T]) MarshalJSON() ([]byte, error) { return a.JSON, nil }

// Page is envelope A, and the part of envelope B that is the same.
type Page[T any] struct {
	Content       []T   `json:"content"`
	TotalElements int64 `json:"totalElements"`
	TotalPages    int   `json:"totalPages"`
}

// cursorPage is the cursor envelope.
type cursorPage[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor"`
	HasMore    bool   `json:"hasMore"`
}

// maxCursorPage is the largest page of a cursor read.
const maxCursorPage = 1000

// Ready says whether the server serves calls.
func (c *Client) Ready(ctx context.Context) error { return c.get(ctx, "/readyz", nil, nil) }

// Whoami reads the credential's identity.
func (c *Client) Whoami(ctx context.Context) (Identity, error) {
	var identity Identity
	err := c.get(ctx, "/api/key/whoami", nil, &identity)
	return identity, err
}

// Groups lists the customer's groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	var groups []Group
	err := c.get(ctx, "/api/scraper/group/list", nil, &groups)
	return groups, err
}

// PutGroup creates or updates a group.
func (c *Client) PutGroup(ctx context.Context, group Group) (Group, error) {
	var saved Group
	err := c.send(ctx, http.MethodPut, "/api/scraper/group", group, &saved)
	return saved, err
}

// RunList streams a list of addresses to the server and launches it. open returns the list from its
// beginning for each try; length is its length in bytes, -1 when unknown.
func (c *Client) RunList(ctx context.Context, query url.Values, open func() io.Reader,
	length int64, contentType string) (Answer[Launch], error) {
	var launch Answer[Launch]
	run := request{method: http.MethodPost, path: "/api/scraper/url-list-run", query: query,
		length: length, contentType: contentType, header: newKey(), again: true}
	err := c.patiently(ctx, run, func(try request) error {
		try.body = io.NopCloser(open())
		answer, err := c.do(ctx, try)
		if err != nil {
			return err
		}
		return decode(answer, &launch)
	})
	return launch, err
}

// JobFilter narrows the history of jobs; empty fields match everything.
type JobFilter struct {
	GroupID   string `json:"groupId,omitempty"`
	ScraperID string `json:"scraperId,omitempty"`
	State     string `json:"state,omitempty"`
}

// Jobs reads a page of the history, newest first.
func (c *Client) Jobs(ctx context.Context, filter JobFilter, number, size int) (Answer[Page[Job]],
	error) {
	var history Answer[Page[Job]]
	query := url.Values{"page": {strconv.Itoa(number)}, "size": {strconv.Itoa(size)}}
	if filter != (JobFilter{}) {
		encoded, err := json.Marshal(filter)
		if err != nil {
			return history, fmt.Errorf("encode filter: %w", err)
		}
		query.Set("filters", string(encoded))
	}
	err := c.get(ctx, "/api/scraper/load-history", query, &history)
	return history, err
}

// Job finds a job record by its id, nil if there is none. It also finds runs whose scraper is gone,
// however old.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	query := url.Values{"limit": {strconv.Itoa(maxCursorPage)}}
	for {
		var page cursorPage[Job]
		err := c.within(10*time.Minute).get(ctx, "/api/scraper/load-history/all", query, &page)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].ID == id {
				return &page.Items[i], nil
			}
		}
		if !page.HasMore {
			return nil, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// errorsPage is how many errors are read per call.
const errorsPage = 10_000

// JobErrors reads the links of a job that ended with an error, page after page. It ends with the
// first error of reading.
func (c *Client) JobErrors(ctx context.Context, job *Job) iter.Seq2[LinkError, error] {
	path := "/api/scraper/load-history/group/" + url.PathEscape(job.GroupID) + "/job/" +
		url.PathEscape(job.ID) + "/errors"
	return func(yield func(LinkError, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(errorsPage)}}
		for {
			var failed []LinkError
			if err := c.within(2*time.Minute).get(ctx, path, query, &failed); err != nil {
				yield(LinkError{}, err)
				return
			}
			for _, link := range failed {
				if !yield(link, nil) {
					return
				}
			}
			if len(failed) < errorsPage || failed[len(failed)-1].Place == "" {
				return
			}
			query.Set("after", failed[len(failed)-1].Place)
		}
	}
}

// GroupRows counts the rows of a group.
func (c *Client) GroupRows(ctx context.Context, group string) (int64, error) {
	var rows Page[json.RawMessage]
	err := c.within(5*time.Minute).get(ctx, "/api/scraper/data/group/"+url.PathEscape(group),
		url.Values{"size": {"1"}}, &rows)
	return rows.TotalElements, err
}

// Wallet reads the wallet.
func (c *Client) Wallet(ctx context.Context) (Answer[Wallet], error) {
	var wallet Answer[Wallet]
	err := c.get(ctx, "/api/wallet", nil, &wallet)
	return wallet, err
}

// Transactions reads the newest transactions, at most 100.
func (c *Client) Transactions(ctx context.Context, size int) (Answer[Page[Transaction]], error) {
	var list Answer[Page[Transaction]]
	err := c.get(ctx, "/api/wallet/transactions", url.Values{"size": {strconv.Itoa(size)}}, &list)
	return list, err
}

// TransactionOf returns the transaction of a job, nil if it is not among the newest hundred.
func (c *Client) TransactionOf(ctx context.Context, job string) (*Transaction, error) {
	newest, err := c.Transactions(ctx, 100)
	if err != nil {
		return nil, err
	}
	list := newest.Value.Content
	for i := range list {
		if list[i].JobID == job {
			return &list[i], nil
		}
	}
	return nil, nil
}

// AdjustWallet changes a customer's balance; the credential must be an administrator's.
func (c *Client) AdjustWallet(ctx context.Context, customer string, micros int64,
	note string) (Answer[Transaction], error) {
	body := struct {
		AmountMicros int64  `json:"amountMicros"`
		Note         string `json:"note"`
	}{micros, note}
	var entry Answer[Transaction]
	err := c.send(ctx, http.MethodPost,
		"/api/admin/customers/"+url.PathEscape(customer)+"/wallet/adjustments", body, &entry)
	return entry, err
}

// Status reads the server's state; the credential must be an administrator's.
func (c *Client) Status(ctx context.Context) (Answer[Status], error) {
	var status Answer[Status]
	err := c.get(ctx, "/api/admin/status", nil, &status)
	return status, err
}

// Nodes lists the nodes of the cluster; the credential must be an administrator's.
func (c *Client) Nodes(ctx context.Context) (Answer[[]Node], error) {
	var nodes Answer[[]Node]
	err := c.get(ctx, "/api/admin/nodes", nil, &nodes)
	return nodes, err
}

// Drain tells a node to drain, or cancels that; the credential must be an administrator's.
func (c *Client) Drain(ctx context.Context, node string, drain bool) error {
	method := http.MethodPut
	if !drain {
		method = http.MethodDelete
	}
	return c.ask(ctx, method, "/api/admin/nodes/"+url.PathEscape(node)+"/drain", nil, nil)
}

// RemoveNode removes a node that is gone from the cluster; the credential must be an
// administrator's.
func (c *Client) RemoveNode(ctx context.Context, node string) error {
	return c.ask(ctx, http.MethodDelete, "/api/admin/nodes/"+url.PathEscape(node), nil, nil)
}

// Reconcile compares the ledger with the payment provider and with itself, over the last days; the
// credential must be an administrator's.
func (c *Client) Reconcile(ctx context.Context, days int) (Answer[Reconciliation], error) {
	var answer Answer[Reconciliation]
	err := c.within(10*time.Minute).ask(ctx, http.MethodPost,
		fmt.Sprintf("/api/admin/billing/reconcile?days=%d", days), nil, &answer)
	return answer, err
}

// Recount compares every run's ledger entry with its page records; the credential must be an
// administrator's.
func (c *Client) Recount(ctx context.Context) (Answer[[]Recount], error) {
	var runs Answer[[]Recount]
	err := c.within(10*time.Minute).ask(ctx, http.MethodPost, "/api/admin/billing/recount", nil,
		&runs)
	return runs, err
}

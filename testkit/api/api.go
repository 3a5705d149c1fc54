// Package api calls the product's API like its customers and operators, for tests and the bench. It
// knows the API only by the specification, and shares no code with the server. It owns the calls
// and the runs that they make; testkit/recount decides what is right.
package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
)

// Client calls the API with one credential.
type Client struct {
	Server, Token string
	HTTP          *http.Client // nil: the default one
	key           string       // Idempotency-Key of the next call; "": a new one for each
}

// Again returns a client whose calls all use the same idempotency key.
func (c Client) Again(key string) Client {
	c.key = key
	return c
}

// Problem is an error answer.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Code, Message string
	} `json:"errors"`
}

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s %v", p.Status, p.Code, p.Detail, p.Errors)
}

// CodeOf returns the code of an error answer, "" for anything else.
func CodeOf(err error) string {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// NewKey returns a new idempotency key.
func NewKey() string { return ids.Random{Now: time.Now}.New().String() }

// Do sends one request; body is JSON-encoded unless it is a reader.
func (c Client) Do(ctx context.Context, method, path string, query url.Values, kind string,
	body any) (
	*http.Response, error,
) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader = b
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader, kind = bytes.NewReader(encoded), "application/json"
	}
	address := c.Server + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	if method != http.MethodGet {
		request.Header.Set("Idempotency-Key", cmp.Or(c.key, NewKey()))
	}
	answer, err := cmp.Or(c.HTTP, http.DefaultClient).Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	p := &Problem{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, p) != nil {
		p.Detail = string(text)
	}
	p.Status = answer.StatusCode
	return nil, p
}

// Call makes a request and decodes its JSON answer into out, unless that is nil. A refusal is a
// Problem.
func (c Client) Call(ctx context.Context, method, path string, query url.Values, body,
	out any) error {
	answer, err := c.Do(ctx, method, path, query, "", body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Whoami returns the reference of the key's customer.
func (c Client) Whoami(ctx context.Context) (ref string, err error) {
	var out struct{ CustomerRef string }
	err = c.Call(ctx, "GET", "/api/key/whoami", nil, nil, &out)
	return out.CustomerRef, err
}

// PutGroup makes a group without a schedule.
func (c Client) PutGroup(ctx context.Context, name string) (id string, err error) {
	var out struct{ ID string }
	err = c.Call(ctx, "PUT", "/api/scraper/group", nil,
		map[string]any{"name": name, "dataTable": "rows",
			"startType": "MANUAL", "shouldMatchProducts": false}, &out)
	return out.ID, err
}

// Scraper is the body of a new scraper.
type Scraper struct {
	GroupRef string `json:"groupRef"`
	model.Scraper
}

// PutScraper saves a scraper, a new one if it has no id.
func (c Client) PutScraper(ctx context.Context, s Scraper) (id string, err error) {
	var out struct{ ID string }
	err = c.Call(ctx, "PUT", "/api/scraper", nil, s, &out)
	return out.ID, err
}

// Launched is the answer to a launch.
type Launched struct {
	JobID, ScraperID, Status       string
	Tag, Message                   string
	LinksQueued, DuplicatesDropped int
}

// RunScraper launches a scraper over its own addresses.
func (c Client) RunScraper(ctx context.Context, scraper string) (Launched, error) {
	var out Launched
	err := c.Call(ctx, "POST", "/api/scraper/"+scraper+"/run", nil, nil, &out)
	return out, err
}

// RunList streams a list of addresses; query has the call's other members.
func (c Client) RunList(ctx context.Context, query url.Values, list io.Reader) (Launched, error) {
	var out Launched
	answer, err := c.Do(ctx, "POST", "/api/scraper/url-list-run", query, "text/uri-list", list)
	if err != nil {
		return out, fmt.Errorf("list run: %w", err)
	}
	defer answer.Body.Close()
	return out, json.NewDecoder(answer.Body).Decode(&out)
}

// Tagged launches a list run of an endpoint.
func (c Client) Tagged(ctx context.Context, group, name, tag string, urls []string) (Launched,
	error) {
	var out Launched
	err := c.Call(ctx, "POST", "/api/scraper/url-list-run", nil,
		map[string]any{"groupId": group, "name": name, "endpointTag": tag, "urls": urls}, &out)
	return out, err
}

// Contacts launches a list run of website contacts.
func (c Client) Contacts(ctx context.Context, group, name string, urls []string) (Launched, error) {
	return c.Tagged(ctx, group, name, model.WebsiteContacts, urls)
}

// RunAgain launches a list scraper again, over all of its addresses or those never charged.
func (c Client) RunAgain(ctx context.Context, scraper string, all bool) (Launched, error) {
	var out Launched
	err := c.Call(ctx, "POST", "/api/scraper/url-list-run", nil,
		map[string]any{"scraperId": scraper, "force": all, "rerun": !all}, &out)
	return out, err
}

// MintKey makes an API key and returns a client that uses it.
func (c Client) MintKey(ctx context.Context, name, scope string) (Client, error) {
	var out struct{ Key string }
	err := c.Call(ctx, "PUT", "/api/key/generate", url.Values{"name": {name}, "scope": {scope}},
		nil, &out)
	minted := c
	minted.Token = out.Key
	return minted, err
}

// StopRun stops the scraper's open run and waits as the service does, up to 10 s.
func (c Client) StopRun(ctx context.Context, scraper string) error {
	return c.Call(ctx, "POST", "/api/scraper/"+scraper+"/stop", nil, nil, nil)
}

// Jobs reads the records of a scraper's runs, newest first; of all runs when scraper is "".
func (c Client) Jobs(ctx context.Context, scraper string) ([]recount.Job, error) {
	query := url.Values{"size": {"200"}}
	if scraper != "" {
		query.Set("filters", fmt.Sprintf(`{"scraperId":%q}`, scraper))
	}
	var out struct{ Content []recount.Job }
	err := c.Call(ctx, "GET", "/api/scraper/load-history", query, nil, &out)
	return out.Content, err
}

// Job returns the record of a run. It fails if that is not among the newest 200 of its scraper.
func (c Client) Job(ctx context.Context, run Launched) (recount.Job, error) {
	jobs, err := c.Jobs(ctx, run.ScraperID)
	if err != nil {
		return recount.Job{}, err
	}
	for _, job := range jobs {
		if job.ID == run.JobID {
			return job, nil
		}
	}
	return recount.Job{}, fmt.Errorf("job %s is not in the history", run.JobID)
}

// LinkErrors lists the links of a run that failed.
func (c Client) LinkErrors(ctx context.Context, job recount.Job) ([]recount.LinkError, error) {
	var out []recount.LinkError
	err := c.Call(ctx, "GET", "/api/scraper/load-history/group/"+job.GroupID+"/job/"+job.ID+
		"/errors", nil, nil, &out)
	return out, err
}

// Rows reads the rows of a job with the cursor read.
func (c Client) Rows(ctx context.Context, job string) ([]map[string]any, error) {
	var rows []map[string]any
	query := url.Values{"jobId": {job}, "limit": {"1000"}}
	for {
		var out struct {
			Items      []map[string]any
			NextCursor string
			HasMore    bool
		}
		if err := c.Call(ctx, "GET", "/api/scraper/data", query, nil, &out); err != nil {
			return nil, err
		}
		rows = append(rows, out.Items...)
		if !out.HasMore {
			return rows, nil
		}
		query.Set("cursor", out.NextCursor)
	}
}

// Wallet reads balance and free requests.
func (c Client) Wallet(ctx context.Context) (recount.Wallet, error) {
	var out recount.Wallet
	err := c.Call(ctx, "GET", "/api/wallet", nil, nil, &out)
	return out, err
}

// Ledger reads all transactions, newest first.
func (c Client) Ledger(ctx context.Context) ([]recount.Transaction, error) {
	var ledger []recount.Transaction
	for page := 0; ; page++ {
		var out struct {
			Content    []recount.Transaction
			TotalPages int
		}
		query := url.Values{"page": {strconv.Itoa(page)}, "size": {"100"}}
		if err := c.Call(ctx, "GET", "/api/wallet/transactions", query, nil, &out); err != nil {
			return nil, err
		}
		ledger = append(ledger, out.Content...)
		if page+1 >= out.TotalPages {
			return ledger, nil
		}
	}
}

// Adjust changes a customer's balance; the credential must be an administrator's.
func (c Client) Adjust(ctx context.Context, customer string, micros int64) error {
	return c.Call(ctx, "POST", "/api/admin/customers/"+customer+"/wallet/adjustments", nil,
		map[string]any{"amountMicros": micros, "note": "for a test"}, nil)
}

// Status is the server's report about itself.
type Status struct {
	Commands, Applied uint64
	OpenJobs, Out     int
}

// Status asks for the service's status; the key must be an administrator's.
func (c Client) Status(ctx context.Context) (Status, error) {
	var out Status
	err := c.Call(ctx, "GET", "/api/admin/status", nil, nil, &out)
	return out, err
}

// RecountOfProduct asks the product for its own recount, and returns how many runs differ. It
// leaves out runs that a restore undid.
func (c Client) RecountOfProduct(ctx context.Context) (runs, differ int, err error) {
	var out []struct{ Equal, Undone bool }
	err = c.Call(ctx, "POST", "/api/admin/billing/recount", nil, nil, &out)
	for _, run := range out {
		if run.Undone {
			continue
		}
		runs++
		if !run.Equal {
			differ++
		}
	}
	return runs, differ, err
}

// Node is a node as an operator sees it.
type Node struct {
	Name, State, Version string
	Shards, Moving, Open int
}

// Nodes lists the nodes of the cluster; the credential must be an administrator's.
func (c Client) Nodes(ctx context.Context) (list []Node, err error) {
	err = c.Call(ctx, "GET", "/api/admin/nodes", nil, nil, &list)
	return list, err
}

// Drain tells a node to drain, or cancels that.
func (c Client) Drain(ctx context.Context, name string, drain bool) error {
	method := "PUT"
	if !drain {
		method = "DELETE"
	}
	return c.Call(ctx, method, "/api/admin/nodes/"+name+"/drain", nil, nil, nil)
}

// Progress is a message of the job stream.
type Progress struct {
	State                        string
	ItemsQuantity, TotalRequests int64
}

// Follow reads a job's stream until it ends, or seen returns that it is enough; it returns the last
// message.
func (c Client) Follow(ctx context.Context, job string, seen func(Progress) bool) (Progress,
	error) {
	var last Progress
	answer, err := c.Do(ctx, "GET", "/api/scraper-job-status/"+job+"/stream", nil, "", nil)
	if err != nil {
		return last, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(data), &last); err != nil {
			return last, err
		}
		if seen != nil && seen(last) {
			return last, nil
		}
		if last.State != "RUNNING" {
			return last, nil
		}
	}
	return last, fmt.Errorf("the stream of job %s broke off: %w", job,
		errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// Finished waits until a run is closed: its state is final and its ledger entry is sealed.
func (c Client) Finished(ctx context.Context, run Launched) (recount.Job, recount.Transaction,
	error) {
	for {
		job, err := c.Job(ctx, run)
		if err != nil {
			return job, recount.Transaction{}, err
		}
		if !model.JobState(job.State).Final() {
			if _, err := c.Follow(ctx, run.JobID, nil); err != nil {
				return job, recount.Transaction{}, err
			}
			continue
		}
		entry, err := c.Entry(ctx, run.JobID)
		if err != nil || entry.Status != "OPEN" {
			// Read the record again: it counts until the entry is sealed.
			job, again := c.Job(ctx, run)
			return job, entry, errors.Join(err, again)
		}
		select { // an ended run still drains
		case <-ctx.Done():
			return job, entry, fmt.Errorf("job %s is not sealed: %w", run.JobID, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Entry returns the ledger's entry of a run. It fails if there is none.
func (c Client) Entry(ctx context.Context, job string) (recount.Transaction, error) {
	ledger, err := c.Ledger(ctx)
	if err != nil {
		return recount.Transaction{}, err
	}
	for _, entry := range ledger {
		if entry.JobID == job {
			return entry, nil
		}
	}
	return recount.Transaction{}, fmt.Errorf("job %s has no ledger entry", job)
}

// Report gathers everything that the API reports of an ended run.
func (c Client) Report(ctx context.Context, run Launched) (recount.Reported, error) {
	job, entry, err := c.Finished(ctx, run)
	if err != nil {
		return recount.Reported{}, err
	}
	rows, err := c.Rows(ctx, run.JobID)
	if err != nil {
		return recount.Reported{}, err
	}
	failed, err := c.LinkErrors(ctx, job)
	return recount.Reported{Job: job, Rows: rows, Errors: failed, Entry: entry}, err
}

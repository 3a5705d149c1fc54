package e2e

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
	"shoal.dev/shoal/pkg/testkit/recount"
)

// client calls the API with one credential. It knows the API by the specification only.
type client struct {
	server, token string
	key           string // Idempotency-Key of the next call; "": a new one for each
}

// again is the client whose calls are the same call, however often it is made.
func (c client) again(key string) client {
	c.key = key
	return c
}

// problem is an error answer.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Code, Message string
	} `json:"errors"`
}

func (p *problem) Error() string {
	return fmt.Sprintf("%d %s: %s %v", p.Status, p.Code, p.Detail, p.Errors)
}

// codeOf is the code of an error answer, "" for anything else.
func codeOf(err error) string {
	if p := (*problem)(nil); errors.As(err, &p) {
		return p.Code
	}
	return ""
}

func newKey() string { return ids.Random{Now: time.Now}.New().String() }

// do sends one request; body is JSON-encoded unless it is a reader.
func (c client) do(ctx context.Context, method, path string, query url.Values, kind string, body any) (
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
	address := c.server + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	if method != http.MethodGet {
		request.Header.Set("Idempotency-Key", cmp.Or(c.key, newKey()))
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	p := &problem{}
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

func (c client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	answer, err := c.do(ctx, method, path, query, "", body)
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

func (c client) whoami(ctx context.Context) (ref string, err error) {
	var out struct{ CustomerRef string }
	err = c.call(ctx, "GET", "/api/key/whoami", nil, nil, &out)
	return out.CustomerRef, err
}

func (c client) putGroup(ctx context.Context, name string) (id string, err error) {
	var out struct{ ID string }
	err = c.call(ctx, "PUT", "/api/scraper/group", nil, map[string]any{"name": name, "dataTable": "rows",
		"startType": "MANUAL", "shouldMatchProducts": false}, &out)
	return out.ID, err
}

// scraper is the body of a new scraper.
type scraper struct {
	GroupRef string `json:"groupRef"`
	model.Scraper
}

func (c client) putScraper(ctx context.Context, s scraper) (id string, err error) {
	var out struct{ ID string }
	err = c.call(ctx, "PUT", "/api/scraper", nil, s, &out)
	return out.ID, err
}

// launched answers a launch.
type launched struct {
	JobID, ScraperID, Status       string
	LinksQueued, DuplicatesDropped int
}

func (c client) runScraper(ctx context.Context, scraper string) (launched, error) {
	var out launched
	err := c.call(ctx, "POST", "/api/scraper/"+scraper+"/run", nil, nil, &out)
	return out, err
}

// runList streams a list of addresses; query has the call's other members.
func (c client) runList(ctx context.Context, query url.Values, list io.Reader) (launched, error) {
	var out launched
	answer, err := c.do(ctx, "POST", "/api/scraper/url-list-run", query, "text/uri-list", list)
	if err != nil {
		return out, fmt.Errorf("list run: %w", err)
	}
	defer answer.Body.Close()
	return out, json.NewDecoder(answer.Body).Decode(&out)
}

func (c client) stop(ctx context.Context, scraper string) error {
	return c.call(ctx, "POST", "/api/scraper/"+scraper+"/stop", nil, nil, nil)
}

// jobs reads the records of a scraper's runs, newest first; of all runs when scraper is "".
func (c client) jobs(ctx context.Context, scraper string) ([]recount.Job, error) {
	query := url.Values{"size": {"200"}}
	if scraper != "" {
		query.Set("filters", fmt.Sprintf(`{"scraperId":%q}`, scraper))
	}
	var out struct{ Content []recount.Job }
	err := c.call(ctx, "GET", "/api/scraper/load-history", query, nil, &out)
	return out.Content, err
}

func (c client) job(ctx context.Context, run launched) (recount.Job, error) {
	jobs, err := c.jobs(ctx, run.ScraperID)
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

func (c client) linkErrors(ctx context.Context, job recount.Job) ([]recount.LinkError, error) {
	var out []recount.LinkError
	err := c.call(ctx, "GET", "/api/scraper/load-history/group/"+job.GroupID+"/job/"+job.ID+"/errors", nil, nil, &out)
	return out, err
}

// rows reads the rows of a job by the cursor read.
func (c client) rows(ctx context.Context, job string) ([]map[string]any, error) {
	var rows []map[string]any
	query := url.Values{"jobId": {job}, "limit": {"1000"}}
	for {
		var out struct {
			Items      []map[string]any
			NextCursor string
			HasMore    bool
		}
		if err := c.call(ctx, "GET", "/api/scraper/data", query, nil, &out); err != nil {
			return nil, err
		}
		rows = append(rows, out.Items...)
		if !out.HasMore {
			return rows, nil
		}
		query.Set("cursor", out.NextCursor)
	}
}

func (c client) wallet(ctx context.Context) (recount.Wallet, error) {
	var out recount.Wallet
	err := c.call(ctx, "GET", "/api/wallet", nil, nil, &out)
	return out, err
}

// ledger reads all transactions, newest first.
func (c client) ledger(ctx context.Context) ([]recount.Transaction, error) {
	var ledger []recount.Transaction
	for page := 0; ; page++ {
		var out struct {
			Content    []recount.Transaction
			TotalPages int
		}
		query := url.Values{"page": {strconv.Itoa(page)}, "size": {"100"}}
		if err := c.call(ctx, "GET", "/api/wallet/transactions", query, nil, &out); err != nil {
			return nil, err
		}
		ledger = append(ledger, out.Content...)
		if page+1 >= out.TotalPages {
			return ledger, nil
		}
	}
}

// adjust changes a customer's balance; the credential is an administrator's.
func (c client) adjust(ctx context.Context, customer string, micros int64) error {
	return c.call(ctx, "POST", "/api/admin/customers/"+customer+"/wallet/adjustments", nil,
		map[string]any{"amountMicros": micros, "note": "for a test"}, nil)
}

// status is what the server says of itself.
type status struct {
	Commands, Applied uint64
	OpenJobs, Out     int
}

func (c client) status(ctx context.Context) (status, error) {
	var out status
	err := c.call(ctx, "GET", "/api/admin/status", nil, nil, &out)
	return out, err
}

// recountOfProduct asks the product for its own recount of all runs; it returns how many differ.
func (c client) recountOfProduct(ctx context.Context) (runs, differ int, err error) {
	var out []struct{ Equal bool }
	err = c.call(ctx, "POST", "/api/admin/billing/recount", nil, nil, &out)
	for _, run := range out {
		if !run.Equal {
			differ++
		}
	}
	return len(out), differ, err
}

// node is a node as an operator sees it.
type node struct {
	Name, State          string
	Shards, Moving, Open int
}

func (c client) nodes(ctx context.Context) (list []node, err error) {
	err = c.call(ctx, "GET", "/api/admin/nodes", nil, nil, &list)
	return list, err
}

// drain tells a node to drain, or takes that back.
func (c client) drain(ctx context.Context, name string, drain bool) error {
	method := "PUT"
	if !drain {
		method = "DELETE"
	}
	return c.call(ctx, method, "/api/admin/nodes/"+name+"/drain", nil, nil, nil)
}

// progress is a message of the job stream.
type progress struct {
	State                        string
	ItemsQuantity, TotalRequests int64
}

// follow reads a job's stream until it ends, or seen says that it is enough; it returns the last message.
func (c client) follow(ctx context.Context, job string, seen func(progress) bool) (progress, error) {
	var last progress
	answer, err := c.do(ctx, "GET", "/api/scraper-job-status/"+job+"/stream", nil, "", nil)
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
	return last, fmt.Errorf("the stream of job %s broke off: %w", job, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// finished waits until a run is closed: its state is final and its ledger entry is sealed.
func (c client) finished(ctx context.Context, run launched) (recount.Job, recount.Transaction, error) {
	for {
		job, err := c.job(ctx, run)
		if err != nil {
			return job, recount.Transaction{}, err
		}
		if !model.JobState(job.State).Final() {
			if _, err := c.follow(ctx, run.JobID, nil); err != nil {
				return job, recount.Transaction{}, err
			}
			continue
		}
		entry, err := c.entry(ctx, run.JobID)
		if err != nil || entry.Status != "OPEN" {
			// The record counts until the entry is sealed.
			job, again := c.job(ctx, run)
			return job, entry, errors.Join(err, again)
		}
		select { // a run that was ended drains
		case <-ctx.Done():
			return job, entry, fmt.Errorf("job %s is not sealed: %w", run.JobID, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c client) entry(ctx context.Context, job string) (recount.Transaction, error) {
	ledger, err := c.ledger(ctx)
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

// report gathers everything that the API says of an ended run.
func (c client) report(ctx context.Context, run launched) (recount.Reported, error) {
	job, entry, err := c.finished(ctx, run)
	if err != nil {
		return recount.Reported{}, err
	}
	rows, err := c.rows(ctx, run.JobID)
	if err != nil {
		return recount.Reported{}, err
	}
	failed, err := c.linkErrors(ctx, job)
	return recount.Reported{Job: job, Rows: rows, Errors: failed, Entry: entry}, err
}

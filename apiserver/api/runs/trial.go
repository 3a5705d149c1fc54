package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// TrialTimeout is for operations that wait for a trial.
	TrialTimeout = 70 * time.Second
	// goneEvery is how often a caller that waits is looked for.
	goneEvery = time.Second
	// What is read of a trial's rows fits a cache.
	maxTrialRows  = 1_000
	maxTrialBytes = cache.MaxValueBytes * 3 / 4
)

// TrialErrors are what Try can answer.
var TrialErrors = []fault.Code{fault.InvalidURL, fault.SchemaValidation, fault.SourceUnreachable,
	fault.WalletInsufficient, fault.LimitReached, fault.TrialLimitReached}

// Trial is a run of one address that only its caller and the ledger see: a sample or a preview.
type Trial struct {
	Source model.Source
	URL    string
	Field  string       // of the request, for faults of URL
	Recipe model.Recipe // its pagination is left out: a trial reads one page
	// Tiers are the ways of fetching that may be used; 0: all that the server has for it.
	Tiers model.TierSet
	// For the ledger; either may be zero.
	Scraper ids.ID
	Group   ids.ID
}

// Try runs a trial and waits for its rows, without what the server adds to rows: at most 1,000 of
// them, and less than a MiB. A page that was read and holds none gives none. When the caller goes
// away, or the run does not end within 55 s, it is stopped. Faults: TrialErrors.
func Try(ctx context.Context, s api.Services, from *operation.Caller, operation string,
	t Trial) ([]json.RawMessage, error) {
	if err := checkTrial(ctx, s.Guard, t); err != nil {
		return nil, err
	}
	if err := affordable(from.View, from.Customer); err != nil {
		return nil, err
	}
	job, err := launchTrial(ctx, s, from, operation, t)
	if err == nil {
		var closed *client.Job
		if closed, err = await(ctx, s, from, job); err == nil {
			return readTrial(ctx, s.Store, closed)
		}
	}
	if job.IsZero() {
		return nil, err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	// What cannot be stopped now ends by itself, and costs a page.
	_, _ = client.Do(stopping, s.Client, client.StopRun{Customer: from.Customer, Job: job}, nil)
	return nil, err
}

// checkTrial refuses what a trial could not reach before anything is made.
func checkTrial(ctx context.Context, guard api.Guard, t Trial) error {
	canonical, err := address.Canonical(t.URL)
	if err == nil {
		err = guard.CheckURL(t.URL)
	}
	if err == nil && t.Source == model.SourcePreviewURL &&
		len((&curl.Request{URL: t.URL}).Placeholders()) > 0 {
		err = fault.New(fault.InvalidURL, "Only a curl command can have placeholders of tokens.")
	}
	if err != nil {
		return refusedAddress(t.Field, t.URL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err = guard.CheckHost(ctx, address.HostOf(canonical))
	switch {
	case err == nil:
		return nil
	case fault.CodeOf(err) == fault.PageAddressForbidden:
		return refusedAddress(t.Field, t.URL,
			fault.New(fault.InvalidURL, "%s.", fault.Lookup(fault.PageAddressForbidden).Title))
	}
	return unreachable(fault.CodeOf(err), 0)
}

// unreachable is the answer of a call whose page could not be read.
func unreachable(code fault.Code, status uint16) error {
	if status > 0 {
		return fault.New(fault.SourceUnreachable, "%s (%s, HTTP status %d)",
			fault.Lookup(code).Title, code, status)
	}
	return fault.New(fault.SourceUnreachable, "%s (%s)", fault.Lookup(code).Title, code)
}

// launchTrial makes the run. The id is not zero when it was made, or may have been.
func launchTrial(ctx context.Context, s api.Services, from *operation.Caller, operation string,
	t Trial) (ids.ID, error) {
	l, _, err := begin(ctx, s, from, operation)
	if err != nil {
		return ids.ID{}, err
	}
	defer l.end(ctx)
	taken, err := l.take(ctx, &listed{field: t.Field, urls: []string{t.URL}}, nil)
	if err != nil {
		return ids.ID{}, err
	}
	trial := &client.Trial{Source: t.Source, Recipe: t.Recipe, Group: t.Group}
	trial.Recipe.Pagination = nil
	if from.Key != nil && from.Key.Scope == model.ScopeLLMRead {
		trial.Key = from.Key.ID
	}
	endpoint, _ := model.EndpointOf(t.Recipe.Endpoint)
	if t.Tiers == 0 {
		request := model.Scraper{SourceConfig: model.SourceConfig{Curl: t.Recipe.Curl}}
		if t.Tiers, err = tiersOf(from.View, &request); err != nil {
			return ids.ID{}, err
		}
	}
	_, err = l.commit(ctx, client.LaunchRun{Scraper: t.Scraper, Links: taken.links, Trial: trial,
		Charge: endpoint.Charge, Tiers: t.Tiers,
		IgnoresRobots: t.Recipe.Politeness.IgnoreRobots})
	if err != nil && !l.maybe {
		return ids.ID{}, err
	}
	return from.Job, err
}

var (
	errTooSlow  = fault.New(fault.SourceUnreachable, "no answer within %v", model.TrialWait)
	errNotBegun = fault.New(fault.Unavailable, "the request was not begun within %v",
		model.TrialWait)
)

// await waits until a run is closed.
func await(ctx context.Context, s api.Services, from *operation.Caller, id ids.ID) (*client.Job,
	error) {
	tooSlow := s.Clock.After(model.TrialWait)
	for {
		job, changed := s.Client.View().WatchJob(id)
		if job != nil && job.Closed {
			return job, nil
		}
		select {
		case <-changed:
		case <-s.Clock.After(goneEvery):
			if from.Gone() {
				return nil, operation.ErrGone
			}
		case <-tooSlow:
			if job == nil || job.State == model.Pending {
				return nil, errNotBegun
			}
			return nil, errTooSlow
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readTrial answers the rows of a closed trial.
func readTrial(ctx context.Context, store rowstore.Store, job *client.Job) ([]json.RawMessage,
	error) {
	rows := []json.RawMessage{}
	if job.Reason == model.InsufficientBalance {
		return nil, fault.New(fault.WalletInsufficient,
			"the balance does not pay for a page and no free request is left")
	}
	if job.Delivered == 0 {
		failed, err := store.LinkErrors(ctx, job.ID, nil, 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("errors of job %s: %w", job.ID, err)
		case len(failed) == 0:
			return nil, fault.New(fault.Unavailable, "the run was stopped")
		}
		switch code := fault.Code(failed[0].Code); code {
		case fault.PageNoRows, fault.PageRowRejected:
			return rows, nil
		case fault.PageModel, fault.PageModelLimit:
			return nil, fault.New(fault.Unavailable, "%s (%s)", fault.Lookup(code).Title, code)
		case fault.PageTooCostly: // the caller's to mend, not the site's
			return nil, fault.New(fault.SchemaValidation, "%s (%s)", fault.Lookup(code).Title, code)
		default:
			return nil, unreachable(code, failed[0].Status)
		}
	}
	horizon, err := store.Horizon(ctx)
	if err != nil {
		return nil, fmt.Errorf("rows of job %s: %w", job.ID, err)
	}
	docs, _, err := store.Scan(ctx,
		rowstore.ScanQuery{Scope: rowstore.Scope{Scraper: job.Scraper, Jobs: []ids.ID{job.ID}},
			Upto: horizon, Limit: maxTrialRows, Bytes: maxTrialBytes})
	if err != nil {
		return nil, fmt.Errorf("rows of job %s: %w", job.ID, err)
	}
	size := 0
	for _, doc := range docs {
		row, err := withoutServerKeys(doc)
		if err != nil {
			return nil, fmt.Errorf("row of job %s: %w", job.ID, err)
		}
		if size += len(row); size > maxTrialBytes {
			break
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var errNotARow = errors.New("a stored row is no JSON object")

// withoutServerKeys is a row as its recipe made it.
func withoutServerKeys(doc json.RawMessage) (json.RawMessage, error) {
	tokens := json.NewDecoder(bytes.NewReader(doc))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		return nil, errNotARow
	}
	row := []byte{'{'}
	for tokens.More() {
		start := tokens.InputOffset()
		name, err := tokens.Token()
		if err != nil {
			return nil, errNotARow
		}
		var value json.RawMessage
		if err := tokens.Decode(&value); err != nil {
			return nil, errNotARow
		}
		if text, _ := name.(string); strings.HasPrefix(text, "_") {
			continue
		}
		if len(row) > 1 {
			row = append(row, ',')
		}
		row = append(row, bytes.TrimLeft(doc[start:tokens.InputOffset()], ", \t\r\n")...)
	}
	return append(row, '}'), nil
}

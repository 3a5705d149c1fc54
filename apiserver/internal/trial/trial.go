// Package trial provides what trials are for: samples of saved scrapers, proposals of scrapers for
// a page, and looks at a page's fields. A trial is a run of one address that only its caller and
// the ledger see; package launch makes it. This package knows no HTTP.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// Timeout bounds calls that wait for a trial.
	Timeout = 70 * time.Second
	// goneEvery is how often to check whether a waiting caller is still there.
	goneEvery = time.Second
	// cleanUpTime bounds the stopping of a trial that nobody waits for.
	cleanUpTime = 10 * time.Second
	// kept is how long a sample or a preview may be returned again.
	kept = time.Hour
	// Bounds on the rows read from a trial, so that they fit a cache.
	maxTrialRows  = 1_000
	maxTrialBytes = cache.MaxValueBytes * 3 / 4
)

// Errors are the codes that every trial can answer.
func Errors() []fault.Code {
	return []fault.Code{fault.InvalidURL, fault.SchemaValidation, fault.SourceUnreachable,
		fault.WalletInsufficient, fault.MaxChargeReached, fault.LimitReached,
		fault.TrialLimitReached, fault.OutOfSpace}
}

// Trials runs trials. Set its fields before its first use; it is then safe for concurrent use.
type Trials struct {
	Launcher *launch.Launcher
	Client   launch.Client
	History  *client.History
	Store    Store
	Clock    clock.Clock
	// Values keeps the results of trials for an hour.
	Values cache.Values
}

// Store is what a trial needs of the row store.
type Store interface {
	rowstore.Reads
	// Links is that of rowstore.Lists.
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link, error)
}

// Caller is the caller who waits for a trial.
type Caller struct {
	launch.Caller
	// Waits is called now and then while a trial runs. Its error ends the trial, and is the call's
	// error.
	Waits func() error
	// Reason says in words why there are no rows. The trial sets it; "" if there are rows.
	Reason string
	// Origin is the page that a sample is of. The trial sets it.
	Origin string
}

// made is the result of a trial, as it is kept.
type made struct {
	Rows   []json.RawMessage `json:"rows"`
	Reason string            `json:"reason,omitempty"`
}

// try runs a trial and returns its rows, without the server's members: at most 1,000 rows, and less
// than a MiB. A page that was read but holds none gives none. The run is stopped if the caller goes
// away, or if it does not end within 55 s. Faults: Errors.
func (t *Trials) try(ctx context.Context, from *Caller, trial *launch.Trial) ([]json.RawMessage,
	error) {
	rows, _, err := t.tryRun(ctx, from, trial)
	return rows, err
}

// tryRun is try, and also returns the run. That may be the same trial of another call, on any
// server. Its failure may be due to its own caller, such as a cap: then this call runs its own
// trial. Rows that exist but cannot be read would be found again, so they are not retried. In any
// case the wait ends 55 s after the call began.
func (t *Trials) tryRun(ctx context.Context, from *Caller,
	trial *launch.Trial) ([]json.RawMessage, *client.Job, error) {
	until := t.Clock.Now().Add(model.TrialWait)
	for {
		rows, job, err := t.tryOnce(ctx, from, trial, until)
		if err == nil || !from.Joined || ctx.Err() != nil || !t.Clock.Now().Before(until) ||
			fault.CodeOf(err) == fault.SourceUnreachable || from.Waits() != nil ||
			job != nil && job.Delivered > 0 {
			return rows, job, err
		}
		from.Job, from.Joined = ids.ID{}, false
	}
}

func (t *Trials) tryOnce(ctx context.Context, from *Caller, trial *launch.Trial,
	until time.Time) ([]json.RawMessage, *client.Job, error) {
	err := t.Launcher.StartTrial(ctx, &from.Caller, trial)
	if err == nil {
		var closed *client.Job
		if closed, err = t.await(ctx, from, until); err == nil {
			rows, err := t.read(ctx, from, closed)
			return rows, closed, err
		}
	}
	if from.Job.IsZero() || from.Joined { // another call's run goes on
		return nil, nil, err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	// A run that cannot be stopped now ends on its own, and costs a page.
	_, _ = client.Do(stopping, t.Client, client.StopRun{Customer: from.Customer, Job: from.Job},
		nil)
	return nil, nil, err
}

// recall returns what was kept under a key, and whether there was anything.
func (t *Trials) recall(ctx context.Context, from *Caller, key string) (rows []json.RawMessage,
	found bool) {
	old, found := t.Values.Get(ctx, key)
	var kept made
	if !found || json.Unmarshal(old, &kept) != nil {
		return nil, false
	}
	from.Reason = kept.Reason
	return kept.Rows, true
}

// keep keeps a call's result for an hour, if it fits.
func (t *Trials) keep(ctx context.Context, from *Caller, key string, rows []json.RawMessage) {
	if data, err := json.Marshal(made{Rows: rows, Reason: from.Reason}); err == nil {
		t.Values.Set(ctx, key, data, kept)
	}
}

var (
	errTooSlow  = fault.New(fault.SourceUnreachable, "no answer within %v", model.TrialWait)
	errNotBegun = fault.New(fault.Unavailable, "the page was not asked for within %v, as other "+
		"requests go before: call again", model.TrialWait)
	errNotDone = fault.New(fault.Unavailable, "the page was asked for late, and is not there "+
		"within %v: call again", model.TrialWait)
)

// await waits until the call's run is closed, but not beyond until.
func (t *Trials) await(ctx context.Context, from *Caller, until time.Time) (*client.Job, error) {
	tooSlow := t.Clock.After(until.Sub(t.Clock.Now()))
	for {
		view := t.Client.View()
		job, changed := view.WatchJob(from.Job)
		if job == nil { // or it is history
			var err error
			if job, err = t.History.Run(ctx, view, from.Job); err != nil {
				return nil, fmt.Errorf("run %s: %w", from.Job, err)
			}
		}
		if job != nil && job.Closed {
			return job, nil
		}
		select {
		case <-changed:
		case <-t.Clock.After(goneEvery):
			if err := from.Waits(); err != nil {
				return nil, err
			}
		case <-tooSlow:
			return nil, t.lateness(from.Job)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lateness is why a run has no answer in time. Another of its callers may have stopped it by now.
func (t *Trials) lateness(run ids.ID) error {
	job := t.Client.View().Job(run)
	switch {
	case job == nil || job.State != model.Running && job.Started == job.Queued:
		return errNotBegun
	case time.UnixMilli(job.Started).Add(model.TrialTime).After(t.Clock.Now()):
		return errNotDone // the site has had less than its full time
	}
	return errTooSlow
}

// read returns the rows of a closed trial.
func (t *Trials) read(ctx context.Context, from *Caller,
	job *client.Job) ([]json.RawMessage, error) {
	rows := []json.RawMessage{}
	if job.Reason == model.InsufficientBalance {
		return nil, fault.New(fault.WalletInsufficient,
			"the balance does not pay for a page and no free request is left")
	}
	if job.Reason == model.MaxChargeReached {
		return nil, fault.Invalid(fault.MaxChargeReached, "maxChargeMicros",
			"a page costs more than %d micros", *job.MaxCharge)
	}
	if job.Delivered == 0 {
		failed, err := t.Store.LinkErrors(ctx, job.ID, nil, 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("errors of job %s: %w", job.ID, err)
		case len(failed) == 0:
			return nil, fault.New(fault.Unavailable, "the run was stopped")
		}
		switch code := fault.Code(failed[0].Code); code {
		case fault.PageNoRows, fault.PageRowRejected:
			if from.Reason = failed[0].Detail; from.Reason == "" {
				from.Reason = fault.Lookup(code).Title + "."
			}
			return rows, nil
		case fault.PageModel, fault.PageModelLimit:
			return nil, fault.New(fault.Unavailable, "%s (%s)", fault.Lookup(code).Title, code)
		case fault.PageTooCostly: // the caller can fix it, not the site
			return nil, fault.New(fault.SchemaValidation, "%s (%s)", fault.Lookup(code).Title, code)
		default:
			return nil, launch.Unreachable(code, failed[0].Status, failed[0].Detail)
		}
	}
	horizon, err := t.Store.Horizon(ctx)
	if err != nil {
		return nil, fmt.Errorf("rows of job %s: %w", job.ID, err)
	}
	docs, _, err := t.Store.Scan(ctx,
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
		if text, _ := name.(string); model.IsServerKey(text) {
			continue
		}
		if len(row) > 1 {
			row = append(row, ',')
		}
		row = append(row, bytes.TrimLeft(doc[start:tokens.InputOffset()], ", \t\r\n")...)
	}
	return append(row, '}'), nil
}

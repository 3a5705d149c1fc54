// Package trial owns what is made of trials: samples of saved scrapers, proposals of scrapers for a
// page, and looks at its fields. A trial is a run of one address that only its caller and the
// ledger see; package launch makes it. This package knows no HTTP.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	// Timeout is for calls that wait for a trial.
	Timeout = 70 * time.Second
	// goneEvery is how often a caller that waits is looked for.
	goneEvery = time.Second
	// cleanUpTime is for stopping a trial that nobody waits for any more.
	cleanUpTime = 10 * time.Second
	// kept is how long a sample or a preview may be answered again.
	kept = time.Hour
	// What is read of a trial's rows fits a cache.
	maxTrialRows  = 1_000
	maxTrialBytes = cache.MaxValueBytes * 3 / 4
)

// Errors are what every trial can answer.
func Errors() []fault.Code {
	return []fault.Code{fault.InvalidURL, fault.SchemaValidation, fault.SourceUnreachable,
		fault.WalletInsufficient, fault.MaxChargeReached, fault.LimitReached,
		fault.TrialLimitReached, fault.OutOfSpace}
}

// Trials runs trials. Its fields are set before its first use, and it is safe for concurrent use
// then.
type Trials struct {
	Launcher *launch.Launcher
	Client   launch.Client
	History  *client.History
	Store    Store
	Clock    clock.Clock
	// Values keeps what trials made of pages, for an hour.
	Values cache.Values
}

// Store is what a trial needs of the row store.
type Store interface {
	rowstore.Reads
	// Links is that of rowstore.Lists.
	Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link, error)
}

// Caller is who waits for a trial.
type Caller struct {
	launch.Caller
	// Waits is asked now and then while a trial is under way: its error ends the trial, and is what
	// the call ends with.
	Waits func() error
	// Reason is why there are no rows, in words. The trial sets it; "" where there are some.
	Reason string
}

// made is what a trial made of a page, as it is kept.
type made struct {
	Rows   []json.RawMessage `json:"rows"`
	Reason string            `json:"reason,omitempty"`
}

// try runs a trial and waits for its rows, without what the server adds to rows. They are at most
// 1,000, and less than a MiB. A page that was read and holds none gives none. When the caller goes
// away, or the run does not end within 55 s, it is stopped. Faults: Errors.
func (t *Trials) try(ctx context.Context, from *Caller, trial *launch.Trial) ([]json.RawMessage,
	error) {
	rows, _, err := t.tryRun(ctx, from, trial)
	return rows, err
}

// tryRun is try, with the run that it was. That may be the same trial of another call, on whichever
// server. What came of it may be its caller's alone, such as a cap: then this one has its own. Rows
// that are there and cannot be read are nobody's fault, and would be found again. Whosever run it
// is, the wait ends 55 s after the call began.
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
	if from.Job.IsZero() || from.Joined { // another call's goes on
		return nil, nil, err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	// What cannot be stopped now ends by itself, and costs a page.
	_, _ = client.Do(stopping, t.Client, client.StopRun{Customer: from.Customer, Job: from.Job},
		nil)
	return nil, nil, err
}

// recall is what was kept under a key, and whether there was something.
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

// keep keeps what a call made for an hour, as far as it fits.
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

// await waits until the run of a call is closed, but no longer than until a time.
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

// lateness is why a run has no answer in time. Another caller of it may have stopped it by now.
func (t *Trials) lateness(run ids.ID) error {
	job := t.Client.View().Job(run)
	switch {
	case job == nil || job.State != model.Running && job.Started == job.Queued:
		return errNotBegun
	case time.UnixMilli(job.Started).Add(model.TrialTime).After(t.Clock.Now()):
		return errNotDone // the site has had less than its time
	}
	return errTooSlow
}

// read answers the rows of a closed trial.
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
		case fault.PageTooCostly: // the caller's to mend, not the site's
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

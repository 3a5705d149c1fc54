package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	retainEvery   = 10 * time.Second
	retainedRuns  = 256 // closed runs per step
	holdingAtOnce = 64  // runs with rows found by one query of the row store
)

// Retaining is what retention needs from the row store.
type Retaining interface {
	Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error)
	DeleteJob(ctx context.Context, job ids.ID, records bool) error
}

// RetentionConfig configures Retention. Point may be left out.
type RetentionConfig struct {
	View    func() *client.View
	History *client.History
	Store   Retaining
	// Point is called at named places, "work.retain.before_delete" and "work.retain.after_delete",
	// so that tests can end the process there.
	Point func(name string)

	passed *passed[ids.ID] // scrapers
}

// Retention removes the rows of runs that newer ones replace, once a run is closed (decision 22).
// Page records stay, so that charges can be recounted. What is removed follows from the current
// history and counts. So a repeated or late step gives the same result.
func Retention(config RetentionConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	config.passed = newPassed[ids.ID]()
	return work.Kind{Name: work.Retain, Recurring: true, AtStart: true,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := config.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("ingest: rows of replaced runs: %w", err)
			}
			return outcome, nil
		}}
}

// step looks at the scrapers of the next runs that were closed. Where rows may be removed, it first
// notes that; the next step removes them. From that note on, reads by cursor ask the row store.
func (c *RetentionConfig) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	var at client.Retaining
	if len(item.Progress) > 0 {
		if err := json.Unmarshal(item.Progress, &at); err != nil {
			return work.Outcome{}, work.GiveUp(err)
		}
	}
	c.passed.add(at.Passed) // another process may have passed them over
	view := c.View()
	closed, err := c.History.ClosedAfter(ctx, view, at.Upto, retainedRuns)
	if err != nil {
		return work.Outcome{}, err
	}
	more := len(closed) == retainedRuns
	if at.Next > at.Upto {
		noted := slices.IndexFunc(closed, func(job *client.Job) bool { return job.Index > at.Next })
		if noted >= 0 {
			closed, more = closed[:noted], true
		}
	}
	var due []*client.Scraper
	upto := at.Upto
	for _, job := range closed {
		upto = job.Index
		scraper := view.Scraper(job.Scraper) // a trial has none
		if scraper != nil && client.Retained(view, scraper) > 0 && !slices.Contains(due, scraper) {
			due = append(due, scraper)
		}
	}
	if len(due) > 0 && at.Next < upto {
		at.Next = upto
		progress, err := json.Marshal(at)
		return work.Rest(progress, 0), err // the next step begins when everyone can know it
	}
	if c.passed.count() > maxPassed-retainedRuns { // too many to pass over more
		if err := c.retainPassed(ctx, view); err != nil {
			return work.Outcome{}, err
		}
	}
	var failed error
	for _, scraper := range due { // a failing one is reported, and retried after all others
		if !c.passed.has(scraper.ID) {
			err := c.passed.note(scraper.ID, c.retain(ctx, view, scraper))
			failed = cmp.Or(failed, err)
		}
	}
	if failed == nil && !more {
		failed = c.retainPassed(ctx, view)
	}
	if failed != nil {
		return work.Outcome{}, failed
	}
	done := client.Retaining{Upto: upto}
	if c.passed.count() > 0 {
		done.Behind, done.Passed = cmp.Or(at.Behind, at.Upto+1), c.passed.all()
	}
	progress, err := json.Marshal(done)
	if err != nil {
		return work.Outcome{}, err
	}
	if more {
		return work.GoOn(progress), nil
	}
	return work.Rest(progress, retainEvery), nil
}

// retainPassed retries the scrapers that were passed over.
func (c *RetentionConfig) retainPassed(ctx context.Context, view *client.View) (failed error) {
	for _, id := range c.passed.all() {
		err := error(nil)
		if scraper := view.Scraper(id); scraper != nil {
			err = c.retain(ctx, view, scraper)
		}
		failed = cmp.Or(failed, c.passed.note(id, err))
	}
	return failed
}

// retain removes the rows of a scraper's runs that came before its newest ones with rows.
func (c *RetentionConfig) retain(ctx context.Context, view *client.View,
	scraper *client.Scraper) error {
	count := client.Retained(view, scraper)
	if count == 0 {
		return nil
	}
	var kept []*client.Job
	err := c.History.ScraperRuns(ctx, view, scraper.ID, func(job *client.Job) bool {
		if client.Replaces(view, job, scraper) {
			kept = append(kept, job)
		}
		return len(kept) < count
	})
	if err != nil || len(kept) < count {
		return err
	}
	scope := rowstore.Scope{Scraper: scraper.ID}
	for _, job := range kept {
		scope.Without = append(scope.Without, job.ID)
	}
	for _, scope.Group = range view.GroupsOf(scraper) {
		if err := c.clear(ctx, view, scope, kept[count-1]); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the rows of a scope's runs that were launched before oldest. Everything else there
// stays: runs under way, runs that the view does not know yet, and those that a restore undid.
func (c *RetentionConfig) clear(ctx context.Context, view *client.View, scope rowstore.Scope,
	oldest *client.Job) error {
	without := slices.Clone(scope.Without)
	for {
		scope.Without = without
		found, err := c.Store.Holding(ctx, scope, holdingAtOnce)
		if err != nil {
			return err
		}
		for _, id := range found {
			job, err := c.History.Run(ctx, view, id)
			if err != nil {
				return err
			}
			if job != nil && job.Closed && job.Scraper == scope.Scraper &&
				client.Newer(oldest, job) {
				c.Point("work.retain.before_delete")
				if err := c.Store.DeleteJob(ctx, id, false); err != nil {
					return err
				}
				c.Point("work.retain.after_delete")
			}
		}
		if len(found) < holdingAtOnce {
			return nil
		}
		without = append(without, found...)
	}
}

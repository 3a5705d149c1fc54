package ingest

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	expireEvery   = time.Hour
	expiredAtOnce = 64 // runs per step
)

// Expiring is what the expiry of runs needs from the row store.
type Expiring interface {
	rowstore.Retention
	Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error)
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
}

// ExpiryConfig configures Expiry. Point may be left out.
type ExpiryConfig struct {
	Store Expiring
	// Safe returns the time by which things may be removed for their age. It fails while that is
	// uncertain.
	Safe func(ctx context.Context) (time.Time, error)
	// Reruns says whether a scraper may later be asked to read only what it was never charged for.
	Reruns func(scraper ids.ID) bool
	// Point is called at named places, "work.expire.after_keep" and "work.expire.after_condense",
	// so that tests can end the process there.
	Point func(name string)

	passed *passed[ids.ID] // runs
}

// Expiry removes the rows and page records of runs that started long ago, and with the records the
// errors of links. In their place it keeps hashes of the charged addresses, and the sum of the
// records (decision 54).
func Expiry(config ExpiryConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	config.passed = newPassed[ids.ID]()
	return work.Kind{Name: work.Expire, Recurring: true,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := config.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("ingest: expire rows: %w", err)
			}
			return outcome, nil
		}}
}

// step notes the time before which runs are no longer shown, or removes runs older than the noted
// time. So no read finds half a run. The next step begins when every node can know the note.
func (c *ExpiryConfig) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	now, err := c.Safe(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	noted := time.UnixMicro(rowstore.ReadExpiry(item.Progress))
	if due := now.Add(-rowstore.Expiry); due.Sub(noted) >= expireEvery/2 {
		return work.Rest(rowstore.NoteExpiry(due), 0), nil
	}
	more, err := c.expire(ctx, noted, now)
	switch {
	case err != nil:
		return work.Outcome{}, err
	case more:
		return work.GoOn(item.Progress), nil
	}
	return work.Rest(item.Progress, expireEvery), nil
}

// expire condenses some runs, or removes what may go when none are left to condense. A run that
// cannot be condensed is reported, and retried after all others.
func (c *ExpiryConfig) expire(ctx context.Context, before, now time.Time) (more bool, err error) {
	most := expiredAtOnce + c.passed.count()
	jobs, err := c.Store.Expiring(ctx, before, most)
	if err != nil {
		return false, err
	}
	for _, job := range jobs {
		if c.passed.has(job.ID) {
			continue
		}
		if err := c.passed.note(job.ID, c.condense(ctx, job, now)); err != nil {
			return false, fmt.Errorf("run %s: %w", job.ID, err)
		}
	}
	if len(jobs) == most {
		return true, nil
	}
	c.passed.forget()
	return false, c.Store.Expire(ctx, before)
}

func (c *ExpiryConfig) condense(ctx context.Context, job rowstore.Job, now time.Time) error {
	if job.Scraper != job.ID && c.Reruns(job.Scraper) { // a trial is its own scraper
		if err := c.keepCharged(ctx, job); err != nil {
			return err
		}
		c.Point("work.expire.after_keep")
	}
	sum, err := c.Store.Recount(ctx, job.ID)
	if err != nil {
		return err
	}
	if err := c.Store.Condense(ctx, job.ID, sum, now); err != nil {
		return err
	}
	c.Point("work.expire.after_condense")
	return nil
}

// keepCharged keeps hashes of what a run was charged for. Its parts depend on the run's records
// alone, so they are the same whoever keeps them.
func (c *ExpiryConfig) keepCharged(ctx context.Context, job rowstore.Job) error {
	kept := rowstore.Kept{Scraper: job.Scraper, Job: job.ID}
	flush := func() error {
		if len(kept.Hashes) == 0 {
			return nil
		}
		err := c.Store.KeepCharged(ctx, kept)
		kept.Part, kept.Hashes = kept.Part+1, kept.Hashes[:0]
		return err
	}
	err := c.Store.EachRecord(ctx, job.ID, func(r rowstore.Record) error {
		if r.Outcome != model.Delivered || r.Quantity == 0 || r.Unit.Page != 0 {
			return nil
		}
		// An address that is no longer valid cannot be in a list: it would be refused.
		if canonical, err := address.Canonical(r.URL); err == nil {
			kept.Hashes = append(kept.Hashes, rowstore.ChargedHash(job.Scraper, canonical))
		}
		if len(kept.Hashes) == rowstore.MaxKept {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

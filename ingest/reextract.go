package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/work"
)

const (
	// readAtOnce is how many page records are re-read and stored together. Once their rows have
	// readBytes, no further record is begun. There are two such batches at a time.
	readAtOnce = 1024
	readBytes  = 32 << 20
)

// ReExtracting is what a run of kept bodies needs from the row store.
type ReExtracting interface {
	Importing
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
}

// ReExtractConfig configures ReExtract. Readers, Logger, Rates and Point may be left out.
type ReExtractConfig struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store   ReExtracting
	History *client.History
	Bodies  bodies.Source // nil: none are kept here
	IDs     ids.Source
	Clock   clock.Clock
	Reader  *reading.Guard // wraps the reading of pages
	Readers int            // pages read at once; GOMAXPROCS when 0
	Logger  *slog.Logger   // nil: nothing is logged
	Rates   ecb.Rates      // for currency rules; the bundled table when nil
	// Point is called at named places, so that tests can end the process there. They are
	// "work.reextract.before_put", "work.reextract.after_put", "work.reextract.after_seal" and
	// "work.reextract.after_end".
	Point func(name string)

	codec    bodies.Codec
	records  int   // per batch
	rowBytes int64 // at which a batch stops
}

// ReExtract turns the kept bodies of a run into the rows of another run, read with a given recipe.
// Each page record of the first is a unit of the second, and what is stored stays. So a step begins
// with the first record, and gives the same result beside a late one of another owner. No host is
// asked, and nothing is charged.
func ReExtract(config ReExtractConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	if config.Readers <= 0 {
		config.Readers = runtime.GOMAXPROCS(0)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Rates == nil {
		config.Rates = ecb.Bundled()
	}
	if config.records <= 0 {
		config.records = readAtOnce
	}
	if config.rowBytes <= 0 {
		config.rowBytes = readBytes
	}
	config.codec = bodies.NewCodec()
	return work.Kind{Name: work.ReExtract, AtOnce: 1, Held: heldInTurns, PerCustomer: 1,
		Ready: func() bool { return config.Bodies != nil },
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := config.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("ingest: re-extract %s: %w", item.ID, err)
			}
			return outcome, nil
		}}
}

// step takes a run to its end, unless the run has to wait or its turn is over.
func (c *ReExtractConfig) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	known, job := view.Import(item.ID), view.Job(item.ID)
	switch {
	case known == nil || known.Ended != 0 || job == nil:
		return work.Done(), nil
	case view.IsShort():
		return work.Rest(nil, shortRests), nil
	}
	r, err := c.open(ctx, view, known, job)
	if err != nil {
		return work.Outcome{}, err
	}
	if r.refusal != "" {
		return c.end(ctx, client.EndReExtract{Job: job.ID, Message: r.refusal})
	}
	switch err := r.readAll(ctx); {
	case errors.Is(err, errStopped):
		return work.Done(), nil
	case errors.Is(err, errTurn): // the next turn finds what is stored
		return work.Rest(nil, 0), nil
	case errors.Is(err, errOthers):
		return work.GoOn(nil), nil // from the first record; all are stored
	case errors.Is(err, errSealed):
		return c.end(ctx, client.EndReExtract{Job: job.ID, Message: "a restore has undone a part " +
			"of it; extract again"})
	case err != nil:
		return work.Outcome{}, err
	}
	if err := c.Store.Seal(ctx, job.ID, nil); err != nil {
		return work.Outcome{}, err
	}
	c.Point("work.reextract.after_seal")
	judging := client.Judging{Store: c.Store, History: c.History, Within: client.JudgedWithin,
		Logger: c.Logger}
	verdict := client.Verdict{}
	if client.IsWhole(view, r.from) {
		if verdict, err = judging.JudgeInTime(ctx, view, job); err != nil {
			return work.Outcome{}, err
		}
	}
	return c.end(ctx, client.EndReExtract{Job: job.ID, Done: r.tally.done(), Odd: verdict.Odd,
		Unjudged: verdict.Unjudged})
}

func (c *ReExtractConfig) end(ctx context.Context, how client.EndReExtract) (work.Outcome, error) {
	if _, err := client.Do(ctx, c.Client, how, nil); err != nil {
		return work.Outcome{}, err
	}
	c.Point("work.reextract.after_end")
	return work.Done(), nil
}

// errSealed says that a run no longer takes pages, although some are missing.
var errSealed = errors.New("the run is sealed")

// reextracting is one step of a run of kept bodies.
type reextracting struct {
	*ReExtractConfig
	refusal string // why nothing can be read; "": it can be
	from    *client.Job
	job     *client.Job
	stamp   rowstore.Job

	extractor *extract.Extractor
	rules     *rules.Rules
	rates     rules.Day // conversion rates of the rules; each page sets its own time

	tally tally
	told  time.Time // when the state was last told
	turn  turn
}

// open prepares a step.
func (c *ReExtractConfig) open(ctx context.Context, view *client.View, known *client.Import,
	job *client.Job) (*reextracting, error) {
	r := &reextracting{ReExtractConfig: c, job: job, told: c.Clock.Now(),
		stamp: rowstore.Job{ID: job.ID, Customer: job.Customer, Group: job.Group,
			Scraper: job.Scraper, Started: job.Started * 1000}}
	recipe := view.Recipe(job.ID, 1)
	var err error
	if r.from, err = c.History.Run(ctx, view, known.From); err != nil {
		return nil, err
	}
	if recipe == nil || r.from == nil {
		r.refusal = "the run whose bodies were to be read is gone"
		return r, nil
	}
	compiled := false
	panicked := c.Reader.Run(reading.Page{URL: "a scraper's recipe"}, func() {
		extractor, unread := extract.Compile(recipe.Recipe)
		list, faults := rules.Compile(recipe.Recipe.Rules)
		r.extractor, r.rules, compiled = extractor, list, unread == nil && len(faults) == 0
	})
	if panicked != nil || !compiled {
		r.refusal = "the scraper's recipe cannot be used"
		return r, nil //nolint:nilerr // the run fails by its refusal
	}
	r.rates = r.rules.DayOf(ctx, c.Rates, time.Time{}) // each page sets its own day
	return r, nil
}

// lot is some of the run's records, in the order of units.
type lot struct {
	records []rowstore.Record
	stored  map[model.Unit]*model.Receipt // receipts of units that are stored by now
	pages   []*model.Page                 // to store
	whole   bool                          // all records' pages are stored, or were before
}

// readAll stores the pages of the run's records, some at a time. While they are stored, it reads
// the next ones and looks up those after.
func (r *reextracting) readAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var stages sync.WaitGroup
	defer stages.Wait()
	defer cancel(nil)
	found, made := make(chan *lot, 1), make(chan *lot)
	stages.Go(func() {
		defer close(found)
		if err := guarded(func() error { return r.find(ctx, found) }); err != nil {
			cancel(err)
		}
	})
	stages.Go(func() {
		defer close(made)
		for b := range found {
			if err := guarded(func() error { return r.readLot(ctx, b, made) }); err != nil {
				cancel(err)
				return
			}
		}
	})
	for b := range made {
		if err := r.store(ctx, b); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.tally.close()
	return nil
}

// find sends on the records of the run in lots.
func (r *reextracting) find(ctx context.Context, found chan<- *lot) error {
	next := &lot{}
	send := func() error {
		select {
		case found <- next:
			next = &lot{}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := r.Store.EachRecord(ctx, r.from.ID, func(record rowstore.Record) error {
		if next.records = append(next.records, record); len(next.records) < r.records {
			return nil
		}
		return send()
	})
	if err != nil || len(next.records) == 0 {
		return err
	}
	return send()
}

// store stores the pages of a lot, and tallies its records once all are stored.
func (r *reextracting) store(ctx context.Context, b *lot) error {
	if len(b.pages) > 0 {
		writes := make([]rowstore.PageWrite, len(b.pages))
		for i, page := range b.pages {
			writes[i] = rowstore.PageWrite{Job: r.stamp, Page: page}
		}
		r.Point("work.reextract.before_put")
		put, err := r.Store.PutPages(ctx, writes)
		if err != nil {
			return err
		}
		r.Point("work.reextract.after_put")
		for i, receipt := range put {
			if receipt == nil {
				return r.sealed(ctx, b.pages[i].Unit)
			}
			b.stored[b.pages[i].Unit] = receipt
		}
	}
	if b.whole {
		for i := range b.records {
			r.tally.add(b.stored[b.records[i].Unit])
		}
	}
	if err := r.advance(ctx); err != nil || len(b.pages) == 0 {
		return err
	}
	return r.turn.stored(r.Clock.Now())
}

// errOthers says that another owner has stored all pages and is sealing the run.
var errOthers = errors.New("another owner seals the run")

// sealed says why a page could not be stored: the run was stopped, or another owner ends it.
// Otherwise a restore reopened it after that.
func (r *reextracting) sealed(ctx context.Context, unit model.Unit) error {
	there, err := r.Store.Records(ctx, r.job.ID, []model.Unit{unit})
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return errOthers
	}
	view, err := r.Client.Fresh(ctx)
	if err != nil {
		return err
	}
	if known := view.Import(r.job.ID); known == nil || known.Ended != 0 {
		return errStopped
	}
	return errSealed
}

// advance reports progress to the state from time to time.
func (r *reextracting) advance(ctx context.Context) error {
	now := r.Clock.Now()
	if now.Sub(r.told) < advanceEvery {
		return nil
	}
	r.told = now
	_, err := client.Do(ctx, r.Client, client.AdvanceReExtract{Job: r.job.ID,
		Done: r.tally.done()}, nil)
	return err
}

// tally counts the stored pages, in the order of units.
type tally struct {
	sum    client.ReExtracted
	seq    uint32 // of the current chain
	some   bool   // there is one
	failed bool   // one of its pages ended with an error
}

// add counts a page.
func (t *tally) add(receipt *model.Receipt) {
	if receipt == nil {
		return
	}
	if seq := receipt.Unit.Seq; !t.some || seq != t.seq {
		t.close()
		t.seq, t.some, t.failed = seq, true, false
	}
	switch receipt.Outcome {
	case model.Delivered:
		t.sum.Delivered++
		t.sum.Pages++
		t.sum.Items += uint64(receipt.Items)
	case model.Errored:
		t.sum.Pages++
		t.failed = true
	}
}

// close counts the link of the current chain.
func (t *tally) close() {
	if !t.some {
		return
	}
	if t.some = false; t.failed {
		t.sum.Errors++
	} else {
		t.sum.Success++
	}
}

// done returns the counts so far.
func (t *tally) done() client.ReExtracted { return t.sum }

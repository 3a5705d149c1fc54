package launch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// failuresAtOnce is how many failures of a run are read at a time.
const failuresAtOnce = 1_000

// Requeue launches a run over the failed links of an ended run (decision 42), for that run's
// customer. It uses the scraper's current recipe. Faults: Errors, job_not_found, scraper_not_found,
// and list_already_run if no link failed.
func (l *Launcher) Requeue(ctx context.Context, from *Caller, id ids.ID,
	maxCharge *int64) (client.Launched, error) {
	none := client.Launched{}
	job, err := l.History.Run(ctx, from.View, id)
	if err != nil {
		return none, fmt.Errorf("run %s: %w", id, err)
	}
	if job == nil || job.Trial() {
		return none, fault.Invalid(fault.JobNotFound, "id", "there is no such job")
	}
	own := *from
	if from.Call == nil { // without a key the caller may be an admin
		own.Principal.Customer = job.Customer
	}
	defer func() { from.Job = own.Job }()
	t, replay, err := l.claimCall(ctx, &own)
	if err != nil {
		return none, err
	}
	if replay != nil {
		return *replay, nil
	}
	defer t.end(ctx)
	scraper := from.View.Scraper(job.Scraper)
	if scraper == nil {
		return none, fault.Invalid(fault.ScraperNotFound, "id", "the scraper of the job is gone")
	}
	if !job.Closed {
		return none, fault.New(fault.ScraperAlreadyRunning, "job %s has not ended", job.ID)
	}
	if err := idle(from.View, scraper.ID); err != nil {
		return none, err
	}
	return t.requeue(ctx, job, scraper, maxCharge)
}

// requeue launches the run of a scraper that is idle.
func (t *intake) requeue(ctx context.Context, job *client.Job, scraper *client.Scraper,
	maxCharge *int64) (client.Launched, error) {
	none, view := client.Launched{}, t.from.View
	recipe, known := view.RecipeOf(job.Customer, &scraper.Spec, scraper.Tag)
	if !known {
		return none, fault.Invalid(fault.SchemaGone, "schema.id",
			"the scraper's schema is not there any more")
	}
	endpoint, _ := model.EndpointOf(recipe.Endpoint)
	if !endpoint.Charge.PaidOnly {
		if err := affordable(view, job.Customer); err != nil {
			return none, err
		}
	}
	run := client.LaunchRun{Customer: job.Customer, Scraper: scraper.ID, MaxCharge: maxCharge,
		Charge: endpoint.Charge, Daily: endpoint.Daily, Tiers: endpoint.Tiers, Rest: true,
		IgnoresRobots: recipe.Politeness.IgnoreRobots}
	var err error
	if run.Tiers == 0 {
		if run.Tiers, err = Tiers(view, &scraper.Spec); err != nil {
			return none, err
		}
	}
	if scraper.Spec.Type == model.SearchEngineSearch {
		if run.Search, err = t.Engine(&scraper.Spec.SourceConfig); err != nil {
			return none, err
		}
		run.IgnoresRobots = run.IgnoresRobots || run.Search.IgnoreRobots
	}
	taken, err := t.storeAddresses(ctx, &failed{store: t.Store, job: job}, nil)
	if err != nil {
		return none, err
	}
	if taken.links == 0 {
		return none, fault.New(fault.ListAlreadyRun, "no link of job %s failed", job.ID)
	}
	run.Links, run.Dropped = taken.links, taken.dropped
	return t.commit(ctx, run)
}

// failed are the addresses of a run's failed links, as they were listed.
type failed struct {
	store  Store
	job    *client.Job
	after  *model.Unit // unit of the last error read
	links  []rowstore.Link
	last   uint32 // last seq read, if some
	some   bool
	ending bool
}

func (f *failed) place() string { return fmt.Sprintf("a link of job %s", f.job.ID) }

func (f *failed) next(ctx context.Context) (listing, error) {
	for len(f.links) == 0 {
		if f.ending {
			return listing{}, io.EOF
		}
		if err := f.read(ctx); err != nil {
			return listing{}, err
		}
	}
	link := f.links[0]
	f.links = f.links[1:]
	return listing{url: link.URL}, nil
}

// read reads the next errors and their links. Several pages of a chain are one link.
func (f *failed) read(ctx context.Context) error {
	found, err := f.store.LinkErrors(ctx, f.job.ID, f.after, failuresAtOnce)
	if err != nil {
		return fmt.Errorf("errors of job %s: %w", f.job.ID, err)
	}
	var seqs []uint32
	for i := range found {
		if seq := found[i].Unit.Seq; !f.some || seq != f.last {
			seqs = append(seqs, seq)
			f.last, f.some = seq, true
		}
		f.after = &found[i].Unit
	}
	f.ending = len(found) < failuresAtOnce
	if len(seqs) == 0 {
		return nil
	}
	f.links, err = f.store.LinksAt(ctx, f.job.List, seqs)
	if errors.Is(err, rowstore.ErrListUnknown) {
		return fault.New(fault.ListAlreadyRun, "the list of job %s is no longer kept", f.job.ID)
	}
	if err != nil {
		return fmt.Errorf("list of job %s: %w", f.job.ID, err)
	}
	return nil
}

package ingest

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	removeEvery   = 10 * time.Second
	removedAtOnce = 64 // removals of one step
)

// RemovalConfig is what a Removal works with. Point may be left out.
type RemovalConfig struct {
	Client interface {
		client.Proposer
		View() *client.View
	}
	Store Retaining
	// Point is called at named places, "work.remove.before_delete", "work.remove.after_delete" and
	// "work.remove.before_forget", so that tests can end the process there.
	Point func(name string)
}

// Removal is the removal of the rows of runs that were deleted, and of scrapers that were deleted
// with them. No read shows them any more. Page records stay, so that charges can be recounted. What
// the state names is removed, however often, and only then the state forgets it.
func Removal(config RemovalConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Remove, Recurring: true, AtStart: true,
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			more, err := config.step(ctx)
			if err != nil {
				return work.Outcome{}, fmt.Errorf("ingest: rows of what was deleted: %w", err)
			}
			if more {
				return work.GoOn(nil), nil
			}
			return work.Rest(nil, removeEvery), nil
		}}
}

// step removes some, and says whether there are more. Those of a scraper that has a run which is
// not closed wait: until then pages of it are stored.
func (c *RemovalConfig) step(ctx context.Context) (more bool, err error) {
	runs, err := c.stepRuns(ctx)
	if err != nil {
		return false, err
	}
	view := c.Client.View()
	var due []*client.Removal
	view.Removals(func(r *client.Removal) bool {
		if len(view.OpenJobsOf(r.Scraper)) == 0 {
			due = append(due, r)
		}
		return len(due) < removedAtOnce
	})
	if len(due) == 0 {
		return runs, nil
	}
	forget := client.ForgetRemovals{}
	for _, r := range due {
		if err := c.remove(ctx, r); err != nil {
			return false, err
		}
		forget.Removals = append(forget.Removals,
			client.RemovalRef{Group: r.Group, Scraper: r.Scraper})
	}
	c.Point("work.remove.before_forget")
	_, err = client.Do(ctx, c.Client, forget, nil)
	return runs || len(due) == removedAtOnce, err
}

// stepRuns removes the rows of some deleted runs, and says whether there are more. A run that is
// not closed waits: until then pages of it are stored.
func (c *RemovalConfig) stepRuns(ctx context.Context) (more bool, err error) {
	view := c.Client.View()
	var due []ids.ID
	view.DeletedHeld(func(d *client.DeletedRun) bool {
		if job := view.Job(d.Job); job == nil || job.Closed { // none has left the state open
			due = append(due, d.Job)
		}
		return len(due) < removedAtOnce
	})
	if len(due) == 0 {
		return false, nil
	}
	for _, job := range due {
		if err := c.removeRun(ctx, job); err != nil {
			return false, err
		}
	}
	c.Point("work.remove.before_forget")
	_, err = client.Do(ctx, c.Client, client.NoteRowsRemoved{Jobs: due}, nil)
	return len(due) == removedAtOnce, err
}

// removeRun removes the rows of a run, unless a restore has brought it back meanwhile.
func (c *RemovalConfig) removeRun(ctx context.Context, job ids.ID) error {
	if c.Client.View().DeletedRun(job) == nil {
		return nil
	}
	c.Point("work.remove.before_delete")
	if err := c.Store.DeleteJob(ctx, job, false); err != nil {
		return err
	}
	c.Point("work.remove.after_delete")
	return nil
}

// remove removes the rows of a scraper in a group. A restore may bring the scraper back meanwhile:
// then it ends.
func (c *RemovalConfig) remove(ctx context.Context, r *client.Removal) error {
	scope := rowstore.Scope{Group: r.Group, Scraper: r.Scraper}
	for c.Client.View().Removal(r.Group, r.Scraper) != nil {
		jobs, err := c.Store.Holding(ctx, scope, holdingAtOnce)
		if err != nil || len(jobs) == 0 {
			return err
		}
		for _, job := range jobs {
			c.Point("work.remove.before_delete")
			if err := c.Store.DeleteJob(ctx, job, false); err != nil {
				return err
			}
			c.Point("work.remove.after_delete")
		}
	}
	return nil
}

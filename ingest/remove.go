package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	removeEvery   = 10 * time.Second
	removedAtOnce = 64 // removals per step
)

// RemovalConfig configures Removal. Point may be left out.
type RemovalConfig struct {
	Client interface {
		client.Proposer
		View() *client.View
	}
	Store   Removing
	History *client.History
	Clock   clock.Clock
	// Point is called at named places, so that tests can end the process there. They are
	// "work.remove.before_members", "work.remove.before_delete", "work.remove.after_delete",
	// "work.remove.before_drop", "work.remove.after_condense", "work.remove.after_erase" and
	// "work.remove.before_forget".
	Point func(name string)

	passed *passed[string] // customers, and ids of deleted things
}

// Removal removes what was deleted: the rows of runs, scrapers and groups, and the scrapers of
// large groups. No read shows any of it any more. Page records stay, so that charges can be
// recounted; of a removed customer only their sums stay. The state forgets a thing only after its
// removal, which may be repeated until then.
func Removal(config RemovalConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	config.passed = newPassed[string]()
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

// step removes some things, and says whether there are more. What cannot be removed is reported,
// and retried after all others.
func (c *RemovalConfig) step(ctx context.Context) (more bool, failed error) {
	for _, some := range []func(context.Context) (bool, error){c.stepGroups, c.stepRuns,
		c.stepImports, c.stepScrapers, c.stepCustomers} {
		others, err := some(ctx)
		failed = cmp.Or(failed, err)
		more = more || others
	}
	if !more && failed == nil {
		c.passed.forget()
	}
	return more, failed
}

// tried says whether something was removed. It adds a failure to failed, and passes over what until
// all others are removed.
func (c *RemovalConfig) tried(what string, err error, failed *error) bool {
	if err = c.passed.note(what, err); err != nil {
		*failed = cmp.Or(*failed, fmt.Errorf("%s: %w", what, err))
	}
	return err == nil
}

// stepScrapers removes the rows of some deleted scrapers, and says whether there are more. A
// scraper waits while one of its runs is not closed, since pages of that run may still be stored.
func (c *RemovalConfig) stepScrapers(ctx context.Context) (more bool, failed error) {
	view := c.Client.View()
	var due []*client.Removal
	view.Removals(func(r *client.Removal) bool {
		if len(view.OpenJobsOf(r.Scraper)) == 0 && !c.passed.has(nameRemoval(r)) {
			due = append(due, r)
		}
		return len(due) < removedAtOnce
	})
	forget := client.ForgetRemovals{}
	for _, r := range due {
		if c.tried(nameRemoval(r), c.remove(ctx, r), &failed) {
			forget.Removals = append(forget.Removals,
				client.RemovalRef{Group: r.Group, Scraper: r.Scraper})
		}
	}
	if len(forget.Removals) > 0 {
		c.Point("work.remove.before_forget")
		_, err := client.Do(ctx, c.Client, forget, nil)
		failed = cmp.Or(failed, err)
	}
	return len(due) == removedAtOnce, failed
}

func nameRemoval(r *client.Removal) string {
	return fmt.Sprintf("scraper %s in group %s", r.Scraper, r.Group)
}

// stepGroups removes the rest of some deleted groups, and says whether there are more. It first
// removes their scrapers, some with each command, and then their rows if those are deleted, too. A
// group whose rows are deleted waits while one of its runs is not closed.
func (c *RemovalConfig) stepGroups(ctx context.Context) (more bool, failed error) {
	view := c.Client.View()
	var due []*client.DeletedGroup
	view.DeletedGroups(func(d *client.DeletedGroup) bool {
		if (!d.Rows || hasMembers(view, d.Group) || !openIn(view, d)) &&
			!c.passed.has(nameGroup(d)) {
			due = append(due, d)
		}
		return len(due) < removedAtOnce
	})
	for _, group := range due {
		c.tried(nameGroup(group), c.removeGroup(ctx, group), &failed)
	}
	return len(due) == removedAtOnce, failed
}

func nameGroup(d *client.DeletedGroup) string { return "group " + d.Group.String() }

func (c *RemovalConfig) removeGroup(ctx context.Context, group *client.DeletedGroup) error {
	if err := c.removeMembers(ctx, group.Group); err != nil {
		return err
	}
	if group.Rows && openIn(c.Client.View(), group) {
		return nil
	}
	if group.Rows {
		if err := c.removeRows(ctx, group.Group); err != nil {
			return err
		}
	}
	c.Point("work.remove.before_forget")
	_, err := client.Do(ctx, c.Client, client.ForgetGroup{Group: group.Group}, nil)
	return err
}

// hasMembers says whether a group has scrapers.
func hasMembers(view *client.View, group ids.ID) (has bool) {
	view.GroupScrapers(group, func(*client.Scraper) bool { has = true; return false })
	return has
}

// removeMembers removes the scrapers of a deleted group.
func (c *RemovalConfig) removeMembers(ctx context.Context, group ids.ID) error {
	for {
		view := c.Client.View()
		if !hasMembers(view, group) || view.DeletedGroup(group) == nil {
			return nil
		}
		c.Point("work.remove.before_members")
		if _, err := client.Do(ctx, c.Client, client.DeleteMembers{Group: group}, nil); err != nil {
			return err
		}
	}
}

// openIn says whether a run that stores rows in a deleted group is not closed.
func openIn(view *client.View, group *client.DeletedGroup) bool {
	for _, job := range view.OpenJobsOfCustomer(group.Customer) {
		if job.Group == group.Group {
			return true
		}
	}
	return false
}

// removeRows removes the rows of a deleted group, unless a restore brings it back in the meantime.
func (c *RemovalConfig) removeRows(ctx context.Context, group ids.ID) error {
	return c.clear(ctx, rowstore.Scope{Group: group}, func(view *client.View) bool {
		return view.DeletedGroup(group) != nil
	})
}

// stepRuns removes the rows of some deleted runs, and says whether there are more. A run that is
// not closed waits, since its pages may still be stored.
func (c *RemovalConfig) stepRuns(ctx context.Context) (more bool, failed error) {
	view := c.Client.View()
	var due []ids.ID
	view.DeletedHeld(func(d *client.DeletedRun) bool {
		if job := view.Job(d.Job); (job == nil || job.Closed) && // only closed runs leave the state
			!c.passed.has(nameRun(d.Job)) {
			due = append(due, d.Job)
		}
		return len(due) < removedAtOnce
	})
	more = len(due) == removedAtOnce
	due = slices.DeleteFunc(due, func(job ids.ID) bool {
		return !c.tried(nameRun(job), c.removeRun(ctx, job), &failed)
	})
	if len(due) > 0 {
		c.Point("work.remove.before_forget")
		_, err := client.Do(ctx, c.Client, client.NoteRowsRemoved{Jobs: due}, nil)
		failed = cmp.Or(failed, err)
	}
	return more, failed
}

func nameRun(job ids.ID) string { return "run " + job.String() }

// stepImports removes some of the rows that uploads hide, and says whether there are more. Uploads
// that were stopped or failed leave nothing.
func (c *RemovalConfig) stepImports(ctx context.Context) (more bool, failed error) {
	var due []*client.Import
	c.Client.View().EndedImports(func(i *client.Import) bool {
		if !c.passed.has(nameUpload(i)) {
			due = append(due, i)
		}
		return len(due) < removedAtOnce
	})
	forget := client.ForgetImports{}
	for _, i := range due {
		if c.tried(nameUpload(i), c.removeHidden(ctx, i), &failed) {
			forget.Jobs = append(forget.Jobs, i.Job)
		}
	}
	if len(forget.Jobs) > 0 {
		c.Point("work.remove.before_forget")
		_, err := client.Do(ctx, c.Client, forget, nil)
		failed = cmp.Or(failed, err)
	}
	return len(due) == removedAtOnce, failed
}

func nameUpload(i *client.Import) string { return "rows that upload " + i.Job.String() + " hides" }

// removeHidden removes the rows that an upload hides, unless a restore has changed the upload in
// the meantime.
func (c *RemovalConfig) removeHidden(ctx context.Context, i *client.Import) error {
	for _, job := range i.Hidden {
		if now := c.Client.View().Import(i.Job); now == nil || now.Ended != i.Ended {
			return nil
		}
		c.Point("work.remove.before_delete")
		own := job == i.Job
		if own { // an owner that was paused cannot store any more
			if err := c.Store.Seal(ctx, job, nil); err != nil {
				return err
			}
		}
		if err := c.Store.DeleteJob(ctx, job, own); err != nil {
			return err
		}
		c.Point("work.remove.after_delete")
	}
	return nil
}

// removeRun removes the rows of a run, unless a restore has brought it back in the meantime.
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

// remove removes the rows of a scraper in a group. It ends early if a restore brings the scraper
// back.
func (c *RemovalConfig) remove(ctx context.Context, r *client.Removal) error {
	scope := rowstore.Scope{Group: r.Group, Scraper: r.Scraper}
	return c.clear(ctx, scope, func(view *client.View) bool {
		return view.Removal(r.Group, r.Scraper) != nil
	})
}

// clear removes the rows of a scope as long as due says so.
func (c *RemovalConfig) clear(ctx context.Context, scope rowstore.Scope,
	due func(*client.View) bool) error {
	for due(c.Client.View()) {
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

package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	eraseEvery   = 10 * time.Second
	erasedAtOnce = 256   // runs per query of the row store
	listsAtOnce  = 1_000 // link lists that are looked up together
)

// Removing is what the removal of deleted things needs from the row store.
type Removing interface {
	Retaining
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	AllLists(ctx context.Context) ([]rowstore.ListInfo, error)
	DropList(ctx context.Context, list ids.ID) error
	Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error)
	Condense(ctx context.Context, job ids.ID, sum rowstore.Recount, at time.Time) error
	JobsOf(ctx context.Context, customer string, after ids.ID, most int) ([]rowstore.Job, error)
	EraseJob(ctx context.Context, job ids.ID) error
}

// ErasureConfig configures Erasure. Point may be left out.
type ErasureConfig struct {
	Client interface {
		client.Proposer
		View() *client.View
	}
	// Point is called at "work.erase.before_erase", so that tests can end the process there.
	Point func(name string)
}

// Erasure removes what the state holds of removed customers, some with each command. It takes
// nothing from the row store, so it waits for nothing.
func Erasure(config ErasureConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Erase, Recurring: true, AtStart: true,
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			view := config.Client.View()
			for _, customer := range leavingCustomers(view, view.Leaves) {
				if err := config.erase(ctx, customer); err != nil {
					return work.Outcome{}, fmt.Errorf("ingest: erase a customer: %w", err)
				}
			}
			return work.Rest(nil, eraseEvery), nil
		}}
}

// leavingCustomers returns some of the removed customers that still have something to remove and
// for which can is true.
func leavingCustomers(view *client.View, can func(customer string) bool) (customers []string) {
	view.CustomersRemoving(func(customer *client.Customer) bool {
		if can(customer.Ref) {
			customers = append(customers, customer.Ref)
		}
		return len(customers) < removedAtOnce
	})
	return customers
}

func (c *ErasureConfig) erase(ctx context.Context, customer string) error {
	for {
		view := c.Client.View()
		if !view.Leaves(customer) || !view.Customer(customer).Removed() {
			return nil
		}
		c.Point("work.erase.before_erase")
		if _, err := client.Do(ctx, c.Client, client.EraseCustomer{Customer: customer},
			nil); err != nil {
			return err
		}
	}
}

// stepCustomers removes what the row store holds of removed customers. It waits until nothing can
// be added and the rows of deleted groups and scrapers are gone. A customer whose removal fails is
// reported, and retried after all others.
func (c *RemovalConfig) stepCustomers(ctx context.Context) (more bool, failed error) {
	view := c.Client.View()
	leaving := leavingCustomers(view, func(customer string) bool {
		return !c.passed.has(nameCustomer(customer)) && !view.Leaves(customer) &&
			len(view.DeletedGroupsOf(customer)) == 0 && len(view.RemovalsOf(customer)) == 0 &&
			len(view.HarvestsFor(customer)) == 0 && len(view.Imports(customer)) == 0 &&
			len(view.OpenJobsOfCustomer(customer)) == 0
	})
	for _, customer := range leaving {
		c.tried(nameCustomer(customer), c.eraseStored(ctx, customer), &failed)
	}
	return len(leaving) == removedAtOnce, failed
}

func nameCustomer(ref string) string { return "customer " + ref }

// eraseStored removes all that the row store holds of a customer, and tells the state so.
func (c *RemovalConfig) eraseStored(ctx context.Context, customer string) error {
	if err := c.eraseLists(ctx, customer); err != nil {
		return err
	}
	if err := c.eraseRuns(ctx, customer); err != nil {
		return err
	}
	c.Point("work.remove.before_forget")
	_, err := client.Do(ctx, c.Client, client.EraseCustomer{Customer: customer, Rows: true}, nil)
	return err
}

// eraseLists removes the link lists of a customer's runs. Lists of calls that never became runs
// belong to nobody, and are removed as such.
func (c *RemovalConfig) eraseLists(ctx context.Context, customer string) error {
	lists, err := c.Store.AllLists(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(lists, listsAtOnce) {
		var ask []ids.ID
		for _, list := range some {
			ask = append(ask, list.ID)
		}
		theirs, err := c.History.ListsOf(ctx, c.Client.View(), customer, ask)
		if err != nil {
			return err
		}
		for _, list := range theirs {
			if !c.Client.View().Customer(customer).Removed() {
				return nil
			}
			c.Point("work.remove.before_drop")
			if err := c.Store.DropList(ctx, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// eraseRuns removes what is stored of a customer's runs: rows, page records with link errors, and
// charges. The sums of records stay for the recount. Runs that a restore undid are removed
// separately.
func (c *RemovalConfig) eraseRuns(ctx context.Context, customer string) error {
	for after := (ids.ID{}); ; {
		jobs, err := c.Store.JobsOf(ctx, customer, after, erasedAtOnce)
		if err != nil || len(jobs) == 0 {
			return err
		}
		for _, job := range jobs {
			after = job.ID
			view := c.Client.View()
			if !view.Customer(customer).Removed() {
				return nil // a restore has brought the customer back
			}
			if view.UndoneRun(job.ID) != nil {
				continue
			}
			sum, err := c.Store.Recount(ctx, job.ID)
			if err != nil {
				return err
			}
			if err := c.Store.Condense(ctx, job.ID, sum, c.Clock.Now()); err != nil {
				return err
			}
			c.Point("work.remove.after_condense")
			if err := c.Store.EraseJob(ctx, job.ID); err != nil {
				return err
			}
			c.Point("work.remove.after_erase")
		}
	}
}

//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// Paces of the load: with these a run takes about ten to twenty seconds on any machine.
const (
	loadHosts = 10
	loadRate  = 2 // request starts per second and host
	minGap    = 250 * time.Millisecond
	aboutGoal = 5 * time.Minute // for all runs to end once the fault is over
	lookEvery = 200 * time.Millisecond
)

// loadArgs are the nodes' flags.
func loadArgs() []string {
	return []string{"--host-rate", fmt.Sprint(loadRate), "--host-connections", "2"}
}

// job is one run of the load, with its own customer and web.
type job struct {
	name     string
	customer string
	web      *synthweb.Web
	links    int
	chains   bool  // its addresses are chains of listings
	wallet   int64 // micros; 0: plenty
	charge   int64 // cap of its charge; 0: none
	stopAt   int64 // pages after which it is stopped; 0: never
	ends     model.StopReason

	who   suite.Client
	order suite.Order
	run   suite.Launched
}

// newJobs makes the load for a seed. It has pages with all kinds of trouble, chains, and runs that
// are ended by their customer, by their cap or by an empty wallet. The label distinguishes the
// customers and webs of one cluster's loads.
func newJobs(t *testing.T, network *netns.Network, label string, seed uint64) []*job {
	t.Helper()
	rough := suite.Rough(loadHosts, 25)
	plain := synthweb.Config{Hosts: loadHosts, PagesPerHost: 20, PageBytes: []int{3000},
		MinLatency: 5 * time.Millisecond,
		MaxLatency: 60 * time.Millisecond}
	listings := synthweb.Config{Hosts: loadHosts, PagesPerHost: 3, ChainPages: 12, ItemsPerPage: 4,
		PageBytes: []int{3000}, MaxLatency: 60 * time.Millisecond,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 5},
			{Class: synthweb.ChangingListing, Weight: 4},
			{Class: synthweb.BrokenListing, Weight: 1}}}
	jobs := []*job{
		{name: "rough", links: loadHosts * 25},
		{name: "chains", links: loadHosts * 3, chains: true},
		{name: "stopped", links: loadHosts * 20, stopAt: 60, ends: model.StoppedByCustomer},
		{name: "capped", links: loadHosts * 20, charge: 120*suite.PlainPrice + 1,
			ends: model.MaxChargeReached},
		{name: "poor", links: loadHosts * 20, wallet: 100*suite.PlainPrice + suite.PlainPrice/2,
			ends: model.InsufficientBalance},
	}
	for i, config := range []synthweb.Config{rough, listings, plain, plain, plain} {
		jobs[i].customer = jobs[i].name + label
		// With its own suffix each host is its own domain, so that a load is spread over the
		// shards.
		config.Seed, config.Suffix = seed*10+uint64(i), jobs[i].customer
		jobs[i].web = newWeb(t, network, config)
	}
	return jobs
}

// whole lets every run continue to the end of its list.
func whole(jobs []*job) {
	for _, j := range jobs {
		j.wallet, j.charge, j.stopAt, j.ends = 0, 0, 0, ""
	}
}

// websOf returns the jobs' webs.
func websOf(jobs []*job) (webs []*synthweb.Web) {
	for _, j := range jobs {
		webs = append(webs, j.web)
	}
	return webs
}

// transient says whether a call may be repeated unchanged: its result is unknown, or its time has
// not come.
func transient(err error) bool {
	problem := (*suite.Problem)(nil)
	if !errors.As(err, &problem) {
		return true // no answer
	}
	return problem.Status >= 500 || problem.Status == http.StatusTooManyRequests ||
		problem.Code == "idempotency_in_flight"
}

// again repeats calls until they succeed or fail for good.
func again(ctx context.Context, what string, calls func(ctx context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 40*time.Second)
		err := calls(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if !transient(err) || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(lookEvery):
		}
	}
}

// launch makes the customer and the run. Each call has one idempotency key over all its tries.
func (j *job) launch(ctx context.Context, c *cluster.Cluster, admin suite.Client) error {
	token, err := mint(ctx, c, "--customer", j.customer)
	if err != nil {
		return err
	}
	j.who = clientOf(c, token)
	urls := slices.Collect(j.web.URLs(j.links))
	j.order = suite.ProductOrder(j.who, urls)
	if j.chains {
		j.order = suite.ListingOrder(j.who, urls, suite.NextLink())
	}
	j.order.MaxCharge = j.charge
	key := suite.NewKey()
	return again(ctx, "launch of "+j.name, func(ctx context.Context) error {
		ref, err := j.who.Whoami(ctx)
		if err != nil {
			return err
		}
		micros := j.wallet
		if micros == 0 {
			micros = suite.Plenty
		}
		if err := admin.Again(key).Adjust(ctx, ref, micros); err != nil {
			return err
		}
		group, err := j.who.Again(key).PutGroup(ctx, j.name)
		if err != nil {
			return err
		}
		query, err := j.order.ListQuery(ctx, j.who.Again(key), group, j.name)
		if err != nil {
			return err
		}
		j.run, err = j.who.Again(key).RunList(ctx, query, j.order.Body())
		return err
	})
}

// far waits until that many of the run's pages have ended, or the run has.
func (j *job) far(ctx context.Context, pages int64) error {
	for {
		var record recount.Job
		err := again(ctx, "record of "+j.name, func(ctx context.Context) (err error) {
			record, err = j.who.Job(ctx, j.run)
			return err
		})
		if err != nil || record.TotalRequests >= pages || model.JobState(record.State).Final() {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has %d of %d pages: %w", j.name, record.TotalRequests, pages,
				ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// live acts as the customer during the run: it stops the run if planned, and checks the wallet.
func (j *job) live(ctx context.Context) error {
	if j.stopAt > 0 {
		if err := j.far(ctx, j.stopAt); err != nil {
			return err
		}
		return again(ctx, "stop of "+j.name, func(ctx context.Context) error {
			return j.who.StopRun(ctx, j.run.ScraperID)
		})
	}
	for {
		var wallet recount.Wallet
		var record recount.Job
		err := again(ctx, "wallet of "+j.name, func(ctx context.Context) (err error) {
			if wallet, err = j.who.Wallet(ctx); err == nil {
				record, err = j.who.Job(ctx, j.run)
			}
			return err
		})
		if err != nil {
			return err
		}
		if wallet.BalanceMicros < 0 || wallet.FreeRequestsRemaining < 0 {
			return fmt.Errorf("%s: crawling took the wallet below zero: %+v", j.name, wallet)
		}
		if model.JobState(record.State).Final() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still %s: %w", j.name, record.State, ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// verify compares the product's report of the run with the recount.
func (j *job) verify(ctx context.Context, c *cluster.Cluster,
	expected recount.Run) (recount.Summary, error) {
	var reported recount.Reported
	var wallet recount.Wallet
	var ledger []recount.Transaction
	err := again(ctx, "report of "+j.name, func(ctx context.Context) (err error) {
		if reported, err = j.who.Report(ctx, j.run); err != nil {
			return err
		}
		if wallet, err = j.who.Wallet(ctx); err != nil {
			return err
		}
		ledger, err = j.who.Ledger(ctx)
		return err
	})
	if err != nil {
		return recount.Summary{}, err
	}
	if reported.Records, err = readRecords(ctx, c, j.run.JobID); err != nil {
		return recount.Summary{}, err
	}
	expected.Web, expected.URLs, expected.Pagination = j.web, j.order.URLs, j.order.Pagination
	expected.Price, expected.Free = suite.PlainPrice, suite.FreeGrant
	var problems []error
	if reason := model.StopReason(reported.Job.StopReason); reason == j.ends && j.ends != "" {
		expected.Partial = true
	} else if reason != "" || j.stopAt == 0 && j.ends != "" { // a stop may come too late
		problems = append(problems,
			fmt.Errorf("the run ended %q, want %q: %+v", reason, j.ends, reported.Job))
	}
	sum, err := recount.Check(expected, reported)
	if err := errors.Join(append(problems, err,
		recount.CheckWallet(wallet, ledger))...); err != nil {
		return sum, fmt.Errorf("%s: %w", j.name, err)
	}
	return sum, nil
}

// eachJob calls do for all jobs concurrently.
func eachJob(jobs []*job, do func(*job) error) error {
	errs := make([]error, len(jobs))
	var done sync.WaitGroup
	for i, j := range jobs {
		done.Go(func() { errs[i] = do(j) })
	}
	done.Wait()
	return errors.Join(errs...)
}

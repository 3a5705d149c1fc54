package launch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	// gatherTime bounds looking up a group's hosts and writing its lists together. Scrapers that
	// are not ready by then are skipped.
	gatherTime = 45 * time.Second
	// hostsAtOnce hosts are looked up, and listsAtOnce lists read or written, in parallel.
	hostsAtOnce = 32
	listsAtOnce = 8
)

// StartGroup launches a run of each scraper of a group that can run, as many as the customer may
// have open. It skips the others, each with a reason. One command makes all runs, so a repeated
// call returns the original ones. maxCharge, in micros, caps all runs together (see divide); nil:
// no cap. Faults: not_found, customer_blocked, out_of_space and those of idempotency keys.
func (l *Launcher) StartGroup(ctx context.Context, from *Caller, id ids.ID,
	maxCharge *int64) (client.LaunchedRuns, error) {
	none := client.LaunchedRuns{}
	t := l.newIntake(from)
	replay, err := client.Begin[client.LaunchRuns](ctx, l.Client, t.claim(), t.call)
	if err != nil {
		return none, err
	}
	if replay != nil {
		return *replay, nil
	}
	t.keepClaim(ctx)
	defer t.end(ctx)
	group, err := ownership.Group(from.View, from.Customer, id, "id")
	if err != nil {
		return none, err
	}
	g := newGathering(l, from.View, from.Customer)
	from.View.GroupScrapers(group.ID, func(s *client.Scraper) bool {
		g.add(s)
		return ctx.Err() == nil
	})
	if maxCharge != nil {
		g.priceSites(ctx)
	}
	g.leaveOut(maxCharge)
	if maxCharge != nil {
		if err := g.recall(ctx); err != nil {
			return none, err
		}
	}
	if err := g.makeReady(ctx); err != nil {
		g.dropLists(ctx)
		return none, err
	}
	g.divide(maxCharge)
	launched, err := t.commitGroup(ctx, g.command(group.ID))
	if !t.maybe {
		g.keepLists(launched.Jobs)
		g.dropLists(ctx)
	}
	return launched, err
}

// commitGroup proposes the command that makes the runs.
func (t *intake) commitGroup(ctx context.Context, runs client.LaunchRuns) (client.LaunchedRuns,
	error) {
	if err := t.hold(ctx); err != nil {
		return client.LaunchedRuns{}, err
	}
	launched, err := client.Do(ctx, t.Client, runs, t.under())
	t.made = err == nil
	t.maybe = uncertain(err)
	return launched, err
}

// gathering prepares the scrapers of a group for the command that launches them. Its memory is
// bounded by what one command may hold, however large the group is.
type gathering struct {
	*Launcher
	view     *client.View
	customer string
	broke    bool  // the customer cannot pay for a page
	gated    bool  // the customer's plan lacks starts of this kind
	room     int   // runs that the customer may still open
	free     int64 // free requests that are left
	// what is not ready in this time is skipped
	within time.Duration

	runs    []member
	skipped []client.SkippedScraper
	unnamed uint32
}

// member is a scraper that is about to be launched.
type member struct {
	run     client.GroupRun
	begin   storedAddresses
	engine  *model.SearchEngine
	host    string // of the start address; "": the links of a site
	reason  client.SkipReason
	written bool  // its list is stored
	failed  bool  // its list failed once
	page    int64 // price of its cheapest page, in micros
	free    bool  // free requests, if any are left, pay for its pages
	first   int64 // price of its first page: 0 if a free request is left for it
	listed  int64 // price of a page of each of its links, summed; 0: all cost the same
	past    int64 // charge of its last run, in micros; 0: nothing, or unknown
}

func newGathering(l *Launcher, v *client.View, customer string) *gathering {
	g := &gathering{Launcher: l, view: v, customer: customer,
		broke: affordable(v, customer) != nil, within: gatherTime,
		room: client.MaxRunsAtOnce - len(v.OpenJobsOfCustomer(customer))}
	if wallet := v.Wallet(customer); wallet != nil {
		g.free = wallet.Free
	}
	return g
}

// skip records a scraper that is not launched.
func (g *gathering) skip(scraper ids.ID, reason client.SkipReason) {
	if len(g.skipped) == client.MaxSkips {
		g.unnamed++
		return
	}
	g.skipped = append(g.skipped, client.SkippedScraper{Scraper: scraper, Reason: reason})
}

// add adds a scraper, or skips it if the state has a reason.
func (g *gathering) add(s *client.Scraper) {
	m := member{}
	if reason := g.look(s, &m); reason != 0 {
		g.skip(s.ID, reason)
		return
	}
	g.runs = append(g.runs, m)
}

// look makes a scraper a member, unless there is a reason to skip it. Cheap checks come first.
func (g *gathering) look(s *client.Scraper, m *member) client.SkipReason {
	switch {
	case g.gated:
		return client.SkipPlan
	case s.Spec.Type == model.File:
		return client.SkipFile
	case s.ListRun:
		return client.SkipNoSource
	case idle(g.view, s.ID) != nil:
		return client.SkipRunning
	case g.broke:
		return client.SkipUnaffordable
	case len(g.runs) >= g.room:
		return client.SkipLimit
	}
	recipe, known := g.view.RecipeOf(g.customer, &s.Spec, s.Tag)
	if !known {
		return client.SkipSchema
	}
	if len(extract.Validate(recipe)) > 0 {
		return client.SkipInvalid
	}
	tiers, err := Tiers(g.view, &s.Spec)
	if err != nil {
		return client.SkipFor(err)
	}
	if reason := g.lookAtSource(s, m); reason != 0 {
		return reason
	}
	endpoint, _ := model.EndpointOf(recipe.Endpoint)
	if prices := g.view.CurrentPrices(); prices != nil &&
		!sold(prices.Rows, tiers, endpoint.Charge) {
		return client.SkipInvalid
	}
	m.run = client.GroupRun{Job: g.IDs.New(), Entry: g.IDs.New(), List: g.IDs.New(),
		Scraper: s.ID, Tiers: tiers, Charge: endpoint.Charge,
		IgnoresRobots: recipe.Politeness.IgnoreRobots || m.engine != nil && m.engine.IgnoreRobots}
	m.page, m.free = g.pageOf(m, m.host), !m.run.Charge.PaidOnly
	return 0
}

// lookAtSource sets what a member reads, unless there is a reason to skip it.
func (g *gathering) lookAtSource(s *client.Scraper, m *member) client.SkipReason {
	if site := SiteOf(g.view, s); site != nil {
		m.begin = g.siteRun(site)
		if site.Links == 0 {
			return client.SkipNoSource
		}
		return 0
	}
	begin, engine, err := g.beginning(s)
	if err != nil {
		return client.SkipFor(err)
	}
	if len(begin.urls) == 0 || begin.urls[0] == "" {
		return client.SkipNoSource
	}
	canonical, err := address.Canonical(begin.urls[0])
	if err == nil {
		err = g.Guard.CheckURL(begin.urls[0])
	}
	if err != nil {
		return client.SkipFor(fault.New(fault.StartURLsUnreachable, ""))
	}
	m.begin, m.engine, m.host = begin, engine, address.HostOf(canonical)
	return 0
}

// pageOf is the least that a page of a run costs at a host, before free requests. Without a host it
// is the price for domains without their own price.
func (g *gathering) pageOf(m *member, host string) int64 {
	prices := g.view.CurrentPrices()
	if prices == nil || g.view.Settings().BillingOff {
		return 0
	}
	page, _ := prices.Rows.Cheapest(m.run.Tiers, prices.Rows.At(m.run.Charge, host))
	return page
}

// priceSites prices the pages of each site by its first link, where domains have their own prices.
// If the link cannot be read, the tiers' price stays; writing the list will report why.
func (g *gathering) priceSites(ctx context.Context) {
	if prices := g.view.CurrentPrices(); prices == nil || len(prices.Rows.Domains()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.within)
	defer cancel()
	_ = g.each(ctx, func(ctx context.Context, m *member) error {
		if site, ok := m.begin.(*siteAddresses); ok {
			if link, err := site.first(ctx); err == nil {
				m.page = g.pageOf(m, address.AuthorityOf(link.canonical))
			}
		}
		return nil
	})
}

// makeReady looks up the hosts and writes the lists.
func (g *gathering) makeReady(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, g.within)
	defer cancel()
	hosts := map[string]client.SkipReason{}
	for i := range g.runs {
		if host := g.runs[i].host; host != "" {
			hosts[host] = 0
		}
	}
	g.checkHosts(within, hosts)
	for i := range g.runs {
		g.runs[i].reason = hosts[g.runs[i].host]
	}
	for range 2 { // a failed list is tried once more
		if err := g.each(within, g.writeList); err != nil && within.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("launch a group: %w", ctx.Err())
	}
	ready := g.runs[:0]
	for i := range g.runs {
		switch m := g.runs[i]; {
		case m.reason != 0:
			g.skip(m.run.Scraper, m.reason)
		case !m.written:
			g.skip(m.run.Scraper, client.SkipLimit) // no time was left
		default:
			ready = append(ready, m)
		}
	}
	g.runs = ready
	return nil
}

// checkHosts sets why hosts are not begun at. It leaves a third of the time for the lists. Hosts
// that it had no time to ask get SkipLimit, as nobody knows whether they can be reached.
func (g *gathering) checkHosts(ctx context.Context, hosts map[string]client.SkipReason) {
	ctx, cancel := context.WithTimeout(ctx, g.within*2/3)
	defer cancel()
	var mu sync.Mutex
	names := make(chan string, len(hosts))
	for host := range hosts {
		names <- host
	}
	close(names)
	var workers sync.WaitGroup
	for range min(hostsAtOnce, len(hosts)) {
		workers.Go(func() {
			for host := range names {
				asking, cancel := context.WithTimeout(ctx, reachTime)
				err := g.Guard.CheckHost(asking, g.customer, host)
				cancel()
				reason := client.SkipReason(0)
				switch {
				case ctx.Err() != nil:
					reason = client.SkipLimit
				case err != nil:
					reason = client.SkipUnreachable
				}
				mu.Lock()
				hosts[host] = reason
				mu.Unlock()
			}
		})
	}
	workers.Wait()
}

// each calls do for each member that is neither skipped nor ready, several in parallel. It returns
// the first error.
func (g *gathering) each(ctx context.Context, do func(context.Context, *member) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan int, len(g.runs))
	for i := range g.runs {
		if g.runs[i].reason == 0 && !g.runs[i].written {
			places <- i
		}
	}
	close(places)
	var workers sync.WaitGroup
	for range listsAtOnce {
		workers.Go(func() {
			for i := range places {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, &g.runs[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// writeList writes a member's list. It skips the member if an address is invalid, or if the list
// fails twice although the store works. Its errors are the store's.
func (g *gathering) writeList(ctx context.Context, m *member) error {
	m.listed = 0
	m.begin.rewind()
	t := &intake{Launcher: g.Launcher, list: m.run.List}
	taken, err := t.storeAddresses(ctx, m.begin, g.weighing(m))
	switch code := fault.CodeOf(err); {
	case err == nil:
		m.run.Links, m.written = taken.links, true
		return nil
	case t.writer != nil:
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		_ = t.writer.Abort(clean) // what stays is removed as an orphan
		if code == fault.InvalidURL || code == fault.StartURLsUnreachable {
			m.reason = client.SkipUnreachable
			return nil
		}
	}
	if ctx.Err() != nil || g.tryStore(ctx) != nil {
		return err
	}
	m.run.List = g.IDs.New()
	if m.failed {
		m.reason = client.SkipLimit
		g.Logger.Error("a scraper is not launched: its links could not be listed", "scraper",
			m.run.Scraper.String(), "customer", g.customer, "error", err)
	}
	m.failed = true
	return nil
}

// tryStore writes and drops a list, to learn whether the store works.
func (g *gathering) tryStore(ctx context.Context) error {
	const anywhere = "https://example.com/"
	list := g.IDs.New()
	writer, err := g.Store.CreateList(ctx, list)
	if err != nil {
		return err
	}
	if _, err = writer.Add(ctx, anywhere, anywhere); err == nil {
		_, err = writer.Finish(ctx)
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	if err != nil {
		_ = writer.Abort(clean) // what stays is removed as an orphan
		return err
	}
	_ = g.Store.DropList(clean, list)
	return nil
}

// weighing returns a keep function that keeps every link and sums what a page of each costs. It is
// nil if no domain has its own price.
func (g *gathering) weighing(m *member) func(canonical string) bool {
	prices := g.view.CurrentPrices()
	if prices == nil || g.view.Settings().BillingOff {
		return nil
	}
	places := prices.Rows.Places()
	if places == nil {
		return nil
	}
	pages := map[uint8]int64{} // by place
	return func(canonical string) bool {
		authority := address.AuthorityOf(canonical)
		place := places.Of(authority)
		page, known := pages[place]
		if !known {
			page = g.pageOf(m, authority)
			pages[place] = page
		}
		m.listed += page
		return true
	}
}

// command is the command that launches the runs.
func (g *gathering) command(group ids.ID) client.LaunchRuns {
	p := client.LaunchRuns{Customer: g.customer, Group: group, Skipped: g.skipped,
		Unnamed: g.unnamed}
	places := map[string]uint8{}
	for i := range g.runs {
		m := &g.runs[i]
		if m.engine != nil {
			place, known := places[m.engine.Name]
			if !known {
				p.Engines = append(p.Engines, *m.engine)
				place = uint8(len(p.Engines))
				places[m.engine.Name] = place
			}
			m.run.Engine = place
		}
		p.Runs = append(p.Runs, m.run)
	}
	return p
}

// keepLists makes dropLists spare the lists of runs that exist.
func (g *gathering) keepLists(jobs []client.GroupJob) {
	made := map[ids.ID]bool{}
	for _, job := range jobs {
		made[job.Job] = true
	}
	for i := range g.runs {
		if made[g.runs[i].run.Job] {
			g.runs[i].written = false
		}
	}
}

// dropLists removes the written lists that have no run. What cannot be removed now is removed
// later, as an orphan.
func (g *gathering) dropLists(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for i := range g.runs {
		if g.runs[i].written {
			_ = g.Store.DropList(ctx, g.runs[i].run.List)
		}
	}
}

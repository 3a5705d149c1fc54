package launch

import (
	"context"
	"fmt"
	"io"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// List is a list run as its caller requests it. The caller has checked which members may be
// combined. Exactly one of Fields, Template, Scraper and Tag says what reads the addresses, except
// that Tag may be given with Scraper.
type List struct {
	Group     ids.ID // of a new list
	Name      string // of its scraper
	Tag       string // the endpoint that reads the addresses instead of fields
	Scraper   ids.ID // list scraper that runs again
	Template  ids.ID // scraper whose recipe reads the addresses
	Type      model.ScraperType
	Fields    []model.Field
	Rerun     bool   // only addresses never charged before
	Force     bool   // all addresses again
	MaxCharge *int64 // micros; nil: no cap

	// URLs are at most 100,000 addresses. Stream instead brings at most 5,000,000, parsed by Line:
	// URILine or JSONLine. A list that runs again may have neither.
	URLs   []string
	Stream Stream
	Line   func(line []byte) (url string, err error)
}

// Stream is a list that is still arriving. Receive writes what refine keeps of it to disk; ReadAt
// then reads that.
type Stream interface {
	io.ReaderAt
	Receive(ctx context.Context, refine func(to io.Writer, body io.Reader) error) error
}

// StartList launches a run over a list, of a new scraper or again of the list's own. A repeated
// call returns its original answer. One invalid address refuses the whole list. Faults: Errors, and
// those of the list itself.
func (l *Launcher) StartList(ctx context.Context, from *Caller, list *List) (client.Launched,
	error) {
	t, replay, err := l.claimCall(ctx, from)
	if err != nil {
		return client.Launched{}, err
	}
	if replay != nil {
		return *replay, nil
	}
	defer t.end(ctx)
	return t.startList(ctx, list)
}

// startList checks what it can before the list is read, takes the list in and makes the run.
func (t *intake) startList(ctx context.Context, list *List) (client.Launched, error) {
	none, view := client.Launched{}, t.from.View
	p := plan{Launcher: t.Launcher, from: t.from, in: list}
	if err := p.make(ctx); err != nil {
		return none, err
	}
	// else the command decides: it gives customers who never topped up a run with a message
	if !p.endpoint.Charge.PaidOnly {
		if err := affordable(view, t.from.Customer); err != nil {
			return none, err
		}
	}
	tiers := p.endpoint.Tiers
	if tiers == 0 {
		var err error
		if tiers, err = Tiers(view, p.spec()); err != nil {
			return none, err
		}
	}
	t.website = p.endpoint.Tag == model.WebsiteContacts
	if list.Stream != nil {
		err := list.Stream.Receive(ctx,
			func(to io.Writer, body io.Reader) error { return t.check(ctx, p.lines(body), to) })
		if err != nil {
			return none, err
		}
		p.given = newChecked(list.Stream)
	}
	run := client.LaunchRun{NewScraper: p.scraper, MaxCharge: list.MaxCharge,
		Charge: p.endpoint.Charge, Daily: p.endpoint.Daily, Tiers: tiers,
		IgnoresRobots: p.spec().Recipe().Politeness.IgnoreRobots}
	if p.again != nil {
		run.Scraper = p.again.ID
	}
	store := t.storeWhole
	if list.Rerun && p.again != nil {
		store = t.storeRerun
	}
	if err := store(ctx, &p, &run); err != nil {
		return none, err
	}
	return t.commit(ctx, run)
}

// storeWhole stores the list of a run that reads all of it.
func (t *intake) storeWhole(ctx context.Context, p *plan, run *client.LaunchRun) error {
	taken, err := t.storeAddresses(ctx, p.source(), nil)
	if err != nil {
		return err
	}
	if taken.links == 0 {
		return fault.Invalid(fault.InvalidRequest, "urls", "the list has no address")
	}
	run.Links, run.Dropped = taken.links, taken.dropped
	return nil
}

// storeRerun stores the list of a run that reads only addresses never charged. Given addresses are
// all stored, since later runs may use the list (decision 59). Those charged before come last, and
// the run does not read them.
func (t *intake) storeRerun(ctx context.Context, p *plan, run *client.LaunchRun) error {
	paid, err := readCharged(ctx, t.from.View, t.History, t.Store, p.again.ID)
	if err != nil {
		return err
	}
	if err := t.createList(ctx); err != nil {
		return err
	}
	taken, err := t.addAddresses(ctx, p.source(), paid.lacks)
	if err != nil {
		return err
	}
	if taken.links == 0 {
		return fault.New(fault.ListAlreadyRun,
			"every address was charged already; force runs all of them again")
	}
	run.Links, run.Dropped, run.Rest = taken.links, taken.dropped, taken.left
	if taken.left && p.given != nil {
		p.given.rewind()
		behind, err := t.addAddresses(ctx, p.given, paid.has)
		if err != nil {
			return err
		}
		run.Given = taken.links + behind.links
	}
	return t.finishList(ctx)
}

// plan says what a list run will do: under which scraper, and where its addresses come from.
type plan struct {
	*Launcher
	from *Caller
	in   *List

	again    *client.Scraper             // the existing list scraper, or
	scraper  *client.PutScraper          // the new one
	endpoint model.Endpoint              // zero: the scraper's own recipe reads the addresses
	lines    func(body io.Reader) *lines // parser of a streamed body

	given  storedAddresses // for a streamed body: set once it has come; nil:
	newest *stored         // the list last given
}

// source is where the addresses come from.
func (p *plan) source() addresses {
	if p.given != nil {
		return p.given
	}
	return p.newest
}

// spec is the recipe of the plan's scraper.
func (p *plan) spec() *model.Scraper {
	if p.again != nil {
		return &p.again.Spec
	}
	return &p.scraper.Spec
}

func (p *plan) make(ctx context.Context) error {
	if p.in.Scraper.IsZero() {
		if err := p.makeScraper(); err != nil {
			return err
		}
	} else if err := p.findScraper(); err != nil {
		return err
	}
	if p.endpoint.Restricted {
		if err := auth.Restricted.Check(&p.from.Principal); err != nil {
			return err
		}
	}
	most := maxStreamed
	if p.endpoint.MaxLinks > 0 {
		most = p.endpoint.MaxLinks
	}
	switch {
	case p.in.Stream == nil && len(p.in.URLs) > most:
		return fault.Invalid(fault.ListTooLarge, "urls", "at most %d addresses", most)
	case p.in.Stream == nil && len(p.in.URLs) > 0:
		p.given = &listed{field: "urls", urls: p.in.URLs}
	case p.in.Stream == nil:
		return p.useNewest(ctx)
	default:
		p.lines = func(body io.Reader) *lines { return newLines(body, p.in.Line, most) }
	}
	return nil
}

// makeScraper plans the scraper of a new list.
func (p *plan) makeScraper() error {
	b, v := p.in, p.from.View
	if _, err := ownership.Group(v, p.from.Customer, b.Group, "groupId"); err != nil {
		return fault.Invalid(fault.GroupNotFound, "groupId", "there is no such group")
	}
	if v.ScraperByName(p.from.Customer, b.Name) != nil {
		return fault.Invalid(fault.NameTaken, "name",
			"a scraper has this name; with its scraperId its list runs again")
	}
	spec, tag := model.Scraper{Name: b.Name, Type: b.Type, ItemsConfig: b.Fields}, ""
	switch {
	case b.Tag == model.WebsiteContacts:
		spec.Type, tag = model.SingleProduct, b.Tag
	case b.Tag != "":
		spec.Type, spec.Config = model.Marketplace, &model.ScraperConfig{EndpointTag: b.Tag}
	case spec.Type == "":
		spec.Type = model.SingleProduct
	}
	if !b.Template.IsZero() {
		template, err := ownership.Scraper(v, p.from.Customer, b.Template,
			"templateScraperId")
		if err != nil {
			return err
		}
		if template.Tag == model.WebsiteContacts {
			return fault.Invalid(fault.InvalidRequest, "templateScraperId",
				"the scraper has no recipe of its own")
		}
		if spec = template.Spec; spec.Type == model.SearchEngineSearch {
			return fault.Invalid(fault.TypeNotRunnable, "templateScraperId",
				"a search has queries, not addresses")
		}
		spec.Name, spec.Schedule, spec.ScheduleTimezone = b.Name, "", ""
		spec.SourceConfig = model.SourceConfig{Pagination: spec.SourceConfig.Pagination,
			TryWithHiddenData: spec.SourceConfig.TryWithHiddenData}
	}
	recipe, known := v.RecipeOf(p.from.Customer, &spec, tag)
	if !known {
		return fault.Invalid(fault.SchemaGone, "templateScraperId",
			"the scraper's schema is not there any more")
	}
	check := extract.CheckNew
	if !b.Template.IsZero() {
		check = extract.Validate // its recipe is saved
	}
	if faults := check(recipe); len(faults) > 0 {
		return faults
	}
	p.endpoint, _ = model.EndpointOf(recipe.Endpoint) // a template's endpoint counts, too
	p.scraper = &client.PutScraper{Create: true, ID: p.IDs.New(), Customer: p.from.Customer,
		Group: b.Group, Spec: spec,
		ListRun: true, Tag: tag,
		Cap: p.Plans.CapOf(p.from.View, p.from.Customer, plans.MaxScrapers)}
	return nil
}

// findScraper plans a further run of a list scraper.
func (p *plan) findScraper() error {
	b := p.in
	known, err := ownership.Scraper(p.from.View, p.from.Customer, b.Scraper, "scraperId")
	if err != nil {
		return err
	}
	recipe := known.Spec.Recipe()
	if known.Tag != "" {
		recipe.Endpoint = known.Tag
	}
	switch {
	case !known.ListRun:
		return fault.Invalid(fault.InvalidRequest, "scraperId", "is not the scraper of a list run")
	case !b.Group.IsZero() && b.Group != known.Group:
		return fault.Invalid(fault.InvalidRequest, "groupId",
			"the scraper belongs to another group")
	case b.Name != "" && b.Name != known.Spec.Name:
		return fault.Invalid(fault.InvalidRequest, "name", "the scraper has another name")
	case b.Tag != "" && b.Tag != recipe.Endpoint:
		return fault.Invalid(fault.InvalidRequest, "endpointTag", "the scraper has another tag")
	}
	p.endpoint, _ = model.EndpointOf(recipe.Endpoint)
	// A draining run may still be charged for addresses, and a rerun must know those.
	if open := p.from.View.OpenJobsOf(known.ID); len(open) > 0 {
		if known.Tag == model.WebsiteContacts {
			return fault.New(fault.ListAlreadyRun, "job %s of this list is still running",
				open[0].ID)
		}
		return fault.New(fault.ScraperAlreadyRunning, "job %s of this scraper is still running",
			open[0].ID)
	}
	p.again = known
	return nil
}

// givenRun is the scraper's newest run whose list is whole, nil without one. A list that is only
// the rest of another does not count (decision 59).
func givenRun(ctx context.Context, history *client.History, v *client.View,
	scraper ids.ID) (given *client.Job, err error) {
	err = history.ScraperRuns(ctx, v, scraper, func(j *client.Job) bool {
		if !j.Rest || j.Given > 0 {
			given = j
		}
		return given == nil
	})
	return given, err
}

// useNewest takes the addresses of the list last given.
func (p *plan) useNewest(ctx context.Context) error {
	if !p.in.Rerun && !p.in.Force {
		return fault.New(fault.ListAlreadyRun, "the list was already run; rerun takes what was "+
			"never charged, force all of it")
	}
	job, err := givenRun(ctx, p.History, p.from.View, p.again.ID)
	if err != nil {
		return fmt.Errorf("runs of scraper %s: %w", p.again.ID, err)
	}
	if job == nil {
		return fault.Invalid(fault.InvalidRequest, "urls",
			"the scraper has no run yet whose list could be used")
	}
	p.newest = &stored{store: p.Store, job: job}
	return nil
}

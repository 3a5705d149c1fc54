package runs

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const listRunID = "svc_run_scraper_url_list"

// listRunTime is how long the intake of the largest list may take.
const listRunTime = 20 * time.Minute

// ListRun is the body of a list run.
type ListRun struct {
	GroupID           ids.ID            `json:"groupId" doc:"Group that stores the rows; needed without scraperId"`
	Name              string            `json:"name" max:"200" line:"true" doc:"Name of the list's scraper, unique per customer; needed without scraperId. Resend it when retrying a failed call: it protects from running twice."`
	URLs              []string          `json:"urls" alone:"json" max:"100000" code:"LIST_TOO_LARGE" doc:"The addresses"`
	EndpointTag       string            `json:"endpointTag" max:"200" doc:"What reads the addresses instead of fields: websitecontacts (at most 5,000 addresses, keys of the scope LLM_FULL), or the tag of a plugin, /plugin/marketplace/pdp or /plugin/marketplace/search. It is never inferred."`
	ScraperID         ids.ID            `json:"scraperId" doc:"Run an existing list scraper again"`
	TemplateScraperID ids.ID            `json:"templateScraperId" doc:"Use this scraper's recipe (type, fields, pagination, politeness) on the addresses"`
	Type              model.ScraperType `json:"type" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS,APPLICATION_LD_JSON" doc:"With itemsConfig: SINGLE_PRODUCT unless told"`
	ItemsConfig       []model.Field     `json:"itemsConfig" doc:"The fields of a row. Exactly one of itemsConfig, templateScraperId and scraperId is given."`
	Rerun             bool              `json:"rerun" doc:"Only addresses that were never charged under this scraper"`
	Force             bool              `json:"force" doc:"All addresses again"`
	MaxChargeMicros   *int64            `json:"maxChargeMicros" min:"0" doc:"The run stops rather than cost more, in micros, millionths of a euro"`
}

// ListRunStarted answers a list run.
type ListRunStarted struct {
	JobID             ids.ID         `json:"jobId"`
	ScraperID         ids.ID         `json:"scraperId"`
	Tag               *string        `json:"tag"`
	LinksQueued       uint32         `json:"linksQueued"`
	DuplicatesDropped uint32         `json:"duplicatesDropped" doc:"Addresses that the list had already"`
	Status            model.JobState `json:"status" doc:"PENDING; FAILED for website contacts of a customer who has never topped up"`
	Message           string         `json:"message,omitempty" doc:"Why the run has failed at once"`
}

type listRunRequest struct {
	Body   ListRun           `body:"json" limit:"33554432"`
	Stream *operation.Stream `stream:"text/uri-list,application/x-ndjson"`
}

// Validate implements operation.Validator: what needs neither state nor addresses.
func (r *listRunRequest) Validate() fault.List {
	b := &r.Body
	if b.EndpointTag != "" && b.EndpointTag != model.WebsiteContacts &&
		!slices.Contains(extract.Tags(), b.EndpointTag) {
		return fault.List{fault.Invalid(fault.TagNotResolved, "endpointTag",
			"nothing has the tag %.100q", b.EndpointTag)}
	}
	var faults fault.List
	invalid := func(field, text string) {
		faults = append(faults, fault.Invalid(fault.InvalidRequest, field, "%s", text))
	}
	sources := 0
	for _, given := range []bool{!b.ScraperID.IsZero(), !b.TemplateScraperID.IsZero(),
		len(b.ItemsConfig) > 0} {
		if given {
			sources++
		}
	}
	switch {
	case b.EndpointTag == "" && sources != 1:
		invalid("itemsConfig", "exactly one of itemsConfig, templateScraperId and "+
			"scraperId is needed")
	case b.EndpointTag != "" && (len(b.ItemsConfig) > 0 || !b.TemplateScraperID.IsZero()):
		invalid("endpointTag", "stands without itemsConfig and templateScraperId")
	}
	if b.Type != "" && len(b.ItemsConfig) == 0 {
		invalid("type", "stands with itemsConfig only")
	}
	if b.Rerun && b.Force {
		invalid("force", "rerun and force exclude each other")
	}
	if b.ScraperID.IsZero() {
		if b.GroupID.IsZero() {
			invalid("groupId", "is required")
		}
		if strings.TrimSpace(b.Name) == "" {
			invalid("name", "is required")
		}
		if r.Stream == nil && len(b.URLs) == 0 {
			invalid("urls", "must be at least 1 items")
		}
	}
	return faults
}

// startList is POST /api/scraper/url-list-run.
func (r Resource) startList() *operation.Operation {
	s := r.Services
	return operation.Define(operation.Declaration{
		ID: listRunID, Routes: operation.Routes("POST /api/scraper/url-list-run"), Group: group,
		Summary: "Launches a run over a list of addresses",
		Description: "The list comes as urls (at most 100,000) of a JSON body, or as the body " +
			"itself: text/uri-list (an " +
			"address a line, # begins a comment) or application/x-ndjson ({\"url\": …} a line), " +
			"at most 5,000,000 addresses, " +
			"with the other members as query parameters. One invalid address refuses the whole " +
			"list and is named; nothing " +
			"is saved or charged then. Addresses that are equal in canonical form are taken " +
			"once. The first run of a list " +
			"makes its scraper; with scraperId it runs again: rerun takes what was never " +
			"charged, force all, from urls or, " +
			"without urls, from the list last given; urls without either are all taken. The " +
			"bytes of a streamed list are not compared when an " +
			"Idempotency-Key is used again. With endpointTag websitecontacts each website has " +
			"one row: website, " +
			"email, emails_all, email_source_url, domain_match (yes, no, unknown or empty), " +
			"status, checked_at. EMAIL_FOUND and " +
			"NO_EMAIL_PUBLISHED cost two credits; EMAIL_NOT_EXTRACTABLE, PAGE_NOT_READABLE, " +
			"SITE_UNREACHABLE, SOCIAL_PROFILE_ONLY " +
			"and DAILY_LIMIT_REACHED (2,000 websites a day, 800 that end uncharged, 3 reads of " +
			"a domain; UTC) cost nothing. A " +
			"customer who has never topped up gets a run that has failed with a message. With " +
			"the tag of a plugin the rows are " +
			"those of MARKETPLACE, described at PUT /api/scraper.",
		Access: auth.Write, Rate: limits.ListRun, Idempotency: operation.Optional,
		Timeout: listRunTime,
		Errors: append([]fault.Code{fault.InvalidURL, fault.ListTooLarge, fault.TagNotResolved,
			fault.GroupNotFound,
			fault.ScraperNotFound, fault.NameTaken, fault.ListAlreadyRun, fault.TypeNotRunnable,
			fault.SchemaValidation, fault.UploadTooSlow},
			launchErrors...),
	}, func(ctx context.Context, from *operation.Caller, in *listRunRequest) (ListRunStarted,
		error) {
		l, replay, err := begin(ctx, s, from, listRunID)
		if err != nil {
			return ListRunStarted{}, err
		}
		if replay != nil {
			return newListRun(replay), nil
		}
		defer l.end(ctx)
		launched, err := l.runList(ctx, from, in)
		if err != nil {
			return ListRunStarted{}, err
		}
		return newListRun(&launched), nil
	})
}

func newListRun(l *client.Launched) ListRunStarted {
	started := ListRunStarted{JobID: l.Job, ScraperID: l.Scraper, LinksQueued: l.Links,
		DuplicatesDropped: l.Dropped,
		Status:            l.State, Message: l.Message}
	if l.Tag != "" {
		tag := l.Tag
		started.Tag = &tag
	}
	return started
}

// runList checks what can be checked before the list is read, takes it in and makes the run.
func (l *launch) runList(ctx context.Context, from *operation.Caller,
	in *listRunRequest) (client.Launched, error) {
	none := client.Launched{}
	p := plan{Services: l.Services, from: from, in: in}
	if err := p.make(); err != nil {
		return none, err
	}
	// else the command decides: who never topped up gets a run with a message
	if !p.endpoint.Charge.PaidOnly {
		if err := affordable(from.View, from.Customer); err != nil {
			return none, err
		}
	}
	tiers := p.endpoint.Tiers
	if tiers == 0 {
		var err error
		if tiers, err = tiersOf(from.View, p.spec()); err != nil {
			return none, err
		}
	}
	l.website = p.endpoint.Tag == model.WebsiteContacts
	if in.Stream != nil {
		err := in.Stream.Receive(ctx,
			func(to io.Writer, body io.Reader) error { return l.check(ctx, p.lines(body), to) })
		if err != nil {
			return none, err
		}
		p.source = newChecked(in.Stream)
	}
	var keep func(string) bool
	if in.Body.Rerun && p.again != nil {
		paid, err := readCharged(ctx, from.View, l.Store, p.again.ID, l.list)
		if err != nil {
			return none, err
		}
		keep = paid.lacks
	}
	t, err := l.take(ctx, p.source, keep)
	if err != nil {
		return none, err
	}
	if t.links == 0 {
		if keep != nil {
			return none, fault.New(fault.ListAlreadyRun,
				"every address was charged already; force runs all of them again")
		}
		return none, fault.Invalid(fault.InvalidRequest, "urls", "the list has no address")
	}
	run := client.LaunchRun{NewScraper: p.scraper, Links: t.links, Dropped: t.dropped,
		MaxCharge: in.Body.MaxChargeMicros,
		Charge:    p.endpoint.Charge, Daily: p.endpoint.Daily, Tiers: tiers,
		IgnoresRobots: p.spec().Recipe().Politeness.IgnoreRobots}
	if p.again != nil {
		run.Scraper = p.again.ID
		run.Rest = t.left
	}
	return l.commit(ctx, run)
}

// plan is what a list run will do: under which scraper, and where its addresses come from.
type plan struct {
	api.Services
	from *operation.Caller
	in   *listRunRequest

	again    *client.Scraper             // the existing list scraper, or
	scraper  *client.PutScraper          // the new one
	endpoint model.Endpoint              // zero: the scraper's own recipe reads the addresses
	source   addresses                   // of a streamed body only when it has come
	lines    func(body io.Reader) *lines // of a streamed body
}

// spec is that of the scraper.
func (p *plan) spec() *model.Scraper {
	if p.again != nil {
		return &p.again.Spec
	}
	return &p.scraper.Spec
}

func (p *plan) make() error {
	if p.in.Body.ScraperID.IsZero() {
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
	case p.in.Stream == nil && len(p.in.Body.URLs) > most:
		return fault.Invalid(fault.ListTooLarge, "urls", "at most %d addresses", most)
	case p.in.Stream == nil && len(p.in.Body.URLs) > 0:
		p.source = &listed{field: "urls", urls: p.in.Body.URLs}
	case p.in.Stream == nil:
		return p.useNewest()
	case p.in.Stream.ContentType == "text/uri-list":
		p.lines = func(body io.Reader) *lines { return newLines(body, parseURI, most) }
	default:
		p.lines = func(body io.Reader) *lines { return newLines(body, parseJSONLine, most) }
	}
	return nil
}

// makeScraper plans the scraper of a new list.
func (p *plan) makeScraper() error {
	b, v := &p.in.Body, p.from.View
	if _, err := ownership.Group(v, p.from.Customer, b.GroupID, "groupId"); err != nil {
		return fault.Invalid(fault.GroupNotFound, "groupId", "there is no such group")
	}
	if v.ScraperByName(p.from.Customer, b.Name) != nil {
		return fault.Invalid(fault.NameTaken, "name",
			"a scraper has this name; with its scraperId its list runs again")
	}
	spec, tag := model.Scraper{Name: b.Name, Type: b.Type, ItemsConfig: b.ItemsConfig}, ""
	switch {
	case b.EndpointTag == model.WebsiteContacts:
		spec.Type, tag = model.SingleProduct, b.EndpointTag
	case b.EndpointTag != "":
		spec.Type, spec.Config = model.Marketplace, &model.ScraperConfig{EndpointTag: b.EndpointTag}
	case spec.Type == "":
		spec.Type = model.SingleProduct
	}
	if !b.TemplateScraperID.IsZero() {
		template, err := ownership.Scraper(v, p.from.Customer, b.TemplateScraperID,
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
		spec.Name, spec.Schedule = b.Name, ""
		spec.SourceConfig = model.SourceConfig{Pagination: spec.SourceConfig.Pagination,
			TryWithHiddenData: spec.SourceConfig.TryWithHiddenData}
	}
	recipe, known := v.RecipeOf(p.from.Customer, &spec, tag)
	if !known {
		return fault.Invalid(fault.SchemaGone, "templateScraperId",
			"the scraper's schema is not there any more")
	}
	if faults := extract.Validate(recipe); len(faults) > 0 {
		return faults
	}
	p.endpoint, _ = model.EndpointOf(recipe.Endpoint) // a template's own counts, too
	p.scraper = &client.PutScraper{Create: true, ID: p.IDs.New(), Customer: p.from.Customer,
		Group: b.GroupID, Spec: spec,
		ListRun: true, Tag: tag}
	return nil
}

// findScraper plans a further run of a list scraper.
func (p *plan) findScraper() error {
	b := &p.in.Body
	known, err := ownership.Scraper(p.from.View, p.from.Customer, b.ScraperID, "scraperId")
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
	case !b.GroupID.IsZero() && b.GroupID != known.Group:
		return fault.Invalid(fault.InvalidRequest, "groupId",
			"the scraper belongs to another group")
	case b.Name != "" && b.Name != known.Spec.Name:
		return fault.Invalid(fault.InvalidRequest, "name", "the scraper has another name")
	case b.EndpointTag != "" && b.EndpointTag != recipe.Endpoint:
		return fault.Invalid(fault.InvalidRequest, "endpointTag", "the scraper has another tag")
	}
	p.endpoint, _ = model.EndpointOf(recipe.Endpoint)
	// A run that drains may still be charged for addresses, which a rerun must know.
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

// givenRun is the scraper's newest run over all of a list, nil without one: what a rerun took of it
// is no list of its own (decision 59).
func givenRun(v *client.View, scraper ids.ID) (given *client.Job) {
	v.ScraperJobs(scraper, func(j *client.Job) bool {
		if !j.Rest {
			given = j
		}
		return given == nil
	})
	return given
}

// useNewest takes the addresses that were last given.
func (p *plan) useNewest() error {
	if !p.in.Body.Rerun && !p.in.Body.Force {
		return fault.New(fault.ListAlreadyRun, "the list was already run; rerun takes what was "+
			"never charged, force all of it")
	}
	job := givenRun(p.from.View, p.again.ID)
	if job == nil {
		return fault.Invalid(fault.InvalidRequest, "urls",
			"the scraper has no run yet whose list could be used")
	}
	p.source = &stored{store: p.Store, job: job}
	return nil
}

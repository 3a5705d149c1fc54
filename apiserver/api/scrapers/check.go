package scrapers

import (
	"errors"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/prelaunch"
	"shoal.dev/shoal/pkg/schedule"
)

// checker collects everything that is wrong with a scraper.
type checker struct {
	guard    Guard
	ceilings Ceilings
	view     *client.View
	customer string
	faults   fault.List
}

func (c *checker) invalid(field, format string, args ...any) {
	c.faults = append(c.faults, fault.Invalid(fault.SchemaValidation, field, format, args...))
}

// check returns everything that is wrong with a scraper, each fault with its field. known is the
// scraper that it replaces, nil for a new one. A list run's scraper has its addresses in a list
// instead of sourceConfig.url.
func (r Resource) check(from *operation.Caller, spec *model.Scraper,
	known *client.Scraper) fault.List {
	c := &checker{guard: r.Guard, ceilings: r.Ceilings, view: from.View, customer: from.Customer}
	if known != nil && known.Spec.Type == model.File && spec.Type == model.File {
		c.upload(spec)
		return c.faults
	}
	listed, tag := false, ""
	if known != nil {
		listed, tag = known.ListRun, known.Tag
		c.stays(spec, known)
	}
	c.search(spec)
	c.source(&spec.SourceConfig, listed || spec.Type == model.SearchEngineSearch)
	if spec.Type != model.SearchEngineSearch {
		c.pagination(&spec.SourceConfig)
	}
	c.recipe(spec, tag)
	if spec.SourceConfig.TryWithHiddenData && spec.Type != model.ApplicationLDJSON &&
		spec.Type != model.AIConf {
		c.invalid("sourceConfig.tryWithHiddenData",
			"only APPLICATION_LD_JSON and AI_CONF read hidden data")
	}
	c.schedule(spec, listed)
	if spec.Config != nil {
		c.config(spec.Config)
		if spec.Config.KeepBodyDays != nil && !r.KeepsBodies {
			c.invalid("config.keepBodyDays", "the operator of the service keeps no bodies")
		}
		if given := spec.Config.EndpointTag; given != "" && given != tag &&
			spec.Type != model.Marketplace {
			c.invalid("config.endpointTag", "only scrapers of the type MARKETPLACE have one")
		}
	}
	return c.faults
}

// upload refuses the members that an upload's scraper cannot have. Such a scraper fetches no pages,
// is never scheduled (specification 4.9), and keeps a file's rows as they are.
func (c *checker) upload(spec *model.Scraper) {
	source, config := &spec.SourceConfig, &model.ScraperConfig{}
	if spec.Config != nil {
		config = spec.Config
	}
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"sourceConfig.url", source.URL != ""},
		{"sourceConfig.pagination", source.Pagination != nil},
		{"sourceConfig.curl", source.Curl != ""},
		{"sourceConfig.prelaunch", source.Prelaunch != nil},
		{"sourceConfig.tryWithHiddenData", source.TryWithHiddenData},
		{"sourceConfig.queries", len(source.Queries) > 0},
		{"sourceConfig.engine", source.Engine != ""},
		{"itemsConfig", len(spec.ItemsConfig) > 0},
		{"schema", spec.Schema != nil},
		{"postProcessRules", len(spec.PostProcessRules) > 0},
		{"schedule", spec.Schedule != ""},
		{"scheduleTimezone", spec.ScheduleTimezone != ""},
		{"config.politeness", config.Politeness != nil},
		{"config.endpointTag", config.EndpointTag != ""},
		{"config.tiers", len(config.Tiers) > 0},
		{"config.keepBodyDays", config.KeepBodyDays != nil},
	} {
		if member.given {
			c.invalid(member.name, "the scraper of an upload has none")
		}
	}
}

// schedule checks when the scraper starts automatically.
func (c *checker) schedule(spec *model.Scraper, listed bool) {
	switch {
	case spec.Schedule == "":
		if err := schedule.CheckZone(spec.ScheduleTimezone); err != nil {
			c.invalid("scheduleTimezone", "%s", detail(err))
		}
	case listed:
		c.invalid("schedule", "the scraper of a list run starts with its list")
	default:
		_, err := schedule.Parse(spec.Schedule, spec.ScheduleTimezone)
		if coded := (*fault.Error)(nil); errors.As(err, &coded) {
			c.faults = append(c.faults, coded)
		}
	}
}

// stays refuses changes after which a list run's scraper could not read its list.
func (c *checker) stays(spec *model.Scraper, known *client.Scraper) {
	switch {
	case known.ListRun && spec.Type == model.SearchEngineSearch:
		c.invalid("type", "the scraper of a list run reads addresses, not queries")
	case known.Tag != "" && spec.Type != known.Spec.Type:
		c.invalid("type", "the addresses of this scraper are read by the tag %s; its type stays %s",
			known.Tag, known.Spec.Type)
	}
}

func (c *checker) source(source *model.SourceConfig, listed bool) {
	rules, faults := prelaunch.Compile(source.Prelaunch)
	c.faults = append(c.faults, faults...)
	if rules != nil {
		if err := c.guard.CheckURL(rules.URL); err != nil {
			c.invalid("sourceConfig.prelaunch.discoveryUrl", "%s", detail(err))
		}
		if source.Curl == "" {
			c.invalid("sourceConfig.prelaunch", "only a curl command has placeholders")
		}
	}
	switch {
	case source.URL != "" && source.Curl != "":
		c.invalid("sourceConfig.curl", "a scraper reads an address or a curl command, not both")
	case listed && source.Curl != "":
		c.invalid("sourceConfig.curl", "the scraper of a list run reads the addresses of its list")
	case source.Curl != "":
		c.curl(source.Curl, rules, len(faults) == 0)
	case source.URL != "":
		if err := c.guard.CheckURL(source.URL); err != nil {
			c.invalid("sourceConfig.url", "%s", detail(err))
		}
		if len((&curl.Request{URL: source.URL}).Placeholders()) > 0 {
			c.invalid("sourceConfig.url", "only a curl command can have placeholders of tokens")
		}
	case !listed:
		c.invalid("sourceConfig.url", "is required, or a curl command in sourceConfig.curl")
	}
}

// curl checks the command, its address, and that each placeholder has a token rule.
func (c *checker) curl(command string, rules *prelaunch.Rules, known bool) {
	request, err := curl.Parse(command)
	if err != nil {
		c.invalid("sourceConfig.curl", "%s", detail(err))
		return
	}
	if err := c.guard.CheckURL(request.URL); err != nil {
		c.invalid("sourceConfig.curl", "%s", detail(err))
	}
	for _, name := range request.Placeholders() {
		if known && !rules.Has(name) {
			c.invalid("sourceConfig.curl", "there is no token rule for the placeholder {{%s}}",
				name)
		}
	}
}

func detail(err error) string {
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		return coded.Detail
	}
	return "is no address that can be crawled"
}

// pagination checks the rules of decision 14.
func (c *checker) pagination(source *model.SourceConfig) {
	const field = "sourceConfig.pagination"
	p := source.Pagination
	if p == nil {
		return
	}
	members := PaginationMembers()[p.Type]
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"param", p.Param != ""}, {"start", p.Start != nil}, {"step", p.Step != nil},
		{"pageSize", p.PageSize != nil},
		{"template", p.Template != ""}, {"selector", p.Selector != ""},
		{"cursorPath", p.CursorPath != ""}, {"max", p.Max != nil},
	} {
		if member.given && !slices.Contains(members, member.name) {
			c.invalid(field+"."+member.name, "the type %s has no such member", p.Type)
		}
	}
	for _, member := range members {
		path := field + "." + member
		switch member {
		case "param":
			if p.Param == "" {
				c.invalid(path, "is required")
			}
		case "pageSize":
			if p.PageSize == nil {
				c.invalid(path, "is required")
			}
		case "template":
			c.template(path, source)
		}
	}
	if p.Renders() && source.Curl != "" {
		c.invalid(field+".type", "a browser loads addresses, not curl commands")
	}
}

// PaginationMembers lists the members of each type of pagination. Selectors and paths are checked
// with the fields.
func PaginationMembers() map[model.PaginationType][]string {
	return map[model.PaginationType][]string{
		model.PaginationNone: {},
		model.URLPageParam:   {"param", "start", "step", "max"},
		model.OffsetParam:    {"param", "pageSize", "max"},
		model.URLTemplate:    {"template", "max"},
		model.NextLink:       {"selector", "max"},
		model.JSONCursor:     {"param", "cursorPath", "max"},
		model.LoadMore:       {"selector", "max"},
		model.InfiniteScroll: {"max"},
	}
}

// template checks the addresses of URL_TEMPLATE. Those of a curl command must stay on its host,
// because the command's data is meant only for that host.
func (c *checker) template(field string, source *model.SourceConfig) {
	template := source.Pagination.Template
	if !strings.Contains(template, model.PagePlaceholder) {
		c.invalid(field, "an address with %s in it is needed", model.PagePlaceholder)
		return
	}
	if strings.Contains(template, "{{") {
		c.invalid(field, "placeholders of tokens may not stand in it")
		return
	}
	spec := model.Scraper{SourceConfig: *source}
	start := launch.StartURL(&spec)
	if start == "" {
		start = "https://listed.example/"
	}
	base, err := address.Canonical(start)
	if err != nil {
		return // the address itself is at fault
	}
	page, err := address.Resolve(base, strings.ReplaceAll(template, model.PagePlaceholder, "2"))
	if err == nil {
		err = c.guard.CheckURL(page)
	}
	switch {
	case err != nil:
		c.invalid(field, "%s", detail(err))
	case source.Curl != "" && address.AuthorityOf(page) != address.AuthorityOf(base):
		c.invalid(field, "the pages of a curl command are on its own host")
	}
}

// recipe checks type and fields with the code that will use them. tag names a plugin that reads the
// pages instead; "": none.
func (c *checker) recipe(spec *model.Scraper, tag string) {
	recipe, known := c.view.RecipeOf(c.customer, spec, tag)
	switch {
	case spec.Schema != nil && spec.Type != model.AIConf:
		c.invalid("schema", "only AI_CONF has a schema")
	case !known:
		c.invalid("schema.id", "there is no such schema")
		return
	}
	for _, f := range extract.CheckNew(recipe) {
		if f.Field == "type" && spec.Type == model.File {
			f = fault.Invalid(fault.TypeNotRunnable, "type",
				"scrapers of the type FILE are made by uploads only")
		}
		c.faults = append(c.faults, f)
	}
}

func (c *checker) config(config *model.ScraperConfig) {
	p, most := config.Politeness, c.ceilings
	if p == nil {
		return
	}
	if p.RequestsPerSecond < 0 || p.RequestsPerSecond > most.RequestsPerSecond {
		c.invalid("config.politeness.requestsPerSecond",
			"must be at most %g, this server's ceiling, and not below 0",
			most.RequestsPerSecond)
	}
	if p.RequestsPerSecond > 0 && p.RequestsPerSecond < model.MinRequestsPerSecond {
		c.invalid("config.politeness.requestsPerSecond",
			"must be at least 1/30 (0.0334), one request in 30 seconds, or 0 for the default")
	}
	if p.Connections < 0 || p.Connections > most.Connections {
		c.invalid("config.politeness.connections",
			"must be at most %d, this server's ceiling, and not below 0",
			most.Connections)
	}
}

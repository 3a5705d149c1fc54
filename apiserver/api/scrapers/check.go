package scrapers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// maxStep bounds the start and the step of page numbers.
const maxStep = 1_000_000

// checker collects everything that is wrong with a scraper.
type checker struct {
	services api.Services
	faults   fault.List
}

func (c *checker) invalid(field, format string, args ...any) {
	c.faults = append(c.faults, fault.Invalid(fault.SchemaValidation, field, format, args...))
}

// missing refuses what this version cannot do: a scraper that is saved does what it says.
func (c *checker) missing(field, what string) {
	c.faults = append(c.faults, fault.Invalid(fault.NotSupported, field, "%s not supported by this version; leave it out", what))
}

// check is everything that is wrong with a scraper, each fault with its field; listed says that its addresses are in a
// list instead of sourceConfig.url.
func check(s api.Services, spec *model.Scraper, listed bool) fault.List {
	c := &checker{services: s}
	if strings.TrimSpace(spec.Name) == "" {
		c.invalid("name", "must not be blank")
	}
	c.source(&spec.SourceConfig, listed)
	c.pagination(spec.SourceConfig.Pagination)
	c.recipe(spec)
	if spec.Schema != nil {
		c.missing("schema", "extraction schemas are")
	}
	for i := range spec.PostProcessRules {
		c.missing(fmt.Sprintf("postProcessRules[%d]", i), "post-process rules are")
	}
	if spec.Schedule != "" {
		c.missing("schedule", "schedules are")
	}
	if spec.Config != nil {
		c.config(spec.Config)
	}
	return c.faults
}

func (c *checker) source(source *model.SourceConfig, listed bool) {
	if source.Curl != "" {
		c.missing("sourceConfig.curl", "curl commands are")
	}
	if source.Prelaunch != nil && len(source.Prelaunch.Tokens) > 0 {
		c.missing("sourceConfig.prelaunch", "token refresh is")
	}
	switch {
	case source.URL != "":
		if err := c.services.Guard.CheckURL(source.URL); err != nil {
			c.invalid("sourceConfig.url", "%s", detail(err))
		}
	case !listed && source.Curl == "":
		c.invalid("sourceConfig.url", "is required")
	}
}

func detail(err error) string {
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		return coded.Detail
	}
	return "is no address that can be crawled"
}

// pagination checks decision 14.
func (c *checker) pagination(p *model.Pagination) {
	const field = "sourceConfig.pagination"
	if p == nil {
		return
	}
	stray := func(name string, given bool) {
		if given {
			c.invalid(field+"."+name, "the type %s has no such member", p.Type)
		}
	}
	switch p.Type {
	case model.PaginationNone:
		stray("max", p.Max != nil)
	case model.URLPageParam:
		if p.Param == "" || len(p.Param) > 256 {
			c.invalid(field+".param", "the name of a query parameter of 1 to 256 bytes is needed")
		}
		c.within(field+".start", p.Start, 0, maxStep)
		c.within(field+".step", p.Step, 1, maxStep)
	case model.NextLink: // its selector is checked with the fields'
	case model.LoadMore:
		if p.Selector == "" {
			c.invalid(field+".selector", "the selector of what is clicked for more is needed")
		}
	case model.InfiniteScroll:
	case "OFFSET_PARAM", "URL_TEMPLATE", "JSON_CURSOR":
		c.missing(field+".type", "pagination of the type "+string(p.Type)+" is")
		return
	default:
		c.invalid(field+".type", "must be one of NONE, URL_PAGE_PARAM, NEXT_LINK, LOAD_MORE, INFINITE_SCROLL")
		return
	}
	if p.Type != model.URLPageParam {
		stray("param", p.Param != "")
		stray("start", p.Start != nil)
		stray("step", p.Step != nil)
	}
	if p.Type != model.NextLink && p.Type != model.LoadMore {
		stray("selector", p.Selector != "")
	}
	c.within(field+".max", p.Max, 1, model.MaxMaxPages)
}

func (c *checker) within(field string, n *int, least, most int) {
	if n != nil && (*n < least || *n > most) {
		c.invalid(field, "must be %d to %d", least, most)
	}
}

// recipe checks type and fields by the code that will use them.
func (c *checker) recipe(spec *model.Scraper) {
	for _, f := range extract.Validate(spec.Recipe()) {
		if f.Field == "type" && spec.Type == model.File {
			f = fault.Invalid(fault.TypeNotRunnable, "type", "scrapers of the type FILE are made by uploads only")
		}
		c.faults = append(c.faults, f)
	}
}

// tiers checks the names alone: what the server has may change until the run.
func (c *checker) tiers(names []string) {
	for i, name := range names {
		if _, ok := model.ParseTier(name); !ok {
			c.invalid(fmt.Sprintf("config.tiers[%d]", i), "must be one of plain, render, super, render+super")
		}
		if slices.Contains(names[:i], name) {
			c.invalid(fmt.Sprintf("config.tiers[%d]", i), "is named twice")
		}
	}
}

func (c *checker) config(config *model.ScraperConfig) {
	switch n := config.RetentionCount; {
	case n == nil:
	case *n < 1:
		c.invalid("config.retentionCount", "must be at least 1")
	default:
		c.missing("config.retentionCount", "retention by the number of runs is")
	}
	c.tiers(config.Tiers)
	p, most := config.Politeness, c.services.Ceilings
	if p == nil {
		return
	}
	if p.RequestsPerSecond < 0 || p.RequestsPerSecond > most.RequestsPerSecond {
		c.invalid("config.politeness.requestsPerSecond", "must be at most %g, this server's ceiling, and not below 0",
			most.RequestsPerSecond)
	}
	if p.Connections < 0 || p.Connections > most.Connections {
		c.invalid("config.politeness.connections", "must be at most %d, this server's ceiling, and not below 0",
			most.Connections)
	}
}

package extract

import (
	"shoal.dev/shoal/pkg/extract/aiconf"
	"shoal.dev/shoal/pkg/extract/contacts"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/ldjson"
	"shoal.dev/shoal/pkg/extract/marketplace"
	"shoal.dev/shoal/pkg/extract/multiple"
	"shoal.dev/shoal/pkg/extract/search"
	"shoal.dev/shoal/pkg/extract/single"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// scraperType is one way to turn pages into rows. compile checks the part of the recipe that the
// type uses and reports every bad member.
type scraperType struct {
	name    model.ScraperType
	compile func(model.Recipe) (rows.Maker, fault.List)
}

// catalog lists the scraper types that can run. A new type needs a folder and a line here.
var catalog = []scraperType{
	{model.SingleProduct, single.Compile},
	{model.MultipleProducts, multiple.Compile},
	{model.ApplicationLDJSON, ldjson.Compile},
	{model.AIConf, aiconf.Compile},
	{model.Marketplace, marketplace.Compile},
	{model.SearchEngineSearch, search.Compile},
}

// endpoints maps tags to the compilers that read pages for them, whatever the recipe's type. A
// MARKETPLACE scraper takes only the tags of its own plugins.
var endpoints = map[string]func(model.Recipe) (rows.Maker, fault.List){
	model.WebsiteContacts: contacts.Compile,
}

// compiler returns the function that compiles the recipe, or nil when nothing here runs it.
func compiler(r model.Recipe) func(model.Recipe) (rows.Maker, fault.List) {
	if compile := endpoints[r.Endpoint]; compile != nil && r.Type != model.Marketplace {
		return compile
	}
	if t := lookup(r.Type); t != nil {
		return t.compile
	}
	return nil
}

// Tags returns the tags of the plugins that read the pages of list runs.
func Tags() []string { return marketplace.Tags() }

// ParseEngines reads a server's search engines: a JSON array, the default first.
func ParseEngines(data []byte) ([]model.SearchEngine, error) { return search.ParseEngines(data) }

// SearchAddress returns the address at which a search engine answers a query.
func SearchAddress(e *model.SearchEngine, query string) string { return search.Address(e, query) }

func lookup(name model.ScraperType) *scraperType {
	switch name {
	case model.Detection:
		return &scraperType{name, detection}
	case model.Viewing:
		return &scraperType{name, viewing}
	}
	for i := range catalog {
		if catalog[i].name == name {
			return &catalog[i]
		}
	}
	return nil
}

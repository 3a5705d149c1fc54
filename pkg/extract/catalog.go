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

// scraperType is one way to make rows of a page. compile checks the part of the recipe that the
// type uses and reports every bad member.
type scraperType struct {
	name    model.ScraperType
	compile func(model.Recipe) (rows.Maker, fault.List)
}

// catalog lists the scraper types that can run. A new one is a folder and a line.
var catalog = []scraperType{
	{model.SingleProduct, single.Compile},
	{model.MultipleProducts, multiple.Compile},
	{model.ApplicationLDJSON, ldjson.Compile},
	{model.AIConf, aiconf.Compile},
	{model.Marketplace, marketplace.Compile},
	{model.SearchEngineSearch, search.Compile},
}

// endpoints are what reads pages under a tag of its own, whatever the recipe's type. Scrapers of
// MARKETPLACE name their tags themselves, and have plugins alone.
var endpoints = map[string]func(model.Recipe) (rows.Maker, fault.List){
	model.WebsiteContacts: contacts.Compile,
}

// compiler is how a recipe is compiled, nil when nothing here runs it.
func compiler(r model.Recipe) func(model.Recipe) (rows.Maker, fault.List) {
	if compile := endpoints[r.Endpoint]; compile != nil && r.Type != model.Marketplace {
		return compile
	}
	if t := lookup(r.Type); t != nil {
		return t.compile
	}
	return nil
}

// Tags are those of the plugins that read the pages of list runs.
func Tags() []string { return marketplace.Tags() }

// ParseEngines reads a server's search engines: a JSON array, the default first.
func ParseEngines(data []byte) ([]model.SearchEngine, error) { return search.ParseEngines(data) }

// SearchAddress is where a search engine answers a query.
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

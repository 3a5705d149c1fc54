package scrapers

import "shoal.dev/shoal/pkg/model"

// search checks the members that only SEARCH_ENGINE_SEARCH scrapers have, and those that they
// cannot have.
func (c *checker) search(spec *model.Scraper) {
	source := &spec.SourceConfig
	if spec.Type != model.SearchEngineSearch {
		if len(source.Queries) > 0 {
			c.invalid("sourceConfig.queries", "only scrapers of the type SEARCH_ENGINE_SEARCH "+
				"have queries")
		}
		if source.Engine != "" {
			c.invalid("sourceConfig.engine", "only scrapers of the type SEARCH_ENGINE_SEARCH "+
				"have an engine")
		}
		return
	}
	if source.URL != "" {
		c.invalid("sourceConfig.url", "a search has queries instead of an address")
	}
	if len(source.Queries) == 0 {
		c.invalid("sourceConfig.queries", "at least one is needed")
	}
	if p := source.Pagination; p != nil && *p != (model.Pagination{Type: model.PaginationNone}) &&
		*p != (model.Pagination{Type: model.URLPageParam, Max: p.Max}) {
		c.invalid("sourceConfig.pagination", "a search has the type URL_PAGE_PARAM and max "+
			"alone: the rest is the engine's")
	}
}

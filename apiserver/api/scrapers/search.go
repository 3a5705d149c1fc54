package scrapers

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/model"
)

// Bounds of searches.
const (
	maxQueries = 1_000
	maxQuery   = 512 // characters
)

// search checks what only scrapers of the type SEARCH_ENGINE_SEARCH have, and what they cannot
// have.
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
	if n := len(source.Queries); n < 1 || n > maxQueries {
		c.invalid("sourceConfig.queries", "1 to %d are needed", maxQueries)
		return
	}
	seen := map[string]bool{}
	for i, query := range source.Queries {
		field := fmt.Sprintf("sourceConfig.queries[%d]", i)
		switch {
		case strings.TrimSpace(query) == "" || utf8.RuneCountInString(query) > maxQuery:
			c.invalid(field, "must be 1 to %d characters, not all blank", maxQuery)
		case seen[query]:
			c.invalid(field, "is there already")
		}
		seen[query] = true
	}
	if p := source.Pagination; p != nil && *p != (model.Pagination{Type: model.PaginationNone}) &&
		*p != (model.Pagination{Type: model.URLPageParam, Max: p.Max}) {
		c.invalid("sourceConfig.pagination", "a search has the type URL_PAGE_PARAM and max "+
			"alone: the rest is the engine's")
	}
}

package runs

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// engineOf is the search engine that a scraper names, or the server's first one.
func engineOf(s api.Services, source *model.SourceConfig) (*model.SearchEngine, error) {
	if len(s.Engines) == 0 {
		return nil, fault.Invalid(fault.SearchNotConfigured, "sourceConfig.engine",
			"this server has no search engine")
	}
	for i := range s.Engines {
		if source.Engine == "" || s.Engines[i].Name == source.Engine {
			engine := s.Engines[i]
			return &engine, nil
		}
	}
	return nil, fault.Invalid(fault.SearchNotConfigured, "sourceConfig.engine",
		"this server has no search engine named %.100q", source.Engine)
}

// start is where the runs of a scraper begin: at its address, or at a search engine's for each
// query. The engine is nil but for searches.
func start(s api.Services, scraper *client.Scraper) (*listed, *model.SearchEngine, error) {
	source := &scraper.Spec.SourceConfig
	if scraper.Spec.Type != model.SearchEngineSearch {
		return &listed{field: "sourceConfig.url", urls: []string{scrapers.StartURL(&scraper.Spec)}},
			nil, nil
	}
	engine, err := engineOf(s, source)
	if err != nil {
		return nil, nil, err
	}
	begin := &listed{field: "sourceConfig.queries"}
	for _, query := range source.Queries {
		begin.urls = append(begin.urls, extract.SearchAddress(engine, query))
	}
	return begin, engine, nil
}

package launch

import (
	"context"
	"errors"
	"io"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Engine is the search engine that a source names, or the server's first one. Its fault is
// search_engine_not_configured.
func (l *Launcher) Engine(source *model.SourceConfig) (*model.SearchEngine, error) {
	if len(l.Engines) == 0 {
		return nil, fault.Invalid(fault.SearchNotConfigured, "sourceConfig.engine",
			"this server has no search engine")
	}
	for i := range l.Engines {
		if source.Engine == "" || l.Engines[i].Name == source.Engine {
			engine := l.Engines[i]
			return &engine, nil
		}
	}
	return nil, fault.Invalid(fault.SearchNotConfigured, "sourceConfig.engine",
		"this server has no search engine named %.100q", source.Engine)
}

// beginning is where the runs of a scraper begin: at its address, or at a search engine's address
// for each query. The engine is nil except for searches.
func (l *Launcher) beginning(scraper *client.Scraper) (*listed, *model.SearchEngine, error) {
	source := &scraper.Spec.SourceConfig
	if scraper.Spec.Type != model.SearchEngineSearch {
		return &listed{field: "sourceConfig.url", urls: []string{StartURL(&scraper.Spec)}},
			nil, nil
	}
	engine, err := l.Engine(source)
	if err != nil {
		return nil, nil, err
	}
	begin := &listed{field: "sourceConfig.queries"}
	for _, query := range source.Queries {
		begin.urls = append(begin.urls, extract.SearchAddress(engine, query))
	}
	return begin, engine, nil
}

// StartURL is the address at which a scraper's runs begin: its own or its curl command's. It is ""
// for a list scraper.
func StartURL(spec *model.Scraper) string {
	if spec.SourceConfig.Curl == "" {
		return spec.SourceConfig.URL
	}
	request, err := curl.Parse(spec.SourceConfig.Curl)
	if err != nil {
		return ""
	}
	return request.URL
}

// Beginning is the address that a run of a scraper would read first, and the field that it comes
// from. It is "" for a list scraper. Faults: search_engine_not_configured, start_urls_unreachable.
func (l *Launcher) Beginning(ctx context.Context, v *client.View,
	scraper *client.Scraper) (url, field string, err error) {
	if site := SiteOf(v, scraper); site != nil {
		link, err := (&siteAddresses{store: l.Store, site: site}).first(ctx)
		if errors.Is(err, io.EOF) {
			err = errNoLinks
		}
		return link.url, errNoLinks.Field, err
	}
	begin, _, err := l.beginning(scraper)
	if err != nil {
		return "", "", err
	}
	return begin.urls[0], begin.field, nil
}

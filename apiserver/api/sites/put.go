package sites

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const putID = "svc_create_scraper_site"

// putTime is how long receiving the largest site may take.
const putTime = 20 * time.Minute

type putRequest struct {
	Body   Site              `body:"json" limit:"536870912"`
	Stream *operation.Stream `stream:"text/uri-list,application/x-ndjson" items:"links"`
}

// put is PUT /api/scraper/site.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: putID, Routes: operation.Routes("PUT /api/scraper/site"), Group: group,
		Summary: "Sets the links that a scraper's runs read",
		Description: "A scraper has one site. To add links, send all of them again. The old " +
			"links stay until all the new ones have arrived, and one invalid link refuses all. " +
			"Links with the same canonical form are taken once, with the title of the first. " +
			"The state of a link stays when the site is sent again. Runs read unvisited links " +
			"first, then the others; without a site they begin at the scraper's own address. " +
			"The links come as links of a JSON body, or as the body itself. The body is " +
			"text/uri-list (one address per line, # begins a comment) or application/x-ndjson " +
			"({\"url\": …, \"title\": …} per line). The other members are then query " +
			"parameters. A link has at most 8,192 bytes of text, a site 1,000,000 links, and a " +
			"customer 1,000 sites with 10,000,000 links. Scrapers of lists, searches and files " +
			"cannot have a site.",
		Access: auth.Write, Agents: operation.Destroys, Feature: plans.SiteMap,
		Rate:        limits.General,
		Idempotency: operation.Required, Timeout: putTime,
		Errors: []fault.Code{fault.ScraperNotFound, fault.NotFound, fault.TypeNotRunnable,
			fault.ListTooLarge, fault.InvalidURL, fault.LimitReached, fault.UploadTooSlow,
			fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Site, error) {
		site, err := r.Launcher.PutSite(ctx, api.Launching(from, putID), in.site())
		if err != nil {
			return Site{}, err
		}
		return withLinks(ctx, r.Store, &site)
	})
}

// site converts the request. The links of a JSON body have already arrived.
func (r *putRequest) site() *launch.SiteInput {
	site := &launch.SiteInput{ID: r.Body.ID, Scraper: r.Body.ScraperRef, Name: r.Body.Name,
		Links: r.Stream, Line: launch.JSONSiteLine}
	switch r.Stream.ContentType {
	case "application/json":
		site.Items = true
		return site
	case "text/uri-list":
		site.Line = launch.URISiteLine
	}
	site.Receive = func(ctx context.Context) error {
		return r.Stream.Receive(ctx, operation.Verbatim)
	}
	return site
}

// get is GET /api/scraper/{id}/site.
func (r Resource) get() *operation.Operation {
	type request struct {
		ID ids.ID `path:"id"`
	}
	return operation.Define(operation.Declaration{
		ID: "svc_get_scraper_site", Routes: operation.Routes("GET /api/scraper/{id}/site"),
		Group:       group,
		Summary:     "Returns the site of a scraper, or null",
		Description: "Links are left out if there are more than 1,000, or more than 4 MiB of them.",
		Access:      auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.ScraperNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *request) (*Site, error) {
		if _, err := ownership.Scraper(from.View, from.Customer, in.ID, "id"); err != nil {
			return nil, err
		}
		known := from.View.SiteOf(in.ID)
		if known == nil {
			return nil, nil
		}
		site, err := withLinks(ctx, r.Store, known)
		return &site, err
	})
}

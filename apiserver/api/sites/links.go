package sites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

type linksRequest struct {
	SiteID    ids.ID `path:"siteId"`
	Page      int64  `query:"page" default:"0" clamp:"9007199254740991" doc:"Beyond the last page, the last page is returned."`
	Size      int64  `query:"size" default:"100" clamp:"1000" doc:"1 to 1,000; less counts as 1."`
	SortField string `query:"sortField" default:"url" doc:"url, title or curl; anything else means url"`
	Direction string `query:"sortDirection" default:"asc" pattern:"^([aA][sS][cC]|[dD][eE][sS][cC])$" doc:"asc or desc"`
	Sort      string `query:"sort" max:"64" code:"invalid_sort" doc:"url, title or curl, then asc or desc: title,desc. It replaces sortField and sortDirection."`
	Filters   string `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON filter on url, title, curl and state, for example {\"state\":\"ERRORED\"}"`
	Q         string `query:"q" max:"1000" doc:"Links with this text in their address or title; case does not matter"`
}

// links is GET /api/scraper/site/{siteId}/links.
func (r Resource) links() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_scraper_site_links",
		Routes: operation.Routes("GET /api/scraper/site/{siteId}/links"), Group: group,
		Summary: "Lists the links of a site",
		Description: "Text is sorted by bytes, and equal links by the order in which they were " +
			"given. A descending sort reverses both.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: time.Minute,
		Errors: []fault.Code{fault.NotFound, fault.InvalidFilter, fault.InvalidSort},
	}, func(ctx context.Context, from *operation.Caller,
		in *linksRequest) (operation.Streamed[api.Page[SiteLink]], error) {
		var none operation.Streamed[api.Page[SiteLink]]
		wanted, err := in.filter()
		if err != nil {
			return none, err
		}
		q, err := in.query()
		if err != nil {
			return none, err
		}
		site := from.View.Site(in.SiteID)
		if site == nil || site.Customer != from.Customer {
			return none, fault.Invalid(fault.NotFound, "siteId", "there is no such site")
		}
		q.Version, q.Site = site.Version, site.ID
		page, err := r.page(ctx, site, q, wanted, max(in.Page, 0), int(max(in.Size, 1)))
		if errors.Is(err, rowstore.ErrListUnknown) {
			return none, fault.Invalid(fault.NotFound, "siteId",
				"the links of the site are no longer kept; send the site again")
		}
		if err != nil {
			return none, fmt.Errorf("links of site %s: %w", site.ID, err)
		}
		return inParts(page), nil
	})
}

// partOfPage is how many links of a long page are in memory as JSON.
const partOfPage = 50

// inParts makes the answer of a page. JSON may have six times the bytes of its texts.
func inParts(page api.Page[SiteLink]) (answer operation.Streamed[api.Page[SiteLink]]) {
	if fitsAnswer(page.Content) {
		answer.Whole = page
		return answer
	}
	answer.Write = func(_ context.Context, w io.Writer) error {
		return page.Write(w, func() (part []SiteLink, err error) {
			most := min(partOfPage, len(page.Content))
			part, page.Content = page.Content[:most], page.Content[most:]
			if most == 0 {
				return nil, nil
			}
			return part, nil
		})
	}
	return answer
}

// fitsAnswer says whether links are short enough to be in memory as one JSON text.
func fitsAnswer(links []SiteLink) bool {
	size := 0
	for i := range links {
		n, err := api.Length(links[i])
		if size += n; err != nil || size > api.PageBytes {
			return false
		}
	}
	return true
}

// query is the requested order, without site and page.
func (in *linksRequest) query() (q rowstore.SiteQuery, err error) {
	orders := map[string]rowstore.LinkOrder{"url": rowstore.ByURL, "title": rowstore.ByTitle,
		"curl": rowstore.ByCurl}
	if in.Sort == "" {
		q.Descending = strings.EqualFold(in.Direction, "desc")
		q.By = rowstore.ByURL // the default for unknown fields
		if by, has := orders[in.SortField]; has {
			q.By = by
		}
		return q, nil
	}
	field, descending, known := api.ReadSort(in.Sort)
	by, has := orders[field]
	if !known || !has {
		return q, fault.Invalid(fault.InvalidSort, "sort",
			"must be url, title or curl, then asc or desc: title,desc")
	}
	q.By, q.Descending = by, descending
	return q, nil
}

// page reads one page of the links that match a filter; nil: of all links.
func (r Resource) page(ctx context.Context, site *client.Site, q rowstore.SiteQuery,
	wanted filter.Node, page int64, size int) (api.Page[SiteLink], error) {
	q.Offset, q.Limit = int(page)*size, size
	var links []rowstore.SiteLink
	var total int64
	var err error
	if wanted == nil {
		total = int64(site.Links)
		q.Within(total)
		links, err = r.Store.SiteLinks(ctx, q)
	} else {
		links, total, err = r.Store.FindSiteLinks(ctx, q, wanted)
	}
	page = min(page, max(api.Pages(total, size)-1, 0))
	return api.NewPage(newLinks(links), total, int(page), size), err
}

// filter is the filter of the request; nil: none.
func (in *linksRequest) filter() (wanted filter.Node, err error) {
	if in.Filters != "" {
		if wanted, err = filter.Parse([]byte(in.Filters)); err != nil {
			return nil, err
		}
		if err := filter.Each(wanted, checkField); err != nil {
			return nil, err
		}
	}
	if in.Q == "" {
		return wanted, nil
	}
	var has filter.Or
	for _, field := range []string{"url", "title"} {
		has = append(has, filter.Compare{Field: field, Op: filter.Contains,
			Values: []filter.Value{{Kind: filter.Text, Text: in.Q}}})
	}
	if wanted == nil {
		return has, nil
	}
	return filter.And{wanted, has}, nil
}

// checkField refuses other fields, because a misspelt filter should not silently match nothing.
func checkField(c filter.Compare) error {
	switch c.Field {
	case "url", "title", "curl":
		return nil
	case "state":
		return api.CheckValues(c, rowstore.LinkPending.Values())
	}
	return fault.Invalid(fault.InvalidFilter, "filters."+c.Field,
		"links are filtered by url, title, curl and state")
}

// delete is DELETE /api/scraper/site/{siteId}.
func (r Resource) delete() *operation.Operation {
	type request struct {
		SiteID ids.ID `path:"siteId"`
	}
	return operation.Define(operation.Declaration{
		ID:     "svc_delete_scraper_site",
		Routes: operation.Routes("DELETE /api/scraper/site/{siteId}"), Group: group,
		Summary: "Deletes a site with all its links, but not its scraper",
		Description: "From then on, the scraper's runs begin at its own address. Deleting a " +
			"site that does not exist, or is not the customer's, changes nothing.",
		Access: auth.Write, Agents: operation.Destroys, Rate: limits.General,
		Idempotency: operation.Required,
	}, func(ctx context.Context, from *operation.Caller, in *request) (operation.None, error) {
		_, err := client.Do(ctx, r.Client, client.DeleteSite{ID: in.SiteID,
			Customer: from.Customer}, from.Call)
		return operation.None{}, err
	})
}

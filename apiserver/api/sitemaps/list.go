package sitemaps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/harvest"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// SitemapEntry is an address in a sitemap.
type SitemapEntry struct {
	URL        string  `json:"url" doc:"Address in canonical form"`
	Image      *string `json:"image" scraped:"url" doc:"Address of the entry's first image"`
	ImageTitle *string `json:"imageTitle" scraped:"url"`
	LastSeen   string  `json:"lastSeen" format:"date-time" doc:"When the sitemap was read"`
}

// SitemapEntryPage is a page of entries.
type SitemapEntryPage = api.Page[SitemapEntry]

// Restriction limits entries to the scraper's part of the site.
type Restriction string

// The restrictions.
const (
	NoRestriction Restriction = "NONE"
	BasePath      Restriction = "BASE_PATH"
	SlashCount    Restriction = "SLASH_COUNT"
)

// Values implements the API's enums.
func (Restriction) Values() []string {
	return []string{string(NoRestriction), string(BasePath), string(SlashCount)}
}

type listRequest struct {
	ScraperID   ids.ID      `path:"scraperId"`
	Page        int         `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size        int         `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
	Sort        []string    `query:"sort" each:"max=64" max:"4" code:"invalid_sort" doc:"url, image, imageTitle or lastSeen, then asc or desc: lastSeen,desc. Default: in the order found."`
	Filters     string      `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON filter on url, image, imageTitle and lastSeen: {\"url\":{\"$contains\":\"/shoes/\"}}"`
	Search      string      `query:"search" max:"1000" doc:"Text in the address, or in the image's address or title; case does not matter"`
	Q           string      `query:"q" max:"1000" doc:"Same as search; if both are given, both must match"`
	From        *api.Time   `query:"from" doc:"Seen at this time or later"`
	To          *api.Time   `query:"to" doc:"Seen before this time"`
	Restriction Restriction `query:"restriction" default:"NONE" doc:"BASE_PATH keeps addresses under the path of the scraper's address, up to its last slash. SLASH_COUNT keeps addresses with as many slashes as the scraper's address."`
}

// Validate implements operation.Validator.
func (in *listRequest) Validate() fault.List {
	if in.From == nil || in.To == nil {
		return nil
	}
	return api.CheckSpan(*in.From, *in.To)
}

// list is GET /api/scraper/{scraperId}/sitemaps.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_sitemaps",
		Routes: operation.Routes("GET /api/scraper/{scraperId}/sitemaps"), Group: group,
		Summary: "Lists the addresses in the sitemaps of a scraper's site",
		Description: "The entries are those of the scraper's newest harvest, also while it is " +
			"under way. They are deleted each night at 02:00 UTC. If the harvest is under way " +
			"then, its entries are deleted a night later.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: time.Minute,
		Errors: []fault.Code{fault.ScraperNotFound, fault.InvalidFilter, fault.InvalidSort,
			fault.InvalidPage},
	}, func(ctx context.Context, from *operation.Caller, in *listRequest) (SitemapEntryPage,
		error) {
		scraper, err := ownership.Scraper(from.View, from.Customer, in.ScraperID, "scraperId")
		if err != nil {
			return SitemapEntryPage{}, err
		}
		q, narrowed, err := in.query(scraper)
		if err != nil {
			return SitemapEntryPage{}, err
		}
		h := from.View.NewestHarvest(scraper.ID)
		if h == nil || !h.Shows(from.View, r.Clock.Now()) {
			return api.NewPage[SitemapEntry](nil, 0, in.Page, in.Size), nil
		}
		q.Harvest = h.ID
		rows, err := r.Store.Entries(ctx, q)
		if err != nil {
			return SitemapEntryPage{}, fmt.Errorf("entries of harvest %s: %w", h.ID, err)
		}
		total := int64(h.Count)
		if narrowed || h.State == client.HarvestRunning {
			if total, err = r.Store.CountEntries(ctx, h.ID, q.Filter); err != nil {
				return SitemapEntryPage{}, fmt.Errorf("entries of harvest %s: %w", h.ID, err)
			}
		}
		entries := make([]SitemapEntry, len(rows))
		for i, row := range rows {
			if err := json.Unmarshal(row, &entries[i]); err != nil {
				return SitemapEntryPage{}, fmt.Errorf("entry of harvest %s: %w", h.ID, err)
			}
		}
		return api.NewPage(entries, total, in.Page, in.Size), nil
	})
}

// query is the requested query without its harvest. narrowed reports whether it excludes entries.
func (in *listRequest) query(scraper *client.Scraper) (q rowstore.EntriesQuery, narrowed bool,
	err error) {
	if err := api.Reach(in.Page, in.Size, "narrow it by filters or search"); err != nil {
		return q, false, err
	}
	q = rowstore.EntriesQuery{Offset: in.Page * in.Size, Limit: in.Size}
	all := filter.And{harvest.Entries()}
	for _, text := range [...]string{in.Search, in.Q} {
		if text != "" {
			all = append(all, found(text))
		}
	}
	if in.From != nil {
		all = append(all, compare(harvest.MemberLastSeen, filter.Gte, written(*in.From)))
	}
	if in.To != nil {
		all = append(all, compare(harvest.MemberLastSeen, filter.Lt, written(*in.To)))
	}
	all = append(all, in.restrict(scraper)...)
	if in.Filters != "" {
		own, err := filter.Parse([]byte(in.Filters))
		if err == nil {
			err = filter.Each(own, checkField)
		}
		if err != nil {
			return q, false, err
		}
		if own != nil {
			all = append(all, own)
		}
	}
	q.Filter = all
	q.Sort, err = parseSort(in.Sort)
	return q, len(all) > 1, err
}

// restrict returns the filter of the restriction.
func (in *listRequest) restrict(scraper *client.Scraper) []filter.Node {
	url, err := address.Canonical(launch.StartURL(&scraper.Spec))
	if err != nil {
		return nil // a scraper without an address has no entries
	}
	switch in.Restriction {
	case BasePath:
		base, _, _ := strings.Cut(harvest.Place(url), "?")
		base = base[:strings.LastIndexByte(base, '/')]
		// "0" follows "/" in ASCII: everything that begins with the path is within these bounds.
		return []filter.Node{compare(harvest.MemberPlace, filter.Gte, base+"/"),
			compare(harvest.MemberPlace, filter.Lt, base+"0")}
	case SlashCount:
		return []filter.Node{filter.Compare{Field: harvest.MemberSlashes, Op: filter.Eq,
			Values: []filter.Value{{Kind: filter.Number,
				Number: float64(strings.Count(url, "/"))}}}}
	}
	return nil
}

// written formats a time as in entries.
func written(at api.Time) string {
	return time.UnixMilli(int64(at)).UTC().Format(harvest.TimeLayout)
}

func compare(field string, op filter.Op, text string) filter.Node {
	return filter.Compare{Field: field, Op: op,
		Values: []filter.Value{{Kind: filter.Text, Text: text}}}
}

// found selects the entries that contain a text.
func found(text string) filter.Node {
	return filter.Or{compare(harvest.MemberURL, filter.Contains, text),
		compare(harvest.MemberImage, filter.Contains, text),
		compare(harvest.MemberImageTitle, filter.Contains, text)}
}

// members are the members by which entries are filtered and sorted.
func members() []string {
	return []string{harvest.MemberURL, harvest.MemberImage, harvest.MemberImageTitle,
		harvest.MemberLastSeen}
}

// checkField refuses a filter on members that entries do not have.
func checkField(c filter.Compare) error {
	if slices.Contains(members(), c.Field) {
		return nil
	}
	return fault.Invalid(fault.InvalidFilter, "filters."+c.Field, "entries have %s",
		strings.Join(members(), ", "))
}

// parseSort parses the sort of entries.
func parseSort(texts []string) ([]rowstore.Sort, error) {
	var sorts []rowstore.Sort
	for _, text := range texts {
		field, descending, known := api.ReadSort(text)
		if !known || !slices.Contains(members(), field) {
			return nil, fault.Invalid(fault.InvalidSort, "sort",
				"must be one of %s, then asc or desc: lastSeen,desc",
				strings.Join(members(), ", "))
		}
		sorts = append(sorts, rowstore.Sort{Field: field, Descending: descending})
	}
	return sorts, nil
}

// Package sites owns the operations on sites (specification 4.7): fixed lists of links that a
// scraper's runs read.
package sites

import (
	"context"
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Sites"

// maxShown is the most links that an answer with a site contains.
const maxShown = 1_000

// Resource has the operations on sites and their dependencies.
type Resource struct {
	Client   client.Proposer
	Store    Links
	Launcher *launch.Launcher
}

// Links reads sites from the row store.
type Links interface {
	SiteLinks(ctx context.Context, q rowstore.SiteQuery) ([]rowstore.SiteLink, error)
	FindSiteLinks(ctx context.Context, q rowstore.SiteQuery, f filter.Node) (
		links []rowstore.SiteLink, total int64, err error)
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.put(),
		r.get(),
		r.links(),
		r.delete(),
	}
}

// LinkState is the result of the newest run that reached a link.
type LinkState string

// Values implements the API's enums.
func (LinkState) Values() []string { return rowstore.LinkPending.Values() }

// SiteLink is the specification's LinkDTO.
type SiteLink struct {
	URL   string    `json:"url" required:"true" min:"1" max:"8192" code:"INVALID_URL"`
	Title string    `json:"title" max:"1000"`
	Curl  string    `json:"curl" max:"8192" doc:"A curl command for the link, kept as it is"`
	State LinkState `json:"state" stamped:"true" doc:"Outcome in the newest run that reached it; PENDING before the first"`
}

// NewLink converts a link of the row store to the API's form.
func NewLink(l *rowstore.SiteLink) SiteLink {
	return SiteLink{URL: l.URL, Title: l.Title, Curl: l.Curl, State: LinkState(l.State.String())}
}

// Site is the specification's SiteDTO.
type Site struct {
	ID             ids.ID     `json:"id" doc:"Empty or omitted: the scraper's existing site, or a new one"`
	Name           string     `json:"name" form:"filled-line" required:"true" min:"1" max:"200"`
	ScraperRef     ids.ID     `json:"scraperRef" required:"true" doc:"Id of the scraper whose runs read the links"`
	Links          []SiteLink `json:"links,omitzero" required:"true" alone:"json" max:"1000000" doc:"All the site's links. An answer leaves them out if there are more than 1,000, or more than 4 MiB of them as JSON."`
	LinkCount      uint32     `json:"linkCount" alone:"json" stamped:"true"`
	LinksTruncated bool       `json:"linksTruncated" alone:"json" stamped:"true" doc:"True if links was left out because they are too many or too long; read them by page"`
	CreatedAt      api.Time   `json:"createdAt" alone:"json" stamped:"true"`
	UpdatedAt      api.Time   `json:"updatedAt" alone:"json" stamped:"true"`
}

// NewSite converts a site to the API's form, without its links.
func NewSite(s *client.Site) Site {
	return Site{ID: s.ID, Name: s.Name, ScraperRef: s.Scraper, LinkCount: s.Links,
		LinksTruncated: true, CreatedAt: api.Time(s.CreatedAt), UpdatedAt: api.Time(s.UpdatedAt)}
}

// withLinks returns a site with its links, unless they are too many or too long, or the row store
// no longer has the version.
func withLinks(ctx context.Context, store Links, s *client.Site) (Site, error) {
	site := NewSite(s)
	if s.Links > maxShown {
		return site, nil
	}
	links, err := store.SiteLinks(ctx, rowstore.SiteQuery{Version: s.Version, Site: s.ID,
		Limit: maxShown})
	if errors.Is(err, rowstore.ErrListUnknown) {
		return site, nil
	}
	if err != nil {
		return site, fmt.Errorf("links of site %s: %w", s.ID, err)
	}
	if made := newLinks(links); fitsAnswer(made) {
		site.LinksTruncated, site.Links = false, made
	}
	return site, nil
}

// newLinks converts links of the row store to the API's form; no links make an empty list.
func newLinks(links []rowstore.SiteLink) []SiteLink {
	made := make([]SiteLink, len(links))
	for i := range links {
		made[i] = NewLink(&links[i])
	}
	return made
}

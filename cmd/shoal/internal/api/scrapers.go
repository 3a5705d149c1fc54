package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Scraper reads a scraper.
func (c *Client) Scraper(ctx context.Context, id string) (Answer[Scraper], error) {
	var scraper Answer[Scraper]
	err := c.get(ctx, scraperPath(id), nil, &scraper)
	return scraper, err
}

func scraperPath(id string) string { return "/api/scraper/" + url.PathEscape(id) }

// ScraperFilter narrows a list of scrapers; empty fields match everything.
type ScraperFilter struct{ GroupID, Q string }

// ScraperPage is a cursor page of scrapers.
type ScraperPage = cursorPage[Scraper]

// ScraperPages reads the scrapers, newest first, in pages of at most limit. It ends with the first
// error.
func (c *Client) ScraperPages(ctx context.Context, filter ScraperFilter,
	limit int) iter.Seq2[Answer[ScraperPage], error] {
	return func(yield func(Answer[ScraperPage], error) bool) {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range map[string]string{"groupId": filter.GroupID, "q": filter.Q} {
			if value != "" {
				query.Set(name, value)
			}
		}
		for {
			var page Answer[ScraperPage]
			err := c.get(ctx, "/api/scraper/list", query, &page)
			if !yield(page, err) || err != nil || !page.Value.HasMore {
				return
			}
			query.Set("cursor", page.Value.NextCursor)
		}
	}
}

// Scrapers lists all scrapers that match.
func (c *Client) Scrapers(ctx context.Context, filter ScraperFilter) ([]Scraper, error) {
	var all []Scraper
	for page, err := range c.ScraperPages(ctx, filter, maxCursorPage) {
		if err != nil {
			return nil, err
		}
		all = append(all, page.Value.Items...)
	}
	return all, nil
}

// PutScraper creates or updates a scraper: a Scraper, or the JSON of one.
func (c *Client) PutScraper(ctx context.Context, scraper any) (Answer[Scraper], error) {
	var saved Answer[Scraper]
	err := c.send(ctx, http.MethodPut, "/api/scraper", scraper, &saved)
	return saved, err
}

// DeletionPreview describes what a deletion would do.
type DeletionPreview struct {
	Token          string `json:"token"`
	PreviewSummary struct {
		EntityName string   `json:"entityName"`
		Warnings   []string `json:"warnings"`
	} `json:"previewSummary"`
}

// PreviewDeleteScraper asks what the deletion of a scraper would do.
func (c *Client) PreviewDeleteScraper(ctx context.Context, id string) (Answer[DeletionPreview],
	error) {
	var preview Answer[DeletionPreview]
	err := c.ask(ctx, http.MethodPost, scraperPath(id)+"/preview-delete", nil, &preview)
	return preview, err
}

// DeleteScraper deletes a scraper; the token comes from a preview.
func (c *Client) DeleteScraper(ctx context.Context, id, token string) error {
	return c.send(ctx, http.MethodDelete, scraperPath(id)+"?token="+url.QueryEscape(token), nil,
		nil)
}

// RunScraper launches a run of a scraper; maxCharge in micros, nil for no cap.
func (c *Client) RunScraper(ctx context.Context, id string, maxCharge *int64) (Answer[Launch],
	error) {
	var launch Answer[Launch]
	path := scraperPath(id) + "/run"
	if maxCharge != nil {
		path += "?maxChargeMicros=" + strconv.FormatInt(*maxCharge, 10)
	}
	err := c.within(5*time.Minute).send(ctx, http.MethodPost, path, nil, &launch)
	return launch, err
}

// StopScraper stops a scraper's active run and waits for it as long as the server does.
func (c *Client) StopScraper(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodPost, scraperPath(id)+"/stop", nil, nil)
}

// Proposal is a scraper that can read a page, and its first rows.
type Proposal struct {
	ScraperDTO json.RawMessage   `json:"scraperDTO"`
	SampleData []json.RawMessage `json:"sampleData"`
}

// Look is a page to find scrapers for. A proposal is saved under Name and Group; all fields but
// Fields must be set.
type Look struct {
	Name        string `json:"name"`
	GroupID     string `json:"groupId"`
	URL         string `json:"url"`
	ItemsConfig any    `json:"itemsConfig,omitempty"`
	HiddenData  bool   `json:"-"`
}

// Detect proposes scrapers for a page, best first.
func (c *Client) Detect(ctx context.Context, look Look) (Answer[[]Proposal], error) {
	var found Answer[[]Proposal]
	path := "/api/scraper-simple/url-based"
	if look.HiddenData {
		path += "?tryWithHiddenData=true"
	}
	err := c.ask(ctx, http.MethodPost, path, look, &found)
	return found, err
}

// Found holds the values that a page has for fields, by name; null where it has none.
type Found struct {
	Fields map[string]json.RawMessage `json:"fields"`
}

// Find looks for fields on a page by their names.
func (c *Client) Find(ctx context.Context, address string, names []string) (Answer[Found], error) {
	var found Answer[Found]
	err := c.ask(ctx, http.MethodPost, "/api/scraper-simple/preview-from-url",
		map[string]any{"url": address, "fields": names}, &found)
	return found, err
}

// Sample returns the first rows that a saved scraper makes of its first page, which is charged.
func (c *Client) Sample(ctx context.Context, id string) (Answer[[]json.RawMessage], error) {
	var rows Answer[[]json.RawMessage]
	err := c.ask(ctx, http.MethodGet, scraperPath(id)+"/get-sample-data", nil, &rows)
	return rows, err
}

// Scraper returns the proposed scraper.
func (p *Proposal) Scraper() (Scraper, error) {
	var scraper Scraper
	if err := json.Unmarshal(p.ScraperDTO, &scraper); err != nil {
		return scraper, fmt.Errorf("proposal: %w", err)
	}
	return scraper, nil
}

// Estimate is what a run launched now will probably cost. Money is in micros.
type Estimate struct {
	Links          int64 `json:"links"`
	Pages          int64 `json:"pages"`
	MinMicros      int64 `json:"minMicros"`
	MaxMicros      int64 `json:"maxMicros"`
	BalanceMicros  int64 `json:"balanceMicros"`
	Affordable     bool  `json:"affordable"`
	RunsConsidered int64 `json:"runsConsidered"`
}

// Estimate asks what a run of a scraper over that many links will probably cost. 0 means all links
// of the scraper or its list.
func (c *Client) Estimate(ctx context.Context, scraper string, links int) (Answer[Estimate],
	error) {
	var answer Answer[Estimate]
	path := scraperPath(scraper) + "/estimate"
	if links > 0 {
		path += "?links=" + strconv.Itoa(links)
	}
	err := c.ask(ctx, http.MethodPost, path, nil, &answer)
	return answer, err
}

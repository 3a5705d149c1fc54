package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// PageKept is how long fields can be picked on a page without fetching it again.
const PageKept = 10 * time.Minute

// Page is a page on which fields are picked.
type Page struct {
	View       extract.View
	Candidates []extract.Proposal
	Tier       string    // that fetched it
	Charged    int64     // in micros
	Until      time.Time // when it expires
}

// LookAt fetches a page to pick fields on, and keeps it for 10 minutes. With useCache it returns,
// for free, a kept page, or one that another call of the customer is fetching. maxCharge, in
// micros, caps the cost; nil: no cap. Faults: Errors.
func (t *Trials) LookAt(ctx context.Context, from *Caller, url string, useCache bool,
	maxCharge *int64) (*Page, error) {
	if !useCache {
		return t.fetchPage(ctx, from, url, false, maxCharge)
	}
	if kept := t.recallPage(ctx, from.Customer, url); kept != nil {
		return kept, nil
	}
	return t.fetchPage(ctx, from, url, true, maxCharge)
}

// fetchPage fetches a page, and pays for it unless it joins another call, and keeps it.
func (t *Trials) fetchPage(ctx context.Context, from *Caller, url string, joins bool,
	maxCharge *int64) (*Page, error) {
	rows, job, err := t.tryRun(ctx, from, &launch.Trial{Source: model.SourcePreviewURL, URL: url,
		Field: "url", MaxCharge: maxCharge, Shared: true, Joins: joins,
		Recipe: model.Recipe{Type: model.Viewing, Schema: schemasOf(from)}})
	if err != nil {
		return nil, err
	}
	page := &Page{Charged: job.Charged, Until: time.UnixMilli(job.Finished).Add(PageKept)}
	if len(rows) == 0 { // a view is a row, so the fetcher is of an older version
		return nil, fault.New(fault.Unavailable, "the page was not kept")
	}
	if err := json.Unmarshal(rows[0], &page.View); err != nil {
		return nil, fmt.Errorf("view of job %s: %w", job.ID, err)
	}
	page.Candidates = make([]extract.Proposal, len(rows)-1)
	for i, row := range rows[1:] {
		if err := json.Unmarshal(row, &page.Candidates[i]); err != nil {
			return nil, fmt.Errorf("proposal of job %s: %w", job.ID, err)
		}
	}
	record, err := t.Store.Record(ctx, job.ID, model.Unit{})
	if err != nil {
		return nil, fmt.Errorf("record of job %s: %w", job.ID, err)
	}
	if record != nil && len(record.Tries) > 0 {
		page.Tier = record.Tries[len(record.Tries)-1].Tier.String()
	}
	t.keepPage(ctx, from, url, page)
	return page, nil
}

// Kept is the page of an address that LookAt has kept. Faults: not_found.
func (t *Trials) Kept(ctx context.Context, customer, url string) (*Page, error) {
	kept := t.recallPage(ctx, customer, url)
	if kept == nil {
		return nil, fault.Invalid(fault.NotFound, "url",
			"the page is not kept any more: look at it again")
	}
	return kept, nil
}

func pageKey(customer, url string) string {
	return fmt.Sprintf("page %s %x", customer, xxh3.HashString128(url).Bytes())
}

func (t *Trials) recallPage(ctx context.Context, customer, url string) *Page {
	data, found := t.Values.Get(ctx, pageKey(customer, url))
	var kept Page
	if !found || json.Unmarshal(data, &kept) != nil || !kept.Until.After(t.Clock.Now()) {
		return nil
	}
	return &kept
}

// keepPage keeps a page. A trial's rows are bounded so that it fits.
func (t *Trials) keepPage(ctx context.Context, from *Caller, url string, page *Page) {
	if data, err := json.Marshal(page); err == nil {
		t.Values.Set(ctx, pageKey(from.Customer, url), data, PageKept)
	}
}

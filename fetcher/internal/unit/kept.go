package unit

import (
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/keeping"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// setKeep decides whether the current request's bodies are kept. A trial's are not: its caller has
// seen the result.
func (t *Turn) setKeep(job *client.Job) {
	t.keep = bodies.Pack{}
	if t.recipe.keepDays > 0 && t.units.config.Keeper != nil && !job.Trial() {
		t.keep = bodies.Pack{Group: job.Group, Scraper: t.task.Scraper, Job: t.task.Job,
			Days: t.recipe.keepDays}
	}
}

// keepBody packs a body that was read, to be kept with the unit's page. A new body of the unit's
// own page replaces what was packed before.
func (t *Turn) keepBody(response *web.Page, at time.Time) {
	if t.fetch.asked == "" {
		t.read = t.read[:0]
	}
	page := t.units.config.Keeper.Pack(t.fetch.asked, response.Final, response.ContentType,
		response.Body)
	page.At = at.UnixMicro()
	t.read = append(t.read, page)
	t.lease.KeepBytes(int64(len(page.Packed)))
}

// Kept is the bodies of a page on their way into a pack.
type Kept struct {
	*keeping.Kept

	keeper *keeping.Keeper
}

// Keep hands the bodies read for a page to the keeper and records their place in the page; nil:
// they are not kept.
func (c *Chain) Keep(p *model.Page) *Kept {
	read := c.read
	c.read = nil
	if len(read) == 0 || p.Outcome == model.Cancelled {
		return nil
	}
	keeper := c.units.config.Keeper
	kept := keeper.Add(c.task.Customer, c.keep, bodies.Entry{Fetch: p.Fetch, Pages: read})
	if kept == nil {
		return nil
	}
	p.Kept = &kept.Body
	return &Kept{Kept: kept, keeper: keeper}
}

// Strip returns a page's record without its bodies' place, because they are not kept after all.
func (k *Kept) Strip(record []byte) []byte {
	k.keeper.Lose()
	page, _, err := stream.DecodePages(record)
	if err != nil || page == nil {
		return record // a bug: it was encoded here
	}
	page.Kept = nil
	return stream.EncodePage(*page)
}

package sitemaps

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/harvest"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const (
	patience  = 55 * time.Second // wait for the end of a harvest (decision 66)
	timeout   = 70 * time.Second
	goneEvery = time.Second // interval of checks that the caller still waits
	harvestID = "svc_harvest_sitemaps"
)

type harvestRequest struct {
	ScraperID ids.ID `path:"scraperId"`
	Cap       uint32 `query:"cap" default:"500000" min:"1" max:"500000" doc:"Most addresses that are taken"`
}

// harvest is POST /api/scraper/{scraperId}/sitemaps/harvest.
func (r Resource) harvest() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: harvestID, Routes: operation.Routes("POST /api/scraper/{scraperId}/sitemaps/harvest"),
		Group: group, Summary: "Reads the sitemaps of a scraper's site, and counts the " +
			"addresses that they list",
		Description: "If the scraper's own address is a sitemap, it is read. Otherwise the " +
			"sitemaps named in robots.txt are read, or those at the usual places. Sitemaps, " +
			"RSS, Atom and text are read, compressed or not, and indexes up to 4 levels deep. " +
			"Addresses on another host are taken if that host's robots.txt names the sitemap. " +
			"robots.txt is obeyed, one request a second is sent, and nothing is charged. " +
			"Addresses with the same canonical form count once. A harvest replaces the " +
			"previous one, and goes on in the background. The call waits up to 55 s, then " +
			"returns the count so far; the same Idempotency-Key waits again. Without a " +
			"sitemap, or with an empty one, the count is 0. At most one harvest of a scraper " +
			"is under way at a time, and 10 of a customer.",
		Access: auth.Write, Agents: operation.Adds, Reaches: true,
		Feature: plans.SiteMap, Rate: limits.Harvest,
		Idempotency: operation.Required, Later: true, Timeout: timeout,
		Errors: []fault.Code{fault.ScraperNotFound, fault.TypeNotRunnable, fault.HarvestRunning,
			fault.LimitReached, fault.OutOfSpace, fault.SourceUnreachable, fault.SitemapMalformed},
	}, func(ctx context.Context, from *operation.Caller, in *harvestRequest) (int64, error) {
		ask := client.AskHarvest{ID: r.IDs.New(), Customer: from.Customer, Scraper: in.ScraperID,
			Cap: in.Cap, Operation: from.Call.Operation, Key: from.Call.Key}
		var err error
		ask.URL, ask.IgnoreRobots, err = siteOf(from, in.ScraperID)
		if err != nil && !from.OnlyAnswers() {
			return 0, err
		}
		asked, err := client.Do(ctx, r.Client, ask, from.Call)
		if err != nil {
			return 0, err
		}
		return r.await(ctx, from, &asked)
	})
}

// siteOf is an address of the site whose sitemaps are a scraper's, and whether the scraper ignores
// robots.txt.
func siteOf(from *operation.Caller, id ids.ID) (url string, ignoresRobots bool, err error) {
	scraper, err := ownership.Scraper(from.View, from.Customer, id, "scraperId")
	if err != nil {
		return "", false, err
	}
	if url, err = address.Canonical(launch.StartURL(&scraper.Spec)); err != nil {
		return "", false, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the scraper has no address whose site has sitemaps")
	}
	config := scraper.Spec.Config
	return url, config != nil && config.Politeness != nil && config.Politeness.IgnoreRobots, nil
}

// await waits for the end of a harvest, and returns its count of addresses, final or so far.
func (r Resource) await(ctx context.Context, from *operation.Caller,
	asked *client.Harvest) (int64, error) {
	enough := r.Clock.After(patience)
	for {
		h, changed := r.Client.View().WatchHarvest(asked.ID)
		switch {
		case h == nil:
			return 0, fault.New(fault.Unavailable, "the harvest is not known here yet")
		case h.State == client.HarvestDone:
			return int64(h.Count), nil
		case h.State == client.HarvestFailed:
			return 0, fault.New(fault.Code(h.Code), "%s", h.Detail)
		}
		select {
		case <-changed:
		case <-r.Clock.After(goneEvery):
			if from.Gone() {
				return 0, operation.ErrGone
			}
		case <-enough:
			from.Later = true
			count, err := r.Store.CountEntries(ctx, h.ID, harvest.Entries())
			if err != nil {
				return 0, fmt.Errorf("count so far: %w", err)
			}
			return count, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

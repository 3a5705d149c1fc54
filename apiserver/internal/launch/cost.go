package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// maxPlaced bounds the addresses that an estimate looks at: those of one read. If the list is
// longer or no longer kept, pages may be of any domain.
const maxPlaced = linksAtOnce

// place finds the domains with own prices that the scraper's addresses belong to, and what a page
// costs accordingly.
func (l *Launcher) place(ctx context.Context, from *Caller, scraper *client.Scraper,
	charge *charging) error {
	charge.domains = []string{""}
	if rows := charge.prices.Domains(); len(rows) > 0 {
		domains, err := l.domainsOf(ctx, from, scraper, charge.prices.Places())
		if err != nil {
			return err
		}
		for place, row := range rows {
			if domains == nil || domains[uint8(place+1)] {
				charge.domains = append(charge.domains, row.RowKey)
			}
		}
		if domains != nil && !domains[0] {
			charge.domains = charge.domains[1:]
		}
	}
	charge.least, charge.dearest = charge.pages(charge.domains, charge.tiers)
	return nil
}

// domainsOf finds the places of price rows that the scraper's addresses belong to; nil: any.
func (l *Launcher) domainsOf(ctx context.Context, from *Caller, scraper *client.Scraper,
	places price.Places) (map[uint8]bool, error) {
	var all addresses
	if site := SiteOf(from.View, scraper); site != nil {
		all = &siteAddresses{store: l.Store, site: site, all: true}
	} else if !scraper.ListRun {
		begin, _, err := l.beginning(scraper)
		if err != nil {
			return nil, err
		}
		all = begin
	} else {
		given, err := givenRun(ctx, l.History, from.View, scraper.ID)
		if err != nil {
			return nil, fmt.Errorf("runs of scraper %s: %w", scraper.ID, err)
		}
		if given == nil {
			return nil, nil
		}
		all = &stored{store: l.Store, job: given}
	}
	found := map[uint8]bool{}
	for range maxPlaced + 1 { // one more, to learn that there are no more
		given, err := all.next(ctx)
		switch coded := (*fault.Error)(nil); {
		case errors.Is(err, io.EOF) && len(found) > 0:
			return found, nil
		case errors.Is(err, io.EOF) || errors.As(err, &coded):
			return nil, nil // there is no address, or the list is no longer kept
		case err != nil:
			return nil, err
		}
		canonical := given.canonical
		if canonical == "" {
			if canonical, err = address.Canonical(given.url); err != nil {
				continue
			}
		}
		found[places.Of(address.AuthorityOf(canonical))] = true
	}
	return nil, nil
}

// pages is the least and the most that a page of these domains costs by one of these tiers.
func (c *charging) pages(domains []string, tiers model.TierSet) (least, dearest int64) {
	least = math.MaxInt64
	for _, domain := range domains {
		for _, tier := range c.prices.Covered(tiers, c.At(domain)).Tiers() {
			page, _ := c.prices.Page(tier, c.At(domain))
			least, dearest = min(least, page), max(dearest, page)
		}
	}
	return min(least, dearest), dearest
}

// cost is what a link of a past run came to: its delivered pages, and what they would cost today at
// least and at most.
type cost struct {
	pages, fewest, most float64
	least, dearest      int64 // of a page
}

// costOf is the cost of a ledger entry, over all its links. before are the prices of the entry's
// run.
func (c *charging) costOf(entry *client.Entry, before price.List) cost {
	sum := cost{least: math.MaxInt64}
	quantity := float64(max(c.Quantity, 1))
	for _, line := range entry.Lines {
		least, dearest := c.today(line.RowKey, before)
		pages := float64(line.Pages+line.FreePages+line.Unbilled) / quantity
		sum.fewest += pages * float64(least)
		sum.most += pages * float64(dearest)
		sum.least, sum.dearest = min(sum.least, least), max(sum.dearest, dearest)
	}
	return sum
}

// today is the current price range of a page that was charged by this row of the earlier prices.
// Another row may apply today: the tier may no longer be on sale, and the domain may have gained or
// lost its own price.
func (c *charging) today(row string, before price.List) (least, dearest int64) {
	switch _, ofDomain := price.DomainOf(row); {
	case row == c.Row || ofDomain && slices.Contains(c.domains, row):
		if known, found := c.prices.Row(row); found {
			page := known.Of(int64(max(c.Quantity, 1)))
			return page, page
		}
		return c.pages(c.domains, c.tiers)
	case ofDomain:
		return c.pages([]string{""}, c.tiers)
	}
	// Domains that had their own price then were not charged by tier.
	domains := slices.DeleteFunc(slices.Clone(c.domains), func(domain string) bool {
		_, had := before.Row(domain)
		return had
	})
	if len(domains) == 0 {
		domains = c.domains
	}
	tiers := c.tiers
	for _, tier := range tiers.Tiers() {
		if tier.PriceRow() == row {
			tiers = model.TiersOf(tier)
		}
	}
	return c.pages(domains, tiers)
}

// pageRange is the least and the most that a page of past runs would cost today.
func pageRange(past []cost) (least, dearest int64) {
	least = math.MaxInt64
	for _, c := range past {
		least, dearest = min(least, c.least), max(dearest, c.dearest)
	}
	return min(least, dearest), dearest
}

// sampled narrows the prices of a page to those of the scraper's newest sample, if that is among
// the customer's newest ledger entries.
func (l *Launcher) sampled(ctx context.Context, from *Caller, scraper ids.ID,
	charge *charging) error {
	newest, err := l.History.EntriesBefore(ctx, from.View, from.Customer, nil, maxLookedAt)
	if err != nil {
		return fmt.Errorf("newest ledger entries: %w", err)
	}
	for _, entry := range newest {
		if entry.Scraper == scraper && entry.Source == model.SourceSample && len(entry.Lines) > 0 {
			c := charge.costOf(entry, nil)
			charge.least, charge.dearest = c.least, c.dearest
			return nil
		}
	}
	return nil
}

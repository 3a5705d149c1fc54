package launch

import (
	"context"
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxCharged bounds the memory of a rerun: 8 bytes per address.
const maxCharged = 20_000_000

// charged are the start addresses that a scraper's runs were charged for, as 64-bit hashes. Among
// 5,000,000 addresses two collide in about one of a million reruns. The address is then left out,
// never charged twice.
type charged struct {
	scraper ids.ID
	hashes  []uint64 // ascending, without duplicates
}

// readCharged reads the hashes from the page records of the scraper's runs, and from what is kept
// of its removed runs.
func readCharged(ctx context.Context, v *client.View, history *client.History, store Store,
	scraper ids.ID) (*charged, error) {
	c := &charged{scraper: scraper}
	err := store.EachCharged(ctx, scraper, func(hashes []uint64) error {
		for _, hash := range hashes {
			if err := c.add(hash); err != nil {
				return err
			}
		}
		c.sort()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("addresses charged long ago: %w", err)
	}
	var jobs []ids.ID
	err = history.ScraperRuns(ctx, v, scraper, func(j *client.Job) bool {
		if j.Delivered > 0 {
			jobs = append(jobs, j.ID)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("runs of scraper %s: %w", scraper, err)
	}
	for _, job := range jobs {
		err := store.EachRecord(ctx, job, func(r rowstore.Record) error {
			if r.Outcome != model.Delivered || r.Quantity == 0 || r.Unit.Page != 0 {
				return nil
			}
			canonical, err := address.Canonical(r.URL)
			if err != nil {
				return err
			}
			return c.add(rowstore.ChargedHash(scraper, canonical))
		})
		if err != nil {
			return nil, fmt.Errorf("addresses charged for job %s: %w", job, err)
		}
		c.sort()
	}
	return c, nil
}

func (c *charged) add(hash uint64) error {
	if len(c.hashes) == maxCharged {
		return fault.New(fault.ListTooLarge,
			"more than %d addresses were charged for this scraper", maxCharged)
	}
	c.hashes = append(c.hashes, hash)
	return nil
}

func (c *charged) sort() {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
}

// has says whether an address was charged.
func (c *charged) has(canonical string) bool {
	_, found := slices.BinarySearch(c.hashes,
		rowstore.ChargedHash(c.scraper, canonical))
	return found
}

// lacks says whether an address was never charged.
func (c *charged) lacks(canonical string) bool { return !c.has(canonical) }

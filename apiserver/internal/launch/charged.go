package launch

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxCharged bounds the memory of a rerun: 8 bytes an address.
const maxCharged = 20_000_000

// charged are the start addresses that a scraper's runs were charged for, as 64-bit hashes. Of
// 5,000,000 addresses one is taken for another once in about a million reruns. It is then left out,
// not charged again.
type charged struct {
	seed   uint64
	hashes []uint64 // ascending, each once
}

// readCharged reads them from the page records of the scraper's runs. seed must be unpredictable.
func readCharged(ctx context.Context, v *client.View, history *client.History,
	pages rowstore.Pages, scraper, seed ids.ID) (*charged, error) {
	c := &charged{seed: binary.BigEndian.Uint64(seed[4:])}
	var jobs []ids.ID
	err := history.ScraperRuns(ctx, v, scraper, func(j *client.Job) bool {
		if j.Delivered > 0 {
			jobs = append(jobs, j.ID)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("runs of scraper %s: %w", scraper, err)
	}
	for _, job := range jobs {
		err := pages.EachRecord(ctx, job, func(r rowstore.Record) error {
			if r.Outcome != model.Delivered || r.Quantity == 0 || r.Unit.Page != 0 {
				return nil
			}
			canonical, err := address.Canonical(r.URL)
			if err != nil {
				return err
			}
			if len(c.hashes) == maxCharged {
				return fault.New(fault.ListTooLarge,
					"more than %d addresses were charged for this scraper", maxCharged)
			}
			c.hashes = append(c.hashes, c.hash(canonical))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("addresses charged for job %s: %w", job, err)
		}
		slices.Sort(c.hashes)
		c.hashes = slices.Compact(c.hashes)
	}
	return c, nil
}

func (c *charged) hash(canonical string) uint64 { return xxh3.HashStringSeed(canonical, c.seed) }

// lacks says that an address was never charged.
func (c *charged) lacks(canonical string) bool {
	_, found := slices.BinarySearch(c.hashes, c.hash(canonical))
	return !found
}

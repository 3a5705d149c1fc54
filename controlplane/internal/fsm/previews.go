package fsm

import (
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// The two calls of a deletion (specification 4.10, decision 28). A preview records the target's
// cascade. The commit uses the preview up, and is refused if the cascade has changed. Both are
// commands, so nothing can change between the check and the deletion.

const (
	previewKeptMillis = 5 * 60 * 1000
	maxPreviews       = 200 // of a customer; the oldest is removed
)

// cascades returns, by operation, what a deletion takes along. Its faults for a missing target are
// the deletion's.
func cascades() map[string]func(*state.Tx, *command.Deletion) (state.Cascade, error) {
	return map[string]func(*state.Tx, *command.Deletion) (state.Cascade, error){
		command.OpDeleteSchema:   cascadeOfSchema,
		command.OpDeleteScraper:  cascadeOfScraper,
		command.OpDeleteRun:      cascadeOfRun,
		command.OpDeleteGroup:    cascadeOfGroup,
		command.OpDeleteCategory: cascadeOfCategory,
		command.OpRemoveCustomer: cascadeOfCustomer,
	}
}

func cascadeOf(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	known := cascades()[d.Operation]
	// older voters only know the preview of a schema
	if d.Operation != command.OpDeleteSchema &&
		tx.ClusterVersion() < command.ScraperDeletesSince {
		known = nil
	}
	if known == nil {
		return state.Cascade{},
			fault.New(fault.NotSupported, "the operation %.100q has no preview", d.Operation)
	}
	return known(tx, d)
}

func previewDelete(tx *state.Tx, p command.PreviewDeletePayload) (state.Preview, error) {
	cascade, err := cascadeOf(tx, &p.Deletion)
	if err != nil {
		return state.Preview{}, err
	}
	if kept := tx.Previews(p.Deletion.Customer); len(kept) >= maxPreviews {
		tx.RemovePreview(kept[0])
	}
	preview := state.Preview{Token: p.Token, Customer: p.Deletion.Customer,
		Operation: p.Deletion.Operation,
		Target:    p.Deletion.Target, Query: p.Deletion.Query, Cascade: cascade, CreatedAt: tx.Now,
		Expires: tx.Now + previewKeptMillis}
	saved := preview
	tx.PutPreview(&saved)
	return preview, nil
}

// spendPreview uses up the preview of a deletion, or refuses the deletion. Every deletion with a
// preview calls it first.
func spendPreview(tx *state.Tx, d *command.Deletion, token string) error {
	cascade, err := cascadeOf(tx, d)
	if err != nil {
		return err
	}
	preview := tx.NewestPreview(d.Customer, d.Operation, d.Target, d.Query)
	if token != "" {
		preview = tx.Preview(token)
	}
	if preview == nil || preview.Expires <= tx.Now || preview.Customer != d.Customer ||
		preview.Operation != d.Operation ||
		preview.Target != d.Target || preview.Query != d.Query {
		return fault.New(fault.PreviewRequired, "no preview of this deletion holds; ask for one "+
			"and show what it says")
	}
	tx.RemovePreview(preview)
	if preview.Cascade.Digest != cascade.Digest {
		return fault.New(fault.CascadeDrift, "what hangs on the target has changed since the "+
			"preview; ask for another one")
	}
	return nil
}

// expirePreviews removes expired previews, a bounded number at a time.
func expirePreviews(tx *state.Tx) {
	var expired []*state.Preview
	tx.PreviewsByExpiry(func(p *state.Preview) bool {
		if p.Expires > tx.Now || len(expired) == maxExpiredPerTick {
			return false
		}
		expired = append(expired, p)
		return true
	})
	for _, p := range expired {
		tx.RemovePreview(p)
	}
}

// siteCounts counts the sites that a deletion takes along.
type siteCounts struct{ sites, links int }

func (c *siteCounts) add(site *state.Site) {
	c.sites++
	c.links += int(site.Links)
}

func (c *siteCounts) counts() []state.Count {
	return []state.Count{{Name: "sites", N: c.sites}, {Name: "siteLinks", N: c.links}}
}

// digest identifies a set of dependants, given in a fixed order.
func digest(dependants []ids.ID) uint64 {
	h := xxh3.New()
	for _, id := range dependants {
		_, _ = h.Write(id[:]) // a hash never fails
	}
	return h.Sum64()
}

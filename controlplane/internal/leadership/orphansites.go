package leadership

import (
	"context"
	"fmt"
	"time"
)

// dropSites removes the links of sites that were replaced, deleted or never made, and the link
// states of deleted sites. Ids of sites and versions contain their time, as ids of lists do.
func (l *Leadership) dropSites(ctx context.Context, now time.Time) error {
	before := l.orphansBefore(now)
	versions, err := l.config.Store.AllSites(ctx)
	if err != nil {
		return fmt.Errorf("list the versions of sites: %w", err)
	}
	stated, err := l.config.Store.StatedSites(ctx)
	if err != nil {
		return fmt.Errorf("list the sites with states of links: %w", err)
	}
	// after them: it includes what was made of them meanwhile
	view, err := l.config.Proposer.Fresh(ctx)
	if err != nil {
		return err
	}
	for _, version := range versions {
		if !l.orphaned(view, version.ID, before) {
			continue
		}
		l.config.Point("work.orphans.before_drop")
		if err := l.config.Store.DropSite(ctx, version.ID); err != nil {
			return fmt.Errorf("drop version %s of a site: %w", version.ID, err)
		}
		l.config.Point("work.orphans.after_drop")
	}
	for _, site := range stated {
		if !l.orphaned(view, site, before) {
			continue
		}
		if err := l.config.Store.DropLinkStates(ctx, site); err != nil {
			return fmt.Errorf("drop the states of links of site %s: %w", site, err)
		}
	}
	return nil
}

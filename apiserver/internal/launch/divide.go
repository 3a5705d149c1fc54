package launch

import (
	"context"
	"fmt"
	"math/bits"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// maxWeight bounds a run's weight when a cap is divided, so that no sum overflows.
const maxWeight = 1 << 50

// leaveOut skips scrapers, from the end of the order, so that the cap pays for a page of each other
// run. If each part were too small for a page, all runs would stop at once.
func (g *gathering) leaveOut(most *int64) {
	if most == nil {
		return
	}
	left, free, kept := *most, g.free, g.runs[:0]
	for _, m := range g.runs {
		switch m.first = m.page; {
		case m.free && free > 0:
			free, m.first = free-1, 0
		case m.page > left:
			g.skip(m.run.Scraper, client.SkipUnaffordable)
			continue
		}
		left -= m.first
		kept = append(kept, m)
	}
	g.runs = kept
}

// recall sets what the last runs of the scrapers cost. Most of these have left the state.
func (g *gathering) recall(ctx context.Context) error {
	var last []ids.ID
	for i := range g.runs {
		if s := g.view.Scraper(g.runs[i].run.Scraper); !s.LastJob.IsZero() {
			last = append(last, s.LastJob)
		}
	}
	jobs, err := g.History.RunsByID(ctx, g.view, g.customer, last)
	if err != nil {
		return fmt.Errorf("last runs of a group: %w", err)
	}
	for i := range g.runs {
		m := &g.runs[i]
		job := jobs[g.view.Scraper(m.run.Scraper).LastJob]
		if job != nil && job.Closed && !job.File {
			m.past = job.Charged
		}
	}
	return nil
}

// divide gives each run a part of the cap on all runs. Each gets its first page, and a share of the
// rest by what it will probably cost. That is what the scraper's last run cost, or else a page for
// each link at its domain's price.
func (g *gathering) divide(most *int64) {
	if most == nil || len(g.runs) == 0 {
		return
	}
	rest, whole := *most, uint64(0)
	for i := range g.runs {
		rest -= g.runs[i].first
		whole += g.runs[i].weight()
	}
	for i := range g.runs {
		m := &g.runs[i]
		// Nothing overflows here: a weight is at most the whole.
		high, low := bits.Mul64(uint64(rest), m.weight())
		share, _ := bits.Div64(high, low, whole)
		part := m.first + int64(share)
		m.run.MaxCharge = &part
	}
}

// weight is what a run will probably cost, relative to others; at least 1.
func (m *member) weight() uint64 {
	cost := m.past
	if cost == 0 {
		cost = m.listed
	}
	if cost == 0 {
		cost = max(m.page, 1) * int64(m.run.Links)
	}
	return uint64(min(max(cost, 1), maxWeight))
}

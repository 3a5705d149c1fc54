package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const (
	linkStatesEvery = 5 * time.Second
	statedRuns      = 256     // closed runs per step
	statedLinks     = 200_000 // links of runs after which a step ends
)

// Stating is what the states of sites' links need from the row store.
type Stating interface {
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
	LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error)
	PutLinkStates(ctx context.Context, site ids.ID, started int64,
		states []rowstore.LinkOutcome) error
}

// LinkStatesConfig configures LinkStates. Point may be left out.
type LinkStatesConfig struct {
	View    func() *client.View
	History *client.History
	Store   Stating
	// Point is called at "work.linkstates.before_put" and "work.linkstates.after_put", so that
	// tests can end the process there.
	Point func(name string)
}

// LinkStates updates the states of sites' links from the page records of each closed run (decision
// 51). For each link, the run that started last counts. So a repeated or late step gives the same
// result.
func LinkStates(config LinkStatesConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.LinkStates, Recurring: true, AtStart: true,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := config.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("ingest: states of links: %w", err)
			}
			return outcome, nil
		}}
}

// step processes the next runs that were closed.
func (c *LinkStatesConfig) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	var at client.Stated
	if len(item.Progress) > 0 {
		if err := json.Unmarshal(item.Progress, &at); err != nil {
			return work.Outcome{}, work.GiveUp(err)
		}
	}
	view := c.View()
	if !view.HasSites() { // nobody needs years of history here
		at.Upto = max(at.Upto, view.ArchivedTo())
	}
	closed, err := c.History.ClosedAfter(ctx, view, at.Upto, statedRuns)
	if err != nil {
		return work.Outcome{}, err
	}
	more, links := len(closed) == statedRuns, uint64(0)
	for i, job := range closed {
		site := view.SiteOf(job.Scraper)
		if site != nil && job.Customer == site.Customer && !job.File { // a file visits no link
			if err := c.tell(ctx, site, job); err != nil {
				return work.Outcome{}, fmt.Errorf("run %s: %w", job.ID, err)
			}
			links += uint64(job.Links)
		}
		if at.Upto = job.Index; links >= statedLinks {
			more = more || i+1 < len(closed)
			break
		}
	}
	progress, err := json.Marshal(at)
	if err != nil {
		return work.Outcome{}, err
	}
	if more {
		return work.GoOn(progress), nil
	}
	return work.Rest(progress, linkStatesEvery), nil
}

// telling gathers the states of a run's links, in the order of its list.
type telling struct {
	*LinkStatesConfig
	site *client.Site
	job  *client.Job

	seqs   []uint32
	states []rowstore.LinkState
}

// tell stores the states of a run's links. It skips links that the run's list or records no longer
// hold.
func (c *LinkStatesConfig) tell(ctx context.Context, site *client.Site, job *client.Job) error {
	t := &telling{LinkStatesConfig: c, site: site, job: job}
	err := c.Store.EachRecord(ctx, job.ID, func(r rowstore.Record) error {
		state := rowstore.LinkVisited
		if r.Outcome == model.Errored {
			state = rowstore.LinkErrored
		}
		if last := len(t.seqs) - 1; last >= 0 && t.seqs[last] == r.Unit.Seq {
			t.states[last] = max(t.states[last], state) // pages of one chain are one link
			return nil
		}
		if len(t.seqs) == rowstore.MaxSitePart {
			if err := t.put(ctx); err != nil {
				return err
			}
		}
		t.seqs, t.states = append(t.seqs, r.Unit.Seq), append(t.states, state)
		return nil
	})
	if err == nil {
		err = t.put(ctx)
	}
	if errors.Is(err, rowstore.ErrListUnknown) {
		return nil // the list is gone after 90 days
	}
	return err
}

// put stores what was gathered.
func (t *telling) put(ctx context.Context) error {
	if len(t.seqs) == 0 {
		return nil
	}
	links, err := t.Store.LinksAt(ctx, t.job.List, t.seqs)
	if err != nil {
		return err
	}
	outcomes := make([]rowstore.LinkOutcome, 0, len(links))
	for i, link := range links {
		canonical, err := address.Canonical(link.URL)
		if err != nil {
			continue // no site has an address that is no longer valid: it would be refused
		}
		outcomes = append(outcomes, rowstore.LinkOutcome{Hash: rowstore.LinkHash(canonical),
			State: t.states[i]})
	}
	t.Point("work.linkstates.before_put")
	if err := t.Store.PutLinkStates(ctx, t.site.ID, t.job.Started*1000, outcomes); err != nil {
		return err
	}
	t.Point("work.linkstates.after_put")
	t.seqs, t.states = t.seqs[:0], t.states[:0]
	return nil
}

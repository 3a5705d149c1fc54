package launch

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

const (
	// dueAtOnce scrapers are launched by one command. Their hosts are looked up at once.
	dueAtOnce = hostsAtOnce
	// dueLookedAt bounds how many scrapers with their own schedule a step may skip.
	dueLookedAt = 10_000
	// roomRests is how long a start waits when the customer may not open more runs, or while disks
	// are short.
	roomRests = 5 * time.Second
	// dueTime is how long a step may prepare its runs. Nobody waits for it, and a site of a million
	// links takes long.
	dueTime = 5 * time.Minute
)

// DueConfig is what the launch of due runs needs. Point is optional.
type DueConfig struct {
	Launcher *Launcher
	// Point is called at "work.launch.before_commit" and "work.launch.after_commit". Tests end the
	// process there.
	Point func(name string)
}

// Due is the kind of background work that launches due runs. A step launches some of them. The
// command that makes their runs also moves the item on, so a repeated step launches nothing.
func Due(config DueConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Launch, AtOnce: 4, Held: 64, PerCustomer: 1,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := config.step(ctx, item.ID)
			if err != nil {
				return outcome, fmt.Errorf("launch what is due: %w", err)
			}
			return outcome, nil
		}}
}

// step launches the next scrapers of an item.
func (c *DueConfig) step(ctx context.Context, id ids.ID) (work.Outcome, error) {
	view, err := c.Launcher.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	item := view.WorkItem(id)
	if item == nil {
		return work.Done(), nil // another owner has done it
	}
	if view.IsShort() {
		return work.Rest(nil, roomRests), nil
	}
	g := newGathering(c.Launcher, view, item.Customer)
	g.within = dueTime
	due := client.DueOf(item.Args)
	next := &client.LaunchItem{ID: id, From: item.Cursor}
	g.gated = c.Launcher.gateOf(view, item.Customer, due.Group)
	if due.Group.IsZero() {
		g.addScrapers(due.Scrapers, next)
	} else {
		g.addGroup(due.Group, next)
	}
	if len(g.runs)+len(g.skipped) == 0 && !next.Done && string(next.From) == string(next.Upto) {
		return work.Rest(nil, roomRests), nil
	}
	if err := g.makeReady(ctx); err != nil {
		g.dropLists(ctx)
		return work.Outcome{}, err
	}
	runs := g.command(due.Group)
	runs.Item = next
	c.Point("work.launch.before_commit")
	launched, err := client.Do(ctx, c.Launcher.Client, runs, nil)
	c.Point("work.launch.after_commit")
	if uncertain(err) {
		return work.Outcome{}, err // lists without runs are orphans
	}
	if err == nil && len(runs.Runs) > 0 && len(launched.Jobs)+len(launched.Skipped) == 0 {
		// No room is left, another owner was here, or this command was applied before.
		if view, err = c.Launcher.Client.Fresh(ctx); err != nil {
			return work.Outcome{}, err // lists without runs are orphans
		}
		made, err := g.made(ctx, view)
		if err != nil {
			return work.Outcome{}, err // lists without runs are orphans
		}
		g.keepLists(made)
		g.dropLists(ctx)
		return work.Rest(nil, roomRests), nil
	}
	g.keepLists(launched.Jobs)
	g.dropLists(ctx)
	switch {
	case err != nil:
		return work.Outcome{}, err
	case next.Done:
		return work.Done(), nil
	}
	return work.GoOn(nil), nil
}

// gateOf says whether the customer's plan lacks scheduled starts: weekly ones for a group with that
// start type, else daily ones.
func (l *Launcher) gateOf(view *client.View, customer string, group ids.ID) bool {
	needs := plans.DailyScheduler
	if g := view.Group(group); g != nil && g.StartType == "WEEKLY" {
		needs = plans.WeeklyScheduler
	}
	return l.Plans.Check(view, customer, needs) != nil
}

// made are the runs that exist. Meanwhile they may even have ended and left the state.
func (g *gathering) made(ctx context.Context, view *client.View) (jobs []client.GroupJob,
	err error) {
	var runs []ids.ID
	for i := range g.runs {
		runs = append(runs, g.runs[i].run.Job)
	}
	known, err := g.History.RunsByID(ctx, view, g.customer, runs)
	for id := range known {
		jobs = append(jobs, client.GroupJob{Job: id})
	}
	return jobs, err
}

// full says whether no further scraper can be launched by this command.
func (g *gathering) full() bool { return len(g.runs) >= min(g.room, dueAtOnce) }

// addScrapers adds scrapers from the item's position on, and records the new position. Scrapers
// whose starts were paused or removed meanwhile are skipped.
func (g *gathering) addScrapers(scrapers []ids.ID, item *client.LaunchItem) {
	at := 0
	if len(item.From) == 2 {
		at = int(binary.BigEndian.Uint16(item.From))
	}
	for ; at < len(scrapers) && !g.full(); at++ {
		if s := g.view.Scraper(scrapers[at]); s == nil || s.Customer != g.customer {
			g.skip(scrapers[at], client.SkipNoSource)
		} else if !g.view.StartsItself(s) {
			g.skip(s.ID, client.SkipPaused)
		} else {
			g.add(s)
		}
	}
	item.Done = at >= len(scrapers)
	if at > 0 {
		item.Upto = binary.BigEndian.AppendUint16(nil, uint16(at))
	}
}

// addGroup adds scrapers of a group without their own schedule, from the item's position on, and
// records the new position.
func (g *gathering) addGroup(group ids.ID, item *client.LaunchItem) {
	made, from := int64(0), ids.ID{}
	if len(item.From) == 8+len(from) {
		made = int64(binary.BigEndian.Uint64(item.From))
		copy(from[:], item.From[8:])
	}
	item.Done, item.Upto = true, item.From
	looked := 0
	g.view.GroupScrapersFrom(group, made, from, func(s *client.Scraper) bool {
		if g.full() || looked == dueLookedAt {
			item.Done = false
			return false
		}
		looked++
		item.Upto = append(binary.BigEndian.AppendUint64(nil, uint64(s.CreatedAt)), s.ID[:]...)
		if s.Spec.Schedule == "" {
			g.add(s)
		}
		return true
	})
}

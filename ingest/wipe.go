package ingest

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

const (
	wipeEvery   = time.Minute
	wipedAtOnce = 64 // harvests per step
)

// WipeConfig configures Wipe. Point may be left out.
type WipeConfig struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store interface {
		AllHarvests(ctx context.Context) ([]ids.ID, error)
		DropHarvest(ctx context.Context, harvest ids.ID) error
	}
	// Safe returns the time by which things may be removed for their age. It fails while that is
	// uncertain.
	Safe func(ctx context.Context) (time.Time, error)
	// Point is called at named places, "work.wipe.before_drop" and "work.wipe.before_forget", so
	// that tests can end the process there.
	Point func(name string)
}

// Wipe removes what harvests found: at 02:00 UTC, when a newer harvest has replaced it, or when its
// scraper is gone. No read shows any of it any more. It also removes journals whose harvest the
// state does not know, or knows as wiped. A paused owner may add such a journal after a wipe.
func Wipe(config WipeConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Wipe, Recurring: true, AtStart: true,
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			more, err := config.step(ctx)
			if err != nil {
				return work.Outcome{}, fmt.Errorf("ingest: wipe what harvests found: %w", err)
			}
			if more {
				return work.GoOn(nil), nil
			}
			return work.Rest(nil, wipeEvery), nil
		}}
}

// step wipes some harvests, and says whether there may be more.
func (c *WipeConfig) step(ctx context.Context) (more bool, err error) {
	now, err := c.Safe(ctx)
	if err != nil {
		return false, err
	}
	stored, err := c.Store.AllHarvests(ctx)
	if err != nil {
		return false, err
	}
	// The state gets a harvest before the row store: a harvest that it lacks is orphaned.
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return false, err
	}
	for _, id := range stored {
		if h := view.Harvest(id); h == nil || h.Wiped || isWiped(view, h, now) {
			c.Point("work.wipe.before_drop")
			if err := c.Store.DropHarvest(ctx, id); err != nil {
				return false, err
			}
		}
	}
	forget := client.ForgetHarvests{}
	view.EachHarvest(func(h *client.Harvest) bool {
		if isWiped(view, h, now) {
			forget.Harvests = append(forget.Harvests, h.ID)
		}
		return len(forget.Harvests) < wipedAtOnce
	})
	if len(forget.Harvests) == 0 {
		return false, nil
	}
	c.Point("work.wipe.before_forget")
	_, err = client.Do(ctx, c.Client, forget, nil)
	return len(forget.Harvests) == wipedAtOnce, err
}

// isWiped says whether a harvest has something to wipe or to forget.
func isWiped(view *client.View, h *client.Harvest, now time.Time) bool {
	if h.Orphaned(view) {
		return true
	}
	if h.Wiped {
		return h.Goes(view, now.UnixMilli()-client.HarvestKept)
	}
	return h.State != client.HarvestRunning && !h.Shows(view, now) && !h.Waits(view, now)
}

package leadership

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

// spaceEvery is how often disk space is checked.
const spaceEvery = 2 * time.Second

// watchSpace tells the state when disks that the cluster depends on fall below their floor, and
// when they recover. Those are the row store's, this node's, those of voters without which there is
// no majority, and those of all fetchers together.
func (l *Leadership) watchSpace(ctx context.Context) error {
	for {
		short, err := l.shortOf(ctx)
		if err != nil {
			return err
		}
		if view := l.view(); view.ClusterVersion() >= state.SpaceSince &&
			view.Cluster().Short != short {
			if _, err := l.propose(ctx, command.NoteSpacePayload{Short: short}); err != nil {
				return err
			}
			if short == "" {
				l.config.Logger.Info("disks have room again: everything goes on")
			} else {
				l.config.Logger.Warn("disks have less than their floor: nothing new is taken in, "+
					"and nothing is sent out", "short", short)
			}
		}
		if !clock.Pause(ctx, l.config.Clock, spaceEvery) {
			return nil
		}
	}
}

// shortOf names the short disks that the cluster depends on; "": there is room. A row store that
// does not answer counts as before.
func (l *Leadership) shortOf(ctx context.Context) (string, error) {
	var short []string
	if l.rowsShort(ctx) {
		short = append(short, "row store")
	}
	voters, err := l.shortVoters(ctx)
	if err != nil {
		return "", err
	}
	short = append(short, voters...)
	if fetchers := l.tracker.Short(); len(voters) == 0 {
		short = append(short, fetchers...)
	}
	text := strings.Join(short, ", ")
	return text[:min(len(text), command.MaxShortBytes)], ctx.Err()
}

// rowsShort says whether the row store's disk is short.
func (l *Leadership) rowsShort(ctx context.Context) bool {
	if l.config.RowsFloor == nil {
		return false
	}
	free, known, err := l.config.Store.Free(ctx)
	l.rows.Store(&room{free: free, known: known && err == nil})
	if err != nil {
		l.config.Logger.Warn("the row store does not say how much room it has", "error", err)
		return l.config.RowsFloor.Short()
	}
	return known && !l.config.RowsFloor.Above(free)
}

// room is the free space of a disk, in bytes.
type room struct {
	free  uint64
	known bool
}

// shortVoters names the voters with short disks, if this node is one of them or the others are no
// majority.
func (l *Leadership) shortVoters(ctx context.Context) (short []string, err error) {
	servers, _, err := l.node.Servers(ctx)
	if err != nil {
		return nil, err
	}
	voters, ask := 0, map[string]string{}
	for _, server := range servers {
		if server.Suffrage == raft.Voter {
			voters++
			ask[string(server.ID)] = string(server.Address)
		}
	}
	delete(ask, l.node.Name())
	for name, answer := range l.node.Statuses(ctx, ask) {
		if answer.Short {
			short = append(short, name)
		}
	}
	own := l.node.Short()
	if own {
		short = append(short, l.node.Name())
	}
	if !own && 2*(voters-len(short)) > voters {
		return nil, nil
	}
	slices.Sort(short)
	return short, nil
}

// measureSpace exports on the leader whether there is room.
func (h *Holder) measureSpace(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (short float64, ok bool) {
		l := h.Current()
		if l == nil {
			return 0, false
		}
		if l.view().IsShort() {
			short = 1
		}
		return short, true
	}).
		Gauge("shoal_controlplane_short_of_space",
			"1 while free disk space is below its floor and no new work is accepted or "+
				"dispatched, on the leader.", func(short float64) float64 { return short }).
		Declare(to)
	telemetry.NewSamples(func() (rows room, ok bool) {
		if l := h.Current(); l != nil {
			if known := l.rows.Load(); known != nil {
				return *known, known.known
			}
		}
		return rows, false
	}).
		Gauge("shoal_rowstore_disk_free_bytes",
			"Free space on the row store's disk, as last reported to the leader.",
			func(rows room) float64 { return float64(rows.free) }).
		Declare(to)
}

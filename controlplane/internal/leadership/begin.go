package leadership

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/shards"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/wake"
)

// lead runs one leadership until ctx ends. It fails only when this node cannot lead this cluster.
func (h *Holder) lead(ctx context.Context) error {
	term, began, err := h.config.Proposer.BeginTerm(ctx)
	if err != nil {
		return nil //nolint:nilerr // leadership is over, or ends
	}
	h.clocks.BeginTerm() // everything that earlier leaders stamped is applied now
	cluster, err := h.createCluster(ctx)
	if err != nil || cluster == nil {
		return err
	}
	if cluster.Shards != h.config.Shards {
		return fmt.Errorf("the cluster was created with %d shards, this node is set to %d",
			cluster.Shards,
			h.config.Shards)
	}
	if !h.addPrices(ctx) {
		return nil
	}
	h.clocks.CompareAlone()
	l := h.adopt(ctx, term, began)
	h.config.Logger.Info("leading", "term", term)
	h.current.Store(l)
	h.node.LeaderChanged() // wakes those that wait for a leader
	defer func() {
		h.current.CompareAndSwap(l, nil)
		h.node.FSM().Observe(nil)
	}()
	l.work(ctx)
	return nil
}

// createCluster proposes the cluster's first command unless the cluster exists. Nil: leadership is
// over, and the next leader learns the outcome. It fails if log or row store belong to another
// cluster: two clusters on them would take each other's tasks and pages.
func (h *Holder) createCluster(ctx context.Context) (*state.Cluster, error) {
	view := h.node.View
	if cluster := view().Cluster(); cluster != nil {
		return cluster, nil
	}
	id, err := h.node.ClusterID()
	if err != nil {
		return nil, err
	}
	if claimed, err := h.config.Claim(ctx, id); err != nil || !claimed {
		return nil, err
	}
	secret := h.config.IDs.New()
	first := command.CreateClusterPayload{ID: id, Shards: h.config.Shards,
		FreeGrant:  h.config.FreeGrant,
		HashSecret: binary.BigEndian.Uint64(secret[4:]), Prices: h.config.Prices,
		Log: h.config.LogName, Rows: h.config.RowsName, Version: h.node.Newest()}
	if _, err := h.config.Proposer.Propose(ctx, first); err != nil {
		return nil, nil //nolint:nilerr // leadership is over, or ends
	}
	return view().Cluster(), nil
}

// addPrices adds rows that no version of the price table ever had: those of endpoints newer than
// the cluster. A removed row stays removed. Not ok: leadership is over.
func (h *Holder) addPrices(ctx context.Context) (ok bool) {
	view := h.node.View()
	current := view.CurrentPrices()
	known := map[string]bool{}
	for version := uint32(1); version <= current.Version; version++ {
		if table := view.Prices(version); table != nil {
			for _, row := range table.Rows {
				known[row.RowKey] = true
			}
		}
	}
	rows := slices.Clone(current.Rows)
	for _, row := range h.config.Prices {
		if !known[row.RowKey] {
			rows = append(rows, row)
		}
	}
	if len(rows) == len(current.Rows) {
		return true
	}
	put, err := h.config.Proposer.Propose(ctx, command.PutPricesPayload{Rows: rows,
		Version: current.Version})
	if err == nil && fault.CodeOf(put.Err) == fault.PricesChanged {
		return h.addPrices(ctx) // an admin changed the prices first
	}
	return err == nil
}

// HistoryOf returns the history of runs in a row store.
func HistoryOf(store Store) *client.History { return client.NewHistory(pastRuns{of: store}) }

// pastRuns serves a history with the runs that have left the state.
type pastRuns struct {
	client.Past
	of Store
}

// PastRuns implements client.Past.
func (p pastRuns) PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord,
	error) {
	return p.of.PastRuns(ctx, q)
}

// adopt builds the leadership's memory from the replicated state, between two commands. Earlier
// commands are in the state; later ones are observed.
func (h *Holder) adopt(ctx context.Context, term, began uint64) *Leadership {
	l := &Leadership{config: h.config, node: h.node, clocks: h.clocks, metrics: h.metrics, ctx: ctx,
		term: term, began: began, returned: make(chan model.Marker, maxReturned),
		planNow: wake.NewSignal(), planLater: wake.NewSignal(), unread: wake.NewSignal(),
		publishNow: wake.NewSignal(), giveBackNow: wake.NewSignal(), closeNow: wake.NewSignal(),
		assignNow: wake.NewSignal(), markNow: wake.NewSignal(), startNow: wake.NewSignal(),
		compared:    make(chan struct{}),
		marksWanted: map[uint16]struct{}{}, told: map[string]time.Time{}}
	store := h.node.Store
	view := h.node.View
	judging := client.Judging{Store: h.config.Store,
		History: HistoryOf(h.config.Store), Within: client.JudgedWithin,
		Logger: h.config.Logger}
	defer h.node.Between()()
	l.dispatcher = dispatch.New(dispatch.Config{Leader: began, Newest: store().LastDispatch(),
		Shards: int(h.config.Shards), Window: h.config.Window, HostOf: h.config.HostOf,
		ShardOf: h.config.ShardOf, DomainOf: h.config.DomainOf,
		Pace: h.config.pace, Now: h.config.Clock.Now, View: view})
	l.tracker = shards.New(shards.Config{Lease: h.config.Lease, EndWithin: l.endWithin,
		Now: h.config.Clock.Now})
	l.steps = &steps.Steps{Dispatcher: l.dispatcher, State: store, Propose: l.propose,
		Store: h.config.Store,
		Log:   h.config.Log, IDs: h.config.IDs,
		NowMicros: func() int64 { return h.config.Clock.Now().UnixMicro() },
		Spare:     l.spares,
		Judge: func(ctx context.Context, job *state.Job) (command.Verdict, error) {
			return judging.JudgeInTime(ctx, view(), job)
		},
		Unread: l.tellUnread,
		Point:  h.config.Point, Counts: &l.metrics.steps, Tracer: h.config.Tracer}
	for _, job := range view().OpenJobs() {
		store().ReadRun(job.ID, func(run *state.Run) {
			if run != nil {
				l.dispatcher.Adopt(job, run)
			}
		})
	}
	h.node.FSM().Observe(l.observe)
	return l
}

// Package leadership owns the time in which this node leads, from won to lost. It has what a leader
// remembers, the routines that work, the heartbeats it answers, and whom it has Raft count. A
// leadership is made anew each time; what outlives it is the state's, or the clocks'.
package leadership

import (
	"context"
	"fmt"
	"sync/atomic"

	"shoal.dev/shoal/controlplane/internal/node"
)

// Holder begins a leadership whenever Raft gives it to this node, and ends it when Raft takes it
// away.
type Holder struct {
	config  *Config
	node    *node.Node
	clocks  *Clocks
	metrics *metrics

	current    atomic.Pointer[Leadership]
	anew       signal      // the state was replaced: lead anew
	interludes chan func() // run while no leadership's routines do
}

// NewHolder makes a holder that Run runs.
func NewHolder(config Config) *Holder {
	h := &Holder{config: &config, node: config.Node,
		clocks:  newClocks(config.Node, config.Clock, config.Logger),
		metrics: newMetrics(config.Metrics), anew: newSignal(), interludes: make(chan func())}
	h.measure(config.Metrics)
	return h
}

// Current is the leadership of this node, once it has begun and until it is over; else nil.
func (h *Holder) Current() *Leadership { return h.current.Load() }

// Clocks is what this node knows of the cluster's clocks.
func (h *Holder) Clocks() *Clocks { return h.clocks }

// Anew ends the leadership, if there is one, and begins another: its state has been replaced.
func (h *Holder) Anew() {
	h.current.Store(nil)
	h.anew.raise()
}

// Aside runs work while no leadership's routines run, and begins the leadership anew afterwards.
func (h *Holder) Aside(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	select {
	case h.interludes <- func() { done <- work() }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-h.node.Life().Done():
		return node.ErrStopping
	}
}

// Run begins and ends leaderships until ctx ends, by what changes tell: whether this node leads.
// When the state is replaced under a leadership, that ends and another begins.
func (h *Holder) Run(ctx context.Context, changes <-chan bool) error {
	leads, stop := false, func() {}
	defer func() { stop() }()
	failed := make(chan error, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("controlplane: lead: %w", err)
		case leads = <-changes:
			// The newest change alone is told: if it was lost and won again meanwhile, this is
			// another leadership.
		case <-h.anew:
		case work := <-h.interludes:
			stop()
			stop = func() {}
			work()
		}
		stop()
		stop = func() {}
		if leads {
			stop = h.start(ctx, failed)
		}
	}
}

// start begins a leadership; what it returns ends it and waits for it.
func (h *Holder) start(ctx context.Context, failed chan<- error) (stop func()) {
	inner, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.lead(inner); err != nil {
			select {
			case failed <- err:
			default: // one reason is enough to stop
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

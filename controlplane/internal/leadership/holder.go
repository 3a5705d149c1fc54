// Package leadership owns the time in which this node leads. It has what a leader remembers, its
// routines, its answers to heartbeats, and its choice of Raft's servers. Each leadership starts
// afresh; what outlives it is in the state or the clocks.
package leadership

import (
	"context"
	"fmt"
	"sync/atomic"

	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/wake"
)

// Holder begins a leadership when this node becomes Raft's leader, and ends it when it no longer
// is.
type Holder struct {
	config  *Config
	node    *node.Node
	clocks  *Clocks
	metrics *metrics

	current    atomic.Pointer[Leadership]
	anew       wake.Signal // the state was replaced: begin a new leadership
	interludes chan func() // run while no leadership's routines run
}

// NewHolder makes a holder; Run runs it.
func NewHolder(config Config) *Holder {
	h := &Holder{config: &config, node: config.Node,
		clocks:  newClocks(config.Node, config.Clock, config.Logger),
		metrics: newMetrics(config.Metrics), anew: wake.NewSignal(), interludes: make(chan func())}
	h.measure(config.Metrics)
	return h
}

// Current returns this node's leadership while it lasts, else nil.
func (h *Holder) Current() *Leadership { return h.current.Load() }

// Clocks returns what this node knows of the cluster's clocks.
func (h *Holder) Clocks() *Clocks { return h.clocks }

// Anew ends the leadership, if any, and begins another, because the state was replaced.
func (h *Holder) Anew() {
	h.current.Store(nil)
	h.anew.Raise()
}

// Aside runs work while no leadership's routines run, and then begins a new leadership.
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

// Run begins and ends leaderships until ctx ends. changes reports whether this node leads. A
// replaced state ends the leadership and begins another.
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
			// Only the newest change is reported: if it was lost and won again meanwhile, this is
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

// start begins a leadership; the function returned ends it and waits for it.
func (h *Holder) start(ctx context.Context, failed chan<- error) (stop func()) {
	inner, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.lead(inner); err != nil {
			select {
			case failed <- err:
			default: // one reason to stop is enough
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

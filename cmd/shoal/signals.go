package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"shoal.dev/shoal/pkg/telemetry"
)

// traceFlush is how long the end of a process waits for the collector to take the last spans.
const traceFlush = 5 * time.Second

// signals are what a process tells the outside.
type signals struct {
	metrics *telemetry.Metrics
	log     *slog.Logger
	tracer  *telemetry.Tracer // nil: no traces
}

// openSignals begins the signals of a node. Its log goes to file as text, or to stderr as JSON.
func openSignals(ctx context.Context, config ServeConfig, node string, file io.Writer) (*signals, error) {
	s := &signals{metrics: telemetry.NewMetrics()}
	format := telemetry.LogConfig{Node: node, Format: telemetry.TextLog}
	if config.LogStderr {
		file, format.Format = os.Stderr, telemetry.JSONLog
	}
	var err error
	if s.log, err = telemetry.NewLog(file, format, s.metrics); err != nil {
		return nil, err
	}
	if config.Traces.Endpoint != "" {
		s.tracer, err = telemetry.NewTracer(ctx, telemetry.TraceConfig{Endpoint: config.Traces.Endpoint,
			Ratio: config.Traces.Ratio, Node: node, Version: version(),
			Failed: func(err error) { s.log.Warn("the collector does not take traces", "error", err) }})
	}
	return s, err
}

// close sends the spans that wait.
func (s *signals) close() {
	ctx, cancel := context.WithTimeout(context.Background(), traceFlush)
	defer cancel()
	if err := s.tracer.Close(ctx); err != nil {
		s.log.Warn("the last traces are lost", "error", err)
	}
}

// forRole is the log as a role writes it.
func (s *signals) forRole(role string) *slog.Logger { return telemetry.ForRole(s.log, role) }

// operators is what operators may ask of this process.
func (n *node) operators() telemetry.Ops {
	return telemetry.Ops{Metrics: n.metrics, Ready: n.ready, StateHash: n.stateHash, Pprof: n.config.OpsProfiles}
}

// stateHash is the replicated state in one value.
func (n *node) stateHash() (telemetry.StateHash, error) {
	index, hash, err := n.control.StateHash()
	return telemetry.StateHash{Index: index, Hash: hash}, err
}

// ready is nil when this node is registered, reaches the leader, and was not told to stop.
func (n *node) ready(ctx context.Context) error {
	select {
	case <-n.stopping:
		return errors.New("the process stops")
	default:
	}
	select {
	case <-n.control.Ready():
	default:
		return errors.New("the node is not registered yet")
	}
	if _, err := n.control.Client().Fresh(ctx); err != nil {
		return fmt.Errorf("the control plane does not answer: %w", err)
	}
	return nil
}

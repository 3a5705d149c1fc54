package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/version"
	"shoal.dev/shoal/pkg/telemetry"
)

// traceFlush is how long the end of a process waits for the collector to accept the last spans.
const traceFlush = 5 * time.Second

// signals are the logs, metrics and traces of a process.
type signals struct {
	metrics *telemetry.Metrics
	logger  *slog.Logger
	level   *slog.LevelVar
	started *atomic.Bool      // from then on warnings only go to the log
	tracer  *telemetry.Tracer // nil: no traces
	ours    *telemetry.Tracer // the tracer, unless the caller gave it
}

// openSignals begins the signals of a node. Its log goes to file as text, or to stderr as JSON.
func openSignals(ctx context.Context, config Config, node string, file io.Writer) (*signals,
	error) {
	s := &signals{metrics: config.Metrics, tracer: config.Tracer, level: &slog.LevelVar{},
		started: &atomic.Bool{}}
	if s.metrics == nil {
		s.metrics = telemetry.NewMetrics()
	}
	s.level.Set(config.LogLevel)
	format := telemetry.LogConfig{Node: node, Format: telemetry.TextLog, Level: s.level}
	if config.LogStderr {
		file, format.Format = os.Stderr, telemetry.JSONLog
	}
	var err error
	if s.logger, err = telemetry.NewLog(file, format, s.metrics); err != nil {
		return nil, err
	}
	if config.Notice != nil && !config.LogStderr {
		s.logger = slog.New(startWarnings{Handler: s.logger.Handler(), over: s.started,
			notice: config.Notice, told: &sync.Map{}})
	}
	if config.Tracer == nil && config.Traces.Endpoint != "" {
		s.ours, err = telemetry.NewTracer(ctx,
			telemetry.TraceConfig{Endpoint: config.Traces.Endpoint,
				Ratio: config.Traces.Ratio, Node: node, Version: version.String(),
				Failed: func(err error) {
					s.logger.Warn("the collector does not take traces", "error",
						err)
				}})
		s.tracer = s.ours
	}
	return s, err
}

// startWarnings shows an operator the warnings before the process serves, each once. Above all
// these are unreachable brokers or members.
type startWarnings struct {
	slog.Handler
	over   *atomic.Bool
	notice func(text string)
	told   *sync.Map // messages shown; the program has few
}

// Handle implements slog.Handler.
func (h startWarnings) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn && !h.over.Load() {
		if _, again := h.told.LoadOrStore(record.Message, true); !again {
			text := record.Message
			record.Attrs(func(a slog.Attr) bool {
				text += fmt.Sprintf(", %s %v", a.Key, a.Value)
				return true
			})
			h.notice(terminal.Printable(text))
		}
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h startWarnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h startWarnings) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// logStart logs the start: version, roles and the settings that an operator looks for first,
// without secrets.
func (n *node) logStart() {
	c := n.config
	settings := []any{"version", version.String(), "roles", c.Roles, "data", c.Data, "listen",
		c.Listen, "opsListen", c.OpsListen, "logLevel", c.LogLevel, "hostRate", c.HostRate,
		"maxHostRate", c.MaxHostRate}
	if cluster := &c.Cluster; !cluster.alone() {
		settings = append(settings, "electionTimeout", cluster.ElectionTimeout, "clusterListen",
			cluster.Listen, "gossipListen",
			cluster.GossipListen, "advertise",
			cluster.advertised(), "join", cluster.Join, "bootstrap", cluster.Bootstrap)
	}
	if address := c.Services.ClickhouseURL; address != "" {
		settings = append(settings, "clickhouse", withoutSecrets(address))
	}
	if address := c.Services.RedisAddr; address != "" {
		settings = append(settings, "redis", withoutSecrets(address))
	}
	if brokers := c.Services.KafkaBrokers; len(brokers) > 0 {
		settings = append(settings, "kafka", brokers, "kafkaPrefix", c.Services.KafkaPrefix)
	}
	n.logger.Info("starting", settings...)
}

// withoutSecrets returns an address without credentials and query values.
func withoutSecrets(address string) string {
	if !strings.Contains(address, "://") {
		return address[strings.LastIndexByte(address, '@')+1:]
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return parsed.Scheme + "://" + parsed.Host + parsed.Path
}

// logStop logs that the process has stopped, and why if nobody told it to.
func (n *node) logStop(began time.Time, err error) {
	n.started.Store(true) // the command prints the error
	ran := n.clock.Now().Sub(began).Round(time.Millisecond)
	if err != nil {
		n.logger.Error("stopped", "version", version.String(), "roles", n.config.Roles, "ran", ran,
			"error", err)
		return
	}
	n.logger.Info("stopped", "version", version.String(), "roles", n.config.Roles, "ran", ran)
}

// close sends the pending spans.
func (s *signals) close() {
	ctx, cancel := context.WithTimeout(context.Background(), traceFlush)
	defer cancel()
	if err := s.ours.Close(ctx); err != nil {
		s.logger.Warn("the last traces are lost", "error", err)
	}
}

// forRole returns the log for a role.
func (s *signals) forRole(role string) *slog.Logger { return telemetry.ForRole(s.logger, role) }

// operators are the operators' endpoints of this process.
func (n *node) operators() telemetry.Ops {
	return telemetry.Ops{Metrics: n.metrics, Ready: n.ready, StateHash: n.stateHash,
		Pprof:    n.config.OpsProfiles,
		LogLevel: n.level}
}

// stateHash returns the hash of the replicated state.
func (n *node) stateHash() (telemetry.StateHash, error) {
	index, hash, err := n.control.StateHash()
	return telemetry.StateHash{Index: index, Hash: hash}, err
}

// ready returns nil if this node does its work. All of its parts have started, it is registered and
// reaches the leader, and was not told to stop.
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
	if !n.started.Load() { // an API server may not have its key yet, nor serve
		return errors.New("the process is still starting")
	}
	if err := n.control.Diverged(); err != nil {
		return err
	}
	if _, err := n.control.Client().Fresh(ctx); err != nil {
		return fmt.Errorf("the control plane does not answer: %w", err)
	}
	return nil
}

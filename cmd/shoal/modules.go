package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/testkit/crash"
)

// nodeName is the one node of a process that has all roles.
const nodeName = "local"

// tokenLife is how long a token of the local issuer is good for.
const tokenLife = time.Hour

// errNeedsCluster refuses a process with fewer than all roles: the embedded log and row store live in one process.
var errNeedsCluster = errors.New("--roles: several processes need Kafka and ClickHouse, and neither is configured; " +
	"leave --roles out to run everything in this process")

// runServe runs the roles of one process until ctx ends, and then stops them in order; nil after a clean stop.
func runServe(ctx context.Context, config ServeConfig) (err error) {
	if len(config.Roles) < len(roleNames()) {
		return errNeedsCluster
	}
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := lockDirectory(config.Data)
	if err != nil {
		return err
	}
	defer unlock()
	stopProfile, err := profile(os.Getenv("SHOAL_CPUPROFILE"))
	if err != nil {
		return err
	}
	defer stopProfile()
	// The roles have their say in a file, so that a terminal shows progress alone.
	file, err := telemetry.OpenLogFile(config.Data, telemetry.MaxLogBytes)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	logger := slog.New(slog.NewTextHandler(file, nil))
	// Listening comes first: a port that is taken is the commonest mistake, and nothing has been touched yet.
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("--listen: %w (--listen or SHOAL_LISTEN names another; port 0 takes a free one)", err)
		}
		return fmt.Errorf("--listen: %w", err)
	}
	p, err := newProcess(config, logger)
	if err != nil {
		_ = listener.Close() // nothing was served
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return lifecycle.Run(ctx, p.parts(listener)...)
}

// process is the one place that knows which implementations a process runs on: here the embedded ones.
type process struct {
	config  ServeConfig
	logger  *slog.Logger
	ids     ids.Source
	store   *sqlite.Store
	log     *stream.Memory
	egress  *egress.Client
	web     *fetcher.HTTPWeb
	control *controlplane.Server
	fetcher *fetcher.Fetcher
	ingest  *ingest.Ingest
	billing *billing.Billing
	api     *apiserver.Server
}

func newProcess(config ServeConfig, logger *slog.Logger) (*process, error) {
	p := &process{config: config, logger: logger, ids: ids.Random{Now: time.Now}}
	point := crash.FromEnv(os.Getenv)
	boot := p.ids.New()
	var err error
	if p.store, err = sqlite.Open(sqlite.Config{Dir: filepath.Join(config.Data, "rows"), Point: point}); err != nil {
		return nil, err
	}
	settings := controlplane.Defaults()
	if p.log, err = stream.NewMemory(stream.Config{Partitions: int(settings.Shards)}); err == nil {
		p.egress, err = egress.New(egress.Config{Allow: config.EgressAllow, Origins: config.Origins})
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	shardOf := shardBy(int(settings.Shards))
	settings.Dir, settings.Node, settings.Boot, settings.Roles = config.Data, nodeName, boot, config.Roles
	settings.Version, settings.Capacity, settings.Logger = version(), 1, logger
	settings.Log, settings.Store, settings.Point = p.log, p.store, point
	settings.HostRate, settings.MaxHostRate = config.HostRate, config.MaxHostRate
	settings.HostOf, settings.ShardOf = authorityOf, shardOf
	if n := config.SnapshotEntries; n > 0 {
		settings.Snapshots.Entries, settings.Snapshots.Every = n, time.Duration(n)*time.Millisecond
	}
	if p.control, err = controlplane.New(settings); err != nil {
		return nil, errors.Join(err, p.close())
	}
	client := p.control.Client()
	p.ingest = ingest.New(ingest.Config{Log: p.log, Store: p.store, Control: ingest.FromClient(client), Logger: logger,
		Crash: point})
	p.billing = billing.New(billing.Config{Log: p.log, Settle: client.Settle, Logger: logger, Point: point})
	p.web = fetcher.NewHTTPWeb(p.egress, "", 0, clock.System{})
	p.fetcher = fetcher.New(fetcher.Config{Node: nodeName, Boot: boot, Log: p.log, Control: fetcher.FromClient(client),
		Web: p.web, IDs: p.ids, ShardOf: shardOf,
		Pace:    fetcher.Pace{Rate: config.HostRate, Connections: config.HostConnections},
		MaxPace: fetcher.Pace{Rate: config.MaxHostRate, Connections: config.MaxHostConnections},
		Logger:  logger, Crash: point})
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.api, err = apiserver.New(apiserver.Config{Client: client, Store: p.store, Guard: p.egress, Clock: clock.System{},
		IDs: p.ids, DataDir: config.Data, NoRateLimits: config.NoRateLimits, MaxHostRate: config.MaxHostRate,
		MaxHostConnections: config.MaxHostConnections, Node: nodeName, Boot: boot, Log: logger, Metrics: metrics,
		Lag: p.lag, Recount: p.recount})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// parts are the roles in the order in which they need each other: they stop in the reverse, which is a page's own way
// round the loop, so that little of what was fetched has to be fetched again.
func (p *process) parts(listener net.Listener) []lifecycle.Part {
	return []lifecycle.Part{
		{Name: "controlplane", Run: p.control.Run, Ready: p.control.Ready()},
		{Name: "billing", Run: p.billing.Run},
		{Name: "ingest", Run: p.ingest.Run},
		{Name: "fetcher", Run: p.fetcher.Run},
		{Name: "apiserver", Run: func(ctx context.Context) error { return p.serveAPI(ctx, listener) }},
	}
}

// serveAPI makes the self-hosting customer's key before the first call is taken.
func (p *process) serveAPI(ctx context.Context, listener net.Listener) error {
	if _, err := apiserver.SelfKey(ctx, p.control.Client(), p.ids, p.config.Data); err != nil {
		return errors.Join(err, listener.Close())
	}
	if p.config.Ready != nil {
		p.config.Ready(listener.Addr().String())
	}
	return p.api.Serve(ctx, listener)
}

// lag is how many records each topic holds.
func (p *process) lag() map[string]int64 {
	lag := map[string]int64{}
	for _, topic := range []stream.Topic{stream.Tasks, stream.Pages, stream.Receipts} {
		lag[topic.String()] = p.log.Lag(topic)
	}
	return lag
}

// recount holds the ledger against the page records, for an operator.
func (p *process) recount(ctx context.Context, view *controlclient.View) ([]apiserver.Recounted, error) {
	counted, err := billing.Recount(ctx, view, p.store)
	runs := make([]apiserver.Recounted, len(counted))
	for i, c := range counted {
		runs[i] = apiserver.Recounted{JobID: c.Job, CustomerRef: c.Customer, EntryID: c.Entry, LedgerMicros: c.LedgerMicros,
			RecountMicros: c.RecountMicros, LedgerPages: c.LedgerPages, RecountPages: c.RecountPages,
			LedgerItems: c.LedgerItems, RecountItems: c.RecountItems, Equal: c.Equal()}
	}
	return runs, err
}

// close releases what the roles worked on, once they have stopped.
func (p *process) close() error {
	if p.web != nil {
		p.web.Close()
	}
	if p.egress != nil {
		p.egress.Close()
	}
	var err error
	if p.log != nil {
		err = p.log.Close()
	}
	return errors.Join(err, p.store.Close())
}

// authorityOf is the host and port that politeness counts by. A listed address was checked at intake; one that cannot be
// read all the same has the empty host.
func authorityOf(url string) string {
	canonical, err := egress.Canonical(url)
	if err != nil {
		return ""
	}
	return model.HostOf(canonical)
}

// shardBy is the shard of an authority: all hosts of one registrable domain are in one.
func shardBy(shards int) func(string) int {
	return func(authority string) int {
		host := authority
		if at := strings.LastIndexByte(authority, ':'); at > strings.LastIndexByte(authority, ']') {
			host = authority[:at]
		}
		return int(xxh3.HashString(egress.RegistrableDomain(strings.Trim(host, "[]"))) % uint64(shards))
	}
}

// lockDirectory keeps a second process from working on the same data.
func lockDirectory(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		by := "another process"
		if server, err := readLine(dir, addressFile); err == nil {
			by = "the process that serves " + server
		}
		return nil, errors.Join(fmt.Errorf("data directory %s is in use by %s", dir, by), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing gives the lock back
}

// profile writes a CPU profile of the whole process when a path is given: for the bench.
func profile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), file.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}, nil
}

// localToken asks the local issuer of a data directory for a sign-in token.
func localToken(_ context.Context, dir string, request tokenRequest) (string, error) {
	customer := request.Customer
	if customer == "" {
		customer = apiserver.SelfCustomer
	}
	return apiserver.MintToken(dir, customer, request.Admin, time.Now(), tokenLife)
}

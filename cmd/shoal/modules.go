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
	"slices"
	"strings"
	"syscall"
	"time"

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
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/testkit/crash"
)

// nodeName is the node of a process that is its own cluster.
const nodeName = "local"

// tokenLife is how long a token of the local issuer is good for.
const tokenLife = time.Hour

// runServe runs the roles of one process until ctx ends, and then stops them in order; nil after a clean stop.
func runServe(ctx context.Context, config ServeConfig) (err error) {
	stopProfile, err := profile(os.Getenv("SHOAL_CPUPROFILE"))
	if err != nil {
		return err
	}
	defer stopProfile()
	data, err := openData(config.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close()) }()
	// Listening comes before the rest: a port that is taken is the commonest mistake, and nothing has been touched yet.
	listener, err := listenAPI(config.Listen)
	if err != nil {
		return err
	}
	point := crash.FromEnv(os.Getenv)
	services, err := openEmbedded(filepath.Join(config.Data, "rows"), point)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, services.close()) }()
	n, err := newNode(config, services, data.logger, point)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer n.close()
	return lifecycle.Run(ctx, n.parts(listener)...)
}

// dataDirectory is a data directory that this process alone has, with the log file in it.
type dataDirectory struct {
	unlock func()
	file   *telemetry.LogFile
	logger *slog.Logger
}

func openData(dir string) (*dataDirectory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	unlock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	// The roles have their say in a file, so that a terminal shows progress alone.
	file, err := telemetry.OpenLogFile(dir, telemetry.MaxLogBytes)
	if err != nil {
		unlock()
		return nil, err
	}
	return &dataDirectory{unlock: unlock, file: file, logger: slog.New(slog.NewTextHandler(file, nil))}, nil
}

func (d *dataDirectory) close() error {
	d.unlock()
	return d.file.Close()
}

func listenAPI(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--listen: %w (--listen or SHOAL_LISTEN names another; port 0 takes a free one)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

// node is the roles of one process, on the services that it was given.
type node struct {
	config   ServeConfig
	name     string
	ids      ids.Source
	services *services
	metrics  *telemetry.Metrics
	egress   *egress.Client
	web      *fetcher.HTTPWeb
	control  *controlplane.Server
	fetcher  *fetcher.Fetcher
	ingest   *ingest.Ingest
	billing  *billing.Billing
	api      *apiserver.Server
}

func newNode(config ServeConfig, on *services, logger *slog.Logger, point func(string)) (_ *node, err error) {
	n := &node{config: config, name: nodeName, ids: ids.Random{Now: time.Now}, services: on, metrics: telemetry.NewMetrics()}
	telemetry.Node{Name: n.name, Roles: config.Roles, Version: version(), Dir: config.Data}.Declare(n.metrics)
	log := stream.Measured(on.log, clock.System{}, n.metrics)
	boot := n.ids.New()
	settings := controlplane.Defaults()
	shardOf := shardBy(int(settings.Shards))
	if n.egress, err = egress.New(egress.Config{Allow: config.EgressAllow, Origins: config.Origins,
		Metrics: n.metrics}); err != nil {
		return nil, err
	}
	settings.Dir, settings.Node, settings.Boot, settings.Roles = config.Data, n.name, boot, config.Roles
	settings.Version, settings.Logger, settings.Metrics = version(), logger, n.metrics
	if n.has("fetcher") {
		settings.Capacity = config.Capacity
	}
	settings.Log, settings.Store, settings.Point = log, on.store, point
	settings.HostRate, settings.MaxHostRate = config.HostRate, config.MaxHostRate
	settings.HostOf, settings.ShardOf = authorityOf, shardOf
	times := config.Times
	if times.Fetch > 0 {
		settings.FetchDeadline = 2 * times.Fetch // a try that was begun, and room for what surrounds it
	}
	if times.Lease > 0 {
		settings.Lease = times.Lease
	}
	if times.Markers > 0 {
		settings.MarkerEvery = times.Markers
	}
	if n := config.SnapshotEntries; n > 0 {
		settings.Snapshots.Entries, settings.Snapshots.Every = n, time.Duration(n)*time.Millisecond
	}
	if n.control, err = controlplane.New(settings); err != nil {
		n.close()
		return nil, err
	}
	client := n.control.Client()
	n.ingest = ingest.New(ingest.Config{Log: log, Store: on.store, Control: ingest.FromClient(client), Logger: logger,
		Metrics: n.metrics, Crash: point})
	n.billing = billing.New(billing.Config{Log: log, Settle: client.Settle, Logger: logger, Metrics: n.metrics,
		Point: point})
	n.web = fetcher.NewHTTPWeb(n.egress, "", 0, clock.System{})
	n.web.Measure(n.metrics)
	n.fetcher = fetcher.New(fetcher.Config{Node: n.name, Boot: boot, Log: log, Control: fetcher.FromClient(client),
		Web: n.web, IDs: n.ids, ShardOf: shardOf, Timeout: times.Fetch,
		Pace:    fetcher.Pace{Rate: config.HostRate, Connections: config.HostConnections},
		MaxPace: fetcher.Pace{Rate: config.MaxHostRate, Connections: config.MaxHostConnections},
		Logger:  logger, Metrics: n.metrics, Crash: point})
	n.api, err = apiserver.New(apiserver.Config{Client: client, Store: on.store, Guard: n.egress, Clock: clock.System{},
		IDs: n.ids, DataDir: config.Data, NoRateLimits: config.NoRateLimits, MaxHostRate: config.MaxHostRate,
		MaxHostConnections: config.MaxHostConnections, Node: n.name, Boot: boot, Log: logger, Metrics: n.metrics,
		Lag: on.lag, Recount: n.recount})
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// parts are the roles in the order in which they need each other: they stop in the reverse, which is a page's own way
// round the loop, so that little of what was fetched has to be fetched again.
func (n *node) parts(listener net.Listener) []lifecycle.Part {
	all := []lifecycle.Part{
		{Name: "controlplane", Run: n.control.Run, Ready: n.control.Ready()},
		{Name: "billing", Run: n.billing.Run},
		{Name: "ingest", Run: n.ingest.Run},
		{Name: "fetcher", Run: n.fetcher.Run},
		{Name: "apiserver", Run: func(ctx context.Context) error { return n.serveAPI(ctx, listener) }},
	}
	// Every process has a part of the control plane: a voter where that is its role, elsewhere a copy of the state.
	return slices.DeleteFunc(all, func(part lifecycle.Part) bool {
		return part.Name != "controlplane" && !n.has(part.Name)
	})
}

func (n *node) has(role string) bool { return slices.Contains(n.config.Roles, role) }

// serveAPI makes the self-hosting customer's key before the first call is taken.
func (n *node) serveAPI(ctx context.Context, listener net.Listener) error {
	if n.config.SelfKey {
		if _, err := apiserver.SelfKey(ctx, n.control.Client(), n.ids, n.config.Data); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	if n.config.Ready != nil {
		n.config.Ready(listener.Addr().String())
	}
	return n.api.Serve(ctx, listener)
}

// recount holds the ledger against the page records, for an operator.
func (n *node) recount(ctx context.Context, view *controlclient.View) ([]apiserver.Recounted, error) {
	counted, err := billing.Recount(ctx, view, n.services.store)
	runs := make([]apiserver.Recounted, len(counted))
	for i, c := range counted {
		runs[i] = apiserver.Recounted{JobID: c.Job, CustomerRef: c.Customer, EntryID: c.Entry, LedgerMicros: c.LedgerMicros,
			RecountMicros: c.RecountMicros, LedgerPages: c.LedgerPages, RecountPages: c.RecountPages,
			LedgerItems: c.LedgerItems, RecountItems: c.RecountItems, Equal: c.Equal()}
	}
	return runs, err
}

// close releases what the roles alone used, once they have stopped.
func (n *node) close() {
	if n.web != nil {
		n.web.Close()
	}
	n.egress.Close()
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

// Package service is one process of the service: its settings from flag to role, what it works on, and its roles. It alone
// knows which implementations there are.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/version"
	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/skew"
	"shoal.dev/shoal/testkit/slowdisk"
)

// NodeName is the node of a process that is its own cluster.
const NodeName = "local"

// Run runs the roles of one process until ctx ends, and then stops them in order; nil after a clean stop.
func Run(ctx context.Context, config Config) error {
	stopProfile, err := profile(os.Getenv("SHOAL_CPUPROFILE"))
	if err != nil {
		return err
	}
	defer stopProfile()
	collectLessOften()
	return RunOn(ctx, config, nil)
}

// RunOn runs one node. on are the services that it shares with others in this process, which outlive it; nil: it opens
// its own.
func RunOn(ctx context.Context, config Config, on *Services) (err error) {
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := datadir.Lock(config.Data)
	if err != nil {
		return err
	}
	defer unlock()
	clock := skew.FromEnv(os.Getenv)
	n := &node{config: config, name: NodeName, clock: clock, ids: ids.Random{Now: clock.Now}, point: crash.FromEnv(os.Getenv),
		stopping: ctx.Done()}
	if err := n.identify(); err != nil {
		return err
	}
	// The roles have their say in a file, so that a terminal shows progress alone.
	file, err := telemetry.OpenLogFile(config.Data, telemetry.MaxLogBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n.signals, err = openSignals(ctx, config, n.name, file); err != nil {
		return err
	}
	defer n.signals.close()
	began := n.clock.Now()
	n.logStart()
	defer func() { n.logStop(began, err) }()
	// Listening comes before the rest: a port that is taken is the commonest mistake, and nothing has been touched yet.
	if err := n.listen(); err != nil {
		return err
	}
	defer n.closeListeners()
	if on == nil {
		on, err = openServices(ctx, config.Services, n.name, filepath.Join(config.Data, "rows"), n.log, n.clock,
			n.point)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, on.Close()) }()
	}
	n.services = on
	defer n.close()
	if err := n.build(ctx); err != nil {
		return err
	}
	err = lifecycle.Run(ctx, n.parts()...)
	if fault.CodeOf(err) == fault.OtherServices {
		err = fmt.Errorf("%w. --rebind-services, for the first node that starts after all were stopped, makes them this "+
			"cluster's, whosever they were", err)
	}
	return err
}

// identify takes the node's name and roles from its identity, when it has one.
func (n *node) identify() error {
	if n.config.Cluster == nil {
		return nil
	}
	var err error
	if n.identity, err = identity.Read(n.config.Cluster.Identity); err != nil {
		return err
	}
	if err := n.identity.Check(n.clock.Now()); err != nil {
		return err
	}
	n.name = n.identity.Node
	if len(n.config.Roles) == 0 {
		n.config.Roles = n.identity.Roles
	}
	for _, role := range n.config.Roles {
		if !n.identity.Has(role) {
			return fmt.Errorf("--roles: the identity of node %q is not good for %s", n.name, role)
		}
	}
	if n.config.Cluster.Bootstrap && !n.has(identity.ControlPlane) {
		return ErrFounder
	}
	if n.has("apiserver") {
		return apiserver.PlaceSignInKey(n.config.Data, n.identity.SignInKey)
	}
	return nil
}

// node is the roles of one process, on the services that it was given.
type node struct {
	config   Config
	name     string
	identity *identity.Identity // nil: the process is a cluster of its own
	clock    clock.Clock
	ids      ids.Source
	*signals
	point    func(string)
	stopping <-chan struct{} // closed when the process was told to stop
	services *Services
	listener net.Listener // of the API; nil without that role
	admin    net.Listener // of the API, for operators; nil: they share the other
	ops      net.Listener // nil: nobody asks this process for metrics

	egress *egress.Client
	// modelEgress goes to the language model's endpoint only; nil without one.
	modelEgress *egress.Client
	reader      *fetcher.Reader
	web         *fetcher.HTTPWeb
	control     *controlplane.Server
	fetcher     *fetcher.Fetcher
	ingest      *ingest.Ingest
	billing     *billing.Billing
	daily       *billing.Daily
	api         *apiserver.Server
}

// metricsOf is where a role declares its metrics: nowhere when it does not run in this process.
func (n *node) metricsOf(role string) *telemetry.Metrics {
	if !n.has(role) {
		return nil
	}
	return n.metrics
}

// build makes the roles; nothing runs yet. close must be called, whatever it answers.
func (n *node) build(ctx context.Context) (err error) {
	config, on, boot := n.config, n.services, n.ids.New()
	about := telemetry.Node{Name: n.name, Roles: config.Roles, Version: version.String(), Dir: config.Data}
	if n.identity != nil {
		about.CertificateExpires = n.identity.Expires()
	}
	about.Declare(n.metrics)
	cache.Measure(on.cache, n.metrics)
	outside := n.metricsOf("fetcher")
	if n.has("apiserver") {
		outside = n.metrics
	}
	n.egress, err = egress.New(egress.Config{Allow: config.EgressAllow, Origins: config.Origins, Metrics: outside})
	if err != nil {
		return err
	}
	log := stream.Measured(on.log, n.clock, n.metrics)
	readers := n.metricsOf("fetcher")
	if n.has("ingest") || n.has("billing") {
		readers = n.metrics
	}
	n.reader = fetcher.NewReader(fetcher.ReaderConfig{Dir: filepath.Join(config.Data, "unreadable"), Clock: n.clock,
		Logger: n.forRole("reading"), Metrics: readers})
	if n.web, err = n.openWeb(ctx); err != nil {
		return err
	}
	n.web.Measure(n.metricsOf("fetcher"))
	settings := n.controlSettings(log, boot)
	if settings.DomainOf, err = readDomain(); err != nil {
		return err
	}
	if n.control, err = controlplane.New(settings); err != nil {
		return err
	}
	client := n.control.Client()
	on.state.Store(&client)
	n.ingest = ingest.New(ingest.Config{Log: log, Store: on.store, Control: ingest.FromClient(client),
		Logger: n.forRole("ingest"), Metrics: n.metricsOf("ingest"), Tracer: n.tracer, Clock: n.clock, Crash: n.point,
		Reader: n.reader.For("ingest")})
	n.billing = billing.New(billing.Config{Log: log, Settle: client.Settle, Logger: n.forRole("billing"), Metrics: n.metricsOf("billing"),
		Tracer: n.tracer, Clock: n.clock, Point: n.point, Reader: n.reader.For("billing")})
	n.daily = billing.NewDaily(billing.DailyConfig{Node: n.name, Dir: config.Data, Control: client, Store: on.store,
		Clock: n.clock, Logger: n.forRole("billing"), Metrics: n.metricsOf("billing")})
	rates := ecb.NewSource(n.egress, ecb.Config{Shared: on.cache, Clock: n.clock, Logger: n.forRole("rates")})
	asked, err := n.buildModel()
	if err != nil {
		return err
	}
	n.fetcher = fetcher.New(fetcher.Config{Node: n.name, Boot: boot, Log: log, Control: fetcher.FromClient(client),
		Web: n.web, Model: asked, Rates: rates, IDs: n.ids, Clock: n.clock, ShardOf: settings.ShardOf, Workers: config.FetchWorkers,
		Timeout: config.Times.Fetch, StopWithin: config.stopWithin(),
		Pace:    fetcher.Pace{Rate: config.HostRate, Connections: config.HostConnections},
		MaxPace: fetcher.Pace{Rate: config.MaxHostRate, Connections: config.MaxHostConnections},
		Logger:  n.forRole("fetcher"), Metrics: n.metricsOf("fetcher"), Tracer: n.tracer, Crash: n.point, Reader: n.reader})
	if !n.has("apiserver") {
		return nil
	}
	on.watchGroups()
	n.api, err = apiserver.New(apiserver.Config{Client: client, Store: on.store, Guard: n.egress, ExchangeRates: rates,
		Clock: n.clock,
		IDs:   n.ids, DataDir: config.Data, NoRateLimits: config.NoRateLimits, Rates: config.Calls.Rates,
		CustomerRates: config.Calls.CustomerRates, TrustedProxies: config.Calls.TrustedProxies, MaxHostRate: config.MaxHostRate,
		MaxHostConnections: config.MaxHostConnections, Node: n.name, Boot: boot, Log: n.forRole("apiserver"),
		Metrics: n.metrics, Tracer: n.tracer, Limiter: on.cache, Values: on.cache, SearchEngines: config.SearchEngines, Lag: on.lag,
		Recount: n.recount, Operator: n.control.Operator(),
		StopGrace: config.Times.Grace, FinishWithin: config.stopWithin(), Operators: n.admin})
	return err
}

// controlSettings are those of the control plane's part in this process.
func (n *node) controlSettings(log stream.Log, boot ids.ID) controlplane.Config {
	config, times := n.config, n.config.Times
	settings := controlplane.Defaults()
	settings.Dir, settings.Node, settings.Boot, settings.Roles = config.Data, n.name, boot, config.Roles
	settings.Version, settings.Metrics, settings.Tracer = version.String(), n.metrics, n.tracer
	settings.Logger = n.forRole("controlplane")
	if n.has("fetcher") {
		settings.Capacity, settings.Tiers = config.Capacity, n.web.Tiers()
	}
	if cluster := config.Cluster; cluster != nil {
		host := cluster.advertised()
		_, port, _ := net.SplitHostPort(cluster.Listen) // the flags were checked
		settings.Cluster = &controlplane.Cluster{Identity: n.identity, Listen: cluster.Listen,
			Advertise: net.JoinHostPort(host, port), GossipListen: cluster.GossipListen, GossipAdvertise: host,
			Join: cluster.Join, Bootstrap: cluster.Bootstrap, LeaveOnStop: cluster.LeaveOnStop}
	}
	settings.Clock, settings.IDs, settings.Services = n.clock, n.ids, n.services.shared
	settings.Services.Rebind = config.RebindServices
	settings.Log, settings.Store, settings.Point = log, n.services.store, n.point
	settings.BeforeWrite, settings.ElectionTimeout = slowdisk.FromEnv(os.Getenv), times.Election
	settings.HostRate, settings.MaxHostRate = config.HostRate, config.MaxHostRate
	settings.HostOf, settings.ShardOf = authorityOf, shardBy(int(settings.Shards))
	if times.Fetch > 0 {
		settings.FetchDeadline = 2 * times.Fetch // a try that was begun, and room for what surrounds it
	}
	if times.Lease > 0 {
		settings.Lease, settings.EndWithin = times.Lease, max(times.Lease/10, time.Second/2)
	}
	if times.Markers > 0 {
		settings.MarkerEvery = times.Markers
	}
	if n := config.SnapshotEntries; n > 0 {
		settings.Snapshots.Entries, settings.Snapshots.Every = n, time.Duration(n)*time.Millisecond
	}
	return settings
}

// Bounds of a stop: how long a process that is alone lets its fetcher finish what is under way, and then each of the
// roles behind it what is in the log.
const (
	aloneStop     = 5 * time.Second
	drainPatience = 2 * time.Second
)

// parts are the roles in the order in which they need each other: they stop in the reverse, which is a page's own way
// round the loop, so that nothing of what was fetched has to be fetched again.
func (n *node) parts() []lifecycle.Part {
	all := []lifecycle.Part{
		{Name: "ops", Run: func(ctx context.Context) error { return n.operators().Serve(ctx, n.ops) }},
		{Name: "controlplane", Run: n.control.Run, Ready: n.control.Ready()},
		{Name: "billing", Run: n.billing.Run, Idle: n.services.idle(stream.Receipts), Patience: drainPatience},
		{Name: "recount", Run: n.daily.Run},
		{Name: "ingest", Run: n.ingest.Run, Idle: n.services.idle(stream.Pages), Patience: drainPatience},
		{Name: "fetcher", Run: n.fetcher.Run},
		{Name: "apiserver", Run: n.serveAPI},
		{Name: "ready", Run: n.tellReady},
	}
	return slices.DeleteFunc(all, func(part lifecycle.Part) bool {
		switch part.Name {
		case "ops":
			return n.ops == nil
		case "controlplane": // a voter where that is the role, elsewhere a copy of the state
			return false
		case "ready": // the API says so itself, when it has an address
			return n.has("apiserver")
		case "recount":
			return !n.has("billing")
		}
		return !n.has(part.Name)
	})
}

// advertised is where other nodes reach this one: where it was told to say, or the address that it listens on, or, of
// all addresses of the machine, the first that is not its loopback's.
func (c *ClusterConfig) advertised() string {
	if c.Advertise != "" {
		return c.Advertise
	}
	host, _, _ := net.SplitHostPort(c.Listen) // the flags were checked
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	addresses, _ := net.InterfaceAddrs() // none: the loopback's
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}

// stopWithin is how long what is under way may take to end: long enough to hand over, where there is somebody to take
// over.
func (c *Config) stopWithin() time.Duration {
	stop := cmp.Or(c.Times.Stop, fetcher.DefaultStopWithin)
	if c.Cluster == nil {
		return min(stop, aloneStop)
	}
	return stop
}

func (n *node) has(role string) bool { return slices.Contains(n.config.Roles, role) }

// tellReady is the part that says that all before it have started.
func (n *node) tellReady(ctx context.Context) error {
	n.started.Store(true)
	if n.config.Ready != nil {
		n.config.Ready("")
	}
	<-ctx.Done()
	return nil
}

// serveAPI makes the self-hosting customer's key before the first call is taken.
func (n *node) serveAPI(ctx context.Context) error {
	if n.config.SelfKey {
		if _, err := apiserver.SelfKey(ctx, n.control.Client(), n.ids, n.config.Data); err != nil {
			return err
		}
	}
	n.started.Store(true)
	if n.config.Ready != nil {
		n.config.Ready(n.listener.Addr().String())
	}
	return n.api.Serve(ctx, n.listener)
}

// recount holds the ledger against the page records, for an operator.
func (n *node) recount(ctx context.Context, view *controlclient.View) iter.Seq2[apiserver.Recounted, error] {
	return func(yield func(apiserver.Recounted, error) bool) {
		for c, err := range billing.Recount(ctx, view, n.services.store) {
			run := apiserver.Recounted{JobID: c.Job, CustomerRef: c.Customer, EntryID: c.Entry, LedgerMicros: c.LedgerMicros,
				RecountMicros: c.RecountMicros, LedgerPages: c.LedgerPages, RecountPages: c.RecountPages,
				LedgerItems: c.LedgerItems, RecountItems: c.RecountItems, Equal: c.Equal(), Undone: c.Undone}
			if !yield(run, err) {
				return
			}
		}
	}
}

// close releases what the roles alone used, once they have stopped.
func (n *node) close() {
	if n.web != nil {
		n.web.Close()
	}
	for _, out := range []*egress.Client{n.egress, n.modelEgress} {
		if out != nil {
			out.Close()
		}
	}
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

// readDomain names the domain that a website's reads count for, and nothing for addresses that are answered unread.
func readDomain() (func(url string) uint64, error) {
	contacts, err := extract.Compile(model.Recipe{Endpoint: model.WebsiteContacts})
	if err != nil {
		return nil, fmt.Errorf("website contacts: %w", err)
	}
	return func(url string) uint64 {
		if _, unread, err := contacts.Unfetched(extract.Page{URL: url, Asked: url}); unread || err != nil {
			return 0
		}
		canonical, err := egress.Canonical(url)
		if err != nil {
			return 0
		}
		return max(xxh3.HashString(egress.RegistrableDomain(egress.Host(canonical))), 1)
	}, nil
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

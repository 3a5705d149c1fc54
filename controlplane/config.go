package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/quorum"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// Store is what a node needs of the row store.
type Store interface {
	leadership.Store
	JobsSince(ctx context.Context, started int64, visit func(rowstore.Job) error) error
}

// MaxCapacity bounds a fetcher's weight. However heavy one is, it gets no more shards than all
// others together.
const MaxCapacity = 1000

// Config makes a node. Begin with Defaults; what they leave empty has none.
type Config struct {
	Dir     string // the node's own; its Raft log and snapshots are kept in Dir/raft
	Node    string // name, unique in the cluster and for ever tied to Dir
	Boot    ids.ID // this start of the process; zero: a new one
	Roles   []string
	Version string
	// weight of this node's fetcher when shards are dealt out, up to MaxCapacity; 0: it has none
	Capacity uint32
	// Services are the log and the row store, by the names that they have of their own. A node
	// whose names are not the cluster's ends with the error other_services, and so does one that
	// finds another cluster's mark there.
	Services Services
	// Tiers are the ways in which this node's fetcher can fetch; 0: plain alone.
	Tiers model.TierSet

	Clock clock.Clock
	IDs   ids.Source
	// Log, with one partition per shard, and Store are the leader's: nil on a node of a cluster
	// without the role controlplane, which never leads.
	Log   stream.Log
	Store Store

	// What a cluster is created with; later starts find it in the state.
	Shards    uint16
	FreeGrant int64 // free requests of a new wallet
	Prices    price.List

	Window int // most seqs out at a time, over all runs
	// request starts a second that a host gets unless the scraper says otherwise; 0: no bound
	HostRate    float64
	MaxHostRate float64 // what a scraper may ask for; 0: no bound
	// HostOf is the host of a listed address, ShardOf the shard of a host.
	HostOf  func(url string) string
	ShardOf func(host string) int
	// DomainOf names, by a hash, the domain that a read of a listed address counts for under daily
	// limits; 0: nothing is read there.
	DomainOf func(url string) uint64

	Lease time.Duration
	// EndWithin is how long after its lease's end a fetcher may need until it has ended its
	// requests.
	EndWithin time.Duration
	// FetchDeadline is the longest request. Fetchers of cluster version 1 do not end theirs with
	// the lease.
	FetchDeadline time.Duration
	MarkerEvery   time.Duration
	Snapshots     Snapshots
	// Blobs is where backups are kept; nil: nowhere, so that none are taken.
	Blobs   Blobs
	Backups Backups
	// RestoreGrace is how long the row store keeps what a restore undid.
	RestoreGrace time.Duration
	// ArchiveEvery is the pause after all that is sealed has gone to the archive. The newest
	// ArchiveKeep runs and entries of each customer stay in the state, too; at most MaxArchiveKeep.
	ArchiveEvery time.Duration
	ArchiveKeep  int
	// HistoryKept is how long after its end a run stays in the archive. Ledger entries stay for
	// ever.
	HistoryKept time.Duration
	// ElectionTimeout is how long an election is given at least before another begins; one that
	// needs longer gets it. At most MaxElectionTimeout; what is below MinElectionTimeout is taken
	// for that.
	ElectionTimeout time.Duration

	// Point is called at named places, for crash tests, and BeforeWrite before Raft's log, term or
	// vote is written, for tests with a slow disk.
	Point       func(name string)
	BeforeWrite func()

	// Disk is that of Dir, nil: it is never short. RowsFloor is that of the row store's disk, nil:
	// there is none. As long as one of them is short the leader takes in nothing new and sends
	// nothing out.
	Disk      *telemetry.Disk
	RowsFloor *telemetry.Floor

	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces

	// Cluster makes the node one of several; nil: it is alone, and opens no port.
	Cluster *Cluster

	// What only tests set: how long commands of the API are tried, how nodes without a Cluster
	// speak and who votes at first. Also how nodes of one are dialled, and the newest version of
	// the cluster that a node knows.
	patience  time.Duration
	transport node.Voting
	voters    []raft.Server
	dial      func(ctx context.Context, address string) (net.Conn, error)
	newest    uint32
}

// Cluster is how a node speaks with the other nodes of its cluster.
type Cluster = node.Cluster

// Autopilot says when nodes become voters, and when those that are gone are removed. Zero values
// have defaults.
type Autopilot = quorum.Config

// Snapshots says when the Raft log is cut.
type Snapshots = node.Snapshots

const (
	// MinElectionTimeout is what elections are given on healthy disks, and bounds
	// Config.ElectionTimeout.
	MinElectionTimeout = node.MinElectionTimeout
	// MaxElectionTimeout bounds how long an election is given, however slow the disks are. Raft
	// waits once to twice as long.
	MaxElectionTimeout = node.MaxElectionTimeout
)

// MaxArchiveKeep bounds Config.ArchiveKeep.
const MaxArchiveKeep = 100

// Defaults is a configuration in which only the node itself, its log, its row store and the address
// functions are missing.
func Defaults() Config {
	return Config{
		Clock: clock.System{}, IDs: ids.Random{Now: time.Now},
		Shards: 64, FreeGrant: 5, Prices: price.Standard(),
		Window: 65_536, HostRate: 1, MaxHostRate: 10,
		DomainOf: address.Domain,
		Lease:    10 * time.Second, EndWithin: time.Second, FetchDeadline: 60 * time.Second,
		MarkerEvery: 3 * time.Second,
		// A bulk entry has some 20 KB, so the log stays in the tens of megabytes.
		Snapshots:    Snapshots{Entries: 2048, Keep: 256, Every: 30 * time.Second},
		RestoreGrace: 24 * time.Hour, ArchiveEvery: 10 * time.Second, ArchiveKeep: 10,
		HistoryKept: 400 * 24 * time.Hour,
		Point:       func(string) {}, BeforeWrite: func() {}, Logger: slog.Default(),
		patience: client.Patience, newest: command.Newest,
	}
}

// Services name what all nodes of a cluster work on together. "" is one of the process's own.
type Services struct {
	Log, Rows string
	// Claim marks them as a cluster's. The error other_services says that they carry another one's
	// mark; with take it is replaced. Nil: they are the process's own.
	Claim func(ctx context.Context, cluster ids.ID, take bool) error
	// Rebind says that they are the cluster's from now on, whatever was before. Nodes of the
	// control plane alone tell the cluster so; others wait until one has.
	Rebind bool
}

// check names every setting that is missing or out of range.
func (c *Config) check() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("controlplane: %s", what))
		}
	}
	need(c.Dir != "", "Dir is missing")
	need(c.Node != "", "Node is missing")
	need(c.Clock != nil && c.IDs != nil, "Clock or IDs is missing")
	leads := c.Cluster == nil || slices.Contains(c.Roles, identity.ControlPlane)
	need(!leads || c.Log != nil && c.Store != nil, "Log or Store is missing")
	need(c.HostOf != nil && c.ShardOf != nil && c.DomainOf != nil,
		"HostOf, ShardOf or DomainOf is missing")
	need(c.Point != nil && c.BeforeWrite != nil && c.Logger != nil,
		"Point, BeforeWrite or Logger is missing")
	need(c.ElectionTimeout >= 0 && c.ElectionTimeout <= MaxElectionTimeout,
		"ElectionTimeout is below 0 or too long")
	need(c.Shards > 0, "Shards is 0")
	need(c.Log == nil || c.Log.Partitions() == int(c.Shards),
		"Shards is not the number of the log's partitions")
	need(c.FreeGrant >= 0, "FreeGrant is below 0")
	need(!slices.ContainsFunc(c.Prices, func(r price.Row) bool { return r.Micros < 0 }),
		"a price is below 0")
	need(c.Capacity <= MaxCapacity, "Capacity is above MaxCapacity")
	need(c.Window > 0, "Window is not above 0")
	need(c.HostRate >= 0 && c.MaxHostRate >= 0, "HostRate or MaxHostRate is below 0")
	need(c.Lease > 0 && c.EndWithin > 0 && c.FetchDeadline > 0 && c.MarkerEvery > 0,
		"Lease, EndWithin, FetchDeadline or MarkerEvery is not above 0")
	need(c.RestoreGrace >= 0, "RestoreGrace is below 0")
	need(c.HistoryKept > 0, "HistoryKept is not above 0")
	need(c.ArchiveEvery > 0 && c.ArchiveKeep >= 0 && c.ArchiveKeep <= MaxArchiveKeep,
		"ArchiveEvery or ArchiveKeep is out of range")
	need(c.Snapshots.Entries > 0 && c.Snapshots.Every > 0, "Snapshots is incomplete")
	if c.Cluster != nil {
		errs = append(errs, c.Cluster.Check(c.Node, c.Roles))
	}
	return errors.Join(errs...)
}

// forNode is what Raft needs to know.
func (c *Config) forNode() node.Config {
	return node.Config{Dir: c.Dir, Name: c.Node, Boot: c.Boot, Roles: c.Roles, Version: c.Version,
		Capacity: c.Capacity,
		Newest:   c.newest, Clock: c.Clock, IDs: c.IDs, Snapshots: c.Snapshots,
		ElectionTimeout: c.ElectionTimeout,
		Point:           c.Point, BeforeWrite: c.BeforeWrite, Logger: c.Logger, Metrics: c.Metrics,
		Disk: c.Disk, Cluster: c.Cluster,
		Transport: c.transport, Voters: c.voters, Dial: c.dial}
}

// forLeadership is what the leaderships of a node need to know.
func (s *Server) forLeadership() leadership.Config {
	c := &s.config
	config := leadership.Config{Node: s.node, Proposer: s.proposer, Claim: s.claim, Boot: c.Boot,
		Clock: c.Clock,
		IDs:   c.IDs, Log: c.Log, Store: c.Store, Shards: c.Shards, FreeGrant: c.FreeGrant,
		Prices:  c.Prices,
		LogName: c.Services.Log, RowsName: c.Services.Rows, Window: c.Window, HostRate: c.HostRate,
		MaxHostRate: c.MaxHostRate, HostOf: c.HostOf, ShardOf: c.ShardOf, DomainOf: c.DomainOf,
		Lease:     c.Lease,
		EndWithin: c.EndWithin, FetchDeadline: c.FetchDeadline, MarkerEvery: c.MarkerEvery,
		RestoreGrace: c.RestoreGrace, ArchiveEvery: c.ArchiveEvery,
		ArchiveKeep: uint32(c.ArchiveKeep), HistoryKept: c.HistoryKept, RowsFloor: c.RowsFloor,
		Point: c.Point, Logger: c.Logger, Metrics: c.Metrics,
		Tracer: c.Tracer}
	if c.Cluster != nil {
		config.Autopilot = c.Cluster.Autopilot
	}
	return config
}

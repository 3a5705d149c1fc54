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

// Config configures a node. Start from Defaults, and set the fields that Defaults leaves empty.
type Config struct {
	Dir     string // this node's alone; its Raft log and snapshots are kept in Dir/raft
	Node    string // unique in the cluster and tied to Dir for ever
	Boot    ids.ID // this start of the process; zero: New makes one
	Roles   []string
	Version string
	// weight of this node's fetcher when shards are assigned, up to MaxCapacity; 0: no fetcher
	Capacity uint32
	// Services names the log and the row store. The node ends with the error other_services if its
	// names differ from the cluster's, or if it finds another cluster's mark there.
	Services Services
	// Tiers are the tiers that this node's fetcher supports; 0: plain alone.
	Tiers model.TierSet

	Clock clock.Clock
	IDs   ids.Source
	// Log (one partition per shard) and Store are used by the leader. They are nil on a node of a
	// cluster without the role controlplane, which never leads.
	Log   stream.Log
	Store Store

	// Settings for creating the cluster; later starts read them from the state.
	Shards    uint16
	FreeGrant int64 // free requests of a new wallet
	Prices    price.List

	Window int // most seqs out at a time, over all runs
	// request starts a second that a host gets unless the scraper says otherwise; 0: no bound
	HostRate    float64
	MaxHostRate float64 // what a scraper may ask for; 0: no bound
	// HostOf returns the host of a listed address, ShardOf the shard of a host.
	HostOf  func(url string) string
	ShardOf func(host string) int
	// DomainOf returns a hash of the domain that a listed address counts for under daily limits; 0:
	// nothing is read there.
	DomainOf func(url string) uint64

	Lease time.Duration
	// EndWithin is how long a fetcher may need to end its requests after its lease has ended.
	EndWithin time.Duration
	// FetchDeadline is the longest request. Fetchers of cluster version 1 do not end their requests
	// with the lease.
	FetchDeadline time.Duration
	MarkerEvery   time.Duration
	Snapshots     Snapshots
	// Blobs is where backups are kept; nil: no backups are taken.
	Blobs   Blobs
	Backups Backups
	// RestoreGrace is how long the row store keeps what a restore undid.
	RestoreGrace time.Duration
	// ArchiveEvery is the pause between archive rounds. The newest ArchiveKeep runs and entries of
	// each customer also stay in the state; at most MaxArchiveKeep.
	ArchiveEvery time.Duration
	ArchiveKeep  int
	// HistoryKept is how long a run stays in the archive after its end. Ledger entries stay for
	// ever.
	HistoryKept time.Duration
	// ElectionTimeout is the shortest time between two elections; slow disks make it longer. Values
	// below MinElectionTimeout count as MinElectionTimeout. The most is MaxElectionTimeout.
	ElectionTimeout time.Duration

	// Point is called at kill points, for crash tests. BeforeWrite is called before Raft's log,
	// term or vote is written, for tests with a slow disk.
	Point       func(name string)
	BeforeWrite func()

	// Disk watches the disk of Dir; nil: it is never short. RowsFloor watches the row store's disk;
	// nil: no floor. While either is short, the leader admits nothing new and dispatches nothing.
	Disk      *telemetry.Disk
	RowsFloor *telemetry.Floor

	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces

	// Cluster makes the node one of several; nil: it is alone and opens no port.
	Cluster *Cluster

	// Set by tests only. patience is how long API commands are retried. transport and voters are
	// for nodes without a Cluster. dial dials other nodes. newest is the newest cluster version
	// known. The leader compares all copies of the state once in digestsEvery.
	patience     time.Duration
	transport    node.Voting
	voters       []raft.Server
	dial         func(ctx context.Context, address string) (net.Conn, error)
	newest       uint32
	digestsEvery time.Duration
}

// Cluster is how a node communicates with the other nodes of its cluster.
type Cluster = node.Cluster

// Autopilot says when nodes become voters, and when nodes that are gone are removed. Zero values
// have defaults.
type Autopilot = quorum.Config

// Snapshots says when the Raft log is truncated.
type Snapshots = node.Snapshots

const (
	// MinElectionTimeout is the election timeout on healthy disks, and the lower bound of
	// Config.ElectionTimeout.
	MinElectionTimeout = node.MinElectionTimeout
	// MaxElectionTimeout bounds the election timeout, however slow the disks are. Raft waits
	// between one and two timeouts.
	MaxElectionTimeout = node.MaxElectionTimeout
)

// MaxArchiveKeep bounds Config.ArchiveKeep.
const MaxArchiveKeep = 100

// Defaults returns a configuration that lacks only the node's name and Dir, its log and row store,
// and the functions HostOf and ShardOf.
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
		patience: client.Patience, newest: command.Newest, digestsEvery: time.Minute,
	}
}

// Services names what all nodes of a cluster share. The name "" means that the process has its own.
type Services struct {
	Log, Rows string
	// Claim marks the services as the cluster's; nil: they are the process's own. If they carry
	// another cluster's mark it returns other_services, or replaces the mark when take is set.
	Claim func(ctx context.Context, cluster ids.ID, take bool) error
	// Rebind binds the cluster to these services, whatever it used before. Only nodes of the
	// control plane rebind; other nodes wait until one has.
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

// forNode returns the part of the configuration that the Raft node needs.
func (c *Config) forNode() node.Config {
	return node.Config{Dir: c.Dir, Name: c.Node, Boot: c.Boot, Roles: c.Roles, Version: c.Version,
		Capacity: c.Capacity,
		Newest:   c.newest, Clock: c.Clock, IDs: c.IDs, Snapshots: c.Snapshots,
		ElectionTimeout: c.ElectionTimeout,
		Point:           c.Point, BeforeWrite: c.BeforeWrite, Logger: c.Logger, Metrics: c.Metrics,
		Disk: c.Disk, Cluster: c.Cluster,
		Transport: c.transport, Voters: c.voters, Dial: c.dial}
}

// forLeadership returns the configuration of this node's leaderships.
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
		ArchiveKeep: uint32(c.ArchiveKeep), HistoryKept: c.HistoryKept,
		DigestsEvery: c.digestsEvery, RowsFloor: c.RowsFloor,
		DropBodies: s.sweeper.dropBodies, Point: c.Point, Logger: c.Logger, Metrics: c.Metrics,
		Tracer: c.Tracer}
	if c.Cluster != nil {
		config.Autopilot = c.Cluster.Autopilot
	}
	return config
}

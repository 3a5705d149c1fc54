package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/port"
)

const (
	// Times of a node that votes alone: it has nobody to wait for, so it begins at once. Raft wakes up once per lease.
	aloneHeartbeat = 150 * time.Millisecond
	aloneLease     = 150 * time.Millisecond

	// Times between nodes on one network. A leader that dies is missed after one to two heartbeat times. An election that
	// nobody wins is repeated after as long, unless the configuration says longer or lost elections have (elections.go).
	heartbeatTime = 500 * time.Millisecond
	leaseTime     = 400 * time.Millisecond
	// commitTime is how soon other nodes hear what is committed when nothing follows it: what they wait for who write, or
	// read what was just written, at another node than the leader.
	commitTime = 10 * time.Millisecond
	// streamPatience bounds an exchange of Raft's. A snapshot has as long for each 256 KiB.
	streamPatience = 3 * time.Second
	streamsKept    = 4
	appendMost     = 32 // entries, of at most maxCommandBytes
	// appendsUnderWay is 1, which is no pipeline: Raft's can lock up when a follower refuses an append. The leader then
	// sends that follower heartbeats and no entries any more, and cannot be shut down.
	appendsUnderWay = 1

	lockPatience  = 3 * time.Second // for the process before to let go of the directory
	stopPatience  = 2 * time.Second // for what Raft was asked before the shutdown
	keepSnapshots = 2

	raftFolder = "raft" // within Config.Dir
)

// node is Raft with its files.
type node struct {
	*raft.Raft
	logs      *store
	elections *elections
	transport voting
	port      *port.Port             // nil: the node is alone
	members   *membership.Membership // nil: it does not gossip
	belongs   belonging
	known     bool // there was a log before this start
	// open: what others ask in Raft's name is answered. A node that had a vote and lost its directory has forgotten what
	// it voted, and cannot know that it had a vote: so one without a log hears nothing until the leader knows that it has none.
	open atomic.Bool
}

// openNode starts Raft over the files in dir, which one process at a time can have open, and which are for ever those of
// the node that used them first.
func openNode(cfg *Config, machine *machine, at *port.Port) (*node, error) {
	dir := filepath.Join(cfg.Dir, raftFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	logger := raftLogger(cfg.Logger, slog.LevelInfo)
	logs, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"),
		BoltOptions: &bbolt.Options{Timeout: lockPatience, NoFreelistSync: true}})
	if err != nil {
		if errors.Is(err, bbolt.ErrTimeout) {
			return nil, fmt.Errorf("controlplane: %s is in use by another process", cfg.Dir)
		}
		return nil, fmt.Errorf("controlplane: open the log: %w", err)
	}
	n := &node{port: at, logs: &store{BoltStore: logs, before: cfg.BeforeWrite, clock: cfg.Clock,
		took: machine.metrics.writes.Observe}}
	if err := ownDirectory(dir, cfg.Node, cfg.Cluster.name()); err != nil {
		return nil, errors.Join(err, n.close())
	}
	snapshots, err := n.look(dir, raftLogger(cfg.Logger, slog.LevelDebug)) // each step of each snapshot is news to it
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.open.Store(n.known || !cfg.Cluster.gossips())
	if cfg.Cluster.gossips() {
		if err := n.gossip(cfg, dir); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	settings := cfg.raftSettings(logger)
	n.elections = &elections{least: settings.ElectionTimeout, slowest: n.logs.slowest, clock: cfg.Clock,
		ended: machine.metrics.electionEnded}
	switch {
	case at != nil:
		n.transport = at.NewTransport(doorkeeper{at.Raft(), &n.open, cfg.Logger}, raft.NetworkTransportConfig{
			MaxPool: streamsKept, MaxRPCsInFlight: appendsUnderWay, Timeout: streamPatience, Logger: logger})
	case cfg.transport != nil:
		n.transport = cfg.transport
	default: // it speaks with nobody; its address is its name
		_, n.transport = raft.NewInmemTransport(raft.ServerAddress(cfg.Node))
	}
	if err := n.start(cfg, settings, machine, snapshots); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// single says that there is this node and never another one.
func (c *Config) single() bool { return c.Cluster == nil && c.transport == nil }

func (c *Config) raftSettings(logger hclog.Logger) *raft.Config {
	settings := raft.DefaultConfig()
	settings.LocalID = raft.ServerID(c.Node)
	settings.Logger = logger
	settings.SnapshotThreshold = c.Snapshots.Entries
	settings.TrailingLogs = c.Snapshots.Keep
	settings.SnapshotInterval = c.Snapshots.Every
	settings.HeartbeatTimeout, settings.ElectionTimeout = heartbeatTime, max(heartbeatTime, c.ElectionTimeout)
	settings.LeaderLeaseTimeout = leaseTime
	settings.CommitTimeout = commitTime
	settings.MaxAppendEntries = appendMost
	settings.NoLegacyTelemetry = true
	if c.single() {
		settings.HeartbeatTimeout, settings.ElectionTimeout = aloneHeartbeat, aloneHeartbeat
		settings.LeaderLeaseTimeout = aloneLease
	}
	return settings
}

// look opens the snapshots and finds out whether there is a log.
func (n *node) look(dir string, logger hclog.Logger) (raft.SnapshotStore, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, logger)
	if err != nil {
		return nil, fmt.Errorf("controlplane: open the snapshots: %w", err)
	}
	n.known, err = raft.HasExistingState(n.logs, n.logs, snapshots)
	if err != nil {
		return nil, fmt.Errorf("controlplane: read the log: %w", err)
	}
	return snapshots, nil
}

// start starts Raft. At its first start a node that is alone is the only voter; one that gossips founds a cluster, or waits
// until the leader of one adds it (belong).
func (n *node) start(cfg *Config, settings *raft.Config, machine raft.FSM, snapshots raft.SnapshotStore) (err error) {
	if !n.known && !cfg.Cluster.gossips() && (cfg.Cluster == nil || cfg.Cluster.Bootstrap) {
		first := raft.Configuration{Servers: cfg.voters}
		if first.Servers == nil {
			first.Servers = []raft.Server{{ID: settings.LocalID, Address: n.transport.LocalAddr()}}
		}
		if err := raft.BootstrapCluster(settings, n.logs, n.logs, snapshots, n.transport, first); err != nil {
			return fmt.Errorf("controlplane: create the log: %w", err)
		}
	}
	peers := &named{voting: n.transport}
	if n.members != nil {
		peers.where = n.members.Address
	}
	transport := &ballots{voting: n.transport, elections: n.elections}
	if n.port != nil {
		transport.voting = peers
	}
	if n.Raft, err = raft.NewRaft(settings, machine, n.logs, n.logs, snapshots, transport); err != nil {
		return fmt.Errorf("controlplane: start raft: %w", err)
	}
	peers.raft.Store(n.Raft)
	n.elections.watch(n.Raft)
	return nil
}

// alone says whether this node is the only voter.
func (n *node) alone() bool {
	voters := 0
	for _, server := range n.GetConfiguration().Configuration().Servers {
		if server.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters == 1
}

// handOver gives leadership to another voter, if this node has it and there is one. When nobody takes it an election will
// find somebody.
func (n *node) handOver() {
	if n.State() == raft.Leader && !n.alone() {
		_ = n.LeadershipTransfer().Error()
	}
}

// stop ends Raft, and closes its files and the port.
func (n *node) stop() error {
	ended := n.Shutdown()
	hungUp := n.hangUp() // Raft would wait for answers of nodes that are gone
	return errors.Join(ended.Error(), hungUp, n.close())
}

// hangUp ends all connections with other nodes.
func (n *node) hangUp() error {
	var err error
	if streams, ok := n.transport.(interface{ CloseStreams() }); ok {
		streams.CloseStreams()
	}
	if closer, ok := n.transport.(raft.WithClose); ok {
		err = closer.Close()
	}
	if n.port != nil {
		err = errors.Join(err, n.port.Close())
	}
	return err
}

// close closes what Raft worked on.
func (n *node) close() error {
	err := n.hangUp()
	if n.members != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		_ = n.members.Leave(ctx) // if nobody hears it they find out
		err = errors.Join(err, n.members.Close())
	}
	return errors.Join(err, n.logs.Close())
}

package node

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
	// Timeouts of a node that votes alone: it waits for nobody, so it begins at once. Raft wakes up
	// once per lease.
	aloneHeartbeat = 150 * time.Millisecond
	aloneLease     = 150 * time.Millisecond

	// Timeouts between nodes on one network. A dead leader is noticed after one to two heartbeat
	// times. An election without a winner is repeated after as long, unless the configuration or
	// lost elections (elections.go) ask for longer.
	heartbeatTime = 500 * time.Millisecond
	leaseTime     = 400 * time.Millisecond
	// commitTime is how soon other nodes learn what is committed when no entry follows it. A write
	// through a follower waits for it, and so does a read there of what was just written.
	commitTime = 10 * time.Millisecond
	// streamPatience bounds one Raft exchange. A snapshot gets as long for each 256 KiB.
	streamPatience = 3 * time.Second
	streamsKept    = 4
	appendMost     = 32 // entries, of at most maxCommandBytes

	lockPatience  = 3 * time.Second // for the previous process to release the directory
	keepSnapshots = 2

	raftFolder = "raft" // within Config.Dir
)

// Raft is one run of Raft on a node, with its files, its port and its gossip membership.
type Raft struct {
	*raft.Raft
	logs      *store
	elections *elections
	transport Voting
	vouching  *vouching              // over transport
	Port      *port.Port             // nil: the node is alone
	Members   *membership.Membership // nil: it does not gossip
	belongs   belonging
	known     bool // a log existed before this start
	// open says whether requests of other servers are answered. A node that lost its directory has
	// forgotten any vote it cast. So a node without a log answers nothing until the leader knows
	// that it has no vote.
	open atomic.Bool
}

// openRaft starts Raft over the files in dir. Only one process at a time can open them, and they
// belong for ever to the node that used them first.
func openRaft(config Config, machine *machine, at *port.Port) (*Raft, error) {
	dir := filepath.Join(config.Dir, raftFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	logger := raftLogger(config.Logger, slog.LevelInfo)
	logs, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"),
		BoltOptions: &bbolt.Options{Timeout: lockPatience, NoFreelistSync: true}})
	if err != nil {
		if errors.Is(err, bbolt.ErrTimeout) {
			return nil, fmt.Errorf("controlplane: %s is in use by another process", config.Dir)
		}
		return nil, fmt.Errorf("controlplane: open the log: %w", err)
	}
	r := &Raft{Port: at, logs: &store{BoltStore: logs, before: config.BeforeWrite,
		clock: config.Clock,
		took:  machine.metrics.writes.Observe}}
	if err := ownDirectory(dir, config.Name, config.Cluster.name()); err != nil {
		return nil, errors.Join(err, r.close())
	}
	// the snapshot store logs each step as info
	snapshots, err := r.look(dir, raftLogger(config.Logger, slog.LevelDebug))
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.open.Store(r.known || !config.Cluster.Gossips())
	if config.Cluster.Gossips() {
		if err := r.gossip(config, dir); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	settings := config.raftSettings(logger)
	r.elections = &elections{least: settings.ElectionTimeout, slowest: r.logs.slowest,
		clock: config.Clock,
		ended: machine.metrics.electionEnded}
	switch {
	case at != nil:
		r.transport = at.NewTransport(doorkeeper{at.Raft(), &r.open, config.Logger},
			raft.NetworkTransportConfig{
				MaxPool: streamsKept, Timeout: streamPatience, Logger: logger})
	case config.Transport != nil:
		r.transport = config.Transport
	default: // it talks to nobody; its address is its name
		_, r.transport = raft.NewInmemTransport(raft.ServerAddress(config.Name))
	}
	if err := r.start(config, settings, machine, snapshots); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// single says whether this node is alone for ever.
func (c *Config) single() bool { return c.Cluster == nil && c.Transport == nil }

func (c *Config) raftSettings(logger hclog.Logger) *raft.Config {
	settings := raft.DefaultConfig()
	settings.LocalID = raft.ServerID(c.Name)
	settings.Logger = logger
	settings.SnapshotThreshold = c.Snapshots.Entries
	settings.TrailingLogs = c.Snapshots.Keep
	settings.SnapshotInterval = c.Snapshots.Every
	settings.HeartbeatTimeout, settings.ElectionTimeout = heartbeatTime,
		max(heartbeatTime, c.ElectionTimeout)
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

// look opens the snapshots and finds out whether a log exists.
func (r *Raft) look(dir string, logger hclog.Logger) (raft.SnapshotStore, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, logger)
	if err != nil {
		return nil, fmt.Errorf("controlplane: open the snapshots: %w", err)
	}
	snapshots := &snapshots{SnapshotStore: files, dir: filepath.Join(dir, "snapshots")}
	r.known, err = raft.HasExistingState(r.logs, r.logs, snapshots)
	if err != nil {
		return nil, fmt.Errorf("controlplane: read the log: %w", err)
	}
	return snapshots, nil
}

// start starts Raft. On its first start, a node that is alone becomes the only voter. A node that
// gossips founds a cluster, or waits until a leader adds it (Belong).
func (r *Raft) start(config Config, settings *raft.Config, machine raft.FSM,
	snapshots raft.SnapshotStore) (err error) {
	if !r.known && !config.Cluster.Gossips() &&
		(config.Cluster == nil || config.Cluster.Bootstrap) {
		first := raft.Configuration{Servers: config.Voters}
		if first.Servers == nil {
			first.Servers = []raft.Server{{ID: settings.LocalID, Address: r.transport.LocalAddr()}}
		}
		if err := raft.BootstrapCluster(settings, r.logs, r.logs, snapshots, r.transport,
			first); err != nil {
			return fmt.Errorf("controlplane: create the log: %w", err)
		}
	}
	peers := &named{Voting: r.transport}
	if r.Members != nil {
		peers.where = r.Members.Address
	}
	voting := &ballots{Voting: r.transport, elections: r.elections}
	if r.Port != nil {
		voting.Voting = peers
	}
	r.vouching = newVouching(voting)
	if r.Raft, err = raft.NewRaft(settings, machine, r.logs, r.logs, snapshots,
		r.vouching); err != nil {
		r.vouching.stop()
		return fmt.Errorf("controlplane: start raft: %w", err)
	}
	peers.raft.Store(r.Raft)
	r.elections.watch(r.Raft)
	return nil
}

// Alone says whether this node is the only voter.
func (r *Raft) Alone() bool {
	voters := 0
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters == 1
}

// HandOver transfers leadership to another voter, if this node leads and there is one. If the
// transfer fails, an election follows.
func (r *Raft) HandOver() {
	if r.State() == raft.Leader && !r.Alone() {
		_ = r.LeadershipTransfer().Error()
	}
}

// stop ends Raft, and closes its files and the port.
func (r *Raft) stop() error {
	ended := r.Shutdown()
	hungUp := r.hangUp() // Raft would wait for nodes that are gone
	err := errors.Join(ended.Error(), hungUp, r.close())
	r.vouching.stop()
	return err
}

// hangUp closes all connections with other nodes.
func (r *Raft) hangUp() error {
	var err error
	if streams, ok := r.transport.(interface{ CloseStreams() }); ok {
		streams.CloseStreams()
	}
	if closer, ok := r.transport.(raft.WithClose); ok {
		err = closer.Close()
	}
	if r.Port != nil {
		err = errors.Join(err, r.Port.Close())
	}
	return err
}

// close closes the connections and files.
func (r *Raft) close() error {
	err := r.hangUp()
	if r.Members != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		_ = r.Members.Leave(ctx) // if nobody hears it, they will notice
		err = errors.Join(err, r.Members.Close())
	}
	return errors.Join(err, r.logs.Close())
}

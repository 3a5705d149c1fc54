package controlplane

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// Times of a node that votes alone. It has nobody to wait for, so it begins at once.
const (
	aloneHeartbeat = 100 * time.Millisecond
	aloneLease     = 50 * time.Millisecond
	lockPatience   = 3 * time.Second // for the process before to let go of the directory
	keepSnapshots  = 2
)

// node is Raft with its files.
type node struct {
	*raft.Raft
	logs      *raftboltdb.BoltStore
	transport raft.Transport
}

// openNode starts Raft over the files in dir, which one process at a time can have open. At the first start the node is
// its cluster's only voter, unless voters says otherwise.
func openNode(cfg *Config, machine raft.FSM) (*node, error) {
	dir := filepath.Join(cfg.Dir, "raft")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	logger := raftLogger(cfg.Logger)
	logs, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"),
		BoltOptions: &bbolt.Options{Timeout: lockPatience, NoFreelistSync: true}})
	if err != nil {
		if errors.Is(err, bbolt.ErrTimeout) {
			return nil, fmt.Errorf("controlplane: %s is in use by another process", cfg.Dir)
		}
		return nil, fmt.Errorf("controlplane: open the log: %w", err)
	}
	n, err := startRaft(cfg, machine, dir, logs, logger)
	if err != nil {
		return nil, errors.Join(err, logs.Close())
	}
	return n, nil
}

func startRaft(cfg *Config, machine raft.FSM, dir string, logs *raftboltdb.BoltStore, logger hclog.Logger) (*node, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, logger)
	if err != nil {
		return nil, fmt.Errorf("controlplane: open the snapshots: %w", err)
	}
	settings := raft.DefaultConfig()
	settings.LocalID = raft.ServerID(cfg.Node)
	settings.Logger = logger
	settings.SnapshotThreshold = cfg.Snapshots.Entries
	settings.TrailingLogs = cfg.Snapshots.Keep
	settings.SnapshotInterval = cfg.Snapshots.Every
	transport, voters := cfg.transport, cfg.voters
	if transport == nil {
		// Alone, a node speaks with nobody: no port is opened. Its address is its name.
		_, transport = raft.NewInmemTransport(raft.ServerAddress(cfg.Node))
		settings.HeartbeatTimeout, settings.ElectionTimeout = aloneHeartbeat, aloneHeartbeat
		settings.LeaderLeaseTimeout = aloneLease
	}
	if voters == nil {
		voters = []raft.Server{{ID: settings.LocalID, Address: transport.LocalAddr()}}
	}
	known, err := raft.HasExistingState(logs, logs, snapshots)
	if err != nil {
		return nil, fmt.Errorf("controlplane: read the log: %w", err)
	}
	if !known {
		first := raft.Configuration{Servers: voters}
		if err := raft.BootstrapCluster(settings, logs, logs, snapshots, transport, first); err != nil {
			return nil, fmt.Errorf("controlplane: create the log: %w", err)
		}
	}
	r, err := raft.NewRaft(settings, machine, logs, logs, snapshots, transport)
	if err != nil {
		return nil, fmt.Errorf("controlplane: start raft: %w", err)
	}
	return &node{Raft: r, logs: logs, transport: transport}, nil
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

// stop ends Raft, handing leadership over first when there is somebody to take it.
func (n *node) stop() error {
	if n.State() == raft.Leader && !n.alone() {
		_ = n.LeadershipTransfer().Error() // if nobody takes it, an election will find somebody
	}
	err := n.Shutdown().Error()
	if closer, ok := n.transport.(raft.WithClose); ok {
		err = errors.Join(err, closer.Close())
	}
	return errors.Join(err, n.logs.Close())
}

// raftLogger passes what Raft has to say on to ours. What it warns of (elections, lost contacts) is its daily life.
func raftLogger(to *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.Warn, DisableTime: true, Output: lines{to}})
}

type lines struct{ to *slog.Logger }

// Write takes one line.
func (l lines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if after, isError := strings.CutPrefix(text, "[ERROR]"); isError {
		l.to.Warn("raft: " + strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), "raft:")))
	} else {
		l.to.Debug(text)
	}
	return len(line), nil
}

package node

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
)

// Config makes a node. The control plane's own configuration says what its settings are, and checks
// them.
type Config struct {
	Dir      string // the node's own; its Raft log and snapshots are kept in Dir/raft
	Name     string // unique in the cluster and for ever tied to Dir
	Boot     ids.ID // this start of the process
	Roles    []string
	Version  string // of the binary
	Capacity uint32
	Newest   uint32 // the cluster version up to which this binary can apply commands

	Clock clock.Clock
	IDs   ids.Source

	Snapshots       Snapshots
	ElectionTimeout time.Duration // that an election is given at least

	Point       func(name string) // called at named places, for crash tests
	BeforeWrite func()            // called before Raft's log, term or vote is written
	Disk        *telemetry.Disk   // of Dir; nil: it is never short

	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil

	Cluster *Cluster // nil: the node is alone, and opens no port

	// Transport is how a node without a Cluster speaks, and Voters are who votes at first; nil:
	// with nobody, it alone.
	Transport Voting
	Voters    []raft.Server
	// how nodes of a Cluster are dialled; nil: as usual
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Snapshots says when the Raft log is cut.
type Snapshots struct {
	Entries uint64        // a snapshot is taken when so many entries are newer than the last one
	Keep    uint64        // entries kept behind a snapshot, for followers that lag
	Every   time.Duration // how often that is looked at
}

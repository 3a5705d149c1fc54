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

// Config configures a node. The control plane's own Config documents its settings and checks them.
type Config struct {
	Dir      string // this node's alone; its Raft log and snapshots are kept in Dir/raft
	Name     string // unique in the cluster and tied to Dir for ever
	Boot     ids.ID // this start of the process
	Roles    []string
	Version  string // of the binary
	Capacity uint32
	Newest   uint32 // newest cluster version whose commands this binary can apply

	Clock clock.Clock
	IDs   ids.Source

	Snapshots       Snapshots
	ElectionTimeout time.Duration // the least

	Point       func(name string) // called at kill points, for crash tests
	BeforeWrite func()            // called before Raft's log, term or vote is written
	Disk        *telemetry.Disk   // of Dir; nil: it is never short

	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil

	Cluster *Cluster // nil: the node is alone, and opens no port

	// Transport and Voters are the transport and first voters of a node without a Cluster; nil: the
	// node is alone.
	Transport Voting
	Voters    []raft.Server
	// how nodes of a Cluster are dialled; nil: by the default dialer
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Snapshots says when the Raft log is truncated.
type Snapshots struct {
	Entries uint64        // entries since the last snapshot that call for a new one
	Keep    uint64        // entries kept behind a snapshot, for followers that lag
	Every   time.Duration // how often the number of entries is checked
}

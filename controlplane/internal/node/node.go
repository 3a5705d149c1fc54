// Package node owns one node of the cluster: its copy of the state as Raft drives it, and Raft with
// its log, votes and snapshots. It also has the way to them while they run, which cluster the node
// belongs to, and what it says of itself. Who leads, and what a leader does, is none of its
// business.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
)

const (
	enqueuePatience = 5 * time.Second
	stopPatience    = 2 * time.Second // for what Raft was asked before the shutdown
)

// halfSnapshots are those that Raft was writing when the process was killed, or the disk was full.
// It leaves them for ever.
const halfSnapshots = raftFolder + "/snapshots/*.tmp"

// Node holds a copy of the state, from New on, and takes part in Raft from Start to Stop.
type Node struct {
	config   Config
	machine  *machine
	gate     *gate
	metrics  *metrics
	presence func(node string) client.NodeState // what the cluster's members know of a node's life
	raft     *Raft                              // from Start on
	diverged atomic.Bool
	hashing  sync.Mutex // held while the state is hashed

	leader atomic.Pointer[leader] // as this node sees it

	life context.Context // ends when requests are answered no more
	end  context.CancelFunc
}

// New makes a node that Start starts.
func New(config Config) *Node {
	m := newMetrics(&config)
	n := &Node{config: config, machine: newMachine(config.Point, m), gate: newGate(), metrics: m,
		presence: onlyThis(config.Name)}
	n.life, n.end = context.WithCancel(context.Background())
	n.LeaderChanged()
	n.measure(config.Metrics)
	return n
}

// Start starts Raft, and opens the port, when the node is one of several, to the methods. It calls
// replaced whenever a snapshot has replaced the state, between two commands. A node starts once.
func (n *Node) Start(methods map[string]port.Method, replaced func()) (err error) {
	defer func() {
		if err != nil {
			n.gate.close()
			n.end()
		}
	}()
	if n.raft, err = n.open(); err != nil {
		return err
	}
	n.raft.RegisterObserver(n.metrics.leaderChanges())
	if n.raft.Members != nil {
		n.presence = n.raft.presence
	}
	n.machine.whenRestored(replaced)
	n.gate.open(n.raft)
	if n.raft.Port != nil {
		n.raft.Port.Serve(methods)
	}
	return nil
}

// open opens the port, when the node is one of several, and starts Raft.
func (n *Node) open() (*Raft, error) {
	// the pattern is a good one
	left, _ := filepath.Glob(filepath.Join(n.config.Dir, halfSnapshots))
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
	cluster := n.config.Cluster
	if cluster == nil {
		return openRaft(n.config, n.machine, nil)
	}
	if err := cluster.Identity.Check(n.config.Clock.Now()); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	opened, err := port.Open(port.Config{Identity: cluster.Identity, Listen: cluster.Listen,
		Advertise: cluster.Advertise, Now: n.config.Clock.Now, Logger: n.config.Logger,
		Dial: n.config.Dial})
	if err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	r, err := openRaft(n.config, n.machine, opened)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return r, nil
}

// Stop refuses new requests and ends those under way, hands leadership over, and then closes
// everything.
func (n *Node) Stop() error {
	left := n.gate.close()
	n.end()
	n.raft.HandOver()
	select {
	case <-left:
	case <-n.config.Clock.After(stopPatience): // there is no majority: what was asked stays open
	}
	return n.raft.stop()
}

// Name is the node's.
func (n *Node) Name() string { return n.config.Name }

// Single says that there is this node and never another one.
func (n *Node) Single() bool { return n.config.single() }

// Probe is the pace of gossip.
func (n *Node) Probe() time.Duration { return n.config.Cluster.pace() }

// Newest is the cluster version up to which the node can apply commands.
func (n *Node) Newest() uint32 { return n.config.Newest }

// Life ends when the node answers no requests any more.
func (n *Node) Life() context.Context { return n.life }

// FSM is the state machine. Its codec may be used at any time, what changes it only Between.
func (n *Node) FSM() *fsm.FSM { return n.machine.fsm }

// Store is the node's copy of the state, until a snapshot replaces it.
func (n *Node) Store() *state.Store { return n.machine.fsm.Store() }

// View is a view of the node's copy of the state.
func (n *Node) View() *state.View { return n.Store().View() }

// Between holds the state machine between two commands until goOn.
func (n *Node) Between() (goOn func()) {
	n.machine.between.Lock()
	return n.machine.between.Unlock
}

// Hash is a hash of this node's copy of the state and the Raft index of the newest command in it.
// At one index it is the same on every node. It costs as much as a snapshot; one is made at a time.
func (n *Node) Hash() (index uint64, hash string, err error) {
	n.hashing.Lock()
	defer n.hashing.Unlock()
	return n.machine.hash()
}

// Expect is the result of a command that this node applies from now on, the first time that it
// does, until forget.
func (n *Node) Expect(id ids.ID) (result <-chan fsm.Result, forget func()) {
	return n.machine.expect(id)
}

// WaitFor waits until everything up to an index is applied here, within ctx and the node's life.
func (n *Node) WaitFor(ctx context.Context, index uint64) error {
	return n.machine.waitFor(ctx, n.life, index)
}

// Append has Raft append an encoded command here, and returns its index when it is applied. An
// error means that the outcome is not known.
func (n *Node) Append(ctx context.Context, data []byte) (index uint64, err error) {
	return Ask(ctx, n, func(r *Raft) (uint64, error) {
		began := n.metrics.now()
		future := r.Apply(data, enqueuePatience)
		if err := future.Error(); err != nil {
			return 0, err
		}
		n.metrics.proposed(began)
		return future.Index(), nil
	})
}

// Leads says whether Raft leads here, as far as it knows.
func (n *Node) Leads() bool {
	r, err := n.Enter()
	if err != nil {
		return false
	}
	defer n.Leave()
	return r.State() == raft.Leader
}

// Leader is the node that leads, as far as this node knows; "" for none.
func (n *Node) Leader() string {
	r, err := n.Enter()
	if err != nil {
		return ""
	}
	defer n.Leave()
	_, leader := r.LeaderWithID()
	return string(leader)
}

// LeaderChanges tells whether this node leads, whenever that changes, the newest change alone: a
// second true in a row is another leadership.
func (n *Node) LeaderChanges() <-chan bool { return n.raft.LeaderCh() }

// Term is Raft's, as this node knows it.
func (n *Node) Term(ctx context.Context) (uint64, error) {
	return Ask(ctx, n, func(r *Raft) (uint64, error) { return r.CurrentTerm(), nil })
}

// Servers are those of Raft, as this node knows them, and the index of the entry that says so.
func (n *Node) Servers(ctx context.Context) (servers []raft.Server, index uint64, err error) {
	future, err := Ask(ctx, n, func(r *Raft) (raft.ConfigurationFuture, error) {
		future := r.GetConfiguration()
		return future, future.Error()
	})
	if err != nil {
		return nil, 0, err
	}
	return future.Configuration().Servers, future.Index(), nil
}

// Suffrages are what the nodes are in Raft, as this node sees it.
func (n *Node) Suffrages(ctx context.Context) (map[string]client.Suffrage, error) {
	return Ask(ctx, n, func(r *Raft) (map[string]client.Suffrage, error) {
		future := r.GetConfiguration()
		if err := future.Error(); err != nil {
			return nil, err
		}
		found := map[string]client.Suffrage{}
		_, leader := r.LeaderWithID()
		for _, server := range future.Configuration().Servers {
			switch {
			case server.ID == leader:
				found[string(server.ID)] = client.RaftLeader
			case server.Suffrage == raft.Voter:
				found[string(server.ID)] = client.RaftVoter
			default:
				found[string(server.ID)] = client.RaftNonvoter
			}
		}
		return found, nil
	})
}

// Address is where other nodes reach this one, from Start on; "" when it is alone.
func (n *Node) Address() string {
	if n.raft.Port == nil {
		return ""
	}
	return n.raft.Port.Address()
}

// Presence is what this node knows of a node's life.
func (n *Node) Presence(name string) client.NodeState { return n.presence(name) }

// onlyThis is what a node knows of the others' life when no members tell it: nothing.
func onlyThis(name string) func(string) client.NodeState {
	return func(node string) client.NodeState {
		if node == name {
			return client.NodeAlive
		}
		return client.NodeUnknown
	}
}

// Refused counts the connections and the calls of other nodes that were refused.
func (n *Node) Refused() (connections, calls uint64) {
	r, err := n.Enter()
	if err != nil {
		return 0, 0
	}
	defer n.Leave()
	if r.Port == nil {
		return 0, 0
	}
	return r.Port.Refused()
}

// measure declares what is read when somebody asks.
func (n *Node) measure(to *telemetry.Metrics) {
	n.measureRaft(to)
	n.measureRefusals(to)
	n.measureDivergence(to)
	n.measureObjects(to)
	n.measureWork(to)
	n.measurePages(to)
}

// Package node owns one node of the cluster: its copy of the state, which Raft drives, and Raft
// with its log, votes and snapshots. It also guards access to them while they run, decides which
// cluster the node belongs to, and reports on the node. It does not know who leads or what a leader
// does.
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
	stopPatience    = 2 * time.Second // for requests to Raft from before the shutdown
)

// halfSnapshots are the unfinished snapshots of a killed process or a full disk. Raft never removes
// them.
const halfSnapshots = raftFolder + "/snapshots/*.tmp"

// Node holds a copy of the state from New on. It takes part in Raft from Start to Stop.
type Node struct {
	config   Config
	machine  *machine
	gate     *gate
	metrics  *metrics
	presence func(node string) client.NodeState // what gossip knows of a node's life
	raft     *Raft                              // from Start on
	diverged atomic.Bool
	hashing  sync.Mutex // held while the state is hashed

	leader atomic.Pointer[leader] // as this node sees it

	life context.Context // ends when the node stops answering requests
	end  context.CancelFunc
}

// New makes a node; Start starts it.
func New(config Config) *Node {
	m := newMetrics(&config)
	n := &Node{config: config, machine: newMachine(config.Point, m), gate: newGate(), metrics: m,
		presence: onlyThis(config.Name)}
	n.life, n.end = context.WithCancel(context.Background())
	n.LeaderChanged()
	n.measure(config.Metrics)
	return n
}

// Start starts Raft. If the node is one of several, it also opens the port for the methods. It
// calls replaced, between two commands, whenever a snapshot has replaced the state. A node starts
// once.
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

// open opens the port, if the node is one of several, and starts Raft.
func (n *Node) open() (*Raft, error) {
	// the pattern is valid
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

// Stop refuses new requests, ends those under way, hands leadership over, and closes everything.
func (n *Node) Stop() error {
	left := n.gate.close()
	n.end()
	n.raft.HandOver()
	select {
	case <-left:
	case <-n.config.Clock.After(stopPatience): // no majority: outcomes stay unknown
	}
	return n.raft.stop()
}

// Name returns the node's name.
func (n *Node) Name() string { return n.config.Name }

// Single says whether this node is alone for ever.
func (n *Node) Single() bool { return n.config.single() }

// Probe returns the interval of gossip probes.
func (n *Node) Probe() time.Duration { return n.config.Cluster.pace() }

// Newest returns the newest cluster version whose commands the node can apply.
func (n *Node) Newest() uint32 { return n.config.Newest }

// Life returns a context that ends when the node stops answering requests.
func (n *Node) Life() context.Context { return n.life }

// FSM returns the state machine. Its codec may be used at any time. Change it only within Between.
func (n *Node) FSM() *fsm.FSM { return n.machine.fsm }

// Store returns the node's copy of the state, until a snapshot replaces it.
func (n *Node) Store() *state.Store { return n.machine.fsm.Store() }

// View returns a view of the node's copy of the state.
func (n *Node) View() *state.View { return n.Store().View() }

// Between pauses the state machine between two commands until goOn is called.
func (n *Node) Between() (goOn func()) {
	n.machine.between.Lock()
	return n.machine.between.Unlock
}

// Hash returns a hash of this node's copy of the state, and the Raft index of its newest command.
// At one index it is the same on every node. It costs as much as a snapshot; only one runs at a
// time.
func (n *Node) Hash() (index uint64, hash string, err error) {
	n.hashing.Lock()
	defer n.hashing.Unlock()
	return n.machine.hash()
}

// Expect returns a channel for the result of a command when this node next applies it. Call forget
// to stop waiting.
func (n *Node) Expect(id ids.ID) (result <-chan fsm.Result, forget func()) {
	return n.machine.expect(id)
}

// WaitFor waits until everything up to an index is applied here, or ctx or the node's life ends.
func (n *Node) WaitFor(ctx context.Context, index uint64) error {
	return n.machine.waitFor(ctx, n.life, index)
}

// Append has Raft append an encoded command here, and returns its index once it is applied. An
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

// Leads says whether this node's Raft leads, as far as it knows.
func (n *Node) Leads() bool {
	r, err := n.Enter()
	if err != nil {
		return false
	}
	defer n.Leave()
	return r.State() == raft.Leader
}

// Leader returns the node that leads, as far as this node knows; "" for none.
func (n *Node) Leader() string {
	r, err := n.Enter()
	if err != nil {
		return ""
	}
	defer n.Leave()
	_, leader := r.LeaderWithID()
	return string(leader)
}

// LeaderChanges reports whether this node leads, whenever that changes. It keeps only the newest
// change, so a second true in a row is another leadership.
func (n *Node) LeaderChanges() <-chan bool { return n.raft.LeaderCh() }

// Term returns Raft's term, as this node knows it.
func (n *Node) Term(ctx context.Context) (uint64, error) {
	return Ask(ctx, n, func(r *Raft) (uint64, error) { return r.CurrentTerm(), nil })
}

// Servers returns Raft's servers, as this node knows them, and the index of their configuration.
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

// Suffrages returns the nodes' parts in Raft, as this node sees them.
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

// Address returns where other nodes reach this one, from Start on; "" when it is alone.
func (n *Node) Address() string {
	if n.raft.Port == nil {
		return ""
	}
	return n.raft.Port.Address()
}

// Presence returns what this node knows of a node's life.
func (n *Node) Presence(name string) client.NodeState { return n.presence(name) }

// GoneSince returns since when a node does not gossip, as far as this node has seen.
func (n *Node) GoneSince(name string) (since time.Time, gone bool) {
	if n.raft.Members == nil {
		return time.Time{}, false
	}
	return n.raft.Members.GoneSince(name)
}

// onlyThis is the presence function without gossip: only this node is known to be alive.
func onlyThis(name string) func(string) client.NodeState {
	return func(node string) client.NodeState {
		if node == name {
			return client.NodeAlive
		}
		return client.NodeUnknown
	}
}

// Refused counts the refused connections and calls of other nodes.
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

// measure declares the figures that are read on request.
func (n *Node) measure(to *telemetry.Metrics) {
	n.measureRaft(to)
	n.measureRefusals(to)
	n.measureDivergence(to)
	n.measureObjects(to)
	n.measureWork(to)
	n.measurePages(to)
}

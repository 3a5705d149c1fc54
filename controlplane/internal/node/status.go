package node

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// What nodes say to each other of themselves and of Raft.
type (
	// Nothing is asked, or answered.
	Nothing struct{}

	// Admission tells one start of a node that it may take part in Raft.
	Admission struct {
		Boot ids.ID `cbor:"1,keyasint"`
	}

	// Report is what a node says of itself.
	Report struct {
		Status    client.Status `cbor:"1,keyasint"`
		LastTerm  uint64        `cbor:"2,keyasint"` // of the newest entry in its log
		LastIndex uint64        `cbor:"3,keyasint"`
		// since it heard of the leader; 0 on the leader
		Silence time.Duration `cbor:"4,keyasint"`
		Servers []string      `cbor:"5,keyasint,omitempty"` // of Raft, as it knows them
		// its clock, Unix milliseconds; 0: a version that does not tell
		Clock int64 `cbor:"6,keyasint,omitempty"`
		// the cluster version up to which it can apply commands; 0: 1
		Applies uint32 `cbor:"7,keyasint,omitempty"`
		// Gossips is what the node gossips; nil: it does not, or is of a version that does not
		// tell.
		Gossips *membership.Info `cbor:"8,keyasint,omitempty"`
		// Digests are the newest of its copy of the state, at most 4; none: a version that does not
		// tell.
		Digests []state.Digest `cbor:"9,keyasint,omitempty"`
		// the cluster's version, as its copy of the state has it; 0: 1
		Active uint32 `cbor:"10,keyasint,omitempty"`
		// Short: the node's disk has less than its floor.
		Short bool `cbor:"11,keyasint,omitempty"`
	}

	// Answer is what a node says of itself, and who it is by its certificate.
	Answer struct {
		Report
		From identity.Peer
	}

	// StatusQuestion asks a node for its status.
	StatusQuestion struct {
		// Stands is what the digest of the node's copy of the state should be at an index; nil:
		// nobody says.
		Stands *state.Digest `cbor:"1,keyasint,omitempty"`
	}
)

// What every node is asked.
const (
	methodAdmit  = "admit"
	methodStatus = "status"
)

// ErrUnreachable says that this node can call no other one.
var ErrUnreachable = fault.New(fault.Unavailable, "no leader can be reached from this node")

// Methods are the calls that the node answers itself, with the roles that may make them.
func (n *Node) Methods() map[string]port.Method {
	return map[string]port.Method{
		methodAdmit:  port.Handle(n.serveAdmit, identity.ControlPlane),
		methodStatus: port.Handle(n.serveStatus),
	}
}

// report is what this node says of itself.
func (n *Node) report() (Report, error) {
	status, err := n.Status()
	if err != nil {
		return Report{}, err
	}
	r, err := n.Enter()
	if err != nil {
		return Report{}, err
	}
	defer n.Leave()
	answer := Report{Status: status, LastIndex: r.LastIndex(),
		Clock: n.config.Clock.Now().UnixMilli(), Applies: n.config.Newest,
		Digests: n.Store().Digests(), Active: n.View().ClusterVersion(),
		Short: n.Short()}
	if r.State() != raft.Leader {
		answer.Silence = max(time.Since(r.LastContact()), 1)
	}
	for _, server := range r.GetConfiguration().Configuration().Servers {
		answer.Servers = append(answer.Servers, string(server.ID))
	}
	if r.Members != nil {
		own := r.Members.Self()
		answer.Gossips = &own.Info
	}
	answer.LastTerm, err = strconv.ParseUint(r.Stats()["last_log_term"], 10, 64)
	return answer, err
}

// Short says whether this node's disk has less than its floor.
func (n *Node) Short() bool { return n.config.Disk.Short() }

// statusOf is what the node at an address says of itself.
func (n *Node) statusOf(ctx context.Context, address string) (answer Answer, err error) {
	p, err := n.calling()
	if err == nil {
		answer.From, err = p.Ask(ctx, address, methodStatus, StatusQuestion{}, &answer.Report)
	}
	return answer, err
}

const (
	askAtOnce   = 16
	askPatience = time.Second // for a node's answer
)

// Statuses is what nodes, given by their names with their addresses, say of themselves. Those that
// do not answer in time, or in whose place a node with another certificate does, are not in it.
func (n *Node) Statuses(ctx context.Context, nodes map[string]string) map[string]Answer {
	var (
		work    sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]Answer{}
		places  = make(chan struct{}, askAtOnce)
	)
	for name, address := range nodes {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			patience, cancel := context.WithTimeout(ctx, askPatience)
			defer cancel()
			answer, err := n.statusOf(patience, address)
			if err != nil {
				return
			}
			if answer.From.Node != name {
				n.config.Logger.Warn("another node answers at a node's address", "node", name,
					"address", address, "answers", answer.From.Node)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
		})
	}
	work.Wait()
	return answers
}

// call calls the node at an address.
func (n *Node) call(ctx context.Context, address, method string, request, answer any) error {
	p, err := n.calling()
	if err != nil {
		return err
	}
	return p.Call(ctx, address, method, request, answer)
}

// calling is what this node calls others with.
func (n *Node) calling() (*port.Port, error) {
	r, err := n.Enter()
	if err != nil {
		return nil, err
	}
	n.Leave() // a call is none of Raft's
	if r.Port == nil {
		return nil, ErrUnreachable
	}
	return r.Port, nil
}

// serveStatus answers what the node says of itself. The leader may say what its copy of the state
// should be.
func (n *Node) serveStatus(_ context.Context, from identity.Peer, question StatusQuestion) (Report,
	error) {
	if question.Stands != nil && from.Has(identity.ControlPlane) {
		n.NoteDiverged(*question.Stands)
	}
	return n.report()
}

// Status describes the cluster as this node sees it, leader or not.
func (n *Node) Status() (client.Status, error) {
	store := n.Store()
	view := store.View()
	index, _ := store.Progress()
	status := client.Status{Node: n.config.Name, Roles: n.config.Roles, Applied: index,
		Commands: n.machine.fsm.Applied(), OpenJobs: len(view.OpenJobs()), Out: store.OutTotal()}
	status.Pages, status.PageErrors = n.metrics.settled()
	for _, shard := range view.Shards() {
		status.Shards++
		if shard.Owner != "" {
			status.Owned++
		}
	}
	r, err := n.Enter()
	if err != nil {
		return status, fault.Wrap(fault.Unavailable, err, "")
	}
	defer n.Leave()
	_, leader := r.LeaderWithID()
	status.Leader, status.Term = string(leader), r.CurrentTerm()
	return status, nil
}
func (n *Node) serveAdmit(_ context.Context, _ identity.Peer, a Admission) (Nothing, error) {
	if a.Boot != n.config.Boot {
		return Nothing{}, fault.New(fault.NotFound, "that start of node %q is over", n.config.Name)
	}
	r, err := n.Enter()
	if err != nil {
		return Nothing{}, err
	}
	defer n.Leave()
	return Nothing{}, r.admit()
}

// AdmitAt tells the node at an address, at one start of it, that it may take part in Raft.
func (n *Node) AdmitAt(ctx context.Context, address string, boot ids.ID) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return n.call(ctx, address, methodAdmit, Admission{Boot: boot}, &Nothing{})
}

// TellDiverged tells the node at an address what the digest of its copy of the state should be.
func (n *Node) TellDiverged(ctx context.Context, address string, stands state.Digest) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return n.call(ctx, address, methodStatus, StatusQuestion{Stands: &stands}, &Report{})
}

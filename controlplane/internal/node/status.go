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

// What nodes tell each other about themselves and about Raft.
type (
	// Nothing is an empty request or answer.
	Nothing struct{}

	// Admission lets one start of a node take part in Raft.
	Admission struct {
		Boot ids.ID `cbor:"1,keyasint"`
	}

	// Report is a node's report on itself.
	Report struct {
		Status    client.Status `cbor:"1,keyasint"`
		LastTerm  uint64        `cbor:"2,keyasint"` // of the newest entry in its log
		LastIndex uint64        `cbor:"3,keyasint"`
		// time since it heard from the leader; 0 on the leader
		Silence time.Duration `cbor:"4,keyasint"`
		Servers []string      `cbor:"5,keyasint,omitempty"` // Raft's, as the node knows them
		// its clock, Unix milliseconds; 0: its version does not report it
		Clock int64 `cbor:"6,keyasint,omitempty"`
		// the newest cluster version whose commands it can apply; 0: 1
		Applies uint32 `cbor:"7,keyasint,omitempty"`
		// Gossips is what the node gossips; nil: it does not gossip, or its version does not report
		// it.
		Gossips *membership.Info `cbor:"8,keyasint,omitempty"`
		// Digests are the newest digests of its copy of the state, at most 4; none: its version
		// does not report them.
		Digests []state.Digest `cbor:"9,keyasint,omitempty"`
		// the cluster's version in its copy of the state; 0: 1
		Active uint32 `cbor:"10,keyasint,omitempty"`
		// Short: the node's disk is below its floor.
		Short bool `cbor:"11,keyasint,omitempty"`
		// Form is the form of Digests (state.DigestForm).
		Form uint32 `cbor:"12,keyasint,omitempty"`
	}

	// Answer is a node's report, with its identity from its certificate.
	Answer struct {
		Report
		From identity.Peer
	}

	// StatusQuestion asks a node for its status.
	StatusQuestion struct {
		// Stands is the digest that most voters have at an index; nil: unknown.
		Stands *state.Digest `cbor:"1,keyasint,omitempty"`
	}
)

// The calls that every node answers.
const (
	methodAdmit  = "admit"
	methodStatus = "status"
)

// ErrUnreachable says that this node cannot call other nodes.
var ErrUnreachable = fault.New(fault.Unavailable, "no leader can be reached from this node")

// Methods returns the calls that the node answers itself, with the roles that may make them.
func (n *Node) Methods() map[string]port.Method {
	return map[string]port.Method{
		methodAdmit:  port.Handle(n.serveAdmit, identity.ControlPlane),
		methodStatus: port.Handle(n.serveStatus),
	}
}

// report returns this node's report on itself.
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
		Short: n.Short(), Form: state.DigestForm}
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

// Short says whether this node's disk is below its floor.
func (n *Node) Short() bool { return n.config.Disk.Short() }

// statusOf asks the node at an address for its report.
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

// Statuses asks nodes, given by name and address, for their reports. It leaves out nodes that do
// not answer in time, and addresses where a node with another name answers.
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

// calling returns the port by which this node calls others.
func (n *Node) calling() (*port.Port, error) {
	r, err := n.Enter()
	if err != nil {
		return nil, err
	}
	n.Leave() // a call does not use Raft
	if r.Port == nil {
		return nil, ErrUnreachable
	}
	return r.Port, nil
}

// serveStatus answers with the node's report. The leader may tell it the digest that stands.
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

// AdmitAt lets one start of the node at an address take part in Raft.
func (n *Node) AdmitAt(ctx context.Context, address string, boot ids.ID) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return n.call(ctx, address, methodAdmit, Admission{Boot: boot}, &Nothing{})
}

// TellDiverged tells the node at an address which digest stands.
func (n *Node) TellDiverged(ctx context.Context, address string, stands state.Digest) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return n.call(ctx, address, methodStatus, StatusQuestion{Stands: &stands}, &Report{})
}

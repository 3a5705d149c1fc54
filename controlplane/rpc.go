package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// What nodes ask each other. All but status is for the leader, and one attempt: a node that does not lead says so, and
// the caller looks for the leader again.
const (
	methodPropose   = "propose"
	methodAdmit     = "admit"
	methodConfirm   = "confirm"
	methodHeartbeat = "heartbeat"
	methodMarkers   = "markers"
	methodNodes     = "nodes"
	methodStatus    = "status"
)

// methods is the one table of calls, with the roles that may make them.
func (s *Server) methods() map[string]port.Method {
	methods := map[string]port.Method{
		methodPropose:   port.Handle(s.servePropose),
		methodAdmit:     port.Handle(s.serveAdmit, identity.ControlPlane),
		methodConfirm:   port.Handle(s.serveConfirm),
		methodHeartbeat: port.Handle(s.serveHeartbeat, identity.Fetcher),
		methodMarkers:   port.Handle(s.serveMarkers, identity.Billing),
		methodNodes:     port.Handle(s.serveNodes, identity.APIServer, identity.Billing),
		methodStatus:    port.Handle(s.serveStatus),
	}
	maps.Copy(methods, s.restoreMethods())
	return methods
}

type (
	nothing struct{}

	// proposal is a command on its way to the leader, who stamps it.
	proposal struct {
		ID     ids.ID         `cbor:"1,keyasint"`
		Number command.Number `cbor:"2,keyasint"`
		Body   []byte         `cbor:"3,keyasint"` // the encoded payload
		Call   *command.Call  `cbor:"4,keyasint,omitempty"`
	}

	// position is a place in Raft's log.
	position struct {
		Index uint64 `cbor:"1,keyasint"`
	}

	returned struct {
		Markers []model.Marker `cbor:"1,keyasint"`
	}

	// admission tells one start of a node that it may take part in Raft.
	admission struct {
		Boot ids.ID `cbor:"1,keyasint"`
	}

	// nodeStatus is what a node says of itself.
	nodeStatus struct {
		Status    client.Status `cbor:"1,keyasint"`
		LastTerm  uint64        `cbor:"2,keyasint"` // of the newest entry in its log
		LastIndex uint64        `cbor:"3,keyasint"`
		Silence   time.Duration `cbor:"4,keyasint"`           // since it heard of the leader; 0 on the leader
		Servers   []string      `cbor:"5,keyasint,omitempty"` // of Raft, as it knows them
		Clock     int64         `cbor:"6,keyasint,omitempty"` // its clock, Unix milliseconds; 0: a version that does not tell
		Applies   uint32        `cbor:"7,keyasint,omitempty"` // the cluster version up to which it can apply commands; 0: 1
		// Gossips is what the node gossips; nil: it does not, or is of a version that does not tell.
		Gossips *membership.Info `cbor:"8,keyasint,omitempty"`
		// Digests are the newest of its copy of the state, at most 4; none: a version that does not tell.
		Digests []state.Digest `cbor:"9,keyasint,omitempty"`
		Active  uint32         `cbor:"10,keyasint,omitempty"` // the cluster's version, as its copy of the state has it; 0: 1
	}

	// answered is what a node says of itself, and who it is by its certificate.
	answered struct {
		nodeStatus
		from identity.Peer
	}

	// statusQuestion asks a node for its status.
	statusQuestion struct {
		// Stands is what the digest of the node's copy of the state should be at an index; nil: nobody says.
		Stands *state.Digest `cbor:"1,keyasint,omitempty"`
	}
)

// olderLeader is said while a cluster is being upgraded: its next leader may know the command.
const olderLeader = "the cluster is being upgraded: its leader does not know this yet"

func (s *Server) servePropose(ctx context.Context, from identity.Peer, p proposal) (position, error) {
	payload, err := s.machine.fsm.DecodePayload(p.Number, p.Body)
	if err != nil {
		return position{}, fault.Wrap(fault.Unavailable, err, olderLeader)
	}
	if why := mayNotPropose(from, payload); why != "" {
		return position{}, port.NotAllowed(from, why)
	}
	index, err := s.append(ctx, p.ID, payload, p.Call)
	return position{Index: index}, err
}

// mayNotPropose is why a node may not have a command appended, "" when it may. What the leader's own steps propose comes
// from no other node.
func mayNotPropose(from identity.Peer, payload command.Payload) string {
	if role, known := proposers()[payload.Number()]; known {
		if from.Has(role) {
			return ""
		}
		return "needs the role " + role
	}
	registers, ok := payload.(command.RegisterNodePayload)
	switch {
	case !ok:
		return "is the leader's own"
	case registers.Name != from.Node:
		return "registers another node"
	case slices.ContainsFunc(registers.Roles, func(role string) bool { return !from.Has(role) }):
		return "registers a role that its certificate does not have"
	case registers.Rebind && !from.Has(identity.ControlPlane):
		return "needs the role " + identity.ControlPlane + " to bind the cluster to other services"
	case registers.Capacity > 0 && !from.Has(identity.Fetcher):
		return "registers a capacity without the role " + identity.Fetcher
	case registers.Capacity > MaxCapacity:
		return fmt.Sprintf("registers a capacity above %d", MaxCapacity)
	}
	return ""
}

// proposers are the roles that may propose commands.
func proposers() map[command.Number]string {
	return map[command.Number]string{
		command.OpenCustomer: identity.APIServer, command.MintKey: identity.APIServer,
		command.RevokeKey: identity.APIServer, command.TouchKeys: identity.APIServer,
		command.PutGroup: identity.APIServer, command.PutScraper: identity.APIServer,
		command.ClaimCall: identity.APIServer, command.RenewClaims: identity.APIServer,
		command.ReleaseClaim: identity.APIServer, command.LaunchRun: identity.APIServer,
		command.StopRun: identity.APIServer, command.AdjustWallet: identity.APIServer,
		command.PutPrices: identity.APIServer, command.DrainNode: identity.APIServer,
		command.RemoveNode: identity.APIServer, command.PutSchema: identity.APIServer,
		command.DeleteSchema: identity.APIServer, command.PreviewDelete: identity.APIServer,
		command.Settle: identity.Billing,
	}
}

func (s *Server) serveConfirm(ctx context.Context, _ identity.Peer, _ nothing) (position, error) {
	index, err := s.confirmHere(ctx)
	return position{Index: index}, err
}

func (s *Server) serveAdmit(_ context.Context, _ identity.Peer, a admission) (nothing, error) {
	if a.Boot != s.cfg.Boot {
		return nothing{}, fault.New(fault.NotFound, "that start of node %q is over", s.cfg.Node)
	}
	n, err := s.gate.enter()
	if err != nil {
		return nothing{}, err
	}
	defer s.gate.leave()
	return nothing{}, n.admit()
}

func (s *Server) serveHeartbeat(ctx context.Context, from identity.Peer, b beat) (client.Leases, error) {
	if b.Heartbeat.Node != from.Node {
		return client.Leases{}, port.NotAllowed(from, "is the heartbeat of another node")
	}
	return s.heartbeatHere(ctx, b)
}

func (s *Server) serveMarkers(_ context.Context, _ identity.Peer, back returned) (nothing, error) {
	l := s.leading.Load()
	if l == nil {
		return nothing{}, raft.ErrNotLeader
	}
	l.takeBack(back.Markers)
	return nothing{}, nil
}

func (s *Server) serveNodes(ctx context.Context, _ identity.Peer, _ nothing) ([]client.NodeStatus, error) {
	return s.nodesHere(ctx)
}

// statusHere is what this node says of itself.
func (s *Server) statusHere() (nodeStatus, error) {
	status, err := s.status()
	if err != nil {
		return nodeStatus{}, err
	}
	n, err := s.gate.enter()
	if err != nil {
		return nodeStatus{}, err
	}
	defer s.gate.leave()
	answer := nodeStatus{Status: status, LastIndex: n.LastIndex(), Clock: s.cfg.Clock.Now().UnixMilli(), Applies: s.cfg.newest,
		Digests: s.machine.fsm.Store().Digests(), Active: s.machine.fsm.Store().View().ClusterVersion()}
	if n.State() != raft.Leader {
		answer.Silence = max(time.Since(n.LastContact()), 1)
	}
	for _, server := range n.GetConfiguration().Configuration().Servers {
		answer.Servers = append(answer.Servers, string(server.ID))
	}
	if n.members != nil {
		own := n.members.Self()
		answer.Gossips = &own.Info
	}
	answer.LastTerm, err = strconv.ParseUint(n.Stats()["last_log_term"], 10, 64)
	return answer, err
}

// statusOf is what the node at an address says of itself.
func (s *Server) statusOf(ctx context.Context, address string) (answer answered, err error) {
	p, err := s.calling()
	if err == nil {
		answer.from, err = p.Ask(ctx, address, methodStatus, statusQuestion{}, &answer.nodeStatus)
	}
	return answer, err
}

const (
	askAtOnce   = 16
	askPatience = time.Second // for a node's answer
)

// statuses is what nodes, given by their names with their addresses, say of themselves. Those that do not answer in time,
// or in whose place a node with another certificate does, are not in it.
func (s *Server) statuses(ctx context.Context, nodes map[string]string) map[string]answered {
	var (
		work    sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]answered{}
		places  = make(chan struct{}, askAtOnce)
	)
	for name, address := range nodes {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			patience, cancel := context.WithTimeout(ctx, askPatience)
			defer cancel()
			answer, err := s.statusOf(patience, address)
			if err != nil {
				return
			}
			if answer.from.Node != name {
				s.cfg.Logger.Warn("another node answers at a node's address", "node", name, "address", address, "answers", answer.from.Node)
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

// callAt calls the node at an address.
func (s *Server) callAt(ctx context.Context, address, method string, request, answer any) error {
	p, err := s.calling()
	if err != nil {
		return err
	}
	return p.Call(ctx, address, method, request, answer)
}

// calling is what this node calls others with.
func (s *Server) calling() (*port.Port, error) {
	n, err := s.gate.enter()
	if err != nil {
		return nil, err
	}
	s.gate.leave() // a call is none of Raft's
	if n.port == nil {
		return nil, errNoWay
	}
	return n.port, nil
}

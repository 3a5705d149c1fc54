package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// The calls between nodes. All of them go to the leader and are one attempt. A node that does not
// lead refuses, and the caller looks for the leader again.
const (
	methodPropose   = "propose"
	methodConfirm   = "confirm"
	methodHeartbeat = "heartbeat"
	methodMarkers   = "markers"
	methodNodes     = "nodes"
	methodSafeTime  = "safe-time"
)

// methods returns all calls, each with the roles that may make it.
func (s *Server) methods() map[string]port.Method {
	methods := map[string]port.Method{
		methodPropose:   port.Handle(s.servePropose),
		methodConfirm:   port.Handle(s.serveConfirm),
		methodHeartbeat: port.Handle(s.serveHeartbeat, identity.Fetcher),
		methodMarkers:   port.Handle(s.serveMarkers, identity.Billing),
		methodNodes:     port.Handle(s.serveNodes, identity.APIServer, identity.Billing),
		methodSafeTime:  port.Handle(s.serveSafeTime, identity.Ingest),
	}
	maps.Copy(methods, s.node.Methods())
	maps.Copy(methods, s.restorer.methods())
	return methods
}

type (
	// proposal is a command on its way to the leader, which stamps it.
	proposal struct {
		ID     ids.ID         `cbor:"1,keyasint"`
		Number command.Number `cbor:"2,keyasint"`
		Body   []byte         `cbor:"3,keyasint"` // the encoded payload
		Call   *command.Call  `cbor:"4,keyasint,omitempty"`
		// Actor is ignored by an older leader.
		Actor *client.Actor `cbor:"5,keyasint,omitempty"`
	}

	// position is an index of Raft's log.
	position struct {
		Index uint64 `cbor:"1,keyasint"`
	}

	returned struct {
		Markers []model.Marker `cbor:"1,keyasint"`
	}
)

func (s *Server) servePropose(ctx context.Context, from identity.Peer, p proposal) (position,
	error) {
	payload, err := s.node.FSM().DecodePayload(p.Number, p.Body)
	if err != nil {
		return position{}, fault.Wrap(fault.Unavailable, err, olderLeader)
	}
	if why := mayNotPropose(from, payload); why != "" {
		return position{}, port.NotAllowed(from, why)
	}
	index, err := s.proposer.append(ctx, p.Actor, p.ID, payload, p.Call)
	return position{Index: index}, err
}

// mayNotPropose returns why a node may not have a command appended, or "" when it may. Each
// command's declaration says who may. The leader's own commands never come from another node.
func mayNotPropose(from identity.Peer, payload command.Payload) string {
	switch by := payload.Declaration().By; by {
	case command.APIServer, command.Billing, command.Ingest:
		if role := string(by); !from.Has(role) {
			return "needs the role " + role
		}
		return ""
	case command.Itself:
		return mayNotRegister(from, payload)
	case command.Worker:
		return mayNotWork(from, payload)
	default:
		return "is the leader's own"
	}
}

// mayNotRegister checks what a node registers against its certificate.
func mayNotRegister(from identity.Peer, payload command.Payload) string {
	registers, ok := payload.(command.RegisterNodePayload)
	switch {
	case !ok:
		return "is not known of a node itself"
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

// mayNotWork checks a node's turn at the table of work against its certificate. A node works in its
// own name, on the kinds of its roles. API servers may enqueue work of every kind.
func mayNotWork(from identity.Peer, payload command.Payload) string {
	switch p := payload.(type) {
	case command.EnqueueWorkPayload:
		if role := work.Role(p.Kind); !from.Has(role) && !from.Has(identity.APIServer) {
			return "needs the role " + role
		}
		return ""
	case command.ExchangeWorkPayload:
		if p.Node != from.Node {
			return "is the work of another node"
		}
		if !slices.ContainsFunc(work.Kinds(),
			func(kind string) bool { return from.Has(work.Role(kind)) }) {
			return "needs a role that does background work"
		}
		for _, want := range p.Wants {
			if role := work.Role(want.Kind); !from.Has(role) {
				return "needs the role " + role
			}
		}
		return ""
	}
	return "is not known of a worker"
}

func (s *Server) serveConfirm(ctx context.Context, _ identity.Peer, _ node.Nothing) (position,
	error) {
	index, err := s.proposer.confirmHere(ctx)
	return position{Index: index}, err
}

func (s *Server) serveHeartbeat(ctx context.Context, from identity.Peer,
	b leadership.Beat) (client.Leases, error) {
	if b.Heartbeat.Node != from.Node {
		return client.Leases{}, port.NotAllowed(from, "is the heartbeat of another node")
	}
	return s.heartbeatHere(ctx, b)
}

func (s *Server) serveMarkers(_ context.Context, _ identity.Peer, back returned) (node.Nothing,
	error) {
	l := s.holder.Current()
	if l == nil {
		return node.Nothing{}, raft.ErrNotLeader
	}
	l.TakeBack(back.Markers)
	return node.Nothing{}, nil
}

func (s *Server) serveNodes(ctx context.Context, _ identity.Peer,
	_ node.Nothing) ([]client.NodeStatus, error) {
	return s.nodesHere(ctx)
}

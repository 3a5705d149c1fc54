package node

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/quorum"
)

// Cluster is how a node communicates with the other nodes of its cluster.
type Cluster struct {
	// Identity names the node and its roles. Config.Node must be that name, and Config.Roles a
	// subset of those roles.
	Identity *identity.Identity

	Listen string // HOST:PORT of Raft and of calls between nodes, mutual TLS
	// HOST:PORT at which other nodes reach Listen; "": Listen itself, with the actual port
	Advertise string

	GossipListen    string // HOST:PORT of gossip, TCP and UDP
	GossipAdvertise string
	Join            []string // gossip addresses of any members

	// GossipAllowed are the networks that members' addresses must be in; none: any.
	GossipAllowed []netip.Prefix
	// Probe is the interval of gossip probes. A node that is gone is noticed after some 5 of them.
	// 0: 1 s.
	Probe time.Duration

	// Bootstrap lets this node found the cluster at its first start, if no node found through Join
	// belongs to a cluster or founds one. It needs the role controlplane.
	Bootstrap bool
	// LeaveOnStop removes the node from the cluster when it stops; otherwise a stop is a restart.
	// It suits fetchers that scale with the load.
	LeaveOnStop bool
	Autopilot   quorum.Config
}

// pace returns the interval of gossip probes.
func (c *Cluster) pace() time.Duration { return cmp.Or(c.Probe, membership.DefaultProbe) }

// Gossips says whether nodes find each other by gossip. Without it Raft's servers are configured.
func (c *Cluster) Gossips() bool { return c != nil && c.GossipListen != "" }

// Check names every setting that is missing or out of range.
func (c *Cluster) Check(node string, roles []string) error {
	if c.Identity == nil {
		return errors.New("controlplane: Cluster.Identity is missing")
	}
	var errs []error
	if c.Identity.Node != node {
		errs = append(errs, fmt.Errorf("controlplane: Node is %q, and the identity is "+
			"that of node %q", node, c.Identity.Node))
	}
	for _, role := range roles {
		if !c.Identity.Has(role) {
			errs = append(errs, fmt.Errorf("controlplane: the identity of node %q does not "+
				"have the role %s", node, role))
		}
	}
	if c.Bootstrap && !slices.Contains(roles, identity.ControlPlane) {
		errs = append(errs, fmt.Errorf("controlplane: Cluster.Bootstrap needs the role %s",
			identity.ControlPlane))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("controlplane: Cluster.Listen: %w", err))
	}
	if c.Advertise != "" {
		if host, _, err := net.SplitHostPort(c.Advertise); err != nil || host == "" {
			errs = append(errs,
				fmt.Errorf("controlplane: Cluster.Advertise: want HOST:PORT, got %q", c.Advertise))
		}
	}
	if c.Probe < 0 || c.Autopilot.MaxVoters < 0 || c.Autopilot.MinVoters < 0 {
		errs = append(errs,
			errors.New("controlplane: Cluster.Probe or Cluster.Autopilot is below 0"))
	}
	return errors.Join(errs...)
}

// name returns the cluster's name, "" for a node that is alone.
func (c *Cluster) name() string {
	if c == nil {
		return ""
	}
	return c.Identity.Cluster
}

package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"shoal.dev/shoal/controlplane/identity"
)

// Cluster is how a node speaks with the other nodes of its cluster.
type Cluster struct {
	// Identity names the node and its roles; Config.Node must be that name, and Config.Roles among those roles.
	Identity *identity.Identity

	Listen    string // HOST:PORT of Raft and of calls between nodes, mutual TLS
	Advertise string // HOST:PORT at which other nodes reach Listen; "": Listen itself, with the port that it got

	GossipListen    string // HOST:PORT of gossip, TCP and UDP
	GossipAdvertise string
	Join            []string // gossip addresses of members, any of which will do

	// Bootstrap lets this node create the cluster at its first start. It must be a node of the control plane.
	Bootstrap bool
}

// check names every setting that is missing or out of range.
func (c *Cluster) check(node string, roles []string) error {
	if c.Identity == nil {
		return errors.New("controlplane: Cluster.Identity is missing")
	}
	var errs []error
	if c.Identity.Node != node {
		errs = append(errs, fmt.Errorf("controlplane: Node is %q, and the identity is that of node %q", node, c.Identity.Node))
	}
	for _, role := range roles {
		if !c.Identity.Has(role) {
			errs = append(errs, fmt.Errorf("controlplane: the identity of node %q does not have the role %s", node, role))
		}
	}
	if c.Bootstrap && !slices.Contains(roles, identity.ControlPlane) {
		errs = append(errs, fmt.Errorf("controlplane: Cluster.Bootstrap needs the role %s", identity.ControlPlane))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("controlplane: Cluster.Listen: %w", err))
	}
	if c.Advertise != "" {
		if host, _, err := net.SplitHostPort(c.Advertise); err != nil || host == "" {
			errs = append(errs, fmt.Errorf("controlplane: Cluster.Advertise: want HOST:PORT, got %q", c.Advertise))
		}
	}
	return errors.Join(errs...)
}

// name is the cluster's, "" for a node that is alone.
func (c *Cluster) name() string {
	if c == nil {
		return ""
	}
	return c.Identity.Cluster
}

// ownerFile says whose a node's directory is.
const ownerFile = "node"

// ownDirectory ties a directory to the node that uses it first. Another node there would have that one's votes and log.
func ownDirectory(dir, node, cluster string) error {
	path := filepath.Join(dir, ownerFile)
	mine := fmt.Sprintf("%s\n%s\n", node, cluster)
	owner, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(path+".new", []byte(mine), 0o600); err != nil {
			return fmt.Errorf("controlplane: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("controlplane: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("controlplane: %w", err)
	case string(owner) != mine:
		return fmt.Errorf("controlplane: %s is that of another node (name, cluster: %q), and this is %q", dir, owner, mine)
	}
	return nil
}

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// foundingProbes is for how many probes a node looks for others before it founds a cluster.
	foundingProbes = 5
	// leavePatience is how long a leaving node waits to be removed.
	leavePatience = 10 * time.Second
	goodbye       = time.Second // to tell the others that it stops
)

// gossip starts to look for the other nodes.
func (r *Raft) gossip(config Config, dir string) (err error) {
	cluster := config.Cluster
	if r.belongs, err = readBelonging(dir); err != nil {
		return err
	}
	info := membership.Info{Roles: config.Roles, Address: r.Port.Address(), Version: config.Version,
		Capacity: config.Capacity,
		Boot:     config.Boot, Cluster: r.belongs.cluster, Bootstrap: cluster.Bootstrap,
		Empty: !r.open.Load()}
	r.Members, err = membership.Open(membership.Config{Name: config.Name,
		Cluster: cluster.Identity.Cluster,
		Key:     cluster.Identity.GossipKey, Listen: cluster.GossipListen,
		Advertise: cluster.GossipAdvertise,
		Join:      cluster.Join, Allowed: cluster.GossipAllowed, Probe: cluster.pace(), Info: info,
		Clock:  config.Clock,
		Logger: config.Logger})
	return err
}

// admit lets the node take part in Raft.
func (r *Raft) admit() error {
	r.open.Store(true)
	return r.Members.Update(func(info *membership.Info) { info.Empty = false })
}

// doorkeeper refuses Raft connections to a node that is not admitted.
type doorkeeper struct {
	raft.StreamLayer
	open   *atomic.Bool
	logger *slog.Logger
}

// Accept implements net.Listener.
func (d doorkeeper) Accept() (net.Conn, error) {
	for {
		conn, err := d.StreamLayer.Accept()
		if err != nil || d.open.Load() {
			return conn, err
		}
		_ = conn.Close()
		d.logger.Debug("raft: a server is turned away: this node has no log and was not admitted",
			"from", conn.RemoteAddr())
	}
}

// presence says whether a node gossips.
func (r *Raft) presence(name string) client.NodeState {
	if _, there := r.Members.Address(name); there {
		return client.NodeAlive
	}
	return client.NodeFailed
}

// Belong makes a node that gossips part of a cluster. That is the cluster of its directory, else
// the cluster of another node, else, with Bootstrap, one that it founds. Its error says that the
// node cannot be part of this cluster.
func (n *Node) Belong(ctx context.Context) error {
	if n.raft.Members == nil {
		return nil
	}
	begun := n.config.Clock.Now()
	for n.raft.belongs.cluster.IsZero() {
		changed := n.raft.Members.Changed()
		if err := n.choose(ctx, begun); err != nil {
			return err
		}
		if !n.raft.belongs.cluster.IsZero() {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-n.config.Clock.After(n.config.Cluster.pace()):
		}
	}
	if n.raft.belongs.founder && !n.raft.known {
		if err := n.raft.admit(); err != nil {
			return err
		}
		first := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(n.config.Name),
			Address: n.raft.transport.LocalAddr()}}}
		if err := n.raft.BootstrapCluster(first).Error(); err != nil &&
			!errors.Is(err, raft.ErrCantBootstrap) {
			return fmt.Errorf("controlplane: found the cluster: %w", err)
		}
	}
	for {
		if cluster := n.View().Cluster(); cluster != nil {
			if cluster.ID != n.raft.belongs.cluster {
				return fmt.Errorf("controlplane: the log in %s is of cluster %s, and its file "+
					"%q names %s: the directory was "+
					"put together from two", n.config.Dir, cluster.ID, belongingFile,
					n.raft.belongs.cluster)
			}
			return nil
		}
		if !clock.Pause(ctx, n.config.Clock, n.config.Cluster.pace()) {
			return nil
		}
	}
}

// choose decides which cluster the node belongs to, if it can tell already.
func (n *Node) choose(ctx context.Context, begun time.Time) error {
	if n.raft.known { // the log is older than the belonging file
		if cluster := n.View().Cluster(); cluster != nil {
			return n.settleFor(belonging{cluster: cluster.ID})
		}
		return nil
	}
	members := n.raft.Members.Members()
	var clusters []ids.ID
	for _, member := range members {
		if !member.Cluster.IsZero() && !slices.Contains(clusters, member.Cluster) {
			clusters = append(clusters, member.Cluster)
		}
	}
	switch {
	case len(clusters) == 1:
		return n.settleFor(belonging{cluster: clusters[0]})
	case len(clusters) > 1:
		n.config.Logger.Error("two clusters of this name were founded, and this node joins "+
			"neither: stop the nodes of one of "+
			"them and remove their data directories", "clusters", clusters)
		return nil
	case !n.config.Cluster.Bootstrap:
		return nil
	case len(n.config.Cluster.Join) > 0 &&
		n.config.Clock.Now().Sub(begun) < foundingProbes*n.config.Cluster.pace():
		return nil
	}
	return n.found(ctx)
}

// found founds a cluster unless another node has founded one or is about to. Each node first
// announces its intention, then syncs with every other node, and only then looks for intentions. So
// of two nodes that reach each other, at least one sees the other's. The node whose name sorts
// first keeps its intention, and waits until the other yields or has a cluster. A node that already
// sees one with precedence does not start.
func (n *Node) found(ctx context.Context) error {
	intend := func(founding bool) error {
		return n.raft.Members.Update(func(info *membership.Info) { info.Founding = founding })
	}
	if n.yields() {
		return intend(false)
	}
	if err := intend(true); err != nil {
		return err
	}
	if err := n.raft.Members.Sync(ctx); err != nil {
		// nobody answers when the first node founds a cluster
		n.config.Logger.Debug("nobody answers at an address to join", "error", err)
	}
	if n.yields() {
		return intend(false)
	}
	for _, member := range n.raft.Members.Members() {
		if member.Founding && member.Name != n.config.Name {
			return nil
		}
	}
	select {
	case <-ctx.Done(): // nobody was asked
		return nil
	default:
	}
	n.config.Logger.Info("founding a cluster", "cluster", n.config.Cluster.name())
	return n.settleFor(belonging{cluster: n.config.IDs.New(), founder: true})
}

// yields says whether another node has a cluster, or may found one and sorts first by name.
func (n *Node) yields() bool {
	return slices.ContainsFunc(n.raft.Members.Members(), func(member membership.Member) bool {
		return member.Name != n.config.Name &&
			(!member.Cluster.IsZero() || (member.Bootstrap && member.Name < n.config.Name))
	})
}

// settleFor decides for a cluster and writes it to disk.
func (n *Node) settleFor(b belonging) error {
	if err := b.write(filepath.Join(n.config.Dir, raftFolder)); err != nil {
		return err
	}
	n.raft.belongs = b
	return n.raft.Members.Update(func(info *membership.Info) {
		info.Cluster,
			info.Founding = b.cluster, false
	})
}

// ClusterID returns the id for creating the cluster. A node that is alone decides on one here, as
// others do when they found a cluster. The id is kept on disk, because the mark on log and row
// store must match it after a crash.
func (n *Node) ClusterID() (ids.ID, error) {
	r, err := n.Enter()
	if err != nil {
		return n.config.IDs.New(), nil // the node is stopping and creates nothing any more
	}
	defer n.Leave()
	if r.Members != nil {
		if id := r.Members.Self().Cluster; !id.IsZero() {
			return id, nil
		}
	}
	dir := filepath.Join(n.config.Dir, raftFolder)
	b, err := readBelonging(dir)
	if err == nil && b.cluster.IsZero() {
		b = belonging{cluster: n.config.IDs.New(), founder: true}
		err = b.write(dir)
	}
	return b.cluster, err
}

// admitted says whether the leader has added this node at its current address, as far as this node
// knows.
func (n *Node) admitted() bool {
	for _, server := range n.raft.GetConfiguration().Configuration().Servers {
		if server.ID == raft.ServerID(n.config.Name) {
			return server.Address == n.raft.transport.LocalAddr()
		}
	}
	return false
}

// AwaitAdmission waits until this node is one of Raft's servers; false: ctx ended. A second node of
// the same name is never admitted, and must not register in place of the first. It fails when the
// cluster's version is newer than this binary.
func (n *Node) AwaitAdmission(ctx context.Context) (admitted bool, err error) {
	for n.raft.Members != nil && !n.admitted() {
		active := uint32(0)
		n.askControlPlane(ctx, func(answer Answer) bool {
			ours := answer.Gossips != nil && answer.Gossips.Cluster == n.raft.Members.Self().Cluster
			if ours {
				active = answer.Active
			}
			return ours
		})
		if active > n.config.Newest {
			return false, fmt.Errorf("controlplane: version %d of the cluster is active, and "+
				"this binary knows %d at most: "+
				"start one that is as new as the other nodes'", active, n.config.Newest)
		}
		if !clock.Pause(ctx, n.config.Clock, n.config.Cluster.pace()/4) {
			return false, nil
		}
	}
	return true, nil
}

// askControlPlane asks the nodes of the control plane for their status, one after the other, until
// enough accepts an answer.
func (n *Node) askControlPlane(ctx context.Context, enough func(Answer) bool) bool {
	for _, member := range n.raft.Members.Members() {
		if member.Name == n.config.Name || !IsControlPlane(member.Roles) {
			continue
		}
		patience, cancel := context.WithTimeout(ctx, askPatience)
		answer, err := n.statusOf(patience, member.Address)
		cancel()
		if err == nil && answer.From.Has(identity.ControlPlane) && enough(answer) {
			return true
		}
	}
	return false
}

// LeaveCluster has this node removed from the cluster while it still runs. If nobody removes it in
// time it stops anyway, and is removed after its grace.
func (n *Node) LeaveCluster() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.life), leavePatience)
	defer cancel()
	if n.raft.State() == raft.Leader && n.raft.Alone() {
		n.config.Logger.Warn("this node has the only vote and stays part of the cluster: " +
			"without it there is none")
		return
	}
	n.raft.HandOver()
	if err := n.raft.Members.Update(func(info *membership.Info) {
		info.Leaving = true
	}); err != nil {
		n.config.Logger.Warn("this node cannot say that it leaves", "error", err)
		return
	}
	for !n.removed(ctx) {
		if !clock.Pause(ctx, n.config.Clock, n.config.Cluster.pace()/4) {
			n.config.Logger.Warn("this node was not removed in time; it will be when it has " +
				"been gone for long")
			return
		}
	}
	n.config.Logger.Info("this node has left the cluster")
}

// removed says whether the leader has removed this node. The log may not show it: Raft sends that
// entry to the removed node only once. So the leader is asked, too.
func (n *Node) removed(ctx context.Context) bool {
	return !n.admitted() || n.askControlPlane(ctx, func(answer Answer) bool {
		return answer.Silence == 0 && len(answer.Servers) > 0 &&
			!slices.Contains(answer.Servers, n.config.Name)
	})
}

// IsControlPlane says whether the roles let a node vote.
func IsControlPlane(roles []string) bool { return slices.Contains(roles, identity.ControlPlane) }

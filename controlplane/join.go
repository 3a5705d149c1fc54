package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// foundingProbes is for how many probes a node looks for others before it founds a cluster.
	foundingProbes = 5
	// leavePatience is how long a node that leaves waits to be removed.
	leavePatience = 10 * time.Second
	goodbye       = time.Second // for the news that it stops
)

// belonging is which cluster a directory belongs to. It is decided once, before anything of Raft's is in the directory,
// and kept in a file: a node never has to do with two clusters, whatever it meets later.
type belonging struct {
	cluster ids.ID // zero: not decided
	founder bool   // this node made the cluster, or was about to
}

const belongingFile = "cluster"

func readBelonging(dir string) (belonging, error) {
	data, err := os.ReadFile(filepath.Join(dir, belongingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return belonging{}, nil
	}
	if err != nil {
		return belonging{}, fmt.Errorf("controlplane: %w", err)
	}
	text, founder := strings.CutSuffix(strings.TrimSpace(string(data)), "\nfounder")
	id, err := ids.Parse(text)
	if err != nil {
		return belonging{}, fmt.Errorf("controlplane: %s: %w", filepath.Join(dir, belongingFile), err)
	}
	return belonging{cluster: id, founder: founder}, nil
}

// write is on disk when it returns.
func (b belonging) write(dir string) error {
	text := b.cluster.String() + "\n"
	if b.founder {
		text += "founder\n"
	}
	if err := writeDurably(dir, belongingFile, text); err != nil {
		return fmt.Errorf("controlplane: %w", err)
	}
	return nil
}

func writeDurably(dir, name, text string) error {
	path := filepath.Join(dir, name)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// gossip begins to look for the other nodes.
func (n *node) gossip(cfg *Config, dir string) (err error) {
	cluster := cfg.Cluster
	if n.belongs, err = readBelonging(dir); err != nil {
		return err
	}
	info := membership.Info{Roles: cfg.Roles, Address: n.port.Address(), Version: cfg.Version, Capacity: cfg.Capacity,
		Boot: cfg.Boot, Cluster: n.belongs.cluster, Bootstrap: cluster.Bootstrap, Empty: !n.open.Load()}
	n.members, err = membership.Open(membership.Config{Name: cfg.Node, Cluster: cluster.Identity.Cluster,
		Key: cluster.Identity.GossipKey, Listen: cluster.GossipListen, Advertise: cluster.GossipAdvertise,
		Join: cluster.Join, Allowed: cluster.GossipAllowed, Probe: cluster.probe(), Info: info, Clock: cfg.Clock,
		Logger: cfg.Logger})
	return err
}

// admit lets the node take part in Raft.
func (n *node) admit() error {
	n.open.Store(true)
	return n.members.Update(func(info *membership.Info) { info.Empty = false })
}

// doorkeeper lets nobody speak Raft with a node that was not admitted.
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
		d.logger.Debug("raft: a server is turned away: this node has no log and was not admitted", "from", conn.RemoteAddr())
	}
}

// presence is whether a node gossips.
func (n *node) presence(name string) client.NodeState {
	if _, there := n.members.Address(name); there {
		return client.NodeAlive
	}
	return client.NodeFailed
}

// belong makes the node part of a cluster: the one that its directory belongs to, else one that another node belongs to,
// else, with Bootstrap, one that it founds. Its error says that the node cannot be part of this cluster.
func (s *Server) belong(ctx context.Context, n *node) error {
	begun := s.cfg.Clock.Now()
	for n.belongs.cluster.IsZero() {
		changed := n.members.Changed()
		if err := s.choose(ctx, n, begun); err != nil {
			return err
		}
		if !n.belongs.cluster.IsZero() {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-s.cfg.Clock.After(s.cfg.Cluster.probe()):
		}
	}
	if n.belongs.founder && !n.known {
		if err := n.admit(); err != nil {
			return err
		}
		first := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(s.cfg.Node), Address: n.transport.LocalAddr()}}}
		if err := n.BootstrapCluster(first).Error(); err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
			return fmt.Errorf("controlplane: found the cluster: %w", err)
		}
	}
	for {
		if cluster := s.machine.fsm.Store().View().Cluster(); cluster != nil {
			if cluster.ID != n.belongs.cluster {
				return fmt.Errorf("controlplane: the log in %s is of cluster %s, and its file %q names %s: the directory was "+
					"put together from two", s.cfg.Dir, cluster.ID, belongingFile, n.belongs.cluster)
			}
			return nil
		}
		if !s.pause(ctx, s.cfg.Cluster.probe()) {
			return nil
		}
	}
}

// choose decides which cluster the node belongs to, if that can be said by now.
func (s *Server) choose(ctx context.Context, n *node, begun time.Time) error {
	if n.known { // the log is older than the file
		if cluster := s.machine.fsm.Store().View().Cluster(); cluster != nil {
			return s.settleFor(n, belonging{cluster: cluster.ID})
		}
		return nil
	}
	members := n.members.Members()
	var clusters []ids.ID
	for _, member := range members {
		if !member.Cluster.IsZero() && !slices.Contains(clusters, member.Cluster) {
			clusters = append(clusters, member.Cluster)
		}
	}
	switch {
	case len(clusters) == 1:
		return s.settleFor(n, belonging{cluster: clusters[0]})
	case len(clusters) > 1:
		s.cfg.Logger.Error("two clusters of this name were founded, and this node joins neither: stop the nodes of one of "+
			"them and remove their data directories", "clusters", clusters)
		return nil
	case !s.cfg.Cluster.Bootstrap:
		return nil
	case len(s.cfg.Cluster.Join) > 0 && s.cfg.Clock.Now().Sub(begun) < foundingProbes*s.cfg.Cluster.probe():
		return nil
	}
	return s.found(ctx, n)
}

// found founds a cluster unless another node has, or is about to. Each says that it is about to, then exchanges all that
// is known with every other node, and only then looks who else is. So of two nodes that reach each other at least one
// sees the other's intention; the one whose name comes first stays with its own and waits until the other has given way,
// or is there with a cluster. Whoever sees from the start that another one goes first does not begin.
func (s *Server) found(ctx context.Context, n *node) error {
	intend := func(founding bool) error {
		return n.members.Update(func(info *membership.Info) { info.Founding = founding })
	}
	if s.yields(n) {
		return intend(false)
	}
	if err := intend(true); err != nil {
		return err
	}
	if err := n.members.Sync(ctx); err != nil {
		s.cfg.Logger.Debug("nobody answers at an address to join", "error", err) // that is what founding is for
	}
	if s.yields(n) {
		return intend(false)
	}
	for _, member := range n.members.Members() {
		if member.Founding && member.Name != s.cfg.Node {
			return nil
		}
	}
	select {
	case <-ctx.Done(): // nobody was asked
		return nil
	default:
	}
	s.cfg.Logger.Info("founding a cluster", "cluster", s.cfg.Cluster.name())
	return s.settleFor(n, belonging{cluster: s.cfg.IDs.New(), founder: true})
}

// yields says that another node has a cluster, or may found one and comes first by name.
func (s *Server) yields(n *node) bool {
	return slices.ContainsFunc(n.members.Members(), func(member membership.Member) bool {
		return member.Name != s.cfg.Node &&
			(!member.Cluster.IsZero() || (member.Bootstrap && member.Name < s.cfg.Node))
	})
}

// settleFor decides for a cluster.
func (s *Server) settleFor(n *node, b belonging) error {
	if err := b.write(filepath.Join(s.cfg.Dir, raftFolder)); err != nil {
		return err
	}
	n.belongs = b
	return n.members.Update(func(info *membership.Info) { info.Cluster, info.Founding = b.cluster, false })
}

// clusterID is the id that the cluster is created with. A node that is alone decides for one here, as others do when they
// found a cluster: whoever is asked whose the services are must hear the same id after a crash.
func (s *Server) clusterID() (ids.ID, error) {
	n, err := s.gate.enter()
	if err != nil {
		return s.cfg.IDs.New(), nil // nothing is created any more
	}
	defer s.gate.leave()
	if n.members != nil {
		if id := n.members.Self().Cluster; !id.IsZero() {
			return id, nil
		}
	}
	dir := filepath.Join(s.cfg.Dir, raftFolder)
	b, err := readBelonging(dir)
	if err == nil && b.cluster.IsZero() {
		b = belonging{cluster: s.cfg.IDs.New(), founder: true}
		err = b.write(dir)
	}
	return b.cluster, err
}

// admitted says whether the leader has added this node, at the address where it is now, as far as this node knows.
func (s *Server) admitted(n *node) bool {
	for _, server := range n.GetConfiguration().Configuration().Servers {
		if server.ID == raft.ServerID(s.cfg.Node) {
			return server.Address == n.transport.LocalAddr()
		}
	}
	return false
}

// awaitAdmission waits until this node is one of Raft's servers: a second node of the same name never is, and must not
// register in the first one's place. False when ctx ended. It fails when the cluster's version is beyond this binary.
func (s *Server) awaitAdmission(ctx context.Context, n *node) (admitted bool, err error) {
	for n.members != nil && !s.admitted(n) {
		active := uint32(0)
		s.askControlPlane(ctx, n, func(answer answered) bool {
			ours := answer.Gossips != nil && answer.Gossips.Cluster == n.members.Self().Cluster
			if ours {
				active = answer.Active
			}
			return ours
		})
		if active > s.cfg.newest {
			return false, fmt.Errorf("controlplane: version %d of the cluster is active, and this binary knows %d at most: "+
				"start one that is as new as the other nodes'", active, s.cfg.newest)
		}
		if !s.pause(ctx, s.cfg.Cluster.probe()/4) {
			return false, nil
		}
	}
	return true, nil
}

// askControlPlane asks one node of the control plane after the other for its status until one's answer is enough.
func (s *Server) askControlPlane(ctx context.Context, n *node, enough func(answered) bool) bool {
	for _, member := range n.members.Members() {
		if member.Name == s.cfg.Node || !isControlPlane(member.Roles) {
			continue
		}
		patience, cancel := context.WithTimeout(ctx, askPatience)
		answer, err := s.statusOf(patience, member.Address)
		cancel()
		if err == nil && answer.from.Has(identity.ControlPlane) && enough(answer) {
			return true
		}
	}
	return false
}

// leave has this node removed from the cluster while it is still there. When nobody removes it in time it stops all the
// same, and is removed when it has been gone for long.
func (s *Server) leave(n *node) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), leavePatience)
	defer cancel()
	if n.State() == raft.Leader && n.alone() {
		s.cfg.Logger.Warn("this node has the only vote and stays part of the cluster: without it there is none")
		return
	}
	n.handOver()
	if err := n.members.Update(func(info *membership.Info) { info.Leaving = true }); err != nil {
		s.cfg.Logger.Warn("this node cannot say that it leaves", "error", err)
		return
	}
	for !s.removed(ctx, n) {
		if !s.pause(ctx, s.cfg.Cluster.probe()/4) {
			s.cfg.Logger.Warn("this node was not removed in time; it will be when it has been gone for long")
			return
		}
	}
	s.cfg.Logger.Info("this node has left the cluster")
}

// removed says whether the leader has removed this node. The log may not tell: Raft sends the entry to who is removed
// once, without looking whether it arrives. So the leader is asked, too.
func (s *Server) removed(ctx context.Context, n *node) bool {
	return !s.admitted(n) || s.askControlPlane(ctx, n, func(answer answered) bool {
		return answer.Silence == 0 && len(answer.Servers) > 0 && !slices.Contains(answer.Servers, s.cfg.Node)
	})
}

// isControlPlane says whether roles make a node a voter.
func isControlPlane(roles []string) bool { return slices.Contains(roles, identity.ControlPlane) }

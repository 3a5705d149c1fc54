// Package membership owns which nodes are present. These are the nodes of the cluster that gossip
// with this one, and what each says of itself. It wraps memberlist, encrypted and labelled with the
// cluster's name. It only discovers nodes. Who is a server of Raft, who fetches what and who founds
// a cluster is decided elsewhere. A member counts as present until it leaves or misses some probes,
// so a list of members is always slightly stale.
package membership

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"shoal.dev/shoal/pkg/clock"
)

// Bounds.
const (
	KeyBytes     = 32 // of the gossip key
	maxAddresses = 64 // tried in one round of joining
	joinAtOnce   = 8
	maxGone      = 1000 // remembered names of nodes that are gone
	// between two log lines about the same name, or about a lack of answers
	complaints = 10 * time.Second
)

// Config configures a member.
type Config struct {
	Name    string // unique in the cluster
	Cluster string // the cluster's name, at most 255 bytes; members of other clusters are ignored
	Key     []byte // KeyBytes long; the same for every member
	Listen  string // IP:PORT, TCP and UDP; port 0 takes a free one
	// Advertise is the HOST or HOST:PORT at which the others reach this node; Listen's port is the
	// default. "" means Listen's address, or a private address of this machine if Listen has all. A
	// name is resolved once, at the start.
	Advertise string
	// Join are HOST:PORT of any members. They are tried until another member is known. Later,
	// addresses without a known member are retried from time to time. Names are resolved each time.
	Join []string
	// Allowed are the networks that members' addresses must be in; none: any. The key keeps
	// strangers out.
	Allowed []netip.Prefix
	// Probe is the interval at which members are probed. A member that is gone is noticed within
	// some 5 probes. Gossip and joining scale with it.
	Probe  time.Duration
	Info   Info // what this node gossips about itself at first
	Clock  clock.Clock
	Logger *slog.Logger
}

// DefaultProbe suits a data centre.
const DefaultProbe = time.Second

// Member is a node that is present.
type Member struct {
	Name   string
	Gossip netip.AddrPort
	Info
}

// Membership is this node as a member.
type Membership struct {
	config Config
	list   *memberlist.Memberlist

	stop   context.CancelFunc // ends keepJoined
	joiner sync.WaitGroup
	ending sync.Mutex
	ended  bool

	mu     sync.Mutex
	self   Info
	gossip netip.AddrPort // this node's address
	// others follows memberlist's events, since memberlist's own lists change under the reader.
	others  map[string]other
	gone    map[string]time.Time // since when nodes that were there are not; at most maxGone
	changed chan struct{}
	grudges map[string]time.Time // name → time of the last complaint
}

// other is another present node. It is known if this version understands its Info.
type other struct {
	Member
	known bool
}

// Open starts to gossip and to look for the others. Close must be called.
func Open(config Config) (*Membership, error) {
	m := &Membership{config: config, self: config.Info, others: map[string]other{},
		gone: map[string]time.Time{}, changed: make(chan struct{}),
		grudges: map[string]time.Time{}}
	if _, err := encodeInfo(config.Info); err != nil {
		return nil, err
	}
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	settings.Delegate, settings.Events, settings.Conflict = says{m}, events{m}, conflicts{m}
	if m.list, err = memberlist.Create(settings); err != nil {
		return nil, fmt.Errorf("membership: listen on %s: %w", config.Listen, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.joiner.Go(func() { m.keepJoined(ctx) })
	return m, nil
}

// settings returns the configuration of memberlist.
func (c *Config) settings() (*memberlist.Config, error) {
	if len(c.Key) != KeyBytes {
		return nil, fmt.Errorf("membership: the gossip key has %d bytes, want %d", len(c.Key),
			KeyBytes)
	}
	if c.Name == "" || c.Cluster == "" || len(c.Cluster) > memberlist.LabelMaxSize || c.Probe <= 0 {
		return nil, errors.New("membership: a name, a cluster of at most 255 bytes and a pace " +
			"of probes are needed")
	}
	listen, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("membership: gossip is listened for on IP:PORT: %w", err)
	}
	s := memberlist.DefaultLANConfig()
	s.Name, s.Label, s.SecretKey = c.Name, c.Cluster, slices.Clone(c.Key)
	s.BindAddr, s.BindPort = listen.Addr().String(), int(listen.Port())
	s.AdvertisePort = s.BindPort
	if c.Advertise != "" {
		if s.AdvertiseAddr, s.AdvertisePort, err = resolveOne(c.Advertise, s.BindPort); err != nil {
			return nil, err
		}
	}
	for _, prefix := range c.Allowed {
		s.CIDRsAllowed = append(s.CIDRsAllowed, net.IPNet{IP: prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())})
	}
	s.ProbeInterval, s.ProbeTimeout, s.GossipInterval = c.Probe, c.Probe/2, c.Probe/5
	s.GossipToTheDeadTime, s.TCPTimeout = 30*c.Probe, 5*c.Probe
	// Only such an exchange tells a node that left and came back that others still think it gone.
	// Its correction then spreads through the node that it joined.
	s.PushPullInterval = healEvery * c.Probe
	// A machine that comes back at another address takes its name over once the old address is
	// known to be gone.
	s.DeadNodeReclaimTime = c.Probe
	s.Logger = log.New(lines{c.Logger}, "", 0)
	return s, nil
}

// resolveOne resolves HOST or HOST:PORT.
func resolveOne(advertise string, port int) (string, int, error) {
	host := advertise
	if h, p, err := net.SplitHostPort(advertise); err == nil {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return "", 0, fmt.Errorf("membership: the port of %q is not one", advertise)
		}
		host = h
	}
	found, err := net.LookupHost(strings.Trim(host, "[]"))
	if err != nil {
		return "", 0, fmt.Errorf("membership: resolve the advertised address: %w", err)
	}
	return found[0], port, nil
}

// Self returns this node as the others see it.
func (m *Membership) Self() Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Member{Name: m.config.Name, Gossip: m.gossip, Info: m.self}
}

// Members returns the present nodes, this one included, sorted by name. They belong to this node's
// cluster or to none yet. While this node belongs to no cluster, it returns all nodes.
func (m *Membership) Members() []Member {
	own := m.Self()
	members := []Member{own}
	m.mu.Lock()
	for _, other := range m.others {
		if other.known && !foreign(own.Info, other.Info) {
			members = append(members, other.Member)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return members
}

// Address returns the address for Raft and calls that a member of this node's cluster gossips.
func (m *Membership) Address(name string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.config.Name {
		return m.self.Address, true
	}
	other, there := m.others[name]
	return other.Info.Address, there && other.known && !foreign(m.self, other.Info) &&
		other.Info.Address != ""
}

// GoneSince returns since when a node that was there has been gone, as far as this node has seen.
func (m *Membership) GoneSince(name string) (since time.Time, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, gone = m.gone[name]
	return since, gone
}

// addresses returns the gossip addresses of all others.
func (m *Membership) addresses() []netip.AddrPort {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []netip.AddrPort
	for _, other := range m.others {
		list = append(list, other.Gossip)
	}
	return list
}

// foreign says whether another node belongs to another cluster.
func foreign(own, other Info) bool {
	return !own.Cluster.IsZero() && !other.Cluster.IsZero() && own.Cluster != other.Cluster
}

// Changed returns a channel that the next change of members closes. Get it before Members.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *Membership) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Update changes what this node gossips about itself. Gossip spreads the change; Sync sends it at
// once.
func (m *Membership) Update(change func(*Info)) error {
	m.mu.Lock()
	next := m.self
	change(&next)
	if _, err := encodeInfo(next); err != nil {
		m.mu.Unlock()
		return err
	}
	m.self = next
	m.mu.Unlock()
	_ = m.list.UpdateNode(time.Millisecond) // its error: nobody has received the change yet
	m.notify()
	return nil
}

// Leave tells the others that this node stops, so that they need not detect it. They decide what
// follows.
func (m *Membership) Leave(ctx context.Context) error {
	patience := m.config.Probe
	if end, bounded := ctx.Deadline(); bounded {
		patience = min(patience, max(end.Sub(m.config.Clock.Now()), time.Millisecond))
	}
	m.ending.Lock()
	defer m.ending.Unlock()
	if m.ended {
		return nil
	}
	if err := m.list.Leave(patience); err != nil {
		return fmt.Errorf("membership: leave: %w", err)
	}
	return nil
}

// Close stops gossiping. Without a Leave before it, the others see a failure.
func (m *Membership) Close() error {
	m.stop()
	m.joiner.Wait()
	m.ending.Lock()
	defer m.ending.Unlock()
	m.ended = true
	return m.list.Shutdown()
}

func addressOf(node *memberlist.Node) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(node.Addr) // memberlist has parsed it
	return netip.AddrPortFrom(ip.Unmap(), node.Port)
}

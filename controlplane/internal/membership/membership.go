// Package membership owns who is there. These are the nodes of the cluster that gossip with this
// one, found through any of them, and what each says of itself. It wraps memberlist, encrypted and
// labelled with the cluster's name. It only discovers: whom Raft counts, who fetches what and who
// founds a cluster is decided elsewhere. A member is believed to be there until it leaves or does
// not answer for some probes. So a list of members is always a little old.
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
	// between two log lines about the same name, or about nobody's answer
	complaints = 10 * time.Second
)

// Config makes a member.
type Config struct {
	Name    string // unique in the cluster
	Cluster string // the cluster's name, at most 255 bytes: members of others are not heard
	Key     []byte // KeyBytes long; every member has the same
	Listen  string // IP:PORT, TCP and UDP; port 0 takes a free one
	// Advertise is HOST or HOST:PORT under which the others reach this node; without a port it is
	// Listen's. "" is Listen's address, and of one on all addresses a private one of this machine.
	// A name is resolved once, at the start.
	Advertise string
	// Join are HOST:PORT of any members. They are tried until one other member is known, and from
	// time to time afterwards when nobody is known at one of them. Names are resolved anew each
	// time.
	Join []string
	// Allowed are the networks that members may have addresses in; none: any. The key is what keeps
	// strangers out.
	Allowed []netip.Prefix
	// Probe is how often a member is probed for signs of life; one that is gone is noticed within
	// some 5 of them. The pace of gossip and of joining follows it.
	Probe  time.Duration
	Info   Info // what this node says of itself at first
	Clock  clock.Clock
	Logger *slog.Logger
}

// DefaultProbe suits a data centre.
const DefaultProbe = time.Second

// Member is a node that is there.
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
	gossip netip.AddrPort // where this node is
	// others is kept by memberlist's events: what its own lists point to changes under the reader.
	others  map[string]other
	changed chan struct{}
	grudges map[string]time.Time // name → when it was complained about last
}

// other is another node that is there. Known says that it says what this version understands.
type other struct {
	Member
	known bool
}

// Open begins to gossip and to look for the others. Close must be called.
func Open(config Config) (*Membership, error) {
	m := &Membership{config: config, self: config.Info, others: map[string]other{},
		changed: make(chan struct{}),
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

// settings are memberlist's.
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
	// A node that left and is back hears only by such an exchange that somebody still has it for
	// gone. What others tell of that reaches whom it joined.
	s.PushPullInterval = healEvery * c.Probe
	// A machine that comes back with another address takes its name over once it is known to be
	// gone.
	s.DeadNodeReclaimTime = c.Probe
	s.Logger = log.New(lines{c.Logger}, "", 0)
	return s, nil
}

// resolveOne reads HOST or HOST:PORT.
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

// Self is this node as the others see it.
func (m *Membership) Self() Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Member{Name: m.config.Name, Gossip: m.gossip, Info: m.self}
}

// Members lists those that are there by name, this node among them: all that belong to this node's
// cluster, or to no cluster yet. While this node belongs to none it lists everybody.
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

// Address is where a member of this node's cluster says that Raft and calls reach it.
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

// addresses are where the others gossip, whatever they say.
func (m *Membership) addresses() []netip.AddrPort {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []netip.AddrPort
	for _, other := range m.others {
		list = append(list, other.Gossip)
	}
	return list
}

// foreign says that another node belongs to another cluster.
func foreign(own, other Info) bool {
	return !own.Cluster.IsZero() && !other.Cluster.IsZero() && own.Cluster != other.Cluster
}

// Changed is closed at the next change of members or of what they say. Ask for it before Members.
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

// Update changes what this node says of itself. Gossip takes it to the others; Sync takes it at
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
	_ = m.list.UpdateNode(time.Millisecond) // its error: nobody has taken the news yet
	m.notify()
	return nil
}

// Leave tells the others that this node stops, so that they need not find out. What that means is
// theirs to decide.
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

// Close ends gossiping. Without Leave before it the others take it for a failure.
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

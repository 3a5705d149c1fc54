package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// Resolver turns a host name into addresses; network is "ip". *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// systemResolver asks for absolute names, so that the machine's search list cannot turn a public
// name into a private one (and costs no futile queries).
type systemResolver struct{}

func (systemResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, network, strings.TrimSuffix(host, ".")+".")
}

// Bounds of the name cache.
const (
	maxNames       = 16_384
	nameTTL        = time.Minute
	failedNameTTL  = 5 * time.Second
	maxLookups     = 64
	lookupTimeout  = 10 * time.Second
	maxAddrsOfName = 8
	roomLooks      = 8
)

// names caches the resolver's answers. Look-ups of the same name share one query.
type names struct {
	resolver Resolver
	clock    clock.Clock
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	places   places

	mu    sync.Mutex
	known map[string]*name
}

// name is one look-up. Except asked, its fields may be read once done is closed.
type name struct {
	asked   bool // guarded by the lock of names
	done    chan struct{}
	addrs   []netip.Addr
	err     error
	expires time.Time
}

func newNames(resolver Resolver, clock clock.Clock) *names {
	ctx, cancel := context.WithCancel(context.Background())
	return &names{
		resolver: resolver, clock: clock, ctx: ctx, cancel: cancel,
		places: places{free: maxLookups, of: map[string]int{}}, known: make(map[string]*name),
	}
}

func (n *names) close() {
	n.mu.Lock()
	n.cancel()
	n.mu.Unlock()
	n.running.Wait()
}

// lookup answers from the cache or asks, for a caller or "". The question goes on when this caller
// gives up: others may wait for it.
func (n *names) lookup(ctx context.Context, caller, host string) ([]netip.Addr, error) {
	entry, asked := n.entry(host)
	if !asked {
		at := n.places.enter(caller)
		select {
		case <-at.given:
		case <-entry.done: // another caller had a place before
		case <-ctx.Done():
		}
		if !n.begin(host, entry, at) {
			n.places.leave(at)
		}
	}
	select {
	case <-entry.done:
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
	if entry.err != nil {
		return nil, fault.Wrap(fault.PageDNS, entry.err, "The host name %s does not resolve.", host)
	}
	return entry.addrs, nil
}

// entry is what is known of a host, and whether somebody has been asked.
func (n *names) entry(host string) (entry *name, asked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if entry := n.known[host]; entry != nil && n.fresh(entry) {
		return entry, entry.asked
	}
	entry = &name{done: make(chan struct{})}
	n.makeRoom()
	n.known[strings.Clone(host)] = entry
	return entry, false
}

// begin asks for a name that nobody has asked for yet; false: it does not need the place, or has
// none.
func (n *names) begin(host string, entry *name, at *place) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if entry.asked || !at.isGiven() {
		return false
	}
	entry.asked = true
	if entry.err = n.ctx.Err(); entry.err != nil {
		close(entry.done)
		return false
	}
	host = strings.Clone(host)
	n.running.Go(func() {
		defer n.places.leave(at)
		n.ask(host, entry)
	})
	return true
}

// fresh says whether an entry is still being asked or not yet too old.
func (n *names) fresh(entry *name) bool {
	select {
	case <-entry.done:
		return n.clock.Now().Before(entry.expires)
	default:
		return true
	}
}

// makeRoom drops what is stale among a few entries when the cache is full, and else one of them.
// Whoever asks for ever new names must not make each look-up go through all.
func (n *names) makeRoom() {
	looked := 0
	for host, entry := range n.known {
		if len(n.known) < maxNames {
			return
		}
		if looked++; looked == roomLooks || !n.fresh(entry) {
			delete(n.known, host)
		}
	}
}

func (n *names) ask(host string, entry *name) {
	defer close(entry.done)
	ctx, cancel := context.WithTimeout(n.ctx, lookupTimeout)
	defer cancel()
	entry.addrs, entry.err = n.resolver.LookupNetIP(ctx, "ip", host)
	if entry.err == nil && len(entry.addrs) == 0 {
		entry.err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	entry.addrs = entry.addrs[:min(len(entry.addrs), maxAddrsOfName)]
	ttl := nameTTL
	if entry.err != nil {
		ttl = failedNameTTL
	}
	entry.expires = n.clock.Now().Add(ttl)
}

// origins are the hosts that are dialled at a fixed place.
type origins struct {
	exact    map[string]netip.AddrPort
	suffixes map[string]netip.AddrPort // with the leading dot
}

func parseOrigins(config map[string]string) (origins, error) {
	o := origins{exact: make(map[string]netip.AddrPort), suffixes: make(map[string]netip.AddrPort)}
	for pattern, place := range config {
		to, err := netip.ParseAddrPort(place)
		if err != nil {
			return o, fmt.Errorf("origin of %s: %w", pattern, err)
		}
		if suffix, wild := strings.CutPrefix(pattern, "*"); wild && strings.HasPrefix(suffix, ".") {
			o.suffixes[strings.ToLower(suffix)] = to
		} else {
			o.exact[strings.ToLower(pattern)] = to
		}
	}
	return o, nil
}

// find is the place of a canonical host: an exact pattern before a suffix, a longer suffix before a
// shorter one.
func (o origins) find(host string) (netip.AddrPort, bool) {
	if to, ok := o.exact[host]; ok {
		return to, true
	}
	for rest := host; len(o.suffixes) > 0; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			break
		}
		if to, ok := o.suffixes[rest[dot:]]; ok {
			return to, true
		}
		rest = rest[dot+1:]
	}
	return netip.AddrPort{}, false
}

// reachable lists a canonical host's addresses that pass the guard; at least one, or an error. The
// port is 0 unless the origin map sets it. Nobody is asked for localhost: it is this machine.
func (c *Client) reachable(ctx context.Context, caller, host string) ([]netip.AddrPort, error) {
	if to, ok := c.origins.find(host); ok {
		return []netip.AddrPort{to}, c.guard.check(to.Addr())
	}
	var err error
	addrs := []netip.Addr{{}}
	addr, literal := literalAddr(host)
	if literal {
		addrs[0] = addr
	} else if addrs, err = c.names.lookup(ctx, caller, host); err != nil {
		return nil, err
	}
	var allowed []netip.AddrPort
	var forbidden error
	for _, addr := range addrs {
		if err := c.guard.check(addr); err != nil {
			forbidden = err
			continue
		}
		allowed = append(allowed, netip.AddrPortFrom(addr.Unmap(), 0))
	}
	if len(allowed) == 0 {
		return nil, forbidden
	}
	return allowed, nil
}

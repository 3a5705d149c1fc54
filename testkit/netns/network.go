//go:build linux

package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
)

// maxNodes bounds a network: each node has its own subnet.
const maxNodes = 250

// Network is a router and the nodes behind it. Its methods are safe for concurrent use.
type Network struct {
	router *Namespace

	mu    sync.Mutex
	nodes []*Namespace
	cuts  map[link]int // how often a link is cut: cuts by several callers may overlap
}

// link is a direction between two nodes.
type link struct{ from, to netip.Addr }

// New makes a network with only a router.
func New() (*Network, error) {
	router, err := newNamespace(address(0, 1))
	if err != nil {
		return nil, err
	}
	err = router.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
			return fmt.Errorf("netns: forwarding: %w", err)
		}
		return ip("address", "add", router.addr.String()+"/32", "dev", "lo")
	})
	if err != nil {
		return nil, errors.Join(err, router.close())
	}
	return &Network{router: router, cuts: map[link]int{}}, nil
}

func address(subnet, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(subnet), byte(host)})
}

// Prefix covers all addresses of a network.
func Prefix() netip.Prefix { return netip.PrefixFrom(address(0, 0), 16) }

// Router is where the test itself listens and dials. Every node reaches it, even when links between
// nodes are cut.
func (n *Network) Router() *Namespace { return n.router }

// Join makes a node. Nodes exist until Close.
func (n *Network) Join() (*Namespace, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	subnet := len(n.nodes) + 1
	if subnet > maxNodes {
		return nil, fmt.Errorf("netns: a network has at most %d nodes", maxNodes)
	}
	node, err := newNamespace(address(subnet, 2))
	if err != nil {
		return nil, err
	}
	port, gateway := fmt.Sprintf("node%d", subnet), address(subnet, 1)
	err = n.router.Do(func() error {
		return errors.Join(
			ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", node.path),
			ip("address", "add", gateway.String()+"/30", "dev", port),
			ip("link", "set", port, "up"))
	})
	if err == nil {
		err = node.Do(func() error {
			return errors.Join(
				ip("address", "add", node.addr.String()+"/30", "dev", "eth0"),
				ip("link", "set", "eth0", "up"),
				ip("route", "add", "default", "via", gateway.String()))
		})
	}
	if err != nil {
		return nil, errors.Join(err, node.close())
	}
	n.nodes = append(n.nodes, node)
	return node, nil
}

// Cut drops what one node sends to another, until Heal has been called as often as Cut.
func (n *Network) Cut(from, to *Namespace) error { return n.change(from, to, 1) }

// Heal undoes a Cut.
func (n *Network) Heal(from, to *Namespace) error { return n.change(from, to, -1) }

func (n *Network) change(from, to *Namespace, by int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := link{from.addr, to.addr}
	before := n.cuts[l]
	n.cuts[l] = max(before+by, 0)
	verb := "add"
	switch {
	case before == 0 && by > 0:
	case before == 1 && by < 0:
		verb = "delete"
	default:
		return nil
	}
	return n.router.Do(func() error {
		return ip("rule", verb, "from", l.from.String(), "to", l.to.String(), "blackhole")
	})
}

// Close ends the network and every process in it.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, node := range slices.Backward(n.nodes) {
		errs = append(errs, node.close())
	}
	n.nodes = nil
	return errors.Join(append(errs, n.router.close())...)
}

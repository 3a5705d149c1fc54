package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// healEvery is how many probes lie between two attempts to reach addresses of Join without a known
// member.
const healEvery = 10

// keepJoined looks for the others until ctx ends: often while none is known, seldom afterwards. It
// rejoins nodes that a long partition, or an early start, kept apart.
func (m *Membership) keepJoined(ctx context.Context) {
	var warned time.Time
	for {
		wait := m.config.Probe
		_, err := m.Contact(ctx)
		alone, now := len(m.addresses()) == 0, m.config.Clock.Now()
		switch {
		case err == nil || ctx.Err() != nil:
		case alone && (warned.IsZero() || now.Sub(warned) >= complaints):
			warned = now
			m.config.Logger.Warn("gossip: nobody answers at the addresses to join; are they gossip "+
				"addresses of members, and "+
				"is this node's identity of the same authority?", "join", m.config.Join, "error",
				strings.Join(strings.Fields(err.Error()), " "))
		default:
			m.config.Logger.Debug("gossip: no answer at an address to join", "error", err)
		}
		if !alone {
			wait *= healEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-m.config.Clock.After(wait):
		}
	}
}

// Contact syncs with each address of Join that has no known member, and returns how many nodes
// answered. Its error names the addresses that did not.
func (m *Membership) Contact(ctx context.Context) (answered int, err error) {
	known := map[netip.AddrPort]bool{m.Self().Gossip: true}
	for _, address := range m.addresses() {
		known[address] = true
	}
	addresses, err := resolve(ctx, m.config.Join)
	var unknown []netip.AddrPort
	for _, address := range addresses {
		if !known[address] {
			unknown = append(unknown, address)
		}
	}
	n, failed := m.exchange(ctx, unknown)
	return n, errors.Join(err, failed)
}

// Sync exchanges all state directly with the other members and the addresses of Join. When it
// returns, each node that answered has what this node gossiped before the call. This node has what
// each had gossiped before it answered.
func (m *Membership) Sync(ctx context.Context) error {
	self := m.Self().Gossip
	targets, err := resolve(ctx, m.config.Join)
	targets = append(targets, m.addresses()...)
	seen := map[netip.AddrPort]bool{self: true}
	var each []netip.AddrPort
	for _, target := range targets {
		if !seen[target] {
			seen[target] = true
			each = append(each, target)
		}
	}
	_, failed := m.exchange(ctx, each)
	return errors.Join(err, failed)
}

// exchange runs memberlist's push and pull with each address.
func (m *Membership) exchange(ctx context.Context, addresses []netip.AddrPort) (answered int,
	err error) {
	var (
		work   sync.WaitGroup
		mu     sync.Mutex
		errs   []error
		next   atomic.Int64
		heard  atomic.Int64
		number = min(len(addresses), joinAtOnce)
	)
	for range number {
		work.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(addresses) &&
				ctx.Err() == nil; i = next.Add(1) - 1 {
				if _, err := m.list.Join([]string{addresses[i].String()}); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					continue
				}
				heard.Add(1)
			}
		})
	}
	work.Wait()
	return int(heard.Load()), errors.Join(append(errs, ctx.Err())...)
}

// resolve resolves HOST:PORT pairs, to at most maxAddresses addresses.
func resolve(ctx context.Context, pairs []string) (addresses []netip.AddrPort, err error) {
	var errs []error
	for _, pair := range pairs {
		host, portText, err := net.SplitHostPort(pair)
		if err != nil {
			errs = append(errs, fmt.Errorf("membership: an address to join is HOST:PORT: %w", err))
			continue
		}
		port, err := strconv.ParseUint(portText, 10, 16)
		if err != nil || port == 0 {
			errs = append(errs, fmt.Errorf("membership: the port of %q is not one", pair))
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			errs = append(errs, fmt.Errorf("membership: resolve %s: %w", host, err))
			continue
		}
		for _, ip := range found {
			if len(addresses) < maxAddresses {
				addresses = append(addresses, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
			}
		}
	}
	return addresses, errors.Join(errs...)
}

package service

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens the ports for customers and for operators, and checks that the control plane's can
// be opened.
func (n *node) listen() (err error) {
	if cluster := &n.config.Cluster; !cluster.alone() {
		if err := cluster.probePorts(); err != nil {
			return err
		}
	}
	if n.config.AdminListen != "" && !n.has("apiserver") {
		return errors.New("--admin-listen: this process has no API server")
	}
	if n.has("apiserver") {
		if n.listener, err = listenAPI(n.config.Listen); err != nil {
			return err
		}
		if n.config.AdminListen != "" {
			if n.admin, err = net.Listen("tcp", n.config.AdminListen); err != nil {
				n.closeListeners()
				return fmt.Errorf("--admin-listen: %w", err)
			}
		}
	}
	if n.config.OpsListen != "" {
		if n.ops, err = net.Listen("tcp", n.config.OpsListen); err != nil {
			n.closeListeners()
			return fmt.Errorf("--ops-listen: %w", err)
		}
	}
	return nil
}

// probePorts checks that the ports that the control plane opens later are free: here it is known
// which flag names them.
func (c *ClusterConfig) probePorts() error {
	for _, port := range []struct{ flag, address string }{{"--cluster-listen", c.Listen},
		{"--gossip-listen", c.GossipListen}} {
		listener, err := net.Listen("tcp", port.address)
		if err != nil {
			return fmt.Errorf("%s: %w", port.flag, err)
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("%s: %w", port.flag, err)
		}
	}
	packets, err := net.ListenPacket("udp", c.GossipListen)
	if err != nil {
		return fmt.Errorf("--gossip-listen: %w", err)
	}
	return packets.Close()
}

// closeListeners closes listeners that nothing serves; a server has closed its own.
func (n *node) closeListeners() {
	for _, listener := range []net.Listener{n.listener, n.admin, n.ops} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

func listenAPI(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--listen: %w (--listen or SHOAL_LISTEN names another; port 0 "+
			"takes a free one)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

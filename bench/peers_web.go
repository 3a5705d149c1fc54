package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"shoal.dev/shoal/testkit/synthweb"
)

// loopbackSuffix makes hosts loopback addresses, 127.1.0.1 to 127.64.0.1: jobs have no origin map.
// So every program reaches them directly, without names and proxies.
const loopbackSuffix = "0.1"

// loopbackConfig is webConfig with such hosts.
func loopbackConfig(addresses int) synthweb.Config {
	config := webConfig(addresses)
	config.Suffix = loopbackSuffix
	for host := range hosts {
		config.Names = append(config.Names, "127."+strconv.Itoa(host+1))
	}
	return config
}

// loopbackAddresses returns the first n addresses of such a web that listens at that port.
func loopbackAddresses(web *synthweb.Web, n int, port string) []string {
	list := make([]string, 0, n)
	for address := range web.URLs(n) {
		host, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
		list = append(list, "http://"+net.JoinHostPort(host, port)+"/"+path)
	}
	return list
}

// serveLoopbackWeb is the process of the jobs' web. At 127.0.0.1 it answers requests to the web
// itself.
func serveLoopbackWeb(ctx context.Context, addresses string) error {
	n, err := strconv.Atoi(addresses)
	if err != nil {
		return fmt.Errorf("%s: %w", loopbackWebMode, err)
	}
	web, err := synthweb.New(loopbackConfig(n))
	if err != nil {
		return err
	}
	listener, err := listenOnLoopback(ctx, web.Hosts())
	if err != nil {
		return fmt.Errorf("%s: %w", loopbackWebMode, err)
	}
	fmt.Println(listener.Addr())
	return web.Serve(ctx, listener)
}

// loopbackListener accepts on one port of many addresses.
type loopbackListener struct {
	net.Listener // at 127.0.0.1
	others       []net.Listener
	connections  chan net.Conn
	closed       chan struct{}
	once         sync.Once
	accepting    sync.WaitGroup
}

func listenOnLoopback(ctx context.Context, hosts []string) (net.Listener, error) {
	var listen net.ListenConfig
	first, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &loopbackListener{Listener: first, connections: make(chan net.Conn),
		closed: make(chan struct{})}
	l.accepting.Go(func() { l.acceptAt(first) })
	_, port, _ := net.SplitHostPort(first.Addr().String()) // a listener's address is valid
	for _, host := range hosts {
		listener, err := listen.Listen(ctx, "tcp4", net.JoinHostPort(host, port))
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.others = append(l.others, listener)
		l.accepting.Go(func() { l.acceptAt(listener) })
	}
	return l, nil
}

func (l *loopbackListener) acceptAt(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return // it is closed; other errors show at the client
		}
		select {
		case l.connections <- connection:
		case <-l.closed:
			_ = connection.Close() // nobody will serve it
			return
		}
	}
}

func (l *loopbackListener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.connections:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *loopbackListener) Close() error {
	var err error
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
		for _, other := range l.others {
			err = errors.Join(err, other.Close())
		}
		l.accepting.Wait()
	})
	return err
}

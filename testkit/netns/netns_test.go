//go:build linux

package netns

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// newNetwork needs root and ip (iproute2). Where the cluster suites must run, both are required.
func newNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Getenv("SHOAL_CLUSTER_SUITE") == "" {
		if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
			t.Skip("network namespaces need root and ip")
		}
	}
	network, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return network
}

func join(t *testing.T, network *Network) *Namespace {
	t.Helper()
	node, err := network.Join()
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// echo answers every line with the same line.
func echo(t *testing.T, listener net.Listener) netip.AddrPort {
	t.Helper()
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

// line is a connection with one answer per line.
type line struct {
	net.Conn
	answers *bufio.Scanner
}

func dial(t *testing.T, from *Namespace, to netip.AddrPort) line {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return line{conn, bufio.NewScanner(conn)}
}

func (l line) say(t *testing.T, text string) {
	t.Helper()
	if _, err := fmt.Fprintln(l, text); err != nil {
		t.Fatal(err)
	}
}

// hears waits for the next answer.
func (l line) hears(t *testing.T, text string) {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(20 * time.Second))
	if !l.answers.Scan() || l.answers.Text() != text {
		t.Fatalf("heard %q, %v; want %q", l.answers.Text(), l.answers.Err(), text)
	}
}

// silent checks that nothing arrives for a while.
func (l line) silent(t *testing.T) {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := l.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
		t.Fatalf("heard %d bytes, %v; want silence", n, err)
	}
}

// listen runs an echo on a node.
func listen(t *testing.T, node *Namespace) netip.AddrPort {
	t.Helper()
	listener, err := node.Listen(netip.AddrPortFrom(node.Addr(), 0))
	if err != nil {
		t.Fatal(err)
	}
	return echo(t, listener)
}

func TestALinkIsCutOneWayAndHealed(t *testing.T) {
	network := newNetwork(t)
	a, b := join(t, network), join(t, network)
	standing := dial(t, a, listen(t, b))
	standing.say(t, "one")
	standing.hears(t, "one")
	fromTest := dial(t, network.Router(), listen(t, b))

	udpB, err := listenUDP(b)
	if err != nil {
		t.Fatal(err)
	}
	defer udpB.Close()
	udpA, err := listenUDP(a)
	if err != nil {
		t.Fatal(err)
	}
	defer udpA.Close()
	const soon, surely = 300 * time.Millisecond, 20 * time.Second
	passes := func(from, to *net.UDPConn, within time.Duration) bool {
		t.Helper()
		if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		_ = to.SetReadDeadline(time.Now().Add(within))
		n, _, _ := to.ReadFrom(make([]byte, 8))
		return n == 1
	}

	if err := network.Cut(a, b); err != nil {
		t.Fatal(err)
	}
	standing.say(t, "two")
	standing.silent(t)
	if passes(udpA, udpB, soon) || !passes(udpB, udpA, surely) {
		t.Error("a cut is one way: a does not reach b, b reaches a")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if conn, err := a.DialContext(ctx, "tcp", standing.RemoteAddr().String()); err == nil {
		conn.Close()
		t.Error("a new connection goes over a link that is cut")
	}
	fromTest.say(t, "three")
	fromTest.hears(t, "three")

	if err := network.Heal(a, b); err != nil {
		t.Fatal(err)
	}
	standing.hears(t, "two") // TCP retransmits it
	if !passes(udpA, udpB, surely) {
		t.Error("a link is healed, and a does not reach b")
	}
}

func listenUDP(node *Namespace) (conn *net.UDPConn, err error) {
	err = node.Do(func() error {
		conn, err = net.ListenUDP("udp",
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(node.Addr(), 0)))
		return err
	})
	return conn, err
}

func TestAServiceIsForwardedAndCut(t *testing.T) {
	network := newNetwork(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := echo(t, listener)
	a, b := join(t, network), join(t, network)
	var forwards [2]*Forward
	for i, node := range []*Namespace{a, b} {
		if forwards[i], err = node.Forward(service); err != nil {
			t.Fatal(err)
		}
		defer forwards[i].Close()
	}
	fromA, fromB := dial(t, a, service), dial(t, b, service)
	for _, way := range []Direction{Requests, Answers} {
		for _, l := range []line{fromA, fromB} {
			l.say(t, "before")
			l.hears(t, "before")
		}
		forwards[0].Cut(way)
		fresh := dial(t, a, service)
		for _, l := range []line{fromA, fromB, fresh} {
			l.say(t, "during")
		}
		fromA.silent(t)
		fresh.silent(t)
		fromB.hears(t, "during")
		forwards[0].Heal(way)
		fromA.answers, fresh.answers = bufio.NewScanner(fromA), bufio.NewScanner(fresh)
		fromA.hears(t, "during")
		fresh.hears(t, "during")
	}
}

func TestThereIsNoWayOut(t *testing.T) {
	network := newNetwork(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, ns := range []*Namespace{network.Router(), join(t, network)} {
		if conn, err := ns.DialContext(ctx, "tcp", outside.Addr().String()); err == nil {
			conn.Close()
			t.Error("the machine's own loopback is reached")
		}
	}
}

func TestADiskOfItsOwnFillsUp(t *testing.T) {
	network := newNetwork(t)
	node, dir := join(t, network), t.TempDir()
	if err := node.MountTmpfs(dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	write := func(bytes int) error {
		return node.Do(func() error { return os.WriteFile(file, make([]byte, bytes), 0o600) })
	}
	if err := write(1 << 10); err != nil {
		t.Error(err)
	}
	if err := write(2 << 20); err == nil {
		t.Error("2 MB go into 1 MB")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the node's file is on the machine's disk")
	}
	if output, err := run(node, "cat", file); err != nil || len(output) == 0 {
		t.Errorf("a child of the node does not see its file: %v", err)
	}
}

func run(node *Namespace, args ...string) ([]byte, error) {
	cmd := exec.Command(args[0], args[1:]...)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := node.Start(cmd); err != nil {
		return nil, err
	}
	read, err := io.ReadAll(output)
	if waited := cmd.Wait(); err == nil {
		err = waited
	}
	return read, err
}

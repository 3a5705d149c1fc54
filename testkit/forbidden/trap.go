//go:build linux

package forbidden

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ports are the ports at which a trap listens, on every address.
var Ports = []int{80, 443, 22, 6379, 8080}

// Trap listens on every address of its own network. On the Public ones it serves; a connection to
// any other is a catch. It also sees every connection attempt and every datagram, to any port.
// Those that are neither Public nor expected are leaks.
type Trap struct {
	listeners []net.Listener
	server    *http.Server
	key       string
	packets   int
	running   sync.WaitGroup
	stop      chan struct{}

	mu       sync.Mutex
	served   int
	caught   []string
	leaked   map[string]int
	expected map[netip.AddrPort]bool
}

// NewTrap begins to listen. The handler serves the Public addresses; port 443 uses TLS with the
// trap's own certificate.
func NewTrap(handler http.Handler) (_ *Trap, err error) {
	t := &Trap{stop: make(chan struct{}), leaked: map[string]int{},
		expected: map[netip.AddrPort]bool{}}
	t.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		t.served++
		t.mu.Unlock()
		handler.ServeHTTP(w, r)
	}), ReadHeaderTimeout: time.Minute}
	certificate, err := t.makeCertificate()
	if err != nil {
		return nil, err
	}
	t.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	t.server.Protocols = &http.Protocols{}
	t.server.Protocols.SetHTTP1(true)
	if t.packets, err = watchPackets(); err != nil {
		return nil, err
	}
	t.running.Go(t.watch)
	for _, port := range Ports {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		public := &sorted{Listener: listener, trap: t}
		t.listeners = append(t.listeners, listener)
		serve := func() error { return t.server.Serve(public) }
		if port == securePort {
			serve = func() error { return t.server.ServeTLS(public, "", "") }
		}
		t.running.Go(func() { _ = serve() }) // until it is closed
	}
	return t, nil
}

// securePort is the port with TLS.
const securePort = 443

// makeCertificate makes a certificate for all names under .example.
func (t *Trap) makeCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("trap: make a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("trap: make a key: %w", err)
	}
	hash := sha256.Sum256(public)
	t.key = base64.StdEncoding.EncodeToString(hash[:])
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"*.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("trap: make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Key is the hash of the certificate's public key (SHA-256, base64), which can tell a browser to
// trust it.
func (t *Trap) Key() string { return t.key }

// Expect allows connections to the test's own servers. Port 0 stands for the system's ephemeral
// ports (32,768 and more).
func (t *Trap) Expect(places ...netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, place := range places {
		t.expected[place] = true
	}
}

// chosenPort is the first of the system's ephemeral ports; the last is chosenPort+28,231.
const chosenPort = 32_768

func (t *Trap) expects(place netip.AddrPort) bool {
	return t.expected[place] || place.Port() >= chosenPort && place.Port() <= chosenPort+28_231 &&
		t.expected[netip.AddrPortFrom(place.Addr(), 0)]
}

// Served counts the requests at Public addresses.
func (t *Trap) Served() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.served
}

// Caught returns the forbidden addresses that accepted a connection since the last call.
func (t *Trap) Caught() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	caught := t.caught
	t.caught = nil
	return caught
}

// Close ends the trap. Leaks is complete only after it.
func (t *Trap) Close() error {
	err := t.server.Close()
	for _, listener := range t.listeners {
		_ = listener.Close() // the server has already closed it
	}
	close(t.stop)
	t.running.Wait()
	if dropped, statErr := unix.GetsockoptTpacketStats(t.packets, unix.SOL_PACKET,
		unix.PACKET_STATISTICS); statErr != nil {
		err = errors.Join(err, statErr)
	} else if dropped.Drops > 0 {
		err = errors.Join(err, fmt.Errorf("trap: %d packets were not seen", dropped.Drops))
	}
	return errors.Join(err, unix.Close(t.packets))
}

// Leaks counts connection attempts and datagrams to forbidden destinations, by address and port.
func (t *Trap) Leaks() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leaked
}

// sorted is a listener that only passes on the Public connections.
type sorted struct {
	net.Listener
	trap *Trap
}

func (s *sorted) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at := conn.LocalAddr().(*net.TCPAddr).AddrPort()
		if slices.Contains(Public, at.Addr().Unmap()) {
			return conn, nil
		}
		s.trap.mu.Lock()
		s.trap.caught = append(s.trap.caught, at.String())
		s.trap.mu.Unlock()
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: " +
			"close\r\n\r\nsecret"))
		_ = conn.Close() // it has been counted
	}
}

// watchPackets opens a socket that sees what arrives at the loopback, the only interface.
func watchPackets() (int, error) {
	protocol := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return -1, fmt.Errorf("trap: see packets: %w", err)
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	// not allowed in a user namespace
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) != nil {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<20))
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("trap: see packets: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// watch reads packets until none are left after the end.
func (t *Trap) watch() {
	packet := make([]byte, 256)
	for {
		n, _, err := unix.Recvfrom(t.packets, packet, unix.MSG_TRUNC)
		if err == nil {
			t.see(packet[:min(n, len(packet))])
			continue
		}
		select {
		case <-t.stop:
			return
		default:
		}
	}
}

func (t *Trap) see(packet []byte) {
	if len(packet) == 0 {
		return
	}
	var from, to netip.Addr
	var protocol byte
	var rest []byte
	switch packet[0] >> 4 {
	case 4:
		head := int(packet[0]&15) * 4
		if len(packet) < max(head, 20) {
			return
		}
		from, to = netip.AddrFrom4([4]byte(packet[12:])), netip.AddrFrom4([4]byte(packet[16:]))
		protocol, rest = packet[9], packet[head:]
	case 6:
		if len(packet) < 40 {
			return
		}
		from, to = netip.AddrFrom16([16]byte(packet[8:])), netip.AddrFrom16([16]byte(packet[24:]))
		protocol, rest = packet[6], packet[40:]
	}
	const synAndAck, syn = 0x12, 0x02
	begins := protocol == unix.IPPROTO_UDP && len(rest) >= 8 ||
		protocol == unix.IPPROTO_TCP && len(rest) >= 20 && rest[13]&synAndAck == syn
	if !begins {
		return
	}
	source := netip.AddrPortFrom(from, binary.BigEndian.Uint16(rest))
	place := netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2:]))
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := protocol == unix.IPPROTO_UDP && t.expects(source)
	if slices.Contains(Public, to) || t.expects(place) || answers {
		return
	}
	t.leaked[place.String()]++
}

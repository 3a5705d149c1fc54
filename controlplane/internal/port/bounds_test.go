package port

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
)

func TestGarbageIsRefused(t *testing.T) {
	server := newCluster(t, "prod").port(t, "cp-1", identity.ControlPlane)
	for name, bytes := range map[string]func() []byte{
		"random": func() []byte { b := make([]byte, 4096); _, _ = rand.Read(b); return b },
		"HTTP":   func() []byte { return []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") },
		"record": func() []byte {
			return append([]byte{22, 3, 3, 0xff, 0xff},
				make([]byte, 1<<17)...)
		},
		"zeros": func() []byte { return make([]byte, 1<<16) },
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = conn.Write(bytes())
			answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
			if len(answer) >= 1<<16 || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%d bytes came back, %v", len(answer), err)
			}
		})
	}
}

// Silent connections give way to one that talks.
func TestSilentConnectionsAreBounded(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane), c.port(t, "f-1", identity.Fetcher)
	server.Serve(methods(nil, nil))
	var silent []net.Conn
	for range maxHandshakes + 40 {
		conn, err := net.Dial("tcp", server.Address())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, conn)
	}
	if err := client.Call(patient(t), server.Address(), "echo", greeting{},
		&greeting{}); err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	under := len(server.handshakes)
	server.mu.Unlock()
	if under > maxHandshakes {
		t.Fatalf("%d handshakes are under way, want at most %d", under, maxHandshakes)
	}
	// The first one was closed long ago, and all are closed after their time.
	_ = silent[0].SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the oldest silent connection: %v", err)
	}
	for _, conn := range silent {
		_ = conn.Close()
	}
}

// rpc opens a connection for calls, as a node of the cluster.
func rpc(t *testing.T, p, to *Port) net.Conn {
	t.Helper()
	conn, err := p.dial(patient(t), to.Address(), callProtocol, "", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

// A misbehaving node of the cluster is refused, too, and holds nothing up.
func TestMisbehavingCallersAreBounded(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane), c.port(t, "f-1", identity.Fetcher)
	server.Serve(methods(nil, nil))
	for name, request := range map[string]string{
		"garbage": "\x00\xff\x13\x37\r\n\r\n",
		"long header": "POST /echo HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 1<<20) +
			"\r\n\r\n",
		"no time": "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: " +
			"close\r\nContent-Length: 0\r\n\r\n",
		"long body": "POST /echo HTTP/1.1\r\nHost: a\r\nShoal-Timeout-Millis: " +
			"1000\r\nContent-Length: 9999999999\r\n\r\n" +
			strings.Repeat("a", 2<<20),
		"half a header": "POST /echo HTT",
		"half a body": "POST /echo HTTP/1.1\r\nHost: a\r\nShoal-Timeout-Millis: " +
			"1000\r\nContent-Length: 10\r\n\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := rpc(t, client, server)
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, request)
			answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
			if bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) ||
				errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("answered %q, %v", answer, err)
			}
			if err := client.Call(patient(t), server.Address(), "echo", greeting{},
				&greeting{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallsUnderWayAreBounded(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane), c.port(t, "f-1", identity.Fetcher)
	server.Serve(methods(nil, nil))
	for range maxCalls {
		server.slots <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(patient(t), 200*time.Millisecond)
	defer cancel()
	if err := client.Call(ctx, server.Address(), "echo", greeting{}, &greeting{}); err == nil {
		t.Fatal("one call too many is under way")
	}
	for range maxCalls {
		<-server.slots
	}
	if err := client.Call(patient(t), server.Address(), "echo", greeting{},
		&greeting{}); err != nil {
		t.Fatal(err)
	}
}

// FuzzMethods: no body makes a method panic.
func FuzzMethods(f *testing.F) {
	method := Handle(func(_ context.Context, _ identity.Peer, g greeting) (greeting,
		error) {
		return g, nil
	})
	f.Add([]byte("\xa1\x01\x62hi"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := method(t.Context(), identity.Peer{}, body); err != nil &&
			fault.CodeOf(err) != fault.InvalidBody {
			t.Fatal(err)
		}
	})
}

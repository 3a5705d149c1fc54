package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

func TestParseProxy(t *testing.T) {
	for text, want := range map[string]string{
		"http://10.0.0.1:3128":               "http://10.0.0.1:3128",
		" http://proxy.example/ ":            "http://proxy.example:80",
		"http://user:secret@proxy.example:1": "http://proxy.example:1",
		"socks5://u:s@[::1]":                 "socks5://[::1]:1080",
		"socks5h://proxy.example:9":          "socks5://proxy.example:9",
	} {
		p, err := ParseProxy(text)
		if err != nil || p.String() != want {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "proxy.example:1", "https://user:secret@proxy.example",
		"http://user:secret@:1", "http://user:secret@a/b",
		"http://user:secret@a?b", "socks5://" + strings.Repeat("secret", 50) + ":x@a",
		"http://user:secret@a:99999999999999999999/%zz"} {
		if p, err := ParseProxy(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

// dialogue is a proxy that serves one connection: it reads what it expects, and writes what it is
// told.
func dialogue(t *testing.T, steps ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		for i := 0; i+1 < len(steps); i += 2 {
			got := make([]byte, len(steps[i]))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, []byte(steps[i])) {
				t.Errorf("the proxy read %q, %v; want %q", got, err, steps[i])
				return
			}
			_, _ = io.WriteString(conn, steps[i+1])
		}
	}()
	return listener.Addr().String()
}

func TestTunnels(t *testing.T) {
	c := newClient(t, Config{Resolver: &answers{addrs: map[string][]string{
		"four.example": {"93.184.216.34"}, "six.example": {"2606:4700::1111"},
		"private.example": {"10.0.0.1"},
		"mixed.example":   {"10.0.0.1", "93.184.216.34"}}}})
	const connect = "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n"
	const four, six = "\x01\x5d\xb8\xd8\x22\x01\xbb",
		"\x04\x26\x06\x47\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x11\x11\x01\xbb"
	for name, test := range map[string]struct {
		scheme, login, host string
		steps               []string
		own, ok             bool
	}{
		"http": {"http", "", "four.example",
			[]string{connect + "\r\n", "HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello"}, false, true},
		"http 1.0": {"http", "", "four.example",
			[]string{connect + "\r\n", "HTTP/1.0 200\r\n\r\nhello"}, false, true},
		"http, login": {"http", "u:p@", "four.example",
			[]string{connect + "Proxy-Authorization: Basic dTpw\r\n\r\n",
				"HTTP/1.1 200 OK\r\n\r\nhello"}, false, true},
		"mixed answers": {"http", "", "mixed.example",
			[]string{connect + "\r\n", "HTTP/1.1 200 OK\r\n\r\nhello"}, false, true},
		"http, refused": {"http", "", "four.example",
			[]string{connect + "\r\n", "HTTP/1.1 407 No\r\n\r\n"}, true, false},
		"http, no host": {"http", "", "four.example",
			[]string{connect + "\r\n", "HTTP/1.1 502 No\r\n\r\n"}, false, false},
		"no http": {"http", "", "four.example",
			[]string{connect + "\r\n", "SSH-2.0-x\r\n\r\n"}, true, false},
		"http, endless": {"http", "", "four.example",
			[]string{connect + "\r\n", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 5000)},
			true, false},
		"http, ended": {"http", "", "four.example", []string{connect + "\r\n", "HTTP/1.1 2"},
			true, false},
		"socks": {"socks5", "", "four.example",
			[]string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00" + four,
				"\x05\x00\x00" + four + "hello"}, false, true},
		"socks, v6": {"socks5", "", "six.example",
			[]string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00" + six,
				"\x05\x00\x00\x03\x02ab\x00\x00hello"}, false, true},
		"socks, login": {"socks5", "u:p@", "four.example",
			[]string{"\x05\x01\x02", "\x05\x02", "\x01\x01u\x01p", "\x01\x00",
				"\x05\x01\x00" + four, "\x05\x00\x00" + six + "hello"}, false, true},
		"socks, wrong login": {"socks5", "u:p@", "four.example",
			[]string{"\x05\x01\x02", "\x05\x02", "\x01\x01u\x01p", "\x01\x01"}, true, false},
		"socks, no login": {"socks5", "", "four.example", []string{"\x05\x01\x00", "\x05\xff"},
			true, false},
		"socks, no host": {"socks5", "", "four.example",
			[]string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00" + four, "\x05\x04\x00" + four},
			false, false},
		"socks, not allowed": {"socks5", "", "four.example",
			[]string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00" + four, "\x05\x02\x00" + four},
			true, false},
		"socks, no address": {"socks5", "", "four.example",
			[]string{"\x05\x01\x00", "\x05\x00", "\x05\x01\x00" + four, "\x05\x00\x00\x09"}, true,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, err := ParseProxy(fmt.Sprintf("%s://%s%s", test.scheme, test.login,
				dialogue(t, test.steps...)))
			if err != nil {
				t.Fatal(err)
			}
			conn, err := c.Tunnel(t.Context(), "", test.host, 443, proxy)
			if !test.ok {
				var failed *ProxyError
				if !errors.As(err, &failed) || failed.Own != test.own ||
					fault.CodeOf(err) != fault.PageConnect {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			hello := make([]byte, 5)
			if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != "hello" {
				t.Errorf("through the tunnel came %q, %v", hello, err)
			}
		})
	}
}

// TestTunnelsAreGuarded: a proxy never gets a forbidden address. It may itself be anywhere, except
// at a metadata service.
func TestTunnelsAreGuarded(t *testing.T) {
	c,
		err := New(Config{Resolver: &answers{
		addrs: map[string][]string{"private.example": {"10.0.0.1"},
			"ok.example": {"93.184.216.34"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	silent := dialogue(t)
	proxy, err := ParseProxy("http://" + silent)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"private.example", "10.0.0.1", "0x7f.1", "[::1]",
		"169.254.169.254", "localhost"} {
		if conn, err := c.Tunnel(t.Context(), "", host, 80, proxy); err == nil || conn != nil ||
			fault.CodeOf(err) == fault.PageConnect {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := c.connectThrough(t.Context(), proxy, netip.MustParseAddrPort("127.0.0.1:80"),
		time.Now().Add(time.Second)); fault.CodeOf(err) != fault.PageAddressForbidden {
		t.Errorf("a forbidden address: %v", err)
	}
	metadata, err := ParseProxy("http://169.254.169.254:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tunnel(t.Context(), "", "ok.example", 80,
		metadata); fault.CodeOf(err) != fault.PageAddressForbidden {
		t.Errorf("a metadata service as proxy: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Tunnel(ctx, "", "ok.example", 80, proxy); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if conn, err := net.Dial("tcp", silent); err == nil {
		conn.Close()
	}
}

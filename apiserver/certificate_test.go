package apiserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/clock"
)

// pairFiles are the paths of a certificate and its key.
type pairFiles struct{ cert, key string }

func newPairFiles(t *testing.T) pairFiles {
	dir := t.TempDir()
	return pairFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
}

// write makes a new pair with a serial number, and writes the parts that are asked for.
func (p pairFiles) write(t *testing.T, serial int64, cert, key bool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial),
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, kind string, data []byte) {
		next := name + ".next"
		if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}),
			0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, name); err != nil {
			t.Fatal(err)
		}
	}
	if cert {
		put(p.cert, "CERTIFICATE", der)
	}
	if key {
		put(p.key, "PRIVATE KEY", secret)
	}
}

// The next client sees a replaced pair, and open connections stay. Nobody sees half of a pair.
func TestCertificatesAreReplaced(t *testing.T) {
	files := newPairFiles(t)
	if _, err := OpenCertificate(files.cert, files.key); err == nil {
		t.Error("no files are a certificate")
	}
	files.write(t, 1, true, true)
	certificate, err := OpenCertificate(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	address := serveTest(t, func(c *Config) { c.Certificate = certificate })
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	serial := func(c *tls.Conn) int64 {
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	first := dial()
	ask := func(c *tls.Conn) {
		t.Helper()
		if _, err := fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", answer, err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
	}
	ask(first)
	if got := serial(first); got != 1 {
		t.Errorf("shown %d", got)
	}
	files.write(t, 2, true, false)
	if got := serial(dial()); got != 1 {
		t.Errorf("with a key of another: shown %d", got)
	}
	files.write(t, 3, true, true)
	if got := serial(dial()); got != 3 {
		t.Errorf("replaced: shown %d", got)
	}
	ask(first)
	if err := os.Remove(files.cert); err != nil {
		t.Fatal(err)
	}
	if got := serial(dial()); got != 3 {
		t.Errorf("while there is no file: shown %d", got)
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true,
		MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("an old version of TLS is spoken")
	}
	plain, err := http.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain.Body)
	if plain.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "https") {
		t.Errorf("in the clear: %d %q %v", plain.StatusCode, text, err)
	}
}

// The server notices that a client has hung up, even if its close alert has not been read.
func TestGoneOverTLS(t *testing.T) {
	files := newPairFiles(t)
	files.write(t, 1, true, true)
	certificate, err := OpenCertificate(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(inner, callers{unlimited: true}, clock.System{})
	l.secure = certificate.config(slog.New(slog.DiscardHandler))
	defer func() { _ = l.Close() }()
	accepted := make(chan *conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		accepted <- c.(*conn)
	}()
	client, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	c := <-accepted
	if c.Gone() {
		t.Error("it is there")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for ctx := t.Context(); !c.Gone(); {
		if ctx.Err() != nil {
			t.Fatal("it is gone")
		}
	}
	_ = c.Close()
}

// serveTest serves until the test ends, and returns the address.
func serveTest(t *testing.T, settings ...func(*Config)) string {
	t.Helper()
	s := newTestServer(t, settings...)
	s.customers = s.chain.Handler([]*operation.Operation{operation.Define(operation.Declaration{
		ID: "svc_livez", Routes: operation.Routes("GET /livez"), Summary: "s",
		Access: auth.Public, Rate: limits.Unlimited},
		func(context.Context, *operation.Caller, *struct{}) (string, error) { return "", nil })})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

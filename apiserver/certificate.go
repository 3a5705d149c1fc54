package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Certificate is a pair of PEM files that encrypts customers' connections. The next handshake uses
// a replaced pair; open connections stay.
type Certificate struct {
	certFile, keyFile string

	mu   sync.Mutex
	pair *tls.Certificate
	of   [2]version // the files when they were last read
}

// version identifies the contents of a file, to notice a change.
type version struct {
	changed time.Time
	bytes   int64
}

// OpenCertificate reads a certificate chain and its key.
func OpenCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	if _, err := c.reread(); err != nil {
		return nil, err
	}
	return c, nil
}

// Expires returns when the current certificate expires.
func (c *Certificate) Expires() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair.Leaf.NotAfter
}

// reread loads the files if they have changed. On an error the old pair stays. The error is
// returned once, until a file changes again.
func (c *Certificate) reread() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var now [2]version
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err == nil {
			now[i] = version{changed: info.ModTime(), bytes: info.Size()}
		} // a missing file counts as changed; loading it fails below
	}
	if c.pair != nil && now == c.of {
		return false, nil
	}
	c.of = now
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false, err
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return false, err
		}
	}
	c.pair = &pair
	return true, nil
}

// config is the TLS configuration. Each handshake checks the files, at the cost of two stat calls.
func (c *Certificate) config(logger *slog.Logger) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			switch changed, err := c.reread(); {
			case err != nil:
				logger.Error("the new certificate cannot be used; the old one stays", "error", err)
			case changed:
				logger.Info("the certificate was replaced", "ends", c.Expires())
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.pair, nil
		}}
}

// httpsOnly answers a client that spoke HTTP to a TLS listener, and ignores other errors.
func httpsOnly(err error) {
	var not tls.RecordHeaderError
	if !errors.As(err, &not) || not.Conn == nil {
		return
	}
	switch string(not.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO", "PATCH":
		answer := "this server speaks https alone\n"
		// a connection that is already broken is closed all the same
		_ = not.Conn.SetWriteDeadline(time.Now().Add(refuseTime))
		_, _ = io.WriteString(not.Conn, fmt.Sprintf("HTTP/1.1 400 Bad Request\r\n"+
			"Content-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			len(answer), answer))
	}
}

// secured wraps raw in TLS, or returns raw if config is nil.
func secured(raw net.Conn, config *tls.Config) net.Conn {
	if config == nil {
		return raw
	}
	return tls.Server(raw, config)
}

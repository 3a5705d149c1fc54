package synthweb

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// certificateLife is how long the certificates of a web are valid.
const certificateLife = 30 * 24 * time.Hour

// Chain is how a site's certificate leads to the web's Authority.
type Chain uint8

// The kinds of chains. All but the first resemble public sites.
const (
	ChainDirect Chain = iota // the authority signs it, P-256
	ChainP256                // by an intermediate, all keys P-256
	ChainRSA                 // by an intermediate, all keys RSA of 2,048 bits
	lastChain   = ChainRSA
)

// authority signs a certificate for each site at its first request: at most one per site.
type authority struct {
	root   *signer
	issuer *signer // the root, or its intermediate
	serial atomic.Int64

	mu     sync.Mutex
	issued map[string]*tls.Certificate // by host name
}

// signer is a certificate with its key.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(chain Chain, now time.Time) (*authority, error) {
	a := &authority{issued: map[string]*tls.Certificate{}}
	name := "The synthetic web"
	if chain == ChainRSA {
		name += " (RSA)" // roots of different kinds have different names
	}
	var err error
	if a.root, err = a.newSigner(chain, name, nil, now); err != nil {
		return nil, err
	}
	a.issuer = a.root
	if chain != ChainDirect {
		a.issuer, err = a.newSigner(chain, name+", intermediate", a.root, now)
	}
	return a, err
}

// newSigner makes a certificate authority, signed by another one or self-signed.
func (a *authority) newSigner(chain Chain, name string, by *signer, now time.Time) (*signer,
	error) {
	var s signer
	var err error
	if chain == ChainRSA {
		s.key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(a.serial.Add(1)),
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign}
	if by == nil {
		by = &signer{template, s.key}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, by.certificate, s.key.Public(),
		by.key)
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	if s.certificate, err = x509.ParseCertificate(signed); err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	return &s, nil
}

func (a *authority) certificateOf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.issued[host]; found != nil {
		return found, nil
	}
	by := a.issuer
	template := &x509.Certificate{SerialNumber: big.NewInt(a.serial.Add(1)),
		Subject:  pkix.Name{CommonName: host},
		DNSNames: []string{host}, NotBefore: by.certificate.NotBefore,
		NotAfter:    by.certificate.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	signed, err := x509.CreateCertificate(rand.Reader, template, by.certificate, by.key.Public(),
		by.key) // all sites of an authority share its key
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificate of %s: %w", host, err)
	}
	chain := [][]byte{signed}
	if by != a.root {
		chain = append(chain, by.certificate.Raw)
	}
	a.issued[host] = &tls.Certificate{Certificate: chain, PrivateKey: by.key}
	return a.issued[host], nil
}

// openAuthorities makes an authority for each of Chains.
func (w *Web) openAuthorities() error {
	for _, chain := range w.config.Chains {
		a, err := newAuthority(chain, w.config.Clock.Now())
		if err != nil {
			return err
		}
		w.authorities = append(w.authorities, a)
	}
	return nil
}

// secure serves the sites over TLS.
func (w *Web) secure(ln net.Listener) net.Listener {
	return tls.NewListener(ln, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			host, ok := w.hostNumber([]byte(hello.ServerName))
			if !ok {
				return nil, fmt.Errorf("synthweb: no site %q", hello.ServerName)
			}
			return w.authorities[host%len(w.authorities)].certificateOf(hello.ServerName)
		},
	})
}

// Authority returns what clients of a web with TLS have to trust, as PEM: a certificate for each of
// its Chains. It is nil without TLS.
func (w *Web) Authority() []byte {
	var text []byte
	for _, a := range w.authorities {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: a.root.certificate.Raw})...)
	}
	return text
}

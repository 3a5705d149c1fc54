package synthweb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// certificateLife is how long the certificates of a web are good for.
const certificateLife = 30 * 24 * time.Hour

// authority signs a certificate for each site when it is first asked for: at most one a site.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey // of the authority and of all sites

	mu     sync.Mutex
	issued map[string]*tls.Certificate // by host name
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{CommonName: "The synthetic web"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificates: %w", err)
	}
	return &authority{certificate: parsed, key: key, issued: map[string]*tls.Certificate{}}, nil
}

// config serves the sites that known knows.
func (a *authority) config(known func(host []byte) (int, bool)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if _, ok := known([]byte(hello.ServerName)); !ok {
				return nil, fmt.Errorf("synthweb: no site %q", hello.ServerName)
			}
			return a.certificateOf(hello.ServerName)
		},
	}
}

func (a *authority) certificateOf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.issued[host]; found != nil {
		return found, nil
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(len(a.issued)) + 2),
		Subject:  pkix.Name{CommonName: host},
		DNSNames: []string{host}, NotBefore: a.certificate.NotBefore,
		NotAfter:    a.certificate.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &a.key.PublicKey,
		a.key)
	if err != nil {
		return nil, fmt.Errorf("synthweb: certificate of %s: %w", host, err)
	}
	a.issued[host] = &tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: a.key}
	return a.issued[host], nil
}

// Authority is the certificate that clients of a web with TLS have to trust, as PEM; nil without
// TLS.
func (w *Web) Authority() []byte {
	if w.authority == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.authority.certificate.Raw})
}

package egress

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/cache"
)

// Bounds of the remembered certificates.
const (
	maxIssuers = 1024 // some 5 KB each
	// maxSent is the longest list of certificates for the short way. Public sites send two or
	// three.
	maxSent = 4
)

// verifier accepts and refuses the same certificates as crypto/tls, with the same errors, but
// remembers verified intermediate certificates. Their signatures are half the cost of a chain, and
// a few hundred of them sign most of the web (DESIGN.md).
//
// The long way is that of crypto/tls: x509's Verify with all that the server sent. The short way
// can only accept; whatever it does not accept goes the long way.
type verifier struct {
	roots *x509.CertPool // nil: the system's
	now   func() time.Time
	// forgetful turns the short way off, since the long one asks the platform.
	forgetful bool

	mu      sync.Mutex
	issuers *simplelru.LRU[[sha256.Size]byte, *issuer] // by hash of the certificate
}

// issuer is an intermediate certificate that was verified up to a root.
type issuer struct {
	pool        *x509.CertPool // with only this certificate
	above       []*x509.Certificate
	from, until time.Time // while it and all above it are valid
}

func newVerifier(roots *x509.CertPool) *verifier {
	asksPlatform := roots == nil && slices.Contains([]string{"darwin", "ios", "windows"},
		runtime.GOOS)
	return &verifier{roots: roots, now: time.Now, forgetful: asksPlatform,
		issuers: cache.NewLRU[[sha256.Size]byte, *issuer](maxIssuers, nil)}
}

// verify returns nil for certificates that lead to a root and are valid for the host, now.
func (v *verifier) verify(sent []*x509.Certificate, host string) error {
	if len(sent) == 0 {
		return errors.New("the host sent no certificate")
	}
	now := v.now()
	if v.isIssued(sent, host, now) {
		return nil
	}
	options := x509.VerifyOptions{Roots: v.roots, CurrentTime: now, DNSName: host,
		Intermediates: x509.NewCertPool()}
	for _, certificate := range sent[1:] {
		options.Intermediates.AddCert(certificate)
	}
	chains, err := sent[0].Verify(options)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: sent, Err: err}
	}
	for _, chain := range chains {
		v.remember(chain)
	}
	return nil
}

// isIssued is the short way: a remembered intermediate signed the certificate, and the server sent
// it right behind. Everything that depends on the certificate or the time is checked again.
func (v *verifier) isIssued(sent []*x509.Certificate, host string, now time.Time) bool {
	if v.forgetful || len(sent) < 2 || len(sent) > maxSent {
		return false
	}
	leaf := sent[0]
	v.mu.Lock()
	by, known := v.issuers.Get(sha256.Sum256(sent[1].Raw))
	v.mu.Unlock()
	if !known || now.Before(by.from) || now.After(by.until) || leaf.Equal(sent[1]) ||
		hasExtension(leaf, policyConstraints) {
		return false
	}
	for _, certificate := range by.above {
		if bytes.Equal(leaf.RawSubject, certificate.RawSubject) {
			return false // x509 refuses circular chains
		}
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: by.pool, CurrentTime: now, DNSName: host})
	return err == nil
}

// remember stores the intermediate right above a certificate whose chain was valid. It does not if
// anything above the certificate has name or policy constraints: they may refuse the intermediate's
// next certificate.
func (v *verifier) remember(chain []*x509.Certificate) {
	if v.forgetful || len(chain) < 3 {
		return
	}
	by := &issuer{pool: x509.NewCertPool(), above: chain[2:], from: chain[1].NotBefore,
		until: chain[1].NotAfter}
	for _, certificate := range chain[1:] {
		if hasExtension(certificate, nameConstraints) ||
			hasExtension(certificate, policyConstraints) {
			return
		}
		if certificate.NotBefore.After(by.from) {
			by.from = certificate.NotBefore
		}
		if certificate.NotAfter.Before(by.until) {
			by.until = certificate.NotAfter
		}
	}
	by.pool.AddCert(chain[1])
	v.mu.Lock()
	defer v.mu.Unlock()
	v.issuers.Add(sha256.Sum256(chain[1].Raw), by)
}

// Extensions that constrain the contents of certificates below (RFC 5280, 4.2.1).
var (
	nameConstraints   = asn1.ObjectIdentifier{2, 5, 29, 30}
	policyConstraints = asn1.ObjectIdentifier{2, 5, 29, 36}
)

func hasExtension(certificate *x509.Certificate, id asn1.ObjectIdentifier) bool {
	for _, extension := range certificate.Extensions {
		if extension.Id.Equal(id) {
			return true
		}
	}
	return false
}

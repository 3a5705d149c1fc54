package egress

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"testing"
	"time"
)

// noon is the time at which chains are tested.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// signedBy is a certificate with its key.
type signedBy struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newKey(t *testing.T) crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate from a template; if by is nil, it is self-signed.
func sign(t *testing.T, template *x509.Certificate, key crypto.Signer, by *signedBy) *signedBy {
	t.Helper()
	if by == nil {
		by = &signedBy{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &signedBy{certificate, key}
}

// authorityOf returns a valid template for a certificate authority.
func authorityOf(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(1, 0, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLen: -1}
}

// siteOf returns a valid template for a site's certificate.
func siteOf(host string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		DNSNames: []string{host}, NotBefore: noon.AddDate(0, -1, 0),
		NotAfter: noon.AddDate(0, 1, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

// chainCase is a chain that differs from a valid one in its templates, or in what is sent.
type chainCase struct {
	name               string
	root, middle, leaf func(c *x509.Certificate)
	key                func(t *testing.T) crypto.Signer // of the intermediate
	untrusted          bool                             // the root is not trusted
	host               string                           // requested; "": the leaf's
	at                 time.Duration                    // after noon
	sent               func(leaf, middle, root *signedBy) []*x509.Certificate
	valid              bool
}

func chainCases() []chainCase {
	sha1 := func(c *x509.Certificate) { c.SignatureAlgorithm = x509.ECDSAWithSHA1 }
	extension := func(id asn1.ObjectIdentifier, critical bool, value []byte) pkix.Extension {
		return pkix.Extension{Id: id, Critical: critical, Value: value}
	}
	explicit := extension(policyConstraints, true, []byte{0x30, 0x03, 0x80, 0x01, 0x00})
	policy, err := x509.ParseOID("2.23.140.1.2.1")
	if err != nil {
		panic(err) // it is a constant
	}
	return []chainCase{
		{name: "good", valid: true},
		{name: "good, with its root", valid: true,
			sent: func(l, m, r *signedBy) []*x509.Certificate {
				return []*x509.Certificate{l.certificate, m.certificate, r.certificate}
			}},
		{name: "good, intermediate twice", valid: true,
			sent: func(l, m, _ *signedBy) []*x509.Certificate {
				return []*x509.Certificate{l.certificate, m.certificate, m.certificate}
			}},
		{name: "wildcard", valid: true, host: "shop.a.example",
			leaf: func(c *x509.Certificate) { c.DNSNames = []string{"*.a.example"} }},
		{name: "wrong name", host: "b.example"},
		{name: "name in the subject alone",
			leaf: func(c *x509.Certificate) { c.DNSNames = nil }},
		{name: "an address for a name", host: "192.0.2.1"},
		{name: "leaf expired", at: 32 * 24 * time.Hour},
		{name: "leaf not yet valid", at: -32 * 24 * time.Hour},
		{name: "intermediate expired", middle: func(c *x509.Certificate) {
			c.NotAfter = noon.Add(-time.Second)
		}},
		{name: "intermediate not yet valid", middle: func(c *x509.Certificate) {
			c.NotBefore = noon.Add(time.Second)
		}},
		{name: "root expired", root: func(c *x509.Certificate) {
			c.NotAfter = noon.Add(-time.Second)
		}},
		{name: "root not yet valid", root: func(c *x509.Certificate) {
			c.NotBefore = noon.Add(time.Second)
		}},
		{name: "root ends first", valid: true, root: func(c *x509.Certificate) {
			c.NotAfter = noon.AddDate(0, 0, 20)
		}},
		{name: "root begins last", valid: true, root: func(c *x509.Certificate) {
			c.NotBefore = noon.AddDate(0, 0, -20)
		}},
		{name: "unknown root", untrusted: true},
		{name: "no CA", middle: func(c *x509.Certificate) { c.IsCA = false }},
		{name: "no basic constraints", middle: func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid = false, false
		}},
		{name: "path of the intermediate is long enough", valid: true,
			middle: func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true }},
		{name: "path of the root is too short",
			root: func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true }},
		{name: "leaf is for clients", leaf: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}},
		{name: "leaf is for anything", valid: true, leaf: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
		}},
		{name: "intermediate is for mail", middle: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}},
		{name: "root is for mail", root: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}},
		{name: "names the intermediate permits", valid: true, middle: func(c *x509.Certificate) {
			c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"example"}, true
		}},
		{name: "names the intermediate does not permit", middle: func(c *x509.Certificate) {
			c.PermittedDNSDomains = []string{"other.example"}
		}},
		{name: "names the root excludes", root: func(c *x509.Certificate) {
			c.ExcludedDNSDomains = []string{"a.example"}
		}},
		{name: "leaf is signed with SHA-1", leaf: sha1},
		{name: "intermediate is signed with SHA-1", middle: sha1},
		{name: "unknown critical extension of the leaf", leaf: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{extension(asn1.ObjectIdentifier{1, 2, 3}, true,
				[]byte{5, 0})}
		}},
		{name: "unknown critical extension of the intermediate",
			middle: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{extension(asn1.ObjectIdentifier{1, 2, 3},
					true, []byte{5, 0})}
			}},
		{name: "leaf wants a policy", leaf: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{explicit}
		}},
		{name: "leaf wants a policy, which it alone has", leaf: func(c *x509.Certificate) {
			c.ExtraExtensions, c.Policies = []pkix.Extension{explicit}, []x509.OID{policy}
		}},
		{name: "leaf wants a policy, which all have", valid: true,
			middle: func(c *x509.Certificate) { c.Policies = []x509.OID{policy} },
			leaf: func(c *x509.Certificate) {
				c.ExtraExtensions, c.Policies = []pkix.Extension{explicit}, []x509.OID{policy}
			}},
		{name: "intermediate wants a policy", middle: func(c *x509.Certificate) {
			c.ExtraExtensions, c.Policies = []pkix.Extension{explicit}, []x509.OID{policy}
		}},
		{name: "the intermediate is another, of the same name",
			sent: func(l, m, r *signedBy) []*x509.Certificate {
				return []*x509.Certificate{l.certificate, r.certificate}
			}},
		{name: "no intermediate", sent: func(l, _, _ *signedBy) []*x509.Certificate {
			return []*x509.Certificate{l.certificate}
		}},
		{name: "the intermediate alone", sent: func(_, m, _ *signedBy) []*x509.Certificate {
			return []*x509.Certificate{m.certificate, m.certificate}
		}},
		{name: "the intermediate alone, for its own name", valid: true, host: "ca.example",
			middle: func(c *x509.Certificate) { c.DNSNames = []string{"ca.example"} },
			sent: func(_, m, _ *signedBy) []*x509.Certificate {
				return []*x509.Certificate{m.certificate, m.certificate}
			}},
		{name: "swapped", sent: func(l, m, _ *signedBy) []*x509.Certificate {
			return []*x509.Certificate{m.certificate, l.certificate}
		}},
		{name: "more than the short way takes", valid: true,
			sent: func(l, m, r *signedBy) []*x509.Certificate {
				return []*x509.Certificate{l.certificate, m.certificate, r.certificate,
					m.certificate, r.certificate, m.certificate}
			}},
		{name: "intermediate of RSA", valid: true, key: func(t *testing.T) crypto.Signer {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			return key
		}},
	}
}

// made is a chain of certificates as a server sends it, and the trusted roots.
type made struct {
	roots *x509.CertPool
	sent  []*x509.Certificate
	// sibling is a valid site's chain from the same intermediate.
	sibling []*x509.Certificate
	host    string
	now     time.Time
}

func apply(change func(*x509.Certificate), to *x509.Certificate) *x509.Certificate {
	if change != nil {
		change(to)
	}
	return to
}

func (c *chainCase) make(t *testing.T) made {
	key := newKey
	if c.key != nil {
		key = c.key
	}
	root := sign(t, apply(c.root, authorityOf("root")), newKey(t), nil)
	middle := sign(t, apply(c.middle, authorityOf("middle")), key(t), root)
	template := apply(c.leaf, siteOf("a.example"))
	leaf := sign(t, template, newKey(t), middle)
	good := siteOf("sibling.example")
	good.Policies = middle.certificate.Policies
	sibling := sign(t, good, newKey(t), middle)
	m := made{roots: x509.NewCertPool(), host: c.host, now: noon.Add(c.at),
		sent:    []*x509.Certificate{leaf.certificate, middle.certificate},
		sibling: []*x509.Certificate{sibling.certificate, middle.certificate}}
	if !c.untrusted {
		m.roots.AddCert(root.certificate)
	}
	m.roots.AddCert(sign(t, authorityOf("another root"), newKey(t), nil).certificate)
	if c.sent != nil {
		m.sent = c.sent(leaf, middle, root)
	}
	if m.host == "" {
		m.host = "a.example"
	}
	return m
}

// stock verifies like crypto/tls.
func stock(roots *x509.CertPool, sent []*x509.Certificate, host string, now time.Time) error {
	options := x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host,
		Intermediates: x509.NewCertPool()}
	for _, certificate := range sent[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := sent[0].Verify(options)
	return err
}

// TestVerifyEqualsStock verifies each chain as it is, again, after a sibling of the same
// intermediate, and at other times. The result always equals x509's, even in its text.
func TestVerifyEqualsStock(t *testing.T) {
	for _, c := range chainCases() {
		t.Run(c.name, func(t *testing.T) {
			m := c.make(t)
			if err := stock(m.roots, m.sent, m.host, m.now); (err == nil) != c.valid {
				t.Fatalf("x509 says %v", err)
			}
			v := newVerifier(m.roots)
			day := func(n int) time.Time { return noon.AddDate(0, 0, n) }
			for _, at := range []time.Time{m.now, noon, m.now, day(1000), day(-1000), noon,
				day(25), day(-25), m.now} {
				v.now = func() time.Time { return at }
				sameAnswer(t, v, m.sent, m.host, at)
				sameAnswer(t, v, m.sibling, "sibling.example", at)
				sameAnswer(t, v, m.sibling, "other.example", at)
			}
		})
	}
}

func sameAnswer(t *testing.T, v *verifier, sent []*x509.Certificate, host string, at time.Time) {
	t.Helper()
	want := stock(v.roots, sent, host, at)
	got := v.verify(sent, host)
	if (got == nil) != (want == nil) {
		t.Fatalf("%s at %s: %v, x509 says %v", host, at, got, want)
	}
	var wrapped *tls.CertificateVerificationError
	if got != nil && (!errors.As(got, &wrapped) || wrapped.Err.Error() != want.Error()) {
		t.Errorf("%v, x509 says %v", got, want)
	}
}

// TestVerifyRemembers checks which chains take the short way; otherwise the test above might only
// compare x509 with itself.
func TestVerifyRemembers(t *testing.T) {
	long := map[string]bool{ // valid, and not remembered
		"names the intermediate permits": true, "more than the short way takes": true,
		"the intermediate alone, for its own name": true,
		"leaf wants a policy, which all have":      true,
	}
	for _, c := range chainCases() {
		if !c.valid {
			continue
		}
		m := c.make(t)
		v := newVerifier(m.roots)
		v.now = func() time.Time { return m.now }
		if v.isIssued(m.sent, m.host, m.now) {
			t.Errorf("%s: taken before anything was verified", c.name)
		}
		if err := errors.Join(v.verify(m.sent, m.host),
			v.verify(m.sibling, "sibling.example")); err != nil {
			t.Fatal(err)
		}
		if got := v.isIssued(m.sent, m.host, m.now); got == long[c.name] {
			t.Errorf("%s: short way %t", c.name, got)
		}
		v.forgetful = true
		if v.isIssued(m.sent, m.host, m.now) {
			t.Errorf("%s: the short way of who has none", c.name)
		}
	}
	if err := newVerifier(nil).verify(nil, "a.example"); err == nil {
		t.Error("no certificate was taken")
	}
}

// TestVerifyComesRound: x509 refuses a chain with its root's name, key and names twice.
func TestVerifyComesRound(t *testing.T) {
	template := authorityOf("root")
	template.DNSNames = []string{"a.example"}
	root := sign(t, template, newKey(t), nil)
	middle := sign(t, authorityOf("middle"), newKey(t), root)
	sibling := sign(t, siteOf("sibling.example"), newKey(t), middle)
	round := siteOf("a.example")
	round.Subject = template.Subject
	leaf := sign(t, round, root.key, middle)
	v := newVerifier(x509.NewCertPool())
	v.roots.AddCert(root.certificate)
	v.now = func() time.Time { return noon }
	for _, sent := range []*signedBy{sibling, leaf} {
		sameAnswer(t, v, []*x509.Certificate{sent.certificate, middle.certificate},
			sent.certificate.DNSNames[0], noon)
	}
}

// TestVerifyRandomChains mixes the changes of all cases, with shared intermediates.
func TestVerifyRandomChains(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(16, 7))
	all := chainCases()
	pick := func() *chainCase { return &all[random.IntN(len(all))] }
	for round := range 20 {
		roots := x509.NewCertPool()
		var middles []*signedBy
		for i := range 3 {
			root := sign(t, apply(pick().root, authorityOf(fmt.Sprint("root ", i))), newKey(t),
				nil)
			if random.IntN(4) > 0 {
				roots.AddCert(root.certificate)
			}
			// two with one name and key, as for cross-signed roots
			middle := authorityOf(fmt.Sprint("middle ", i))
			key := newKey(t)
			middles = append(middles, sign(t, apply(pick().middle, middle), key, root),
				sign(t, apply(pick().middle, middle), key, root))
		}
		v := newVerifier(roots)
		for range 40 {
			by := middles[random.IntN(len(middles))]
			leaf := sign(t, apply(pick().leaf, siteOf("a.example")), newKey(t), by)
			sent := []*x509.Certificate{leaf.certificate}
			for range random.IntN(5) {
				sent = append(sent, middles[random.IntN(len(middles))].certificate)
			}
			at := noon.Add(time.Duration(random.IntN(120)-60) * 24 * time.Hour)
			v.now = func() time.Time { return at }
			sameAnswer(t, v, sent, "a.example", at)
		}
		if t.Failed() {
			t.Fatal("round ", round)
		}
	}
}

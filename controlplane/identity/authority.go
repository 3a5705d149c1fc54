package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"
)

// authorityYears is how long a cluster's authority is valid.
const authorityYears = 10

// Authority is the root of a cluster. Whoever has its file can make nodes of the cluster.
type Authority struct {
	Cluster   string
	GossipKey []byte             // GossipKeyBytes bytes
	SignInKey ed25519.PrivateKey // of the local issuer, shared by the cluster's API servers

	certificate *x509.Certificate
	key         ed25519.PrivateKey
}

// NewAuthority makes the authority of a new cluster, valid for 10 years. A cluster's name has 1 to
// 63 lower-case letters, digits and inner hyphens.
func NewAuthority(cluster string, now time.Time) (*Authority, error) {
	if !clusterName.MatchString(cluster) {
		return nil, Peer{Cluster: cluster}.check()
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	signIn, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "shoal cluster " + cluster},
		URIs:                  []*url.URL{clusterURI(cluster)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.AddDate(authorityYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	certificate, err := sign(template, template, key.Public().(ed25519.PublicKey), key)
	if err != nil {
		return nil, err
	}
	gossip := make([]byte, GossipKeyBytes)
	_, _ = rand.Read(gossip) // never fails: it crashes the program instead
	return &Authority{Cluster: cluster, GossipKey: gossip, SignInKey: signIn,
		certificate: certificate, key: key}, nil
}

// Issue makes an identity for a node of the cluster, valid from now for life. It needs at least one
// role of Roles.
func (a *Authority) Issue(node string, roles []string, now time.Time,
	life time.Duration) (*Identity, error) {
	peer := Peer{Cluster: a.Cluster, Node: node, Roles: ordered(roles)}
	if err := peer.check(); err != nil {
		return nil, err
	}
	end := now.Add(life)
	if life <= 0 || end.After(a.certificate.NotAfter) {
		return nil, fmt.Errorf("a life of %s: want more than 0, and an end before the "+
			"authority's at %s", life,
			a.certificate.NotAfter.Format(time.RFC3339))
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: node},
		URIs:        []*url.URL{peer.uri()},
		NotBefore:   now.Add(-skew),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := sign(template, a.certificate, key.Public().(ed25519.PublicKey), a.key)
	if err != nil {
		return nil, err
	}
	issued := &Identity{Peer: peer, GossipKey: slices.Clone(a.GossipKey), authority: a.certificate,
		certificate: certificate, key: key}
	if peer.Has(APIServer) {
		issued.SignInKey = slices.Clone(a.SignInKey)
	}
	return issued, nil
}

// validate checks that the parts of a file belong together.
func (a *Authority) validate() (err error) {
	if err := checkAuthority(a.certificate); err != nil {
		return err
	}
	if !a.key.Public().(ed25519.PublicKey).Equal(a.certificate.PublicKey) {
		return fmt.Errorf("the key is not that of the authority's certificate")
	}
	a.Cluster, err = clusterOf(a.certificate)
	return err
}

// checkAuthority returns why a certificate is not a self-signed authority.
func checkAuthority(certificate *x509.Certificate) error {
	if !certificate.IsCA || !certificate.BasicConstraintsValid {
		return fmt.Errorf("the first certificate is not that of a cluster's authority")
	}
	if err := certificate.CheckSignatureFrom(certificate); err != nil {
		return fmt.Errorf("the authority's certificate: %w", err)
	}
	return nil
}

func newKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// sign makes a certificate with a random serial number of 127 bits.
func sign(template, parent *x509.Certificate, public ed25519.PublicKey,
	by ed25519.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

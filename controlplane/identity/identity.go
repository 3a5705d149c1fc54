// Package identity owns the identities of a cluster's nodes. It has the cluster's authority (its
// certificate authority and shared keys) and the identity file issued to each node. It also has the
// TLS settings by which two nodes verify each other's name and roles. It does not decide what a
// role may do or who is a member now.
package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The roles that a node can have.
const (
	ControlPlane = "controlplane"
	Fetcher      = "fetcher"
	Ingest       = "ingest"
	Billing      = "billing"
	APIServer    = "apiserver"
)

// Roles lists all roles.
func Roles() []string { return []string{ControlPlane, Fetcher, Ingest, Billing, APIServer} }

const (
	// GossipKeyBytes is the length of the key that gossip is encrypted with.
	GossipKeyBytes = 32
	// skew is how far a node's clock may lag behind the issuer's when a new identity is first used.
	skew   = time.Hour
	scheme = "shoal"
)

// Peer is a node as its certificate names it. Roles is in the order of Roles() and not empty.
type Peer struct {
	Cluster string
	Node    string
	Roles   []string
}

// Has says whether the peer has a role.
func (p Peer) Has(role string) bool { return slices.Contains(p.Roles, role) }

// Identity is a node's proof of who it is, with the keys that it shares with the others.
type Identity struct {
	Peer
	GossipKey []byte             // GossipKeyBytes bytes
	SignInKey ed25519.PrivateKey // of the local issuer; nil without the role apiserver

	authority   *x509.Certificate
	certificate *x509.Certificate
	key         ed25519.PrivateKey
}

// Check returns why the identity is not valid now: it has expired, or is not valid yet.
func (i *Identity) Check(now time.Time) error {
	if err := checkTime(i.certificate, now); err != nil {
		return fmt.Errorf("identity of node %q: %w", i.Node, err)
	}
	return nil
}

// Expires returns when the identity expires.
func (i *Identity) Expires() time.Time { return i.certificate.NotAfter }

// validate checks that the parts of a file belong together.
func (i *Identity) validate() error {
	if err := checkAuthority(i.authority); err != nil {
		return err
	}
	if !i.key.Public().(ed25519.PublicKey).Equal(i.certificate.PublicKey) {
		return fmt.Errorf("the key is not that of the node's certificate")
	}
	cluster, err := clusterOf(i.authority)
	if err != nil {
		return err
	}
	i.Peer, err = verify(i.certificate, i.authority, cluster)
	if err != nil {
		return err
	}
	if signs := len(i.SignInKey) > 0; signs != i.Has(APIServer) {
		return fmt.Errorf("the sign-in key belongs in identities with the role %s, and in no other",
			APIServer)
	}
	return nil
}

var (
	clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	nodeName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

// check returns what is wrong with the names or roles.
func (p Peer) check() error {
	switch {
	case !clusterName.MatchString(p.Cluster):
		return fmt.Errorf("cluster name %.80q: want 1 to 63 lower-case letters, digits and "+
			"inner hyphens", p.Cluster)
	case !nodeName.MatchString(p.Node):
		return fmt.Errorf("node name %.80q: want 1 to 63 letters, digits and inner dots, "+
			"hyphens and underscores", p.Node)
	case len(p.Roles) == 0:
		return fmt.Errorf("node %q has no role", p.Node)
	}
	for _, role := range p.Roles {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("role %.80q is none of %s", role, strings.Join(Roles(), ", "))
		}
	}
	return nil
}

// uri returns the name in a node's certificate: shoal://CLUSTER/node/NAME?role=ROLE&role=ROLE.
func (p Peer) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: p.Cluster, Path: "/node/" + p.Node,
		RawQuery: url.Values{"role": p.Roles}.Encode()}
}

// clusterURI returns the name in the authority's certificate.
func clusterURI(cluster string) *url.URL {
	return &url.URL{Scheme: scheme, Host: cluster,
		Path: "/"}
}

// clusterOf returns the cluster that an authority's certificate is for.
func clusterOf(authority *x509.Certificate) (string, error) {
	if len(authority.URIs) != 1 {
		return "", fmt.Errorf("the first certificate is not that of a cluster's authority")
	}
	cluster := authority.URIs[0].Host
	if !clusterName.MatchString(cluster) ||
		authority.URIs[0].String() != clusterURI(cluster).String() {
		return "", fmt.Errorf("the first certificate is not that of a cluster's authority")
	}
	return cluster, nil
}

// named parses the name in a node's certificate. It accepts only the exact form that uri writes.
func named(certificate *x509.Certificate) (Peer, error) {
	if len(certificate.URIs) != 1 {
		return Peer{}, fmt.Errorf("the certificate names no node of a cluster")
	}
	uri := certificate.URIs[0]
	node, isNode := strings.CutPrefix(uri.Path, "/node/")
	query, err := url.ParseQuery(uri.RawQuery)
	if err != nil || !isNode {
		return Peer{}, fmt.Errorf("the certificate names no node of a cluster")
	}
	peer := Peer{Cluster: uri.Host, Node: node, Roles: ordered(query["role"])}
	if err := peer.check(); err != nil {
		return Peer{}, fmt.Errorf("the certificate's name: %w", err)
	}
	if peer.uri().String() != uri.String() {
		return Peer{}, fmt.Errorf("the certificate names no node of a cluster")
	}
	return peer, nil
}

// ordered returns roles in the order of Roles without duplicates; unknown ones come last.
func ordered(roles []string) []string {
	place := func(role string) int {
		if at := slices.Index(Roles(), role); at >= 0 {
			return at
		}
		return len(Roles())
	}
	sorted := slices.Clone(roles)
	slices.SortStableFunc(sorted, func(a, b string) int { return place(a) - place(b) })
	return slices.Compact(sorted)
}

// verify reads a node's certificate and returns why it does not belong to the cluster. It does not
// check validity times (see checkTime).
func verify(certificate, authority *x509.Certificate, cluster string) (Peer, error) {
	peer, err := named(certificate)
	if err != nil {
		return Peer{}, err
	}
	if peer.Cluster != cluster {
		return Peer{}, fmt.Errorf("node %q is of the cluster %q, not of %q", peer.Node,
			peer.Cluster, cluster)
	}
	if err := certificate.CheckSignatureFrom(authority); err != nil {
		return Peer{}, fmt.Errorf("the certificate of node %q is not from this cluster's "+
			"authority: %w", peer.Node, err)
	}
	return peer, nil
}

// checkTime returns an error if a certificate is not valid yet or has expired.
func checkTime(certificate *x509.Certificate, now time.Time) error {
	if now.Before(certificate.NotBefore) {
		return fmt.Errorf("the certificate is not valid before %s; it is %s here",
			certificate.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if now.After(certificate.NotAfter) {
		return fmt.Errorf("the certificate expired at %s; it is %s here",
			certificate.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

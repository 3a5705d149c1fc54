// Package identity owns who the nodes of a cluster are. It has the cluster's authority (its
// certificate authority and shared keys) and the identity file that each node is issued. It also
// has the TLS settings by which two nodes know each other's name and roles. What a role may do is
// not decided here, and neither is who is a member now.
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

// Roles lists them all.
func Roles() []string { return []string{ControlPlane, Fetcher, Ingest, Billing, APIServer} }

const (
	// GossipKeyBytes is the length of the key that gossip is encrypted with.
	GossipKeyBytes = 32
	// skew is how far behind the issuer's a clock may be when an identity is used at once.
	skew   = time.Hour
	scheme = "shoal"
)

// Peer is a node as its certificate names it. Roles is in the order of Roles, and not empty.
type Peer struct {
	Cluster string
	Node    string
	Roles   []string
}

// Has says whether the peer has a role.
func (p Peer) Has(role string) bool { return slices.Contains(p.Roles, role) }

// Identity is what a node proves who it is with, and what it shares with the others.
type Identity struct {
	Peer
	GossipKey []byte             // GossipKeyBytes bytes
	SignInKey ed25519.PrivateKey // of the local issuer; nil without the role apiserver

	authority   *x509.Certificate
	certificate *x509.Certificate
	key         ed25519.PrivateKey
}

// Check says why the identity is not good now: it has expired, or is not valid yet.
func (i *Identity) Check(now time.Time) error {
	if err := checkTime(i.certificate, now); err != nil {
		return fmt.Errorf("identity of node %q: %w", i.Node, err)
	}
	return nil
}

// Expires is when the identity is not good any more.
func (i *Identity) Expires() time.Time { return i.certificate.NotAfter }

// validate holds the parts of a file that was read against each other.
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

// check says what is wrong with names and roles.
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

// uri is the name in a node's certificate: shoal://CLUSTER/node/NAME?role=ROLE&role=ROLE.
func (p Peer) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: p.Cluster, Path: "/node/" + p.Node,
		RawQuery: url.Values{"role": p.Roles}.Encode()}
}

// clusterURI is the name in the authority's certificate.
func clusterURI(cluster string) *url.URL {
	return &url.URL{Scheme: scheme, Host: cluster,
		Path: "/"}
}

// clusterOf is the cluster that an authority's certificate is for.
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

// named reads the name in a node's certificate, in the one form in which uri writes it.
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

// ordered puts roles into the order of Roles, each once; unknown ones stand last.
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

// verify reads a node's certificate and says why it is none of the cluster. Times are another
// matter (checkTime).
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

// checkTime says that a certificate is not valid yet, or has expired.
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

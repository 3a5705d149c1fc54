package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// TLSServer returns the settings of a node that is called: TLS 1.3, and only nodes of the cluster
// get through. now returns the time at which certificates are checked.
func (i *Identity) TLSServer(now func() time.Time) *tls.Config {
	config := i.config(now)
	// verified below, against this cluster's authority
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		_, err := i.admit(state, now(), x509.ExtKeyUsageClientAuth)
		return err
	}
	return config
}

// TLSClient returns the settings of a node that calls. The called node must have the given name and
// role; "" accepts any.
func (i *Identity) TLSClient(now func() time.Time, node, role string) *tls.Config {
	config := i.config(now)
	// certificates name nodes, not DNS hosts, so everything is verified below
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		peer, err := i.admit(state, now(), x509.ExtKeyUsageServerAuth)
		switch {
		case err != nil:
			return err
		case node != "" && peer.Node != node:
			return fmt.Errorf("identity: node %q answers, and not node %q", peer.Node, node)
		case role != "" && !peer.Has(role):
			return fmt.Errorf("identity: node %q does not have the role %s", peer.Node, role)
		}
		return nil
	}
	return config
}

func (i *Identity) config(now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       now,
		Certificates: []tls.Certificate{{Certificate: [][]byte{i.certificate.Raw},
			PrivateKey: i.key,
			Leaf:       i.certificate}},
		SessionTicketsDisabled: true, // every connection must show its certificate
	}
}

// admit returns the peer of a connection, if it is a node of this cluster with a certificate that
// is valid now.
func (i *Identity) admit(state tls.ConnectionState, now time.Time, usage x509.ExtKeyUsage) (Peer,
	error) {
	if len(state.PeerCertificates) == 0 {
		return Peer{}, errNoCertificate
	}
	certificate := state.PeerCertificates[0]
	peer, err := verify(certificate, i.authority, i.Cluster)
	if err != nil {
		return Peer{}, fmt.Errorf("identity: %w", err)
	}
	if err := checkTime(certificate, now); err != nil {
		return Peer{}, fmt.Errorf("identity: node %q: %w", peer.Node, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(i.authority)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return Peer{}, fmt.Errorf("identity: node %q: %w", peer.Node, err)
	}
	return peer, nil
}

var errNoCertificate = errors.New("identity: the peer shows no certificate")

// PeerOf returns the node at the other end of a connection that TLSServer or TLSClient let through.
func PeerOf(state tls.ConnectionState) (Peer, error) {
	if len(state.PeerCertificates) == 0 {
		return Peer{}, errNoCertificate
	}
	peer, err := named(state.PeerCertificates[0])
	if err != nil {
		return Peer{}, fmt.Errorf("identity: %w", err)
	}
	return peer, nil
}

// Package oidc checks the bearer tokens of an OpenID Connect issuer (decision 31), and signs
// browsers in there. It covers the discovery document, the issuer's keys and their rotation, and
// what a valid token has to say. Package auth decides what the caller may do.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
)

// Config is what an Issuer needs. All but Admins, ClientID and ClientSecret must be set.
type Config struct {
	// Issuer is the issuer's name as its tokens spell it: an address that CheckIssuer accepts.
	Issuer string
	// Audiences are the names of this service. A token must be for one of them.
	Audiences []string
	// Admins are subjects with the role admin, whatever their tokens say (decision 56).
	Admins []string
	// ClientID is this service's name at the issuer, for browsers to sign in; "": they cannot.
	// ClientSecret proves it, if the issuer has given one.
	ClientID, ClientSecret string
	// Egress is the way to the issuer. It alone checks addresses.
	Egress *egress.Client
	Clock  clock.Clock
	Logger *slog.Logger
}

// Issuer checks the tokens of one issuer. Run keeps its keys fresh. It is safe for concurrent use.
type Issuer struct {
	config Config
	keys   *source
}

// New makes an issuer. It sends no request before Run.
func New(config Config) (*Issuer, error) {
	if err := CheckIssuer(config.Issuer); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	if len(config.Audiences) == 0 {
		return nil, errors.New("oidc: tokens have to be for some audience")
	}
	return &Issuer{config: config, keys: newSource(&config)}, nil
}

// maxIssuer bounds the address of an issuer, in bytes.
const maxIssuer = 512

// CheckIssuer says why an address cannot be an issuer's. It must be https, since whoever can change
// a plain http answer can sign in as anybody. Addresses of this machine may be http.
func CheckIssuer(address string) error {
	at, err := url.Parse(address)
	switch {
	case err != nil || at.Host == "" || len(address) > maxIssuer:
		return fmt.Errorf("want an address of at most %d bytes, such as https://id.example",
			maxIssuer)
	case at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return errors.New("the address of an issuer has no user, query or fragment")
	}
	return checkScheme(at)
}

// checkScheme accepts https, and http to this machine.
func checkScheme(at *url.URL) error {
	if at.Scheme == "https" || at.Scheme == "http" && isLoopback(at.Hostname()) {
		return nil
	}
	return errors.New("want https://, or http:// on this machine (localhost)")
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// Run fetches the keys, and refreshes them from time to time, until ctx ends. It never fails; State
// says whether the issuer is reachable.
func (i *Issuer) Run(ctx context.Context) { i.keys.run(ctx) }

// State describes the keys.
type State struct {
	Reachable bool          // the last fetch succeeded
	Keys      int           // in use for checking tokens; 0: none
	Age       time.Duration // of these keys
	Fetched   int64         // successful fetches
	Failed    int64         // failed fetches
}

// State is the current state of the keys.
func (i *Issuer) State() State { return i.keys.state() }

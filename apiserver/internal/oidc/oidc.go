// Package oidc owns the bearer tokens of an OpenID Connect issuer (decision 31), and how browsers
// sign in there. It has the issuer's discovery document, its keys and how they change, and what a
// token has to say to hold.
// What the caller may do with it is for package auth to say.
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

// Config is what an Issuer needs. All but Admins and the client's must be set.
type Config struct {
	// Issuer is the issuer's name as its tokens spell it: an address that CheckIssuer takes.
	Issuer string
	// Audiences are the names of this service: a token has to be for one of them.
	Audiences []string
	// Admins are subjects with the role admin, whatever their tokens say (decision 56).
	Admins []string
	// ClientID is this service's name at the issuer, by which browsers sign in; "": none do.
	// ClientSecret proves it, where the issuer has given one.
	ClientID, ClientSecret string
	// Egress is the way to the issuer: it alone checks addresses.
	Egress *egress.Client
	Clock  clock.Clock
	Logger *slog.Logger
}

// Issuer checks the tokens of one issuer. Run keeps its keys; it is safe for concurrent use.
type Issuer struct {
	config Config
	keys   *source
}

// New makes an issuer. It asks for nothing before Run.
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

// CheckIssuer says why an address cannot be that of an issuer. It is https: whoever can change an
// answer of plain http can sign in as anybody. This machine's own addresses may have http.
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

// checkScheme lets https pass, and http to this machine.
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

// Run fetches the keys, and fetches them anew from time to time, until ctx ends. It never fails: as
// long as the issuer is away, State says so.
func (i *Issuer) Run(ctx context.Context) { i.keys.run(ctx) }

// State is how it stands with the keys.
type State struct {
	Reachable bool          // the last attempt to fetch them went well
	Keys      int           // that tokens are checked with; 0 while there are none
	Age       time.Duration // of these keys
	Fetched   int64         // attempts that went well
	Failed    int64         // attempts that did not
}

// State is how it stands now.
func (i *Issuer) State() State { return i.keys.state() }

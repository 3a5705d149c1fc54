package service

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/pkg/egress"
)

// OpenIDFlags say whose tokens sign customers in, beside those of the local issuer.
type OpenIDFlags struct {
	Issuer   string         `group:"sign-in" help:"OpenID Connect issuer whose tokens sign customers in: its address as its tokens spell it, https. None by default: 'shoal token' signs in." placeholder:"URL"`
	Audience []string       `group:"sign-in" help:"Audiences that its tokens are for: the client or API as which this service is registered there. One of them will do." placeholder:"NAME"`
	Admins   []string       `group:"sign-in" help:"Subjects of its tokens that administer the service, as do tokens with the role admin." placeholder:"SUB"`
	Allow    []netip.Prefix `group:"sign-in" help:"Private ranges that the issuer may stand in; pages are never read there." placeholder:"CIDR"`
	CAFile   string         `name:"ca-file" group:"sign-in" help:"Authorities of the issuer's certificate (PEM), instead of the system's." type:"path" placeholder:"FILE"`
}

// check says what cannot work. It reads the file of authorities.
func (o *OpenIDFlags) check() error {
	if o.Issuer == "" {
		if len(o.Audience)+len(o.Admins)+len(o.Allow) > 0 || o.CAFile != "" {
			return errors.New("--oidc-audience, --oidc-admins, --oidc-allow, --oidc-ca-file: " +
				"need --oidc-issuer")
		}
		return nil
	}
	if err := apiserver.CheckIssuer(o.Issuer); err != nil {
		return fmt.Errorf("--oidc-issuer: %w", err)
	}
	if len(o.Audience) == 0 {
		return errors.New("--oidc-issuer: needs --oidc-audience, or tokens for other services " +
			"would do here")
	}
	_, err := authorities("--oidc-ca-file", o.CAFile)
	return err
}

// Bounds of the way to the issuer, which one goroutine goes for a document at a time.
const (
	issuerExchanges = 2
	issuerBuffers   = 1 << 20         // bytes
	issuerIdle      = 1 * time.Second // its next document is asked for at once, or in minutes
)

// openOpenID makes the way to the issuer, nil when none is configured.
func (n *node) openOpenID() (*apiserver.OpenID, error) {
	o := n.config.OpenID
	if o.Issuer == "" {
		return nil, nil
	}
	roots, err := authorities("--oidc-ca-file", o.CAFile)
	if err != nil {
		return nil, err
	}
	out, err := egress.New(egress.Config{Allow: o.Allow, Origins: n.config.Origins,
		RootCAs: roots, MaxExchanges: issuerExchanges, MaxIdle: issuerExchanges,
		IdleTimeout: issuerIdle, MaxBuffered: issuerBuffers})
	if err != nil {
		return nil, err
	}
	n.closeLater(func() error { out.Close(); return nil })
	return &apiserver.OpenID{Issuer: o.Issuer, Audiences: o.Audience, Admins: o.Admins,
		Egress: out}, nil
}

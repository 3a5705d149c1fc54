package service

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/pkg/egress"
)

// OpenIDFlags say whose tokens sign customers in, besides those of the local issuer.
type OpenIDFlags struct {
	Issuer           string         `group:"sign-in" help:"OpenID Connect issuer whose tokens sign customers in: its address as its tokens spell it, https. None by default: 'shoal token' signs in." placeholder:"URL"`
	Audience         []string       `group:"sign-in" help:"Audiences that its tokens are for: the client or API as which this service is registered there. One of them will do." placeholder:"NAME"`
	Admins           []string       `group:"sign-in" help:"Subjects of its tokens that administer the service, as do tokens with the role admin." placeholder:"SUB"`
	Allow            []netip.Prefix `group:"sign-in" help:"Private ranges that the issuer may stand in; pages are never read there." placeholder:"CIDR"`
	ClientID         string         `name:"client-id" group:"sign-in" help:"What the issuer calls this service: browsers sign in there then, and come back to /sign-in/openid/callback. Register that address below --public-url. ID tokens for it do in calls only if it is an audience." placeholder:"NAME"`
	ClientSecretFile string         `name:"client-secret-file" group:"sign-in" help:"File with the secret that goes with it; none for a public client." type:"path" placeholder:"FILE"`
	CAFile           string         `name:"ca-file" group:"sign-in" help:"Authorities of the issuer's certificate (PEM), instead of the system's." type:"path" placeholder:"FILE"`
}

// check reports settings that cannot work. It reads the CA file.
func (o *OpenIDFlags) check() error {
	if o.Issuer == "" {
		if len(o.Audience)+len(o.Admins)+len(o.Allow) > 0 ||
			o.CAFile+o.ClientID+o.ClientSecretFile != "" {
			return errors.New("--oidc-audience, --oidc-admins, --oidc-allow, --oidc-ca-file, " +
				"--oidc-client-id, --oidc-client-secret-file: need --oidc-issuer")
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
	if o.ClientID == "" && o.ClientSecretFile != "" {
		return errors.New("--oidc-client-secret-file: needs --oidc-client-id")
	}
	if o.ClientID != "" {
		if err := apiserver.CheckOpenIDClient(o.ClientID); err != nil {
			return fmt.Errorf("--oidc-client-id: %w", err)
		}
	}
	if _, err := o.secret(); err != nil {
		return err
	}
	_, err := authorities("--oidc-ca-file", o.CAFile)
	return err
}

// secret is the client secret, "" if it has none.
func (o *OpenIDFlags) secret() (string, error) {
	if o.ClientSecretFile == "" {
		return "", nil
	}
	return secret("--oidc-client-secret", "", o.ClientSecretFile)
}

// Bounds of the connections to the issuer. One goroutine fetches one document at a time, and
// browsers that return from sign-in cause further calls.
const (
	issuerExchanges = 8
	issuerBuffers   = 1 << 20         // bytes
	issuerIdle      = 1 * time.Second // the next document is fetched at once, or in minutes
)

// openOpenID makes the client of the issuer, nil if none is configured.
func (n *node) openOpenID() (*apiserver.OpenID, error) {
	o := n.config.OpenID
	if o.Issuer == "" {
		return nil, nil
	}
	roots, err := authorities("--oidc-ca-file", o.CAFile)
	if err != nil {
		return nil, err
	}
	secret, err := o.secret()
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
		ClientID: o.ClientID, ClientSecret: secret, Egress: out}, nil
}

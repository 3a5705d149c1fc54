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
	Issuer           string         `group:"sign-in" help:"OpenID Connect issuer whose tokens sign customers in: its https address, spelled as in its tokens. None by default: 'shoal token' makes sign-in tokens." placeholder:"URL"`
	Audience         []string       `group:"sign-in" help:"Accepted audiences of its tokens: the client or API registered at the issuer for this service. A token needs one of them." placeholder:"NAME"`
	Admins           []string       `group:"sign-in" help:"Subjects whose tokens administer the service, besides tokens with the role admin." placeholder:"SUB"`
	Allow            []netip.Prefix `group:"sign-in" help:"Private address ranges that the issuer may be in. Pages are never fetched from them." placeholder:"CIDR"`
	ClientID         string         `name:"client-id" group:"sign-in" help:"Client id of this service at the issuer. Browsers then sign in there and return to /sign-in/openid/callback below --public-url, which you register at the issuer. API calls accept ID tokens for this client only if --oidc-audience names it." placeholder:"NAME"`
	ClientSecretFile string         `name:"client-secret-file" group:"sign-in" help:"File with the secret of --oidc-client-id; none for a public client." type:"path" placeholder:"FILE"`
	CAFile           string         `name:"ca-file" group:"sign-in" help:"Certificate authorities for the issuer (PEM), instead of the system's." type:"path" placeholder:"FILE"`
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

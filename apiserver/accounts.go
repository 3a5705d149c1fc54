package apiserver

import (
	"time"

	"shoal.dev/shoal/apiserver/api/signin"
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/oidc"
	"shoal.dev/shoal/apiserver/portal"
	"shoal.dev/shoal/pkg/ids"
)

// openAccounts makes the service that signs people in.
func openAccounts(config Config, issuer *auth.Issuer, m *metrics) (*accounts.Service, error) {
	key, err := issuer.Derive("devices that have signed in")
	if err != nil {
		return nil, err
	}
	links, err := openLinks(issuer, config.PublicURL)
	if err != nil {
		return nil, err
	}
	return accounts.New(accounts.Config{HashKiB: config.HashKiB, Client: config.Client,
		Limiter: config.Limiter,
		Clock:   config.Clock, IDs: config.IDs, DeviceKey: key, Logger: config.Logger,
		Links: links, Mails: config.Mails, Once: config.Once,
		Count: func(o accounts.Outcome) { m.signIns.WithLabelValues(string(o)).Inc() }}), nil
}

// openPeople sets up sign-in by browser: accounts, the portal, and the issuer or grants.
func (s *Server) openPeople(issuer *auth.Issuer, m *metrics) (err error) {
	if s.openID != nil && !s.openID.SignsIn() {
		return nil
	}
	if s.accounts, err = openAccounts(s.config, issuer, m); err != nil {
		return err
	}
	s.portal, err = portal.New(hasSession, s.followSession, s.config.Payments != nil)
	if err != nil {
		return err
	}
	s.chain.Public = s.config.PublicURL
	if s.openID != nil {
		s.signsIn, err = openSignIn(s.config, issuer, s.openID)
		return err
	}
	s.chain.Metadata = signin.MetadataPath
	s.grants, err = openGrants(s.config, issuer)
	return err
}

// openSignIn makes the redirect of browsers to an issuer and back.
func openSignIn(config Config, issuer *auth.Issuer, at *oidc.Issuer) (*signin.OpenID, error) {
	key, err := issuer.Derive("sign-ins at an issuer")
	return &signin.OpenID{Issuer: at, Key: key, Clock: config.Clock}, err
}

// Once is a link that signs one person in, once, on this machine and without a password.
type Once = accounts.Once

// NewOnce makes a one-time sign-in link of an account, valid until expires. address is its path
// below the service's address, and is a secret.
func NewOnce(email string, expires time.Time) (once *Once, address string) {
	return accounts.NewOnce(email, expires)
}

// openLinks makes the links that e-mails contain.
func openLinks(issuer *auth.Issuer, public string) (accounts.Links, error) {
	key, err := issuer.Derive("links of letters")
	return accounts.Links{Key: key, Public: public}, err
}

// CheckPublicURL reports why an address cannot be the service's public URL.
func CheckPublicURL(address string) error { return accounts.CheckPublic(address) }

// LetterLinks returns a function that makes the link of an e-mail, as the server with this data
// directory makes it. public is where browsers find the service.
func LetterLinks(dataDir, public string) (func(letter ids.ID) string, error) {
	issuer, err := auth.OpenIssuer(dataDir)
	if err != nil {
		return nil, err
	}
	links, err := openLinks(issuer, public)
	return links.To, err
}

package auth

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// A session's secret has the form svc_session_<secret>.
const (
	sessionStart  = "svc_session_"
	sessionLength = len(sessionStart) + 52
)

// NewSessionSecret makes a secret of 260 random bits. Only the browser keeps it.
func NewSessionSecret() string { return sessionStart + rand.Text() + rand.Text() }

// HashSession is the hash of a secret, which is all that the service keeps.
func HashSession(secret string) client.Hash { return sha256.Sum256([]byte(secret)) }

// isSession says whether a text has the form of a session's secret.
func isSession(text string) bool {
	return len(text) == sessionLength && strings.HasPrefix(text, sessionStart)
}

// findSession finds the open session of a secret and its account, nil if there is none.
func (a *Authenticator) findSession(view *client.View, secret string) (*client.Session,
	*client.Account) {
	session := view.Session(HashSession(secret))
	if session == nil || session.Ended(a.Clock.Now().UnixMilli()) {
		return nil, nil
	}
	return session, view.Account(session.Account)
}

var errSession = fault.New(fault.Unauthorized, "the session has ended: sign in again")

// Derive derives a 32-byte key for a purpose. It is the same on all servers with this sign-in key.
func (i *Issuer) Derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, i.seed(), nil, purpose, 32)
}

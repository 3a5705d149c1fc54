package accounts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Attested is the answer of an authenticator that has made a passkey.
type Attested struct {
	Credential  []byte // its id
	ClientData  []byte // JSON of the browser
	Attestation []byte // CBOR of the authenticator
}

// Asserted is the answer of an authenticator that a person has unlocked to sign in.
type Asserted struct {
	Credential    []byte
	ClientData    []byte
	Authenticator []byte
	Signature     []byte
	User          []byte // the account's id
}

// PasskeyAlgorithms are the accepted kinds of keys, the preferred one first, by their COSE numbers:
// ES256, EdDSA and RS256.
func PasskeyAlgorithms() []int64 {
	return []int64{int64(webauthncose.AlgES256), int64(webauthncose.AlgEdDSA),
		int64(webauthncose.AlgRS256)}
}

// RelyingParty is the name to which passkeys of a place are bound. The place is where a browser
// finds the service, as SCHEME://HOST. Faults: invalid_request if browsers take no passkeys there.
func RelyingParty(place string) (string, error) {
	at, err := url.Parse(place)
	if err != nil || at.Hostname() == "" {
		return "", fault.Invalid(fault.InvalidRequest, "Host", "must be a name")
	}
	if _, err := netip.ParseAddr(at.Hostname()); err == nil {
		return "", fault.New(fault.InvalidRequest, "browsers take passkeys for names alone, not for "+
			"%s: open the service by its name, or http://localhost on this machine", at.Hostname())
	}
	return at.Hostname(), nil
}

// ceremony holds the rules for passkeys of a place.
func ceremony(place string) (*webauthn.WebAuthn, error) {
	name, err := RelyingParty(place)
	if err != nil {
		return nil, err
	}
	return webauthn.New(&webauthn.Config{RPID: name, RPDisplayName: name,
		RPOrigins: []string{place}})
}

// owner is an account in the form that the library expects.
type owner struct {
	account *client.Account
	passkey *client.Passkey // nil: it has none yet
}

func (o owner) WebAuthnID() []byte          { return o.account.ID[:] }
func (o owner) WebAuthnName() string        { return o.account.Email }
func (o owner) WebAuthnDisplayName() string { return o.account.Email }

func (o owner) WebAuthnCredentials() []webauthn.Credential {
	return []webauthn.Credential{{ID: o.passkey.Credential, PublicKey: o.passkey.PublicKey,
		Flags: webauthn.CredentialFlags{BackupEligible: o.passkey.Synced}}}
}

// AskForPasskey makes the challenge for a new passkey of the caller's account. It requires the
// password, so that someone who finds an open browser cannot get in for good. Faults: those of
// ChangePassword.
func (s *Service) AskForPasskey(ctx context.Context, p *auth.Principal, c Change) (
	account *client.Account, challenge string, retry time.Duration, err error) {
	account, retry, err = s.prove(ctx, p, &c)
	if err != nil {
		return nil, "", retry, err
	}
	return account, s.newChallenge(addingTo(account)), 0, nil
}

// addingTo is the use of a challenge for a new passkey. A change of the password invalidates it.
func addingTo(account *client.Account) string {
	return "add " + account.ID.String() + " " + account.Password
}

// NewPasskey is a passkey to be added.
type NewPasskey struct {
	Name   string // name given by the person
	Place  string // where the browser found the service
	Answer Attested
}

const (
	maxPasskeyName = 64   // characters
	maxCredential  = 1023 // bytes (Web Authentication, Level 3, section 4)
	maxPublicKey   = 2048 // bytes; RSA with 8,192 bits has 1,100
)

// AddPasskey adds a passkey to the account of the caller's session. Faults: invalid_request,
// unauthorized, passkey_taken, limit_reached, unavailable.
func (s *Service) AddPasskey(ctx context.Context, p *auth.Principal, n *NewPasskey) (
	client.Passkey, error) {
	account, err := s.own(ctx, p)
	if err != nil {
		return client.Passkey{}, err
	}
	name := strings.TrimSpace(n.Name)
	if name == "" || utf8.RuneCountInString(name) > maxPasskeyName {
		return client.Passkey{}, fault.Invalid(fault.InvalidRequest, "name",
			"has 1 to %d characters", maxPasskeyName)
	}
	rules, err := ceremony(n.Place)
	if err != nil {
		return client.Passkey{}, err
	}
	made, err := s.checkNew(rules, account, &n.Answer)
	if err != nil {
		return client.Passkey{}, fault.Wrap(fault.InvalidRequest, err, "the answer of the "+
			"authenticator does not hold: try again")
	}
	return client.Do(as(ctx, account), s.Client, client.AddPasskey{ID: s.IDs.New(),
		Account: account.ID, Password: account.Password, Name: name, Credential: made.ID,
		PublicKey: made.PublicKey, Count: made.Authenticator.SignCount,
		Synced: made.Flags.BackupEligible}, nil)
}

// checkNew checks an authenticator's answer against its challenge.
func (s *Service) checkNew(rules *webauthn.WebAuthn, account *client.Account, answer *Attested) (
	*webauthn.Credential, error) {
	response := protocol.CredentialCreationResponse{
		PublicKeyCredential: credential(answer.Credential)}
	response.AttestationResponse.ClientDataJSON = answer.ClientData
	response.AttestationResponse.AttestationObject = answer.Attestation
	parsed, err := response.Parse()
	if err != nil {
		return nil, err
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	if _, good := s.asked(addingTo(account), challenge); !good {
		return nil, errChallenge
	}
	session := webauthn.SessionData{Challenge: challenge, UserID: account.ID[:],
		UserVerification: protocol.VerificationRequired}
	for _, algorithm := range PasskeyAlgorithms() {
		session.CredParams = append(session.CredParams, protocol.CredentialParameter{
			Type:      protocol.PublicKeyCredentialType,
			Algorithm: webauthncose.COSEAlgorithmIdentifier(algorithm)})
	}
	made, err := rules.CreateCredential(owner{account: account}, session, parsed)
	if err == nil && (len(made.ID) > maxCredential || len(made.PublicKey) > maxPublicKey) {
		err = errors.New("the passkey is too large")
	}
	return made, err
}

var errChallenge = errors.New("the challenge is not of this service, or too old")

func credential(id []byte) protocol.PublicKeyCredential {
	return protocol.PublicKeyCredential{RawID: id, Credential: protocol.Credential{
		ID:   base64.RawURLEncoding.EncodeToString(id),
		Type: string(protocol.PublicKeyCredentialType)}}
}

// RemovePasskey removes a passkey of the caller's account. It succeeds if there is none.
func (s *Service) RemovePasskey(ctx context.Context, p *auth.Principal, id ids.ID) error {
	account, err := s.own(ctx, p)
	if err != nil {
		return err
	}
	_, err = client.Do(as(ctx, account), s.Client, client.RemovePasskey{Account: account.ID,
		Passkey: id}, nil)
	return err
}

// AskPasskey makes the challenge for a sign-in in one browser.
func (s *Service) AskPasskey(browser string) string { return s.newChallenge("sign in " + browser) }

// PasskeyAttempt is a person who wants to sign in by a passkey.
type PasskeyAttempt struct {
	Place   string // where the browser found the service
	Browser string // for which the challenge was made
	Answer  Asserted
	Address netip.Addr
	Device  string // the device text that the browser has kept, "" for none
}

var errPasskey = fault.New(fault.Unauthorized, "this passkey signs nobody in: try again, or use "+
	"the password")

// SignInByPasskey begins a session. Faults: invalid_request, unauthorized, rate_limited (retry says
// for how long), unavailable, account_disabled, customer_blocked.
func (s *Service) SignInByPasskey(ctx context.Context, a *PasskeyAttempt) (opened Opened,
	retry time.Duration, err error) {
	rules, err := ceremony(a.Place)
	if err != nil {
		return Opened{}, 0, err
	}
	event := Event{Outcome: Refused, Address: a.Address}
	defer func() {
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Internal {
			s.note(ctx, event)
		}
	}()
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Opened{}, 0, fmt.Errorf("read the state: %w", err)
	}
	// Guesses at passwords do not count here, so they lock no passkey out.
	if retry = s.take(ctx, bucket{"passkeys from " + forwarded.Holder(a.Address),
		guessesOfAddress}); retry > 0 {
		event.Outcome = TooOften
		return Opened{}, retry, fault.New(fault.RateLimited,
			"too many attempts with passkeys: try again in %s, or use the password", wait(retry))
	}
	o := owner{passkey: view.PasskeyOf(a.Answer.Credential)}
	if o.passkey != nil {
		o.account = view.Account(o.passkey.Account)
	}
	if o.account == nil {
		return Opened{}, 0, errPasskey
	}
	event.Email, event.Customer = o.account.Email, o.account.Customer
	use, err := s.checkUse(rules, o, a)
	if err != nil {
		s.Logger.Info("a passkey's answer does not hold", "customer", event.Customer, "error", err)
		return Opened{}, 0, errPasskey
	}
	secret := auth.NewSessionSecret()
	use.Passkey, use.Hash = o.passkey.ID, auth.HashSession(secret)
	if _, err := client.Do(as(ctx, o.account), s.Client, use, nil); err != nil {
		return Opened{}, 0, err
	}
	event.Outcome = SignedIn
	return s.opened(secret, a.Device, o.account), 0, nil
}

// checkUse checks an authenticator's answer against its challenge and the passkey.
func (s *Service) checkUse(rules *webauthn.WebAuthn, o owner, a *PasskeyAttempt) (
	client.UsePasskey, error) {
	response := protocol.CredentialAssertionResponse{
		PublicKeyCredential: credential(a.Answer.Credential)}
	response.AssertionResponse.ClientDataJSON = a.Answer.ClientData
	response.AssertionResponse.AuthenticatorData = a.Answer.Authenticator
	response.AssertionResponse.Signature = a.Answer.Signature
	response.AssertionResponse.UserHandle = a.Answer.User
	parsed, err := response.Parse()
	if err != nil {
		return client.UsePasskey{}, err
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	at, good := s.asked("sign in "+a.Browser, challenge)
	if !good || a.Browser == "" {
		return client.UsePasskey{}, errChallenge
	}
	session := webauthn.SessionData{Challenge: challenge,
		UserVerification: protocol.VerificationRequired}
	_, used, err := rules.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) {
		return o, nil
	}, session, parsed)
	if err != nil {
		return client.UsePasskey{}, err
	}
	return client.UsePasskey{Asked: at, Count: used.Authenticator.SignCount}, nil
}

package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a token.
const (
	leeway     = time.Minute // between the clocks of issuer and service
	maxToken   = 16 << 10    // bytes
	maxSubject = 128         // bytes
	roleAdmin  = "admin"
)

// Identity is what a valid token says about the caller.
type Identity struct {
	Subject string // 1 to 128 bytes of printable text
	Admin   bool   // by its roles, or by Config.Admins
	Email   string // verified by the issuer; "" if it gives none
	// Until is the last Unix millisecond of the token, including the leeway between clocks.
	Until int64
}

// claims are what is read of a token. Names are case-sensitive, and none may come twice.
type claims struct {
	jwt.Claims
	Roles         roles    `json:"roles"`
	Nonce         text     `json:"nonce"`
	Party         text     `json:"azp"`
	Email         text     `json:"email"`
	EmailVerified verified `json:"email_verified"`
}

// roles are names, as a list or a single one. A value of another form has none.
type roles []string

// UnmarshalJSON implements json.Unmarshaler.
func (r *roles) UnmarshalJSON(data []byte) error {
	var one string
	switch {
	case json.Unmarshal(data, (*[]string)(r)) == nil:
	case json.Unmarshal(data, &one) == nil:
		*r = roles{one}
	default:
		*r = nil
	}
	return nil
}

// text is a string; a value of another form is "".
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(t)) != nil {
		*t = ""
	}
	return nil
}

// verified is true, or "true" as some issuers write it.
type verified bool

// UnmarshalJSON implements json.Unmarshaler.
func (v *verified) UnmarshalJSON(data []byte) error {
	*v = string(data) == "true" || string(data) == `"true"`
	return nil
}

// Check checks a token. Its faults are unauthorized, with the reason, and unavailable if the
// issuer's keys are needed but cannot be fetched. A token of an unknown key waits for a fetch of
// the keys, as long as ctx allows.
func (i *Issuer) Check(ctx context.Context, token string) (Identity, error) {
	return i.check(ctx, token, wanted{audiences: i.config.Audiences})
}

// wanted is what a token must be for.
type wanted struct {
	audiences []string // one of them
	// client is the expected client of an ID token from a browser's sign-in, and nonce the value
	// sent there; "": the token is for a call.
	client, nonce string
}

// check is Check for a given use.
func (i *Issuer) check(ctx context.Context, token string, want wanted) (Identity, error) {
	hash := sha256.Sum256([]byte(token))
	if keys := i.keys.current(); keys != nil {
		if said, known := keys.verified.recall(hash); known {
			return i.identify(said, want)
		}
	}
	signed, err := parse(token)
	if err != nil {
		return Identity{}, fault.Wrap(fault.Unauthorized, err, "the token cannot be read, or is "+
			"signed by none of RS256, ES256 and EdDSA")
	}
	// Look at the claims first, since that costs no verification and no fetch of keys. Nothing in
	// them is trusted before the signature over the same bytes is verified.
	var said claims
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &said); err != nil {
		return Identity{}, fault.Wrap(fault.Unauthorized, err, "the token's claims cannot be read")
	}
	who, err := i.identify(said, want)
	if err != nil {
		return Identity{}, err
	}
	keys, err := i.verify(ctx, signed)
	if err != nil {
		return Identity{}, err
	}
	keys.verified.keep(hash, said, len(token))
	return who, nil
}

// parse accepts what may be a token for this service: signed once, in the compact form.
func parse(token string) (*jose.JSONWebSignature, error) {
	if len(token) > maxToken {
		return nil, errors.New("too long")
	}
	signed, err := jose.ParseSignedCompact(token, algorithms[:])
	if err != nil {
		return nil, err
	}
	header := signed.Signatures[0].Protected
	if _, told := header.ExtraHeaders["b64"]; told {
		return nil, errors.New("a token's payload is base64 (RFC 7797, 7)")
	}
	if _, told := header.ExtraHeaders["crit"]; told {
		return nil, errors.New("a critical header that is not known")
	}
	kind, named := header.ExtraHeaders[jose.HeaderType]
	if name, _ := kind.(string); named && !isBearer(name) {
		return nil, errors.New("a token of another type, not for calls")
	}
	return signed, nil
}

// isBearer says whether tokens of a type are for calls: ID tokens and access tokens. Others of the
// same issuer, such as logout tokens, are not.
func isBearer(kind string) bool {
	kind = strings.ToLower(kind)
	return slices.Contains([]string{"jwt", "at+jwt"}, strings.TrimPrefix(kind, "application/"))
}

// identify says whose token it is, if it is valid now and for this use.
func (i *Issuer) identify(c claims, want wanted) (Identity, error) {
	c.IssuedAt = nil // a future time shows that our clock is behind, not a bad token
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.config.Issuer,
		AnyAudience: want.audiences, Time: i.config.Clock.Now()}, leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return Identity{}, refuse("the token is of another issuer")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Identity{}, refuse("the token is for another audience")
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, refuse("the token has expired")
	case errors.Is(err, jwt.ErrNotValidYet):
		return Identity{}, refuse("the token is not valid yet")
	case err != nil:
		return Identity{}, fault.Wrap(fault.Unauthorized, err, "the token is not valid")
	case c.Expiry == nil:
		return Identity{}, refuse("the token has no expiry")
	case want.client != "" && (len(c.Audience) > 1 || c.Party != "") &&
		string(c.Party) != want.client:
		return Identity{}, refuse("the token was given to another client")
	case want.client != "" && (want.nonce == "" || subtle.ConstantTimeCompare([]byte(c.Nonce),
		[]byte(want.nonce)) != 1):
		return Identity{}, refuse("the token answers another sign-in")
	case !isSubject(c.Subject):
		return Identity{}, refuse("the token has no subject of 1 to 128 printable bytes")
	}
	said := Identity{Subject: c.Subject, Admin: slices.Contains(c.Roles, roleAdmin) ||
		slices.Contains(i.config.Admins, c.Subject),
		Until: c.Expiry.Time().Add(leeway).UnixMilli()}
	if c.EmailVerified {
		said.Email = string(c.Email)
	}
	return said, nil
}

func refuse(detail string) error { return fault.New(fault.Unauthorized, "%s", detail) }

func isSubject(name string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxSubject && utf8.ValidString(name) &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unprintable)
}

// maxRefreshes is how often the keys are fetched for one token. An attempt that began before the
// token came may miss its key; then one more is needed.
const maxRefreshes = 2

// verify checks the signature against the keys, and refreshes them if none fits. It returns the
// keys that verified it.
func (i *Issuer) verify(ctx context.Context, token *jose.JSONWebSignature) (*keySet, error) {
	for refreshes := 0; ; refreshes++ {
		keys := i.keys.current()
		err := errNoKey
		if keys != nil {
			err = keys.verify(token)
		}
		switch {
		case err == nil:
			return keys, nil
		case !errors.Is(err, errNoKey):
			return nil, fault.Wrap(fault.Unauthorized, err, "the token's signature is not valid")
		}
		again, err := i.keys.refresh(ctx, keys)
		switch {
		case err != nil:
			return nil, fault.Wrap(fault.Unavailable, err, "the keys of the token's issuer cannot "+
				"be fetched; try again in a while")
		case !again || refreshes == maxRefreshes:
			return nil, refuse("no key of the issuer has signed the token")
		}
	}
}

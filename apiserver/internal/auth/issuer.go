package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"shoal.dev/shoal/pkg/ids"
)

// The local issuer (decision 31, auth.mode=local).
const (
	issuerName = "shoal"
	keyFile    = "signin-key.json"
	leeway     = time.Minute
	roleAdmin  = "admin"
	maxSubject = 128
)

// Issuer signs and checks sign-in tokens with its own key, which the data directory keeps.
type Issuer struct {
	key    jose.JSONWebKey
	signer jose.Signer
}

// OpenIssuer reads the key, or makes one at a server's first start (mode 0600).
func OpenIssuer(dataDir string) (*Issuer, error) {
	issuer, err := ReadIssuer(dataDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return issuer, err
	}
	if err := createKey(filepath.Join(dataDir, keyFile)); err != nil {
		return nil, fmt.Errorf("sign-in key of %s: %w", dataDir, err)
	}
	return ReadIssuer(dataDir)
}

// ReadIssuer reads the key of a server that has started before. It fails in a wrong directory.
func ReadIssuer(dataDir string) (*Issuer, error) {
	path := filepath.Join(dataDir, keyFile)
	key, err := readKey(path)
	if err != nil {
		return nil, fmt.Errorf("sign-in key %s: %w", path, err)
	}
	issuer, err := newIssuer(key)
	if err != nil {
		return nil, fmt.Errorf("sign-in key %s: %w", path, err)
	}
	return issuer, nil
}

// IssuerOf uses a key that is kept elsewhere: the sign-in key of a cluster.
func IssuerOf(private ed25519.PrivateKey) (*Issuer, error) { return newIssuer(webKey(private)) }

func newIssuer(key *jose.JSONWebKey) (*Issuer, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	return &Issuer{key: *key, signer: signer}, nil
}

// webKey names a key by its digest.
func webKey(private ed25519.PrivateKey) *jose.JSONWebKey {
	digest := sha256.Sum256(private.Public().(ed25519.PublicKey))
	return &jose.JSONWebKey{Key: private, KeyID: hex.EncodeToString(digest[:4]),
		Algorithm: string(jose.EdDSA), Use: "sig"}
}

// seed is the private key in its shortest form.
func (i *Issuer) seed() []byte { return i.key.Key.(ed25519.PrivateKey).Seed() }

func readKey(path string) (*jose.JSONWebKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var key jose.JSONWebKey
	if err := json.Unmarshal(data, &key); err != nil {
		return nil, err
	}
	if _, ok := key.Key.(ed25519.PrivateKey); !ok {
		return nil, errors.New("not an Ed25519 private key")
	}
	return &key, nil
}

// createKey links a finished file into place. If two processes start at once, the first one's key
// stays.
func createKey(path string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	finished, err := writeKey(path, private)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(finished) }() // the link remains
	if err := os.Link(finished, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// PlaceKey sets the issuer's key in a data directory. The servers of a cluster share one key, so
// they accept each other's tokens. An existing key is replaced.
func PlaceKey(dataDir string, private ed25519.PrivateKey) error {
	path := filepath.Join(dataDir, keyFile)
	finished, err := writeKey(path, private)
	if err != nil {
		return fmt.Errorf("sign-in key %s: %w", path, err)
	}
	if err := os.Rename(finished, path); err != nil {
		return fmt.Errorf("sign-in key %s: %w", path, errors.Join(err, os.Remove(finished)))
	}
	return nil
}

// writeKey writes a key to a file beside path, and returns the file's name.
func writeKey(path string, private ed25519.PrivateKey) (name string, err error) {
	data, err := json.Marshal(webKey(private))
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(path), keyFile+".*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

type tokenClaims struct {
	jwt.Claims
	Roles []string `json:"roles,omitempty"`
}

// Mint signs a token for a subject of 1 to 128 bytes.
func (i *Issuer) Mint(subject string, admin bool, now time.Time, life time.Duration) (string,
	error) {
	if subject == "" || len(subject) > maxSubject {
		return "", fmt.Errorf("a subject has 1 to %d bytes", maxSubject)
	}
	claims := tokenClaims{Claims: jwt.Claims{Issuer: issuerName, Audience: jwt.Audience{issuerName},
		Subject:  subject,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(life))}}
	if admin {
		claims.Roles = []string{roleAdmin}
	}
	return jwt.Signed(i.signer).Claims(claims).Serialize()
}

// identity is what a valid token says about the caller.
type identity struct {
	subject string
	admin   bool
	foreign bool   // from the external issuer
	account ids.ID // if foreign: Principal.Account
	email   string // if foreign: verified by the issuer, "" for none
	until   int64  // Principal.Until
}

// principal is the caller, acting for itself.
func (w identity) principal() Principal {
	return Principal{Customer: w.subject, Subject: w.subject, Admin: w.admin, Foreign: w.foreign,
		Account: w.account, Email: w.email, Until: w.until}
}

// isLocal says whether a token claims to be from the local issuer. Nothing is verified yet.
func isLocal(text string) bool {
	_, rest, _ := strings.Cut(text, ".")
	payload, _, _ := strings.Cut(rest, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		Issuer string `json:"iss"`
	}
	return err == nil && json.Unmarshal(decoded, &claims) == nil && claims.Issuer == issuerName
}

// check checks a token; any error means that it is not valid now.
func (i *Issuer) check(text string, now time.Time) (identity, error) {
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return identity{}, err
	}
	var claims tokenClaims
	if err := token.Claims(i.key.Public(), &claims); err != nil {
		return identity{}, err
	}
	// An issue time in the future shows that this server's clock is behind, not that the token is
	// bad. The signature says who issued it, and its other times how long it is valid.
	claims.IssuedAt = nil
	expected := jwt.Expected{Issuer: issuerName, AnyAudience: jwt.Audience{issuerName}, Time: now}
	if err := claims.ValidateWithLeeway(expected, leeway); err != nil {
		return identity{}, err
	}
	if claims.Expiry == nil || claims.Subject == "" || len(claims.Subject) > maxSubject {
		return identity{}, errors.New("no expiry, or no subject of 1 to 128 bytes")
	}
	return identity{subject: claims.Subject, admin: slices.Contains(claims.Roles, roleAdmin),
		until: claims.Expiry.Time().Add(leeway).UnixMilli()}, nil
}

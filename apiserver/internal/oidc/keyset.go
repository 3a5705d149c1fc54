package oidc

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// Bounds of a key set.
const (
	// maxKeys is how many keys of any kind an issuer may publish. A token that names no key is
	// tried with each that fits.
	maxKeys = 64
	// Bits of an RSA key. Shorter keys are broken, longer ones too slow.
	minRSA = 2_048
	maxRSA = 8_192
)

// algorithms are the accepted signature algorithms of tokens (decision 31).
var algorithms = [...]jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// keySet holds an issuer's current keys.
type keySet struct {
	keys     []key
	places   places // from the same discovery document
	verified memory
}

// key is a public key with the only algorithm that it may be used with.
type key struct {
	id        string // "" if it has none
	algorithm jose.SignatureAlgorithm
	public    any
}

// parseKeys reads a key set (RFC 7517). It leaves out keys that cannot sign our tokens: of other
// kinds or uses, too weak, or broken. It fails if none is left.
func parseKeys(document []byte) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("the key set cannot be read: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys, at most %d", len(set.Keys), maxKeys)
	}
	keys := &keySet{}
	reason := errors.New("it is empty")
	for _, text := range set.Keys {
		k, err := parseKey(text)
		if err != nil {
			reason = err
			continue
		}
		keys.keys = append(keys.keys, k)
	}
	if len(keys.keys) == 0 {
		return nil, fmt.Errorf("the key set has no key for RS256, ES256 or EdDSA: %w", reason)
	}
	return keys, nil
}

func parseKey(text []byte) (key, error) {
	var web jose.JSONWebKey
	var uses struct {
		Operations []string `json:"key_ops"`
	}
	if err := errors.Join(web.UnmarshalJSON(text), json.Unmarshal(text, &uses)); err != nil {
		return key{}, err
	}
	if web.Use != "" && web.Use != "sig" ||
		uses.Operations != nil && !slices.Contains(uses.Operations, "verify") {
		return key{}, errors.New("a key that signs nothing")
	}
	algorithm, err := algorithmOf(web.Key)
	if err != nil {
		return key{}, err
	}
	if web.Algorithm != "" && web.Algorithm != string(algorithm) {
		return key{}, fmt.Errorf("a key for the algorithm %.20q", web.Algorithm)
	}
	return key{id: web.KeyID, algorithm: algorithm, public: web.Key}, nil
}

// algorithmOf is the algorithm of tokens that this public key verifies.
func algorithmOf(public any) (jose.SignatureAlgorithm, error) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return "", fmt.Errorf("an RSA key of %d bits, not %d to %d", bits, minRSA, maxRSA)
		}
		if k.E < 3 || k.E%2 == 0 {
			return "", fmt.Errorf("an RSA key with the exponent %d", k.E)
		}
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return jose.ES256, nil
		}
	case ed25519.PublicKey:
		return jose.EdDSA, nil
	}
	return "", errors.New("a key of another kind")
}

// errNoKey says that no key of the set can have signed a token. A newer set may have such a key.
var errNoKey = errors.New("no key of the issuer has signed the token")

// verify returns nil if a key of the set has signed the token. Else the error is errNoKey, or says
// that the key which the token names did not sign it.
func (s *keySet) verify(token *jose.JSONWebSignature) error {
	header := token.Signatures[0].Protected
	tried := false
	for _, k := range s.keys {
		if string(k.algorithm) != header.Algorithm ||
			header.KeyID != "" && header.KeyID != k.id {
			continue
		}
		tried = true
		if _, err := token.Verify(k.public); err == nil {
			return nil
		}
	}
	if tried && header.KeyID != "" {
		return errors.New("the signature does not fit")
	}
	return errNoKey
}

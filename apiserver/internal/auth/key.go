package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"shoal.dev/shoal/controlplane/client"
)

// An API key has the form svc_live_<prefix>.<secret>.
const (
	keyStart     = "svc_live_"
	prefixLength = 7
	maxKeyLength = 128
)

// Secret is a new API key. Only the client keeps Text.
type Secret struct {
	Text   string
	Prefix string
	Hash   [32]byte // SHA-256 of Text
}

// NewSecret makes a key with 35 random bits in its prefix and 260 in its secret part. Older keys
// have 130 bits there and stay valid.
func NewSecret() Secret {
	prefix := strings.ToLower(rand.Text()[:prefixLength])
	text := keyStart + prefix + "." + rand.Text() + rand.Text()
	return Secret{Text: text, Prefix: prefix, Hash: sha256.Sum256([]byte(text))}
}

// wellFormed says whether a text has the form of a key.
func wellFormed(text string) bool {
	rest, ok := strings.CutPrefix(text, keyStart)
	prefix, _, dotted := strings.Cut(rest, ".")
	return ok && dotted && len(prefix) == prefixLength && len(text) <= maxKeyLength
}

// findKey finds the key that a client sent, nil if there is none.
func findKey(view *client.View, text string) *client.Key {
	if !wellFormed(text) {
		return nil
	}
	key := view.KeyByPrefix(text[len(keyStart) : len(keyStart)+prefixLength])
	hash := sha256.Sum256([]byte(text))
	if key == nil || subtle.ConstantTimeCompare(hash[:], key.Hash[:]) != 1 {
		return nil
	}
	return key
}

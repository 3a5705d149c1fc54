package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// secretBytes is the length of a new secret. Standard Webhooks allows 24 to 64.
const secretBytes = 32

// NewSecret makes a secret to sign a webhook's requests with.
func NewSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// ShowSecret is a secret in the form that libraries for Standard Webhooks expect.
func ShowSecret(secret []byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(secret)
}

// sign is the header webhook-signature, with a signature by each secret (Standard Webhooks,
// "Signature scheme"). at is in Unix seconds.
func sign(id string, at int64, body []byte, secrets ...[]byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(at, 10) + ".")) // never fails
		_, _ = mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

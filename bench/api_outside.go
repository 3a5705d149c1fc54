package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// audience is the audience of the tokens.
const audience = "bench"

// outside plays the service's external parties: an OpenID Connect issuer and a payment provider.
type outside struct {
	address string
	server  *http.Server
	key     jose.JSONWebKey

	mu   sync.Mutex
	made map[string]int // sessions of the provider, by idempotency key
}

func startOutside(ctx context.Context) (*outside, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("a key that signs: %w", err)
	}
	o := &outside{made: map[string]int{},
		key: jose.JSONWebKey{Key: key, KeyID: "1", Algorithm: string(jose.ES256), Use: "sig"}}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("an issuer: %w", err)
	}
	o.address = "http://" + l.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter,
		_ *http.Request) {
		answer(w, map[string]string{"issuer": o.address, "jwks_uri": o.address + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{o.key.Public()}})
	})
	mux.HandleFunc("POST /v1/checkout/sessions", o.openSession)
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: callTimeout}
	go func() { _ = o.server.Serve(l) }() // until it is closed
	return o, nil
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}

// openSession makes a checkout, one per idempotency key.
func (o *outside) openSession(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	n, known := o.made[r.Header.Get("Idempotency-Key")]
	if !known {
		n = len(o.made) + 1
		o.made[r.Header.Get("Idempotency-Key")] = n
	}
	o.mu.Unlock()
	answer(w, map[string]any{"id": fmt.Sprint("cs_test_", n), "object": "checkout.session",
		"url":        "https://pay.example/" + fmt.Sprint(n),
		"expires_at": time.Now().Add(time.Hour).Unix()})
}

// sessions returns how many checkouts were made.
func (o *outside) sessions() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.made)
}

// flags returns the flags that make a service use outside. Its secrets are files in dir.
func (o *outside) flags(dir string) ([]string, error) {
	key, secret := filepath.Join(dir, "stripe-key"), filepath.Join(dir, "stripe-secret")
	if err := errors.Join(os.WriteFile(key, []byte("sk_test_bench"), 0o600),
		os.WriteFile(secret, []byte("whsec_bench"), 0o600)); err != nil {
		return nil, fmt.Errorf("secrets of the provider: %w", err)
	}
	return []string{"--oidc-issuer", o.address, "--oidc-audience", audience,
		"--oidc-allow", "127.0.0.0/8", "--stripe-key-file", key, "--stripe-secret-file", secret,
		"--stripe-return-url", "http://localhost", "--stripe-url", o.address}, nil
}

// token signs a subject in for the duration of a bench.
func (o *outside) token(subject string) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: o.key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("a token: %w", err)
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{"iss": o.address, "aud": audience, "sub": subject,
		"iat": now.Unix(), "exp": now.Add(2 * time.Hour).Unix(),
		"email": subject + "@bench.example", "email_verified": true})
	if err != nil {
		return "", fmt.Errorf("a token: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("a token: %w", err)
	}
	return signed.CompactSerialize()
}

func (o *outside) close() error { return o.server.Close() }

package apiserver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// SelfCustomer is the customer of a self-hosted server.
const SelfCustomer = auth.SelfCustomer

const apiKeyFile = "api-key"

// MintToken signs a sign-in token of the local issuer for a customer reference of 1 to 128 bytes.
// It needs no running server, only a data directory in which a server has started before.
func MintToken(dataDir, customer string, admin bool, now time.Time, life time.Duration) (string,
	error) {
	issuer, err := auth.ReadIssuer(dataDir)
	if err != nil {
		return "", err
	}
	return issuer.Mint(customer, admin, now, life)
}

// SignToken signs a sign-in token with the sign-in key of a cluster.
func SignToken(key ed25519.PrivateKey, customer string, admin bool, now time.Time,
	life time.Duration) (string, error) {
	issuer, err := auth.IssuerOf(key)
	if err != nil {
		return "", err
	}
	return issuer.Mint(customer, admin, now, life)
}

// PlaceSignInKey puts the cluster's sign-in key into a server's data directory. MintToken then
// signs for all servers, and the server accepts the tokens of all of them.
func PlaceSignInKey(dataDir string,
	key ed25519.PrivateKey) error {
	return auth.PlaceKey(dataDir, key)
}

// SelfKey returns the API key in the data directory's file api-key. If the file is missing or
// empty, SelfKey creates the self-hosting customer, a USER key for it and the file (mode 0600).
func SelfKey(ctx context.Context, c client.Client, source ids.Source, dataDir string) (string,
	error) {
	path := filepath.Join(dataDir, apiKeyFile)
	data, err := os.ReadFile(path)
	if key := strings.TrimSpace(string(data)); err == nil && key != "" {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("api key: %w", err)
	}
	if _, err := client.Do(ctx, c, client.OpenCustomer{Customer: SelfCustomer, Entry: source.New()},
		nil); err != nil {
		return "", fmt.Errorf("open the self-hosting customer: %w", err)
	}
	secret := auth.NewSecret()
	_, err = client.Do(ctx, c,
		client.MintKey{ID: source.New(), Customer: SelfCustomer, Prefix: secret.Prefix,
			Hash: secret.Hash,
			Name: "first key", Scope: model.ScopeUser}, nil)
	if err != nil {
		return "", fmt.Errorf("mint the first key: %w", err)
	}
	// write it whole or not at all, wherever the process is killed
	err = os.WriteFile(path+".new", []byte(secret.Text+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return "", fmt.Errorf("api key: %w", err)
	}
	return secret.Text, nil
}

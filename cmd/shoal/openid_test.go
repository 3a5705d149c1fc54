package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestOpenIDFlags(t *testing.T) {
	b := newShell(t)
	secret, empty := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(secret, []byte("s\n"), 0o600),
		os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	b.shoal("serve", "--oidc-issuer", "https://id.example/", "--oidc-audience", "a,b",
		"--oidc-admins", "root", "--oidc-allow", "10.1.2.3/32",
		"--oidc-client-id", "web", "--oidc-client-secret-file", secret).want(t, terminal.ExitOK)
	want := service.OpenIDFlags{Issuer: "https://id.example/", Audience: []string{"a", "b"},
		Admins: []string{"root"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")},
		ClientID: "web", ClientSecretFile: secret}
	if diff := compare(service.Config{OpenID: want},
		service.Config{OpenID: got.OpenID}); diff != "" {
		t.Error(diff)
	}
	named := []string{"--oidc-issuer", "https://id.example", "--oidc-audience", "a"}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--oidc-audience", "a"}, "need --oidc-issuer"},
		{[]string{"--oidc-ca-file", "f"}, "need --oidc-issuer"},
		{[]string{"--oidc-issuer", "https://id.example"}, "needs --oidc-audience"},
		{[]string{"--oidc-issuer", "http://id.example", "--oidc-audience", "a"}, "https"},
		{append(named, "--oidc-ca-file", "nowhere"), "--oidc-ca-file"},
		{[]string{"--oidc-client-id", "web"}, "need --oidc-issuer"},
		{append(named, "--oidc-client-secret-file", secret), "needs --oidc-client-id"},
		{append(named, "--oidc-client-id", " "), "--oidc-client-id"},
		{append(named, "--oidc-client-id", "web", "--oidc-client-secret-file", empty), "is empty"},
		{append(named, "--oidc-allow", "10.1.2.3"), "--oidc-allow"},
	} {
		b.shoal(append([]string{"serve"}, c.flags...)...).want(t, terminal.ExitUsage, c.says)
	}
}

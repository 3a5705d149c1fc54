package main

import (
	"context"
	"net/netip"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestOpenIDFlags(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	b.shoal("serve", "--oidc-issuer", "https://id.example/", "--oidc-audience", "a,b",
		"--oidc-admins", "root", "--oidc-allow", "10.1.2.3/32").want(t, terminal.ExitOK)
	want := service.OpenIDFlags{Issuer: "https://id.example/", Audience: []string{"a", "b"},
		Admins: []string{"root"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}
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
		{append(named, "--oidc-allow", "10.1.2.3"), "--oidc-allow"},
	} {
		b.shoal(append([]string{"serve"}, c.flags...)...).want(t, terminal.ExitUsage, c.says)
	}
}

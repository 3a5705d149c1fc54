package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestOfficialClients has the protocol's official clients for TypeScript and Python do an agent's
// jobs against the service. They work over HTTP and through the command, with and without a person
// to ask.
func TestOfficialClients(t *testing.T) {
	if os.Getenv("SHOAL_CONFORMANCE_SUITE") == "" {
		t.Skip("make conformance runs it")
	}
	ctx := suite.Within(t, suite.Patience)
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1})
	s := newService(t, web, suite.Fast()...)
	var minted struct{ Key string }
	if err := s.customer("ann").Call(ctx, "PUT", "/api/key/generate", url.Values{"name": {"agent"},
		"scope": {"LLM_FULL"}}, nil, &minted); err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs(".conformance")
	if err != nil {
		t.Fatal(err)
	}
	given := []string{s.Client.Server, minted.Key, binary(t),
		slices.Collect(web.URLs(1))[0]}
	for name, command := range map[string][]string{
		"typescript": {"node", "client.mjs"},
		"python":     {filepath.Join(tools, "python/bin/python"), "client.py"},
	} {
		t.Run(name, func(t *testing.T) {
			into := copied(t, "conformance")
			if err := os.Symlink(filepath.Join(tools, "node_modules"),
				filepath.Join(into, "node_modules")); err != nil {
				t.Fatal(err)
			}
			said := runIn(t, ctx, into, append(command, given...)...)
			if !strings.HasSuffix(strings.TrimSpace(said), "DONE") {
				t.Errorf("%s", said)
			}
		})
	}
}

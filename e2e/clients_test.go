package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestClients regenerates the clients, which must equal the kept ones, and compiles each, and the
// portal's sources. Then each client does the main job against the service. It estimates and runs a
// list, reads two pages of rows, and exports them. Then it checks what was paid, reads a refusal,
// and deletes after a preview.
func TestClients(t *testing.T) {
	if os.Getenv("SHOAL_CLIENTS_SUITE") == "" {
		t.Skip("make clients-test runs it")
	}
	ctx := suite.Within(t, suite.Patience)
	clients, err := filepath.Abs("../clients")
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	runIn(t, ctx, clients, "./generate", fresh)
	for _, path := range []string{"go/shoal/shoal.gen.go", "typescript/schema.gen.ts",
		"python/shoal_client/client.py", "python/shoal_client/schemas.py",
		"python/shoal_client/config.py"} {
		made, err := os.ReadFile(filepath.Join(fresh, path))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join(clients, path))
		if err != nil || !bytes.Equal(made, kept) {
			t.Errorf("clients/%s is not as generated: run make clients (%v)", path, err)
		}
	}
	t.Run("portal", func(t *testing.T) {
		compilePortal(t, ctx, clients)
	})
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 8})
	s := newSingle(t, suite.Fast(), web)
	s.Up(t)
	service := &suite.Service{T: t, Product: s, Client: s.Self()}
	service.Fill(service.Client, suite.Plenty)
	given := append([]string{s.p.Server(), s.p.Key()}, slices.Collect(web.URLs(8))...)
	for name, command := range map[string][]string{
		"go":         {"go", "run", "./example"},
		"python":     {filepath.Join(clients, ".tools/python/bin/python"), "main.py"},
		"typescript": {"node", "main.js"},
	} {
		t.Run(name, func(t *testing.T) {
			into := copied(t, filepath.Join(clients, name))
			if name == "typescript" {
				compile(t, ctx, clients, into)
			}
			said := runIn(t, ctx, into, append(command, given...)...)
			if !strings.HasSuffix(strings.TrimSpace(said),
				"COMPLETED 8 5 3 8 8 invalid_request name 8") {
				t.Errorf("%s", said)
			}
		})
	}
}

// compile type-checks a client with TypeScript, and compiles it to a script.
func compile(t *testing.T, ctx context.Context, clients, into string) {
	t.Helper()
	modules := filepath.Join(clients, ".tools/node_modules")
	if err := os.Symlink(modules, filepath.Join(into, "node_modules")); err != nil {
		t.Fatal(err)
	}
	runIn(t, ctx, into, filepath.Join(modules, ".bin/tsc"), "-p", ".")
}

// compilePortal checks the types of the portal's sources, which its own build drops unread.
func compilePortal(t *testing.T, ctx context.Context, clients string) {
	t.Helper()
	into := copied(t, "../apiserver/portal/web")
	if err := os.Rename(filepath.Join(into, "third_party"),
		filepath.Join(into, "node_modules")); err != nil {
		t.Fatal(err)
	}
	runIn(t, ctx, into, filepath.Join(clients, ".tools/node_modules/.bin/tsc"), "-p", ".")
}

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/cmd/shoal/internal/authority"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
)

func TestClusterIssuesIdentities(t *testing.T) {
	b := newShell(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	cert := func(args ...string) result {
		return b.shoal(append([]string{"cluster", "cert", "--data", dir}, args...)...)
	}
	cert("f1", "--roles", "fetcher").want(t, terminal.ExitFailed, "no authority in "+dir)
	b.shoal("cluster", "init", "--data", dir, "--name", "Not A Name").want(t, terminal.ExitUsage,
		"--name")
	b.shoal("cluster", "init", "--data", dir, "--name", "prod").want(t, terminal.ExitOK,
		`cluster "prod"`)
	b.shoal("cluster", "init", "--data", dir).want(t, terminal.ExitFailed, "never replaced")

	cert("f1", "--roles", "fetcher").want(t, terminal.ExitOK, filepath.Join(dir, "f1.pem"))
	cert("f1", "--roles", "fetcher").want(t, terminal.ExitFailed, "is there already")
	cert("authority", "--roles", "fetcher").want(t, terminal.ExitUsage,
		"is the cluster's authority: name another file with --out")
	cert("x", "--roles", "cook").want(t, terminal.ExitUsage, "--roles: \"cook\" is none of")
	cert("x", "--roles", "fetcher", "--days", "0").want(t, terminal.ExitUsage, "--days")
	cert("x", "--roles", "fetcher", "--days", "99999").want(t, terminal.ExitUsage,
		"--days: 1 to 3650")
	cert("../x", "--roles", "fetcher").want(t, terminal.ExitUsage, "../x")
	other := filepath.Join(t.TempDir(), "all.pem")
	cert("all", "--roles", "apiserver,billing", "--out", other).want(t, terminal.ExitOK, other)

	issuer, err := identity.ReadAuthority(filepath.Join(dir, authority.FileName))
	if err != nil {
		t.Fatal(err)
	}
	issued, err := identity.Read(other)
	if err != nil {
		t.Fatal(err)
	}
	want := identity.Peer{Cluster: "prod", Node: "all", Roles: []string{"billing", "apiserver"}}
	if diff := cmp.Diff(want, issued.Peer); diff != "" {
		t.Error(diff)
	}
	founder := service.Config{Data: t.TempDir(),
		Cluster: service.ClusterConfig{Identity: other, Bootstrap: true}}
	if err := service.RunOn(t.Context(), founder, nil); !errors.Is(err, service.ErrFounder) {
		t.Errorf("a node that is no control plane's founds a cluster: %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, c := range []struct{ cluster, gossip, says string }{
		{taken.Addr().String(), "127.0.0.1:0", "--cluster-listen: listen tcp"},
		{"127.0.0.1:0", taken.Addr().String(), "--gossip-listen: listen tcp"},
	} {
		node := service.Config{Data: t.TempDir(),
			Cluster: service.ClusterConfig{Identity: other, Listen: c.cluster,
				GossipListen: c.gossip}}
		if err := service.Run(t.Context(), node); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("a port that is taken: %v, want %s", err, c.says)
		}
	}
	if !issued.SignInKey.Equal(issuer.SignInKey) {
		t.Error("the server would not accept the operator's tokens")
	}
	for _, file := range []string{filepath.Join(dir, authority.FileName), other} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

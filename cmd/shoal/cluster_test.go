package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/identity"
)

func TestClusterIssuesIdentities(t *testing.T) {
	b := newShell(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	cert := func(args ...string) result {
		return b.shoal(append([]string{"cluster", "cert", "--data", dir}, args...)...)
	}
	cert("f1", "--roles", "fetcher").want(t, exitFailed, "no authority in "+dir)
	b.shoal("cluster", "init", "--data", dir, "--name", "Not A Name").want(t, exitUsage, "--name")
	b.shoal("cluster", "init", "--data", dir, "--name", "prod").want(t, exitOK, `cluster "prod"`)
	b.shoal("cluster", "init", "--data", dir).want(t, exitFailed, "never replaced")

	cert("f1", "--roles", "fetcher").want(t, exitOK, filepath.Join(dir, "f1.pem"))
	cert("f1", "--roles", "fetcher").want(t, exitFailed, "is there already")
	cert("authority", "--roles", "fetcher").want(t, exitUsage, "is the cluster's authority: name another file with --out")
	cert("x", "--roles", "cook").want(t, exitUsage, "--roles: \"cook\" is none of")
	cert("x", "--roles", "fetcher", "--days", "0").want(t, exitUsage, "--days")
	cert("x", "--roles", "fetcher", "--days", "99999").want(t, exitUsage, "--days: 1 to 3650")
	cert("../x", "--roles", "fetcher").want(t, exitUsage, "../x")
	other := filepath.Join(t.TempDir(), "all.pem")
	cert("all", "--roles", "apiserver,billing", "--out", other).want(t, exitOK, other)

	authority, err := identity.ReadAuthority(filepath.Join(dir, authorityFile))
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
	founder := ServeConfig{Data: t.TempDir(), Cluster: &ClusterConfig{Identity: other, Bootstrap: true}}
	if err := runNode(t.Context(), founder, nil); !errors.Is(err, errFounder) {
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
		node := ServeConfig{Data: t.TempDir(), Cluster: &ClusterConfig{Identity: other, Listen: c.cluster, GossipListen: c.gossip}}
		if err := runNode(t.Context(), node, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a port that is taken: %v, want %s", err, c.says)
		}
	}
	if !issued.SignInKey.Equal(authority.SignInKey) {
		t.Error("the server would not accept the operator's tokens")
	}
	for _, file := range []string{filepath.Join(dir, authorityFile), other} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// TestTheAuthoritySignsOperatorsIn: its file alone is enough, wherever it was copied to, and whatever key another command
// left beside it.
func TestTheAuthoritySignsOperatorsIn(t *testing.T) {
	dir := t.TempDir()
	if _, err := signToken(dir, "", false, time.Now()); err != nil { // makes a key of its own
		t.Fatal(err)
	}
	authority, err := identity.NewAuthority("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(filepath.Join(dir, authorityFile)); err != nil {
		t.Fatal(err)
	}
	token, err := signToken(dir, "", true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(authority.SignInKey.Public().(ed25519.PublicKey), []byte(token[:at]), signature) {
		t.Error("the cluster's servers would refuse the token")
	}
}

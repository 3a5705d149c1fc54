package identity

import (
	"bytes"
	"crypto/tls"
	"flag"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

const year = 365 * 24 * time.Hour

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t testing.TB, cluster string) *Authority {
	t.Helper()
	a, err := NewAuthority(cluster, noon)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t testing.TB, a *Authority, node string, roles ...string) *Identity {
	t.Helper()
	i, err := a.Issue(node, roles, noon, year)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestFilesAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, "prod")
	if err := a.Write(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	again, err := ReadAuthority(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, roles := range [][]string{{APIServer, ControlPlane}, {Fetcher}} {
		path := filepath.Join(dir, roles[0]+".pem")
		if err := issue(t, again, "n-1", roles...).Write(path); err != nil {
			t.Fatal(err)
		}
		i, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if i.Cluster != "prod" || i.Node != "n-1" || !slices.Equal(i.Roles, ordered(roles)) {
			t.Fatalf("read %+v", i.Peer)
		}
		if !bytes.Equal(i.GossipKey, a.GossipKey) || len(i.GossipKey) != GossipKeyBytes {
			t.Fatal("the gossip key is another one")
		}
		if signs := i.SignInKey.Equal(a.SignInKey); signs != i.Has(APIServer) {
			t.Fatalf("roles %v: has the sign-in key: %v", roles, signs)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
		if err := i.Write(path); err == nil {
			t.Fatal("a file that is there is replaced")
		}
	}
}

// Files written by earlier versions stay readable.
func TestGoldenFiles(t *testing.T) {
	if *update {
		for _, name := range []string{"authority.pem", "fetcher.pem", "apiserver.pem"} {
			_ = os.Remove(filepath.Join("testdata", name))
		}
		a := authority(t, "golden")
		for name, write := range map[string]func(string) error{
			"authority.pem": a.Write,
			"fetcher.pem":   issue(t, a, "f.1", Fetcher).Write,
			"apiserver.pem": issue(t, a, "api_2", APIServer, ControlPlane).Write,
		} {
			if err := write(filepath.Join("testdata", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, err := ReadAuthority("testdata/authority.pem")
	if err != nil || a.Cluster != "golden" {
		t.Fatalf("%+v, %v", a, err)
	}
	for name, want := range map[string]Peer{
		"fetcher.pem":   {"golden", "f.1", []string{Fetcher}},
		"apiserver.pem": {"golden", "api_2", []string{ControlPlane, APIServer}},
	} {
		i, err := Read(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if i.Cluster != want.Cluster || i.Node != want.Node || !slices.Equal(i.Roles, want.Roles) {
			t.Errorf("%s: %+v, want %+v", name, i.Peer, want)
		}
		if err := i.Check(noon); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeIssued(t *testing.T) {
	a := authority(t, "prod")
	for want, c := range map[string]struct {
		node  string
		roles []string
		life  time.Duration
	}{
		"node name":  {"a b", []string{Fetcher}, year},
		"no role":    {"a", nil, year},
		"is none of": {"a", []string{"fetchers"}, year},
		"a life of":  {"a", []string{Fetcher}, 11 * year},
	} {
		if _, err := a.Issue(c.node, c.roles, noon, c.life); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for _, cluster := range []string{"", "Prod", "a.b", "-a", strings.Repeat("a", 64)} {
		if _, err := NewAuthority(cluster, noon); err == nil {
			t.Errorf("cluster name %q is taken", cluster)
		}
	}
}

func TestNamesSurviveTheCertificate(t *testing.T) {
	a := authority(t, "prod")
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?`).Draw(t,
			"node")
		roles := rapid.SliceOfN(rapid.SampledFrom(Roles()), 1, 8).Draw(t, "roles")
		i, err := a.Issue(node, roles, noon, year)
		if err != nil {
			t.Fatal(err)
		}
		data, err := i.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseIdentity(data)
		if err != nil {
			t.Fatal(err)
		}
		if again.Node != node || !slices.Equal(again.Roles, ordered(roles)) {
			t.Fatalf("%+v, want %s %v", again.Peer, node, roles)
		}
	})
}

// shake connects two sides and returns both results.
func shake(t *testing.T, server, client *tls.Config) (peer Peer, serverErr, clientErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan error, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		defer func() { _ = raw.Close() }()
		conn := tls.Server(raw, server)
		if err = conn.Handshake(); err == nil {
			peer, err = PeerOf(conn.ConnectionState())
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	clientErr = tls.Client(raw, client).Handshake()
	serverErr = <-done
	return peer, serverErr, clientErr
}

func TestPeersAreWhoTheyMustBe(t *testing.T) {
	now := func() time.Time { return noon }
	prod, other := authority(t, "prod"), authority(t, "other")
	namesake := authority(t, "prod")
	server := issue(t, prod, "cp-1", ControlPlane)
	good := issue(t, prod, "f-1", Fetcher)
	brief, err := prod.Issue("f-2", []string{Fetcher}, noon, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) func() time.Time { return func() time.Time { return noon.Add(d) } }
	anonymous := good.TLSClient(now, "", "")
	anonymous.Certificates = nil
	for name, c := range map[string]struct {
		server, client         *tls.Config
		serverSays, clientSays string
	}{
		"good": {server.TLSServer(now), good.TLSClient(now, "cp-1", ControlPlane), "", ""},
		"other cluster": {server.TLSServer(now),
			issue(t, other, "f-1", Fetcher).TLSClient(now, "", ""), "",
			`cluster "prod", not of "other"`},
		"other authority": {server.TLSServer(now),
			issue(t, namesake, "f-1", Fetcher).TLSClient(now, "", ""), "",
			"not from this cluster's authority"},
		"no certificate": {server.TLSServer(now), anonymous, "client didn't provide a certificate",
			""},
		"expired": {server.TLSServer(at(time.Hour)), brief.TLSClient(now, "", ""),
			`"f-2": the certificate expired at`, ""},
		"not yet valid": {server.TLSServer(at(-2 * time.Hour)), good.TLSClient(now, "", ""),
			`"f-1": the certificate is not valid before`, ""},
		"other node": {server.TLSServer(now), good.TLSClient(now, "cp-2", ""), "",
			`"cp-1" answers, and not node "cp-2"`},
		"other role": {good.TLSServer(now), server.TLSClient(now, "", ControlPlane), "",
			`"f-1" does not have the role controlplane`},
		"server of another cluster": {issue(t, other, "cp-1", ControlPlane).TLSServer(now),
			good.TLSClient(now, "", ""), "",
			`cluster "other", not of "prod"`},
	} {
		t.Run(name, func(t *testing.T) {
			peer, serverErr, clientErr := shake(t, c.server, c.client)
			if c.serverSays == "" && c.clientSays == "" {
				if serverErr != nil || clientErr != nil || peer.Node != "f-1" ||
					!peer.Has(Fetcher) || peer.Has(ControlPlane) {
					t.Fatalf("%v, %v, %+v", serverErr, clientErr, peer)
				}
				return
			}
			if c.serverSays != "" &&
				(serverErr == nil || !strings.Contains(serverErr.Error(), c.serverSays)) {
				t.Errorf("the server says %v, want %q", serverErr, c.serverSays)
			}
			if c.clientSays != "" &&
				(clientErr == nil || !strings.Contains(clientErr.Error(), c.clientSays)) {
				t.Errorf("the client says %v, want %q", clientErr, c.clientSays)
			}
			if serverErr == nil {
				t.Error("the server lets the peer in")
			}
		})
	}
}

func TestIdentityTellsItsTime(t *testing.T) {
	i := issue(t, authority(t, "prod"), "f-1", Fetcher)
	for at, want := range map[time.Duration]string{0: "", 2 * year: "expired",
		-year: "not valid before"} {
		err := i.Check(noon.Add(at))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want %q", at, err, want)
		}
	}
}

func TestPartsMustBelongTogether(t *testing.T) {
	prod, other := authority(t, "prod"), authority(t, "other")
	mine, yours, api := issue(t, prod, "a", Fetcher), issue(t, prod, "b", Fetcher),
		issue(t, prod, "c", APIServer)
	for name, mix := range map[string]Identity{
		"another's key": {GossipKey: mine.GossipKey, authority: mine.authority,
			certificate: mine.certificate, key: yours.key},
		"another's authority": {GossipKey: mine.GossipKey, authority: other.certificate,
			certificate: mine.certificate, key: mine.key},
		"no authority": {GossipKey: mine.GossipKey, authority: mine.certificate,
			certificate: mine.certificate, key: mine.key},
		"a key too many": {GossipKey: mine.GossipKey, authority: mine.authority,
			certificate: mine.certificate, key: mine.key,
			SignInKey: api.SignInKey},
		"a short gossip key": {GossipKey: []byte("short"), authority: mine.authority,
			certificate: mine.certificate, key: mine.key},
	} {
		data, err := mix.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseIdentity(data); err == nil {
			t.Errorf("%s: is read", name)
		}
	}
}

// FuzzFiles: a file that is read is written back unchanged, and nothing panics.
func FuzzFiles(f *testing.F) {
	for _, name := range []string{"authority.pem", "fetcher.pem", "apiserver.pem"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(append([]byte("\n"), data...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if i, err := parseIdentity(data); err == nil {
			again, err := i.encode()
			if err != nil {
				t.Fatal(err)
			}
			if j, err := parseIdentity(again); err != nil || j.Node != i.Node ||
				!slices.Equal(j.Roles, i.Roles) {
				t.Fatalf("%+v, then %+v, %v", i.Peer, j, err)
			}
		}
		if a, err := parseAuthority(data); err == nil {
			again, err := a.encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseAuthority(again); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package port

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cluster struct{ *identity.Authority }

func newCluster(t testing.TB, name string) cluster {
	t.Helper()
	a, err := identity.NewAuthority(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return cluster{a}
}

func (c cluster) issue(t testing.TB, node string, roles ...string) *identity.Identity {
	t.Helper()
	i, err := c.Issue(node, roles, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (c cluster) port(t testing.TB, node string, roles ...string) *Port {
	t.Helper()
	return c.portTelling(t, slog.DiscardHandler, node, roles...)
}

// portTelling opens a port with a log.
func (c cluster) portTelling(t testing.TB, log slog.Handler, node string, roles ...string) *Port {
	t.Helper()
	p, err := Open(Config{Identity: c.issue(t, node, roles...), Listen: "127.0.0.1:0",
		Now:    time.Now,
		Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// await waits for what another goroutine brings about.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for ctx := patient(t); !holds(); {
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not come about", what)
		case <-time.After(time.Millisecond):
		}
	}
}

type greeting struct {
	Text string `cbor:"1,keyasint"`
}

// methods are the tests' methods. The blocking one signals begun, and sends its error to ended.
func methods(begun chan<- struct{}, ended chan<- error) map[string]Method {
	return map[string]Method{
		"echo": Handle(func(_ context.Context, from identity.Peer, g greeting) (greeting, error) {
			return greeting{Text: from.Node + " " + g.Text}, nil
		}),
		"billing": Handle(func(context.Context, identity.Peer, greeting) (greeting, error) {
			return greeting{}, nil
		}, identity.Billing),
		"fault": Handle(func(context.Context, identity.Peer, greeting) (greeting, error) {
			return greeting{}, fault.Invalid(fault.NameTaken, "name", "it is taken")
		}),
		"plain": Handle(func(context.Context, identity.Peer, greeting) (greeting, error) {
			return greeting{}, errors.New("not the leader")
		}),
		"long": Handle(func(context.Context, identity.Peer, greeting) (greeting, error) {
			return greeting{Text: strings.Repeat("a", maxBody)}, nil
		}),
		"block": Handle(func(ctx context.Context, _ identity.Peer, _ greeting) (greeting, error) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return greeting{}, ctx.Err()
		}),
	}
}

func TestCallsAreAnswered(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane), c.port(t, "f-1", identity.Fetcher)
	server.Serve(methods(nil, nil))
	var work sync.WaitGroup
	for n := range 50 {
		work.Go(func() {
			var answer greeting
			text := fmt.Sprint(n)
			if err := client.CallVoter(patient(t), server.Address(), "echo", greeting{text},
				&answer); err != nil || answer.Text != "f-1 "+text {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
	work.Wait()
	call := func(method string, request any) error {
		return client.Call(patient(t), server.Address(), method, request, &greeting{})
	}
	if err := call("fault", greeting{}); fault.CodeOf(err) != fault.NameTaken ||
		!strings.Contains(err.Error(), "(name): it is taken") {
		t.Errorf("a fault came as %v", err)
	}
	var coded *fault.Error
	if err := call("plain", greeting{}); err == nil || errors.As(err, &coded) ||
		!strings.Contains(err.Error(), "not the leader") {
		t.Errorf("a plain error came as %v", err)
	}
	if err := call("long", greeting{}); err == nil {
		t.Error("an answer that is too long was taken")
	}
	if err := call("none", greeting{}); fault.CodeOf(err) != fault.NotSupported {
		t.Errorf("an unknown method: %v", err)
	}
	if err := call("echo", "text"); fault.CodeOf(err) != fault.InvalidBody {
		t.Errorf("a request of another shape: %v", err)
	}
	if err := call("echo", greeting{strings.Repeat("a", maxBody)}); fault.CodeOf(
		err) != fault.PayloadTooLarge {
		t.Errorf("a request that is too long: %v", err)
	}
}

func TestRolesDecideWhoMayCall(t *testing.T) {
	c := newCluster(t, "prod")
	server := c.port(t, "cp-1", identity.ControlPlane)
	server.Serve(methods(nil, nil))
	fetcher, biller := c.port(t, "f-1", identity.Fetcher),
		c.port(t, "b-1", identity.Billing, identity.Ingest)
	if err := biller.Call(patient(t), server.Address(), "billing", greeting{},
		&greeting{}); err != nil {
		t.Fatal(err)
	}
	if err := fetcher.Call(patient(t), server.Address(), "billing", greeting{},
		&greeting{}); fault.CodeOf(err) != fault.ScopeRejected {
		t.Fatalf("a fetcher's call of billing's method: %v", err)
	}
	if _, calls := server.Refused(); calls != 1 {
		t.Fatalf("%d refused calls are counted, want 1", calls)
	}
	biller.Serve(methods(nil, nil))
	if err := fetcher.CallVoter(patient(t), biller.Address(), "echo", greeting{},
		&greeting{}); err == nil ||
		!strings.Contains(err.Error(), "does not have the role controlplane") {
		t.Fatalf("a node without the role was believed as a voter: %v", err)
	}
}

func TestCallersEndTheirCalls(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane), c.port(t, "f-1", identity.Fetcher)
	begun, ended := make(chan struct{}), make(chan error, 1)
	server.Serve(methods(begun, ended))
	call := func(ctx context.Context) error {
		return client.Call(ctx, server.Address(), "block", greeting{}, &greeting{})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(patient(t))
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		<-begun
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller hears %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the method hears %v", err)
		}
	})
	t.Run("out of time", func(t *testing.T) {
		if err := client.Call(patient(t), server.Address(), "echo", greeting{},
			&greeting{}); err != nil { // it connects, which would take from the call's time
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(patient(t), 3*time.Second)
		defer cancel()
		go func() { <-begun }()
		if err := call(ctx); err == nil {
			t.Error("a call outlives its time")
		}
		if err := <-ended; err == nil {
			t.Error("a method outlives its caller's time")
		}
	})
	t.Run("the port closes", func(t *testing.T) {
		done := make(chan error, 1)
		go func() { done <- call(patient(t)) }()
		<-begun
		go func() { <-ended }()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil {
			t.Error("a call outlives the port")
		}
	})
}

func TestRaftIsSpokenByVotersAlone(t *testing.T) {
	c := newCluster(t, "prod")
	voter, other := c.port(t, "cp-1", identity.ControlPlane),
		c.port(t, "cp-2", identity.ControlPlane)
	fetcher := c.port(t, "f-1", identity.Fetcher)
	taken := make(chan net.Conn)
	go func() {
		for {
			conn, err := fetcher.Raft().Accept()
			if err != nil {
				close(taken)
				return
			}
			taken <- conn
		}
	}()
	conn, err := voter.Raft().Dial(Target("cp-2", "", "127.0.0.1:1"), time.Second)
	if err == nil {
		t.Fatalf("connected to nobody: %v", conn)
	}
	if conn, err = other.raft.Dial(Target("f-1", "", fetcher.Address()),
		10*time.Second); err != nil {
		t.Fatal(err)
	}
	in := <-taken
	if _, err := conn.Write([]byte("vote")); err != nil {
		t.Fatal(err)
	}
	heard := make([]byte, 4)
	if _, err := io.ReadFull(in, heard); err != nil || string(heard) != "vote" {
		t.Fatalf("%q, %v", heard, err)
	}
	// A fetcher's own handshake succeeds before the voter has checked its certificate, but nothing
	// that it sends is read.
	before, _ := voter.Refused()
	if conn, err := fetcher.raft.Dial(Target("cp-1", "", voter.Address()),
		10*time.Second); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(heard); err == nil {
			t.Fatal("a fetcher speaks Raft")
		}
	}
	await(t, "the refusal", func() bool { now, _ := voter.Refused(); return now > before })
	if err := fetcher.Close(); err != nil {
		t.Fatal(err)
	}
	<-taken
}

// The node that answers at an address must be the one that Raft means, with the required role.
func TestRaftDialsNodesByName(t *testing.T) {
	c := newCluster(t, "prod")
	voter := c.port(t, "cp-1", identity.ControlPlane)
	fetcher := c.port(t, "f-1", identity.Fetcher)
	for _, dial := range []struct {
		to   raft.ServerAddress
		want string
	}{
		{Target("cp-2", "", fetcher.Address()), `node "f-1" answers, and not node "cp-2"`},
		{Target("f-1", identity.ControlPlane, fetcher.Address()),
			`node "f-1" does not have the role controlplane`},
		{raft.ServerAddress(fetcher.Address()), "names no node"},
		{Target("", "", fetcher.Address()), "names no node"},
	} {
		if conn, err := voter.Raft().Dial(dial.to, 10*time.Second); err == nil ||
			!strings.Contains(err.Error(), dial.want) {
			t.Errorf("%s: %v, %v", dial.to, conn, err)
		}
	}
	if _, err := voter.Raft().Dial(Target("f-1", identity.Fetcher, fetcher.Address()),
		10*time.Second); err != nil {
		t.Error(err)
	}
}

// Ask names the node by its certificate, on new and on reused connections.
func TestAskNamesWhoAnswered(t *testing.T) {
	c := newCluster(t, "prod")
	server, client := c.port(t, "cp-1", identity.ControlPlane, identity.Billing),
		c.port(t, "f-1", identity.Fetcher)
	server.Serve(methods(nil, nil))
	for range 2 {
		from, err := client.Ask(patient(t), server.Address(), "echo", greeting{}, &greeting{})
		if err != nil || from.Node != "cp-1" || !from.Has(identity.Billing) ||
			from.Has(identity.Fetcher) {
			t.Errorf("%+v, %v", from, err)
		}
	}
	if from, err := client.Ask(patient(t), server.Address(), "plain", greeting{},
		&greeting{}); err == nil || from.Node != "" {
		t.Errorf("%+v, %v", from, err)
	}
}

// hostile connects to a port as somebody who is not allowed to.
func hostile(t *testing.T, to string, config *tls.Config, protocol string) error {
	t.Helper()
	raw, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	config.NextProtos = nil
	if protocol != "" {
		config.NextProtos = []string{protocol}
	}
	conn := tls.Client(raw, config)
	if err := conn.Handshake(); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func TestStrangersAreRefused(t *testing.T) {
	c := newCluster(t, "prod")
	server := c.port(t, "cp-1", identity.ControlPlane)
	server.Serve(methods(nil, nil))
	trusting := func(i *identity.Identity) *tls.Config {
		config := i.TLSClient(time.Now, "", "")
		config.VerifyConnection = nil // it accepts any peer
		return config
	}
	anonymous := trusting(c.issue(t, "f-1", identity.Fetcher))
	anonymous.Certificates = nil
	old := trusting(c.issue(t, "f-1", identity.Fetcher))
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, peer := range map[string]struct {
		config   *tls.Config
		protocol string
	}{
		"no certificate": {anonymous, callProtocol},
		"other authority": {trusting(newCluster(t, "prod").issue(t, "f-1", identity.Fetcher)),
			callProtocol},
		"other cluster": {trusting(newCluster(t, "other").issue(t, "f-1", identity.Fetcher)),
			callProtocol},
		"old TLS":        {old, callProtocol},
		"no protocol":    {trusting(c.issue(t, "f-1", identity.Fetcher)), ""},
		"other protocol": {trusting(c.issue(t, "f-1", identity.Fetcher)), "h2"},
		"role missing":   {trusting(c.issue(t, "f-1", identity.Fetcher)), raftProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := server.Refused()
			if err := hostile(t, server.Address(), peer.config, peer.protocol); err == nil {
				t.Error("it was let in")
			}
			await(t, "the refusal", func() bool { now, _ := server.Refused(); return now > before })
		})
	}
	good := c.port(t, "f-1", identity.Fetcher)
	if err := good.Call(patient(t), server.Address(), "echo", greeting{}, &greeting{}); err != nil {
		t.Fatalf("a node of the cluster, after them: %v", err)
	}
}

func TestPortThatIsTaken(t *testing.T) {
	c := newCluster(t, "prod")
	first := c.port(t, "cp-1", identity.ControlPlane)
	_, err := Open(Config{Identity: c.issue(t, "cp-2", identity.ControlPlane),
		Listen: first.Address(), Now: time.Now,
		Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Fatalf("a second port on %s: %v", first.Address(), err)
	}
}

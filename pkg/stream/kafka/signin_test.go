package kafka_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
	"shoal.dev/shoal/pkg/stream/streamtest"
)

const (
	user     = "shoal"
	password = "correct horse"
)

// certificate returns a certificate for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) ([]tls.Certificate, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	return server.TLS.Certificates, trusted
}

// allow gives the rights that deploy/README.md asks for: to use prefixed topics, and groups.
func allow(operations ...kmsg.ACLOperation) kfake.Opt {
	var rights []kfake.ACL
	for _, operation := range operations {
		rights = append(rights, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "test.",
			Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: operation, Allow: true})
	}
	rights = append(rights, kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "test.",
		Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: kmsg.ACLOperationRead,
		Allow: true})
	return kfake.User("SCRAM-SHA-256", user, password, rights...)
}

// TestConformanceSignedIn: every connection has TLS and a sign-in, and the few rights that we ask
// for suffice.
func TestConformanceSignedIn(t *testing.T) {
	certificates, trusted := certificate(t)
	streamtest.Run(t, func(t *testing.T) stream.Log {
		brokers := fakeBrokers(t, kfake.TLS(&tls.Config{Certificates: certificates}),
			kfake.EnableSASL(), kfake.EnableACLs(),
			allow(kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe,
				kmsg.ACLOperationCreate))
		log, err := kafka.Open(t.Context(),
			kafka.Config{Brokers: brokers, Prefix: "test.", Partitions: 4,
				TLS:    &tls.Config{RootCAs: trusted},
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
				SASL:   &kafka.SASL{Mechanism: "SCRAM-SHA-256", User: user, Password: password}})
		if err != nil {
			t.Fatal(err)
		}
		return log
	})
}

// TestSignIn connects over TLS, with each mechanism.
func TestSignIn(t *testing.T) {
	certificates, trusted := certificate(t)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		brokers := fakeBrokers(t, kfake.TLS(&tls.Config{Certificates: certificates}),
			kfake.EnableSASL(),
			kfake.Superuser(mechanism, user, password))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		log, err := kafka.Open(ctx,
			kafka.Config{Brokers: brokers, Partitions: 1, TLS: &tls.Config{RootCAs: trusted},
				SASL: &kafka.SASL{Mechanism: mechanism, User: user, Password: password}})
		if err != nil {
			t.Errorf("%s: %v", mechanism, err)
			continue
		}
		if err := log.Publish(ctx, stream.Tasks, 0, []byte("x")); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		_ = log.Close()
	}
}

// refuseSignIn responds as Kafka does to a wrong password, while wrong returns true.
func refuseSignIn(fake *kfake.Cluster, wrong func() bool) {
	fake.ControlKey(int16(kmsg.SASLAuthenticate),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
			response.ErrorCode = kerr.SaslAuthenticationFailed.Code
			response.ErrorMessage = kmsg.StringPtr("invalid credentials")
			return response, nil, wrong()
		})
}

func refuseMechanism(fake *kfake.Cluster) {
	fake.ControlKey(int16(kmsg.SASLHandshake),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			response := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
			response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
			return response, nil, true
		})
}

// TestOpenIsRefused: what waiting does not cure fails soon, with the brokers' reason and without
// the password.
func TestOpenIsRefused(t *testing.T) {
	certificates, trusted := certificate(t)
	secured := &tls.Config{Certificates: certificates}
	demanding := &tls.Config{Certificates: certificates, ClientAuth: tls.RequireAnyClientCert}
	signedIn := []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", user, password)}
	sasl := func(mechanism, password string) *kafka.SASL {
		return &kafka.SASL{Mechanism: mechanism, User: user, Password: password}
	}
	for name, c := range map[string]struct {
		brokers []kfake.Opt
		answer  func(*kfake.Cluster) // responds like Kafka where the fake hangs up
		tls     *tls.Config
		sasl    *kafka.SASL
		says    string
	}{
		"wrong password": {brokers: signedIn, sasl: sasl("SCRAM-SHA-512", password),
			says:   "invalid credentials",
			answer: func(fake *kfake.Cluster) { refuseSignIn(fake, func() bool { return true }) }},
		"wrong mechanism": {brokers: signedIn, sasl: sasl("PLAIN", password),
			says:   "Unsupported SASL Mechanism",
			answer: refuseMechanism},
		"unknown authority": {brokers: []kfake.Opt{kfake.TLS(secured)}, tls: &tls.Config{},
			says: "unknown authority"},
		"no certificate": {brokers: []kfake.Opt{kfake.TLS(demanding)},
			tls:  &tls.Config{RootCAs: trusted},
			says: "certificate required"},
		"no right to make topics": {sasl: sasl("SCRAM-SHA-256", password),
			says: "Topic Authorization Failed",
			brokers: []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(),
				allow(kmsg.ACLOperationDescribe)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var said bytes.Buffer
			fake := fakeCluster(t, c.brokers...)
			if c.answer != nil {
				c.answer(fake)
			}
			_, err := kafka.Open(ctx,
				kafka.Config{Brokers: fake.ListenAddrs(), Prefix: "test.", Partitions: 1,
					TLS: c.tls, SASL: c.sasl, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error %v, want one that says %q before long", err, c.says)
			}
			if strings.Contains(err.Error()+said.String(), password) {
				t.Errorf("the password is told: %v\n%s", err, &said)
			}
		})
	}
}

// TestHungUp: a broker that hangs up may just restart, so it is tried again. A warning names the
// possible cause.
func TestHungUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	brokers := fakeBrokers(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", user, password))
	said := newSaid()
	warned := said.warning("does it want TLS or a sign-in")
	opened := make(chan error, 1)
	go func() {
		_, err := kafka.Open(ctx,
			kafka.Config{Brokers: brokers, Partitions: 1, Logger: slog.New(said)})
		opened <- err
	}()
	select {
	case <-warned:
		cancel()
		<-opened
	case err := <-opened:
		t.Errorf("Open: %v", err)
	}
}

// TestClientCertificate presents a certificate to brokers that ask for one.
func TestClientCertificate(t *testing.T) {
	certificates, trusted := certificate(t)
	brokers := fakeBrokers(t, kfake.TLS(&tls.Config{Certificates: certificates,
		ClientAuth: tls.RequireAnyClientCert}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx, kafka.Config{Brokers: brokers, Partitions: 1,
		TLS: &tls.Config{RootCAs: trusted, Certificates: certificates}})
	if err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
}

// TestTopicsOfOthers: a client that may not create topics uses existing ones.
func TestTopicsOfOthers(t *testing.T) {
	names := []string{"test.tasks", "test.pages", "test.receipts"}
	brokers := fakeBrokers(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(2, names...),
		allow(kmsg.ACLOperationRead, kmsg.ACLOperationWrite))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx, kafka.Config{Brokers: brokers, Prefix: "test.", Partitions: 2,
		SASL: &kafka.SASL{Mechanism: "SCRAM-SHA-256", User: user, Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Publish(ctx, stream.Tasks, 1, []byte("x")); err != nil {
		t.Error(err)
	}
	_ = log.Close()
}

// TestRefusedLater: an open log waits for its password to become valid again, and says so.
func TestRefusedLater(t *testing.T) {
	fake := fakeCluster(t, kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", user, password))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said := newSaid()
	log, err := kafka.Open(ctx,
		kafka.Config{Brokers: fake.ListenAddrs(), Partitions: 1, Logger: slog.New(said),
			SASL: &kafka.SASL{Mechanism: "PLAIN", User: user, Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	// New connections are refused, and existing ones end.
	var good atomic.Bool
	refuseSignIn(fake, func() bool { return !good.Load() })
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Metadata} {
		fake.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			return nil, errors.New("away with you"), !good.Load()
		})
	}
	published := make(chan error, 1)
	go func() { published <- log.Publish(ctx, stream.Tasks, 0, []byte("x")) }()
	select {
	case text := <-said.warning("SASL Authentication Failed"):
		if strings.Contains(text, password) {
			t.Errorf("the password is told: %s", text)
		}
	case err := <-published:
		t.Fatalf("Publish: %v", err)
	}
	good.Store(true)
	if err := <-published; err != nil {
		t.Error(err)
	}
}

// said is a log handler that a test can wait on.
type said struct {
	slog.Handler
	mu     sync.Mutex
	text   bytes.Buffer
	waits  string
	waiter chan string
}

func newSaid() *said {
	s := &said{}
	s.Handler = slog.NewTextHandler(s, nil)
	return s
}

func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiter != nil && bytes.Contains(line, []byte(s.waits)) {
		s.waiter <- string(line)
		s.waiter = nil
	}
	return s.text.Write(line)
}

// warning returns a channel that receives the next line containing a text.
func (s *said) warning(text string) <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.waiter = text, make(chan string, 1)
	return s.waiter
}

// TestSilentSignIn: nobody waits for a broker that falls silent in the middle of a sign-in.
func TestSilentSignIn(t *testing.T) {
	var connections atomic.Int32
	fake := fakeCluster(t, kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", user, password),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			listener, err := net.Listen(network, address)
			return &silencing{Listener: listener, connections: &connections}, err
		}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx, kafka.Config{Brokers: fake.ListenAddrs(), Partitions: 1,
		SASL: &kafka.SASL{Mechanism: "PLAIN", User: user, Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	if connections.Load() < 2 {
		t.Error("no connection was silenced")
	}
}

// silencing is a listener whose first connection responds only once.
type silencing struct {
	net.Listener
	connections *atomic.Int32
}

func (s *silencing) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err == nil && s.connections.Add(1) == 1 {
		return &silenced{Conn: conn}, nil
	}
	return conn, err
}

type silenced struct {
	net.Conn
	answered bool
}

func (s *silenced) Write(b []byte) (int, error) {
	if s.answered {
		return len(b), nil
	}
	s.answered = true
	return s.Conn.Write(b)
}

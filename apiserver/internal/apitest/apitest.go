// Package apitest runs a whole API server for tests, and declarative scenarios against it. A
// scenario is a request and what its answer must be.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/storetest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// The credentials of every test server: API keys of the customer "alice" by scope, a USER key of
// "bob", and sign-in tokens.
const (
	Nobody = ""
	User   = "user"
	LLM    = "llm"
	Reader = "reader"
	Other  = "bob's key"
	SignIn = "alice signed in"
	Admin  = "admin"
)

// Server is a running API server.
type Server struct {
	URL     string
	Client  *clienttest.Client
	API     *apiserver.Server
	Clock   *clock.Manual
	IDs     ids.Source
	DataDir string
	Logs    *bytes.Buffer // read it only after Stop
	Secrets map[string]string
	Stop    func() error // stops the server and waits for it; also called when the test ends
}

// names resolves hosts under .test; nothing ever connects to them.
type names struct{}

func (names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(host, ".test") {
		return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, 34})}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// Option changes the server's configuration before it starts.
type Option func(*apiserver.Config)

// WithStore serves rows from a store.
func WithStore(store rowstore.Store) Option {
	return func(config *apiserver.Config) { config.Store = store }
}

// WithBlobs keeps files in a directory of the test.
func WithBlobs(t testing.TB) Option {
	t.Helper()
	blobs, err := blobstore.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Errorf("close the blob store: %v", err)
		}
	})
	return func(config *apiserver.Config) { config.Blobs = blobs }
}

// NewStore opens an empty row store that lives as long as the test.
func NewStore(t testing.TB) rowstore.Store {
	t.Helper()
	return storetest.NewEmbedded(t)
}

// NewGroup makes a group for a customer.
func (s *Server) NewGroup(t testing.TB, customer, name string) ids.ID {
	t.Helper()
	group := client.PutGroup{Create: true, ID: s.IDs.New(), Customer: customer, Name: name,
		DataTable: "t", StartType: "MANUAL"}
	s.Client.Must(t, group)
	return group.ID
}

// WithRateLimits turns rate limits on. The default is off.
func WithRateLimits(config *apiserver.Config) { config.NoRateLimits = false }

// Start runs a server on loopback until the test ends.
func Start(t *testing.T, options ...Option) *Server {
	t.Helper()
	s := &Server{Clock: clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		DataDir: t.TempDir(),
		Logs:    &bytes.Buffer{}, Secrets: map[string]string{Nobody: ""}}
	s.IDs = ids.Random{Now: s.Clock.Now}
	s.Client = clienttest.New(t, s.Clock)
	s.serve(t, "test", options)
	return s
}

// Beside starts another server of the same service. It shares only the control plane, and what the
// options say.
func (s *Server) Beside(t *testing.T, options ...Option) *Server {
	t.Helper()
	other := *s
	other.Logs = &bytes.Buffer{}
	other.serve(t, "other", options)
	return &other
}

// serve runs a server on a node. The first one makes the secrets.
func (s *Server) serve(t *testing.T, node string, options []Option) {
	t.Helper()
	guard, err := egress.New(egress.Config{Resolver: names{}, Clock: s.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	config := apiserver.Config{Client: audited{s.Client, t}, Clock: s.Clock, IDs: s.IDs,
		DataDir:      s.DataDir,
		NoRateLimits: true, HashKiB: 64,
		Guard: guard, MaxHostRate: 10, MaxHostConnections: 8,
		Node: node, Boot: s.IDs.New(), Logger: slog.New(slog.NewJSONHandler(s.Logs, nil))}
	for _, option := range options {
		option(&config)
	}
	server, err := apiserver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s.API = server
	if len(s.Secrets) == 1 { // only Nobody's
		s.mintAll(t)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	stopped, stopErr := false, error(nil)
	s.Stop = func() error {
		cancel()
		if !stopped {
			stopped, stopErr = true, <-ended
		}
		return stopErr
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

func (s *Server) mintAll(t *testing.T) {
	for _, who := range []struct {
		name, customer string
		scope          model.Scope
	}{
		{User, "alice", model.ScopeUser}, {LLM, "alice", model.ScopeLLMFull},
		{Reader, "alice", model.ScopeLLMRead},
		{Other, "bob", model.ScopeUser},
	} {
		s.Client.Must(t, client.OpenCustomer{Customer: who.customer, Entry: s.IDs.New()})
		secret := auth.NewSecret()
		s.Client.Must(t, client.MintKey{ID: s.IDs.New(), Customer: who.customer,
			Prefix: secret.Prefix, Hash: secret.Hash,
			Name: who.name, Scope: who.scope})
		s.Secrets[who.name] = secret.Text
	}
	for name, admin := range map[string]bool{SignIn: false, Admin: true} {
		subject := "alice"
		if admin {
			subject = "root"
		}
		token, err := apiserver.MintToken(s.DataDir, subject, admin, s.Clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		s.Secrets[name] = token
	}
}

// Scenario is a request and what its answer must be.
type Scenario struct {
	Name   string
	As     string // a name in Secrets, or a credential
	Do     string // "GET /path"
	Header map[string]string
	Body   string // a JSON body unless Header says otherwise

	Status int
	Code   string // of the error
	// Has are members that the answer must have, by path: "content.0.name", "errors.1.field", or ""
	// for the whole answer.
	Has map[string]any
	// Lacks are members that the answer must not have.
	Lacks []string
	// Headers must be equal; "*" is any value, "" means absent.
	Headers map[string]string
	// Check checks the rest.
	Check func(t *testing.T, a Answer)
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   any // nil if the body is not JSON
}

// Run runs scenarios in order, each as a subtest. Later ones see the effects of earlier ones.
func (s *Server) Run(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) {
			t.Helper()
			sc.hold(t, s.Call(t, sc))
		})
	}
}

// Call sends a scenario's request.
func (s *Server) Call(t *testing.T, sc Scenario) Answer {
	t.Helper()
	method, path, _ := strings.Cut(sc.Do, " ")
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path,
		strings.NewReader(sc.Body))
	if err != nil {
		t.Fatal(err)
	}
	if sc.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	credential, known := s.Secrets[sc.As]
	if !known {
		credential = sc.As
	}
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	for name, value := range sc.Header {
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	a := Answer{Status: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(a.Body, &a.JSON) // not every answer is JSON
	return a
}

func (sc *Scenario) hold(t *testing.T, a Answer) {
	t.Helper()
	if a.Status != sc.Status {
		t.Fatalf("%s: status %d, want %d: %s", sc.Do, a.Status, sc.Status, a.Body)
	}
	if sc.Code != "" {
		holdProblem(t, a, sc.Code)
	}
	for path, want := range sc.Has {
		got, ok := a.At(path)
		if !ok || !reflect.DeepEqual(got, normal(t, want)) {
			t.Errorf("%s: %q is %v, want %v in %s", sc.Do, path, got, want, a.Body)
		}
	}
	for _, path := range sc.Lacks {
		if got, ok := a.At(path); ok {
			t.Errorf("%s: %q is there: %v", sc.Do, path, got)
		}
	}
	for name, want := range sc.Headers {
		if got := a.Header.Get(name); got != want && (want != "*" || got == "") {
			t.Errorf("%s: header %s is %q, want %q", sc.Do, name, got, want)
		}
	}
	if sc.Check != nil {
		sc.Check(t, a)
	}
}

// holdProblem checks the form that all errors share.
func holdProblem(t *testing.T, a Answer, code string) {
	t.Helper()
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	for path, want := range map[string]any{"code": code, "errors.0.code": code,
		"status":        float64(a.Status),
		"correlationId": a.Header.Get("X-Request-Id")} {
		if got, _ := a.At(path); got != want {
			t.Errorf("%s is %v, want %v in %s", path, got, want, a.Body)
		}
	}
}

// At returns the member of the answer at a path.
func (a Answer) At(path string) (any, bool) {
	value := a.JSON
	if path == "" {
		return value, true
	}
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			member, ok := v[part]
			if !ok {
				return nil, false
			}
			value = member
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Text returns a member as text, "" if it is absent.
func (a Answer) Text(path string) string {
	value, ok := a.At(path)
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}

// normal is a value as JSON decoding would return it.
func normal(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

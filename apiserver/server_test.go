package apiserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// A server stops cleanly with an open stream, a call under way, an idle connection and one that
// never sent anything. The call gets its answer.
func TestStop(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		// takes up to 10 s to notice
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// one per process, forever
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
	s := newTestServer(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.customers = s.chain.Handler([]*operation.Operation{
		operation.Define(operation.Declaration{ID: "svc_events",
			Routes: operation.Routes("GET /events"), Summary: "s",
			Access: auth.Public},
			func(context.Context, *operation.Caller, *struct{}) (operation.Events, error) {
				return func(ctx context.Context,
					to *operation.EventWriter) error {
					return to.Wait(ctx, nil, nil)
				}, nil
			}),
		operation.Define(operation.Declaration{ID: "svc_slow",
			Routes: operation.Routes("GET /slow"), Summary: "s",
			Access: auth.Public, Rate: limits.Unlimited},
			func(context.Context, *operation.Caller, *struct{}) (string, error) {
				close(entered)
				<-release
				return "done", nil
			}),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()

	ask := func(path string) *bufio.Reader {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if path != "" {
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
		}
		return bufio.NewReader(conn)
	}
	answer := func(from *bufio.Reader) *http.Response {
		t.Helper()
		response, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	ask("")
	if got := answer(ask("/nothing")).StatusCode; got != 404 {
		t.Fatalf("status %d", got)
	}
	events := answer(ask("/events"))
	if _, err := io.ReadFull(events.Body, make([]byte, len("retry: 3000\n\n"))); err != nil {
		t.Fatal(err)
	}
	slow := ask("/slow")
	<-entered
	cancel()
	if rest, err := io.ReadAll(events.Body); err != nil ||
		!regexp.MustCompile(`^retry: \d{3,4}\n\n$`).Match(rest) {
		t.Errorf("the stream ends with %q %v", rest, err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("a stopping server takes connections")
	}
	close(release)
	body, err := io.ReadAll(answer(slow).Body)
	if err != nil || string(body) != `"done"` {
		t.Errorf("the call under way gets %q %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !s.stopping.Load() {
		t.Error("/readyz does not know")
	}
}

// A stream whose client has hung up frees its place at the next check, before a ping fails.
func TestStreamEndsWithItsClient(t *testing.T) {
	s := newTestServer(t)
	manual, streamed := s.config.Clock.(*clock.Manual), make(chan error, 1)
	s.customers = s.chain.Handler([]*operation.Operation{
		operation.Define(operation.Declaration{ID: "svc_events",
			Routes: operation.Routes("GET /events"), Summary: "s",
			Access: auth.Public},
			func(context.Context, *operation.Caller, *struct{}) (operation.Events, error) {
				return func(ctx context.Context, to *operation.EventWriter) error {
					err := to.Wait(ctx, nil, nil)
					streamed <- err
					return err
				}, nil
			}),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, len("retry: 3000\n\n"))); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		select {
		case err = <-streamed:
		default:
			manual.Advance(time.Second)
		}
	}
	if err.Error() != "the client is gone" {
		t.Errorf("the stream ends with %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type listRequest struct {
	Body   struct{}          `body:"json"`
	Stream *operation.Stream `stream:"text/uri-list"`
}

// A client that leaves between two chunks must not look like the end of the body. Half a list would
// be taken for the whole.
func TestChunkedBodyBreaksOff(t *testing.T) {
	s := newTestServer(t)
	result := make(chan error, 1)
	s.customers = s.chain.Handler([]*operation.Operation{
		operation.Define(operation.Declaration{ID: "svc_list",
			Routes: operation.Routes("POST /list"), Summary: "s",
			Access: auth.Public},
			func(ctx context.Context, _ *operation.Caller, in *listRequest) (operation.None,
				error) {
				err := in.Stream.Receive(ctx, func(to io.Writer, body io.Reader) error {
					_, err := io.Copy(to, body)
					return err
				})
				result <- err
				return operation.None{}, err
			}),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	send := func(chunks string) error {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, "POST /list HTTP/1.1\r\nHost: h\r\nContent-Type: "+
			"text/uri-list\r\n"+
			"Transfer-Encoding: chunked\r\n\r\n"+chunks)
		if err := errors.Join(err, conn.(*net.TCPConn).CloseWrite()); err != nil {
			t.Fatal(err)
		}
		return <-result
	}
	if err := send("4\r\na\nb\n\r\n0\r\n\r\n"); err != nil {
		t.Errorf("a whole body: %v", err)
	}
	for _, chunks := range []string{"4\r\na\nb\n\r\n", "4\r\na\nb\n\r\n0", "4\r\na\nb\n",
		"4\r\na\n"} {
		if err := send(chunks); fault.CodeOf(err) != fault.InvalidBody {
			t.Errorf("%q: the handler sees %v", chunks, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSelfKeyIsNeverHalfAKey: a start that was killed while writing left the file empty. The next
// start makes another key.
func TestSelfKeyIsNeverHalfAKey(t *testing.T) {
	fake, dir := clienttest.New(t, clock.System{}), t.TempDir()
	source := ids.Random{Now: time.Now}
	path := filepath.Join(dir, "api-key")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := SelfKey(t.Context(), fake, source, dir)
	if err != nil || key == "" {
		t.Fatalf("the key is %q: %v", key, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// a write in progress never shows under the final name
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := SelfKey(t.Context(), fake, source, dir); err == nil {
		t.Error("the file was written in its place")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a key that was not written whole is there")
	}
}

func TestSelfKey(t *testing.T) {
	c := clock.NewManual(time.Unix(1_800_000_000, 0))
	fake, source, dir := clienttest.New(t, c), ids.Random{Now: c.Now}, t.TempDir()
	first, err := SelfKey(t.Context(), fake, source, dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "api-key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	second, err := SelfKey(t.Context(), fake, source, dir)
	if err != nil || second != first || !strings.HasPrefix(first, "svc_live_") {
		t.Errorf("%q then %q %v", first, second, err)
	}
	keys := fake.View().Keys(SelfCustomer)
	if len(keys) != 1 || !strings.HasPrefix(first, "svc_live_"+keys[0].Prefix+".") {
		t.Errorf("keys %v", keys)
	}
}

func TestListenersEndAll(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(inner, callers{unlimited: true}, clock.System{})
	defer func() { _ = l.Close() }()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = there.Close() }()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	listeners{l}.end(func(*conn) bool { return true })
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	if len(l.open) != 0 {
		t.Errorf("%d connections are remembered", len(l.open))
	}
}

// TestOperatorsHaveADoorOfTheirOwn: if operators have a listener, the customers' listener serves
// nothing that is for administrators only. Either way, no customer and no stranger gets it.
func TestOperatorsHaveADoorOfTheirOwn(t *testing.T) {
	for _, apart := range []bool{false, true} {
		customers, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		operators, settings := customers, func(*Config) {}
		if apart {
			if operators, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			settings = func(c *Config) { c.Operators = operators }
		}
		s := newTestServer(t, settings)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, customers) }()
		ops := s.operations()
		status := func(at net.Listener, route operation.Route) int {
			request, err := http.NewRequestWithContext(ctx, route.Method,
				"http://"+at.Addr().String()+
					strings.NewReplacer("{", "", "}", "").Replace(route.Path), nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			return response.StatusCode
		}
		theirs := 0
		for _, op := range ops {
			route := op.Routes[0]
			if route.Path != "/metrics" && !strings.HasPrefix(route.Path, "/api/admin/") {
				continue
			}
			theirs++
			want := http.StatusUnauthorized
			if got := status(operators, route); got != want {
				t.Errorf("%v at the operators' door: %d, want %d", route, got, want)
			}
			if apart {
				want = http.StatusNotFound
			}
			if got := status(customers, route); got != want {
				t.Errorf("%v at the customers' door, apart %v: %d, want %d", route, apart, got,
					want)
			}
		}
		if theirs < 5 {
			t.Errorf("only %d operations are operators'", theirs)
		}
		for _, at := range []net.Listener{customers, operators} {
			if got := status(at,
				operation.Route{Method: "GET",
					Path: "/api/wallet"}); got != http.StatusUnauthorized {
				t.Errorf("a customer's call: %d", got)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestRates(t *testing.T) {
	c := clock.NewManual(time.Unix(1_800_000_000, 0))
	fake := clienttest.New(t, c)
	limiter, err := newLimiter(Config{Client: fake, Limiter: cache.NewLocal(c),
		Rates: map[string]Rate{"run": {Count: 2, Per: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := limiter.TakeCall(t.Context(), "k", "", limits.Run).Limit; got != 2 {
		t.Errorf("limit %d", got)
	}
	if got := limiter.TakeCall(t.Context(), "k", "", limits.ListRun).Limit; got != 6 {
		t.Errorf("another class's limit %d", got)
	}
	limiter, err = newLimiter(Config{Client: fake, Limiter: cache.NewLocal(c),
		CustomerRates: map[string]Rate{"run": {Count: 1, Per: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := limiter.TakeCall(t.Context(), "k", "c", limits.Run).Limit; got != 1 {
		t.Errorf("a customer's limit %d", got)
	}
	for _, rates := range []map[string]Rate{{"walk": {Count: 1, Per: 1}},
		{"run": {Count: 0, Per: 1}}, {"run": {Count: 1}}} {
		if _, err := newLimiter(Config{Rates: rates}); err == nil {
			t.Errorf("%v is accepted", rates)
		}
		if _, err := newLimiter(Config{CustomerRates: rates}); err == nil {
			t.Errorf("%v is accepted for customers", rates)
		}
	}
}

package operation

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type everyone struct{}

func (everyone) Authenticate(_ context.Context, authorization, _ string) (auth.Principal,
	*client.View, error) {
	name, known := map[string]string{"Bearer good": "alice", "Bearer bob": "bob"}[authorization]
	if !known {
		return auth.Principal{}, nil, fault.New(fault.Unauthorized, "no")
	}
	return auth.Principal{Customer: name, Subject: name}, nil, nil
}

func (everyone) Known(string) bool { return true }

func (e everyone) AuthenticateHere(_ context.Context, authorization string) (auth.Principal,
	*client.View, error) {
	return e.Authenticate(context.Background(), authorization, "")
}

func (everyone) Redeem(context.Context, string) (auth.Principal, *client.View, error) {
	return auth.Principal{}, nil, fault.New(fault.Unauthorized, "no")
}

func (everyone) KnowsTicket(string) bool { return false }

func (everyone) Holds(*auth.Principal) error { return nil }

func (everyone) Used(*auth.Principal, netip.Addr) {}

type rig struct {
	t     *testing.T
	clock *clock.Manual
	l     *fasthttputil.InmemoryListener
	stop  context.CancelFunc // of streams
	chain *Chain
}

// serve runs operations on a listener in memory.
func serve(t *testing.T, figures map[limits.Class]limits.Figure, ops ...*Operation) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(time.Unix(1_800_000_000, 0)),
		l: fasthttputil.NewInmemoryListener()}
	streaming, stop := context.WithCancel(t.Context())
	r.stop = stop
	counts := cache.NewLocal(r.clock)
	r.chain = &Chain{Auth: everyone{}, Limits: &limits.Buckets{Cache: counts, Figures: figures},
		Streams: &limits.Streams{Cache: counts}, Clock: r.clock,
		IDs: ids.Random{Now: r.clock.Now}, Logger: slog.New(slog.DiscardHandler),
		Observer: unobserved{},
		Work:     t.Context(), Streaming: streaming}
	server := &fasthttp.Server{Handler: r.chain.Handler(ops), ErrorHandler: r.chain.Unreadable,
		StreamRequestBody: true,
		ReadBufferSize:    4096}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(r.l) }()
	t.Cleanup(func() {
		stop()
		if err := r.chain.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		_ = r.l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// raw sends bytes and reads one answer. closed says whether the server then closed the connection.
func (r *rig) raw(request string) (answer *http.Response, body string, closed bool) {
	r.t.Helper()
	conn, err := r.l.Dial()
	if err != nil {
		r.t.Error(err)
		return &http.Response{}, "", false
	}
	defer func() { _ = conn.Close() }()
	// the server may answer before it has read everything
	go func() { _, _ = io.WriteString(conn, request) }()
	reader := bufio.NewReader(conn)
	answer, err = http.ReadResponse(reader, nil)
	if err != nil {
		r.t.Error(err)
		return &http.Response{}, "", false
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Error(err)
	}
	return answer, string(data), answer.Close
}

func (r *rig) expect(request string, status int, contains string) *http.Response {
	r.t.Helper()
	answer, body, _ := r.raw(request)
	if answer.StatusCode != status || !strings.Contains(body, contains) {
		r.t.Fatalf("%.60q: %d %s, want %d %s", request, answer.StatusCode, body, status, contains)
	}
	return answer
}

func head(line string, headers ...string) string {
	return line + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n" +
		strings.Join(append(headers, "", ""), "\r\n")
}

type echoRequest struct {
	Body struct {
		Text string `json:"text" required:"true"`
	} `body:"json" limit:"100"`
}

func echo() *Operation {
	return Define(Declaration{ID: "svc_echo", Routes: Routes("POST /echo"), Summary: "s",
		Access: auth.Write, Rate: limits.General},
		func(_ context.Context, _ *Caller, in *echoRequest) (map[string]string, error) {
			return map[string]string{"text": in.Body.Text}, nil
		})
}

func TestBodies(t *testing.T) {
	r := serve(t, nil, echo())
	post := func(body string, headers ...string) string {
		return head("POST /echo",
			append(headers, "Content-Type: application/json",
				fmt.Sprintf("Content-Length: %d", len(body)))...) + body
	}
	r.expect(post(`{"text":"<&>"}`), 200, `{"text":"<&>"}`)
	r.expect(head("POST /echo", "Content-Type: application/json; charset=utf-8",
		"Transfer-Encoding: chunked")+
		"c\r\n{\"text\":\"a\"}\r\n0\r\n\r\n", 200, `{"text":"a"}`)
	r.expect(post(`{"text":"`+strings.Repeat("x", 100)+`"}`), 413, "payload_too_large")
	r.expect(head("POST /echo", "Content-Type: application/json", "Transfer-Encoding: chunked")+
		"80\r\n"+strings.Repeat(" ", 128)+"\r\n0\r\n\r\n", 413, "payload_too_large")
	r.expect(head("POST /echo", "Content-Type: text/plain", "Content-Length: 2")+"{}", 415,
		"unsupported_media_type")
	r.expect(post(`{}`, "Content-Encoding: gzip"), 415, "Content-Encoding")
	r.expect(post(`{"text":"a"}`, "Content-Encoding: identity"), 200, "a")
	r.expect(head("POST /echo", "Content-Type: application/json", "Content-Length: 0"), 400,
		"invalid_body")
	r.expect(head("POST /echo", "Content-Type: application/json", "Content-Length: 2",
		"Transfer-Encoding: chunked")+
		"2\r\n{}\r\n0\r\n\r\n", 400, "Transfer-Encoding")
	r.expect(head("GET /echo"), 405, "method_not_allowed")
	r.expect(head("GET /nothing"), 404, "route_not_found")
	r.expect(head("POST /echo/"), 404, "route_not_found")
	r.expect("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 401, "unauthorized")
	r.expect(head("POST /echo", "X-Long: "+strings.Repeat("x", 5000)), 431, "header_too_large")
	r.expect("nonsense\r\n\r\n", 400, "invalid_request")
}

// A body that nobody has read is never taken for the next request.
func TestUnreadBody(t *testing.T) {
	r := serve(t, nil, echo())
	large := strings.Repeat("x", 1<<20)
	_, _, closed := r.raw("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n" +
		large)
	if !closed {
		t.Error("the connection stays open behind an unread body")
	}
	conn, err := r.l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	small := "GET /x HTTP/1.1\r\n\r\n" // as a body
	request := fmt.Sprintf("POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s",
		len(small), small)
	reader := bufio.NewReader(conn)
	for range 2 {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 404 || answer.Close {
			t.Fatalf("%d %s %v", answer.StatusCode, body, err)
		}
	}
}

// A sender that waits for the answer before it sends the body gets an answer.
func TestUnsentBody(t *testing.T) {
	r := serve(t, nil, echo())
	answer, body, closed := r.raw("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n")
	if answer.StatusCode != 401 || !closed {
		t.Errorf("%d %s, closed %v", answer.StatusCode, body, closed)
	}
}

type streamRequest struct {
	Body struct {
		Name string   `json:"name" required:"true"`
		URLs []string `json:"urls" required:"true" alone:"json"`
		Deep *inner   `json:"deep"`
	} `body:"json"`
	Stream *Stream `stream:"text/uri-list"`
}

func TestStreamedBody(t *testing.T) {
	r := serve(t, nil, Define(Declaration{ID: "svc_stream", Routes: Routes("POST /stream"),
		Summary: "s", Access: auth.Write},
		func(ctx context.Context, _ *Caller, in *streamRequest) (string, error) {
			if in.Stream == nil {
				return strings.Join(in.Body.URLs, " "), nil
			}
			if err := in.Stream.Receive(ctx, Verbatim); err != nil {
				return "", err
			}
			n, err := io.Copy(io.Discard, in.Stream)
			return fmt.Sprint(in.Body.Name, n, in.Body.Deep), err
		}))
	post := func(query, contentType string, declared int, body string) string {
		return head("POST /stream"+query, "Content-Type: "+contentType,
			fmt.Sprintf("Content-Length: %d", declared)) + body
	}
	large := strings.Repeat("x", 100_000)
	r.expect(post("?name=n", "text/uri-list", len(large), large), 200, "n100000")
	r.expect(post("?name=n&deep=%7B%22name%22:%22d%22%7D", "text/uri-list", 1, "x"), 200,
		"n1 &{d A}")
	r.expect(post("", "text/uri-list", 1, "x"), 400, `"field":"name"`)
	r.expect(post("?name=n&urls=a", "text/uri-list", 1, "x"), 400, `"field":"urls"`)
	r.expect(post("?name=n", "application/json", 2, "{}"), 400, `"field":"urls"`)
	r.expect(post("", "application/json", 26, `{"name":"n","urls":["a"]}`+" "), 200, `"a"`)
	r.expect(post("?name=n", "text/csv", 1, "x"), 415, "text/uri-list")
}

// A sender that goes away before the declared length has come does not look like the end of the
// body.
func TestTruncatedStream(t *testing.T) {
	result := make(chan error, 1)
	r := serve(t, nil, Define(Declaration{ID: "svc_stream", Routes: Routes("POST /stream"),
		Summary: "s", Access: auth.Write},
		func(ctx context.Context, _ *Caller, in *streamRequest) (None, error) {
			err := in.Stream.Receive(ctx, Verbatim)
			result <- err
			return None{}, err
		}))
	conn, err := r.l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn,
		head("POST /stream?name=n", "Content-Type: text/uri-list", "Content-Length: 30000")+
			strings.Repeat("x", 20_000))
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; fault.CodeOf(err) != fault.InvalidBody {
		t.Errorf("the handler sees %v", err)
	}
}

func TestFailures(t *testing.T) {
	failing := func(id string, fail func() error) *Operation {
		return Define(Declaration{ID: "svc_" + id, Routes: Routes("GET /" + id), Summary: "s",
			Access: auth.Read},
			func(context.Context, *Caller, *struct{}) (None, error) { return None{}, fail() })
	}
	r := serve(t, nil,
		failing("panic", func() error { panic("secret") }),
		failing("plain", func() error { return errors.New("secret") }),
		failing("coded", func() error {
			return fmt.Errorf("secret: %w",
				fault.New(fault.JobNotFound, "no job"))
		}),
		failing("page", func() error { return fault.New(fault.PageDNS, "secret") }),
		failing("gone", func() error { return ErrGone }),
		failing("late", func() error { return fmt.Errorf("secret: %w", context.DeadlineExceeded) }),
		failing("site", func() error {
			return fmt.Errorf("secret: %w",
				fault.New(fault.SourceUnreachable, "no answer"))
		}))
	var logged bytes.Buffer
	r.chain.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	for path, want := range map[string]string{"panic": "500 internal_error",
		"plain": "500 internal_error",
		"coded": "400 job_not_found", "page": "500 internal_error", "late": "503 unavailable",
		"gone": "503 unavailable", "site": "502 source_unreachable"} {
		answer, body, _ := r.raw(head("GET /"+path, "X-Request-Id: mine"))
		got := fmt.Sprint(answer.StatusCode)
		if !strings.HasPrefix(want, got) || !strings.Contains(body, want[4:]) ||
			strings.Contains(body, "secret") ||
			!strings.Contains(body, `"correlationId":"mine"`) ||
			answer.Header.Get("X-Request-Id") != "mine" {
			t.Errorf("%s: %s %s", path, got, body)
		}
	}
	for path, level := range map[string]string{"plain": "ERROR", "late": "ERROR", "gone": "INFO",
		"coded": "INFO", "site": "INFO"} {
		if line := fmt.Sprintf("level=%s msg=call operation=svc_%s", level,
			path); !strings.Contains(logged.String(), line) {
			t.Errorf("no line %q in %s", line, &logged)
		}
	}
	answer := r.expect(head("GET /coded", "X-Request-Id: "+strings.Repeat("x", 129)), 400,
		"job_not_found")
	if id := answer.Header.Get("X-Request-Id"); len(id) != 24 {
		t.Errorf("request id %q", id)
	}
	r.expect(head("GET /coded", "Content-Length: 1")+"x", 400, "takes no body")
	r.expect(head("GET /coded", "Content-Length: 7")+`{"a":1}`, 400, `"field":"a"`)
	r.expect(head("GET /coded", "Content-Length: 13")+`{"a":1,"a":2}`, 400, "takes no body")
	r.expect(head("GET /coded", "Content-Length: 4")+`null`, 400, "takes no body")
	for _, nothing := range []string{"{}", " { }\n"} { // decision 57
		r.expect(head("GET /coded", fmt.Sprintf("Content-Length: %d", len(nothing)))+nothing, 400,
			"job_not_found")
	}
}

// leaderless authenticates nobody: the control plane has no leader.
type leaderless struct {
	everyone
	patience chan time.Duration
}

func (l leaderless) Authenticate(ctx context.Context, _, _ string) (auth.Principal, *client.View,
	error) {
	until, _ := ctx.Deadline()
	l.patience <- time.Until(until)
	return auth.Principal{}, nil, fault.New(fault.Unavailable, "the control plane has no leader")
}

func (leaderless) AuthenticateHere(context.Context, string) (auth.Principal, *client.View, error) {
	return auth.Principal{}, nil, fault.New(fault.Unauthorized, "not by this node alone")
}

// A call that may take long does not wait as long for a leader.
func TestWithoutALeader(t *testing.T) {
	r := serve(t, nil, Define(Declaration{ID: "svc_long", Routes: Routes("POST /long"),
		Summary: "s", Access: auth.Write,
		Timeout: time.Hour}, func(context.Context, *Caller, *struct{}) (None,
		error) {
		return None{}, nil
	}))
	patience := make(chan time.Duration, 1)
	r.chain.Auth = leaderless{patience: patience}
	answer := r.expect(head("POST /long"), 503, "unavailable")
	if waits := <-patience; waits <= 0 || waits > client.Patience {
		t.Errorf("it waits %v for a leader", waits)
	}
	if answer.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to come again")
	}
}

func TestRateLimits(t *testing.T) {
	r := serve(t, map[limits.Class]limits.Figure{limits.SignIn: {Count: 2, Per: time.Minute},
		limits.Anonymous: {Count: 1, Per: time.Minute}},
		echo())
	call := head("POST /echo", "Content-Length: 0")
	first := r.expect(call, 400, "")
	if h := first.Header; h.Get("RateLimit-Limit") != "2" || h.Get("RateLimit-Remaining") != "1" ||
		h.Get("RateLimit-Reset") != "30" {
		t.Errorf("headers %v", h)
	}
	r.expect(call, 400, "")
	limited := r.expect(call, 429, "rate_limited")
	if h := limited.Header; h.Get("Retry-After") != "30" || h.Get("RateLimit-Remaining") != "0" {
		t.Errorf("headers %v", h)
	}
	r.clock.Advance(30 * time.Second)
	r.expect(call, 400, "")
	stranger := "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"
	r.expect(strings.Replace(stranger, "GET", "POST", 1), 401, "unauthorized")
	r.expect(strings.Replace(stranger, "GET", "POST", 1), 429, "rate_limited")
}

// Large bodies take turns: while two are in memory, others wait, but small ones pass. No customer
// has both places.
func TestLargeBodiesTakeTurns(t *testing.T) {
	entered, release := make(chan string, 4), make(chan struct{})
	type large struct {
		Body struct {
			Text string `json:"text"`
		} `body:"json" limit:"3000000"`
	}
	r := serve(t, nil, Define(Declaration{ID: "svc_large", Routes: Routes("POST /large"),
		Summary: "s", Access: auth.Write},
		func(_ context.Context, from *Caller, in *large) (None, error) {
			if len(in.Body.Text) > 1 {
				entered <- from.Customer
				<-release
			}
			return None{}, nil
		}))
	post := func(size int) string {
		body := `{"text":"` + strings.Repeat("x", size) + `"}`
		return head("POST /large", "Content-Type: application/json",
			fmt.Sprintf("Content-Length: %d", len(body))) + body
	}
	answers := make(chan int, 4)
	send := func(who string) {
		answer, _, _ := r.raw(strings.Replace(post(2_000_000), "good", who, 1))
		answers <- answer.StatusCode
	}
	go send("good")
	go send("good")
	first := <-entered
	go send("bob")
	go send("bob")
	if second := <-entered; first != "alice" || second != "bob" {
		t.Errorf("%s's and %s's bodies are in memory", first, second)
	}
	r.expect(post(1), 204, "")
	if len(r.chain.places) != maxLarge || len(entered) != 0 {
		t.Errorf("%d places taken, %d more calls", len(r.chain.places), len(entered))
	}
	close(release)
	for range 4 {
		if status := <-answers; status != 204 {
			t.Errorf("status %d", status)
		}
	}
}

// unobserved ignores all counts.
type unobserved struct{}

func (unobserved) Answered(string, int, time.Duration) {}
func (unobserved) Limited(limits.Class)                {}

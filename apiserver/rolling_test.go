package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// instance is one of the servers behind the balancer. Each start has an address of its own: another
// process may have taken the last one.
type instance struct {
	t       *testing.T
	client  client.Client
	dir     string
	address atomic.Pointer[string]
	ready   atomic.Bool // as the balancer last saw it
	seen    atomic.Int64
	calls   atomic.Int64 // under way through the balancer
	stop    func()
}

// grace is a clock whose grace period ends when the test says so. A busy machine may be slow to
// look elsewhere.
type grace struct {
	clock.System
	over chan time.Time
}

const testGrace = time.Hour

func (g grace) After(d time.Duration) <-chan time.Time {
	if d == testGrace {
		return g.over
	}
	return g.System.After(d)
}

// start serves on a free address.
func (i *instance) start() {
	i.t.Helper()
	g := grace{over: make(chan time.Time)}
	server, err := New(Config{Client: i.client, Clock: g, IDs: ids.Random{Now: time.Now},
		DataDir:      i.dir,
		NoRateLimits: true, Logger: slog.New(slog.DiscardHandler), StopGrace: testGrace})
	if err != nil {
		i.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		i.t.Fatal(err)
	}
	address := listener.Addr().String()
	i.address.Store(&address)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	i.stop = func() {
		cancel()
		// the balancer has switched to the other instance
		i.await(func() bool { return !i.ready.Load() && i.calls.Load() == 0 })
		g.over <- time.Time{}
		if err := <-ended; err != nil {
			i.t.Errorf("stop: %v", err)
		}
	}
}

func (i *instance) await(what func() bool) {
	i.t.Helper()
	for !what() && i.t.Context().Err() == nil {
		<-time.After(time.Millisecond)
	}
}

// probe polls readiness until ctx ends.
func (i *instance) probe(ctx context.Context) {
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+*i.address.Load()+"/readyz", nil)
		if err != nil {
			i.t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(request)
		ok := err == nil && answer.StatusCode == http.StatusOK
		if err == nil {
			_ = answer.Body.Close()
		}
		i.ready.Store(ok)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// balancer distributes calls over the instances that report themselves ready. It never retries.
type balancer struct {
	instances []*instance
	turn      atomic.Uint64
	transport http.Transport
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	turn := b.turn.Add(1)
	for n := range uint64(len(b.instances)) {
		i := b.instances[(turn+n)%uint64(len(b.instances))]
		i.calls.Add(1)
		defer i.calls.Add(-1)
		if !i.ready.Load() {
			continue
		}
		i.seen.Add(1)
		body, _ := io.ReadAll(r.Body)
		// The transport never resends a request without GetBody.
		onward, err := http.NewRequestWithContext(r.Context(), r.Method,
			"http://"+*i.address.Load()+r.URL.RequestURI(),
			io.NopCloser(bytes.NewReader(body)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		onward.ContentLength = int64(len(body))
		onward.Header = r.Header.Clone()
		answer, err := b.transport.RoundTrip(onward)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the caller notices a short body
		return
	}
	http.Error(w, "nobody is ready", http.StatusBadGateway)
}

// Two servers behind a balancer are restarted in turn, again and again, under constant calls. No
// call fails.
func TestRollingRestart(t *testing.T) {
	const callers, rounds = 8, 3
	fake, dir := clienttest.New(t, clock.System{}), t.TempDir()
	key, err := SelfKey(t.Context(), fake, ids.Random{Now: time.Now}, dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{}
	probing, endProbing := context.WithCancel(t.Context())
	var probes sync.WaitGroup
	for range 2 {
		i := &instance{t: t, client: fake, dir: dir}
		i.start()
		probes.Go(func() { i.probe(probing) })
		b.instances = append(b.instances, i)
	}
	front := httptest.NewServer(b)
	defer front.Close()
	for _, i := range b.instances {
		i.await(i.ready.Load)
	}

	calling, endCalls := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	var made atomic.Int64
	for n := range callers {
		calls.Go(func() {
			for c := 0; calling.Err() == nil; c++ {
				if err := callOnce(front.URL, key, n, c); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	for range rounds {
		for _, i := range b.instances {
			i.stop()
			i.start()
			i.await(i.ready.Load)
			before := i.seen.Load() // it serves calls before the next one is stopped
			i.await(func() bool { return i.seen.Load() >= before+callers || t.Failed() })
		}
	}
	endCalls()
	calls.Wait()
	for _, i := range b.instances {
		i.stop()
	}
	endProbing()
	probes.Wait()
	b.transport.CloseIdleConnections()
	t.Logf("%d calls", made.Load())
}

// callOnce makes a read, or a write with its own idempotency key.
func callOnce(server, key string, caller, n int) error {
	method, path, body := http.MethodGet, "/api/wallet", ""
	if n%2 == 0 {
		method, path = http.MethodPut, "/api/scraper/group"
		body = fmt.Sprintf(`{"name":"group %d of %d","startType":"MANUAL"}`, n, caller)
	}
	request, err := http.NewRequest(method, server+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprintf("%d-%d", caller, n))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s is cut off: %w", method, path, err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, said)
	}
	return nil
}

// During the grace period the server answers calls and closes each connection after one.
func TestGrace(t *testing.T) {
	s := newTestServer(t)
	manual := s.config.Clock.(*clock.Manual)
	s.config.StopGrace = time.Minute
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	ask := func(path string) (status int, closes bool) {
		answer, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode, answer.Close
	}
	if status, closes := ask("/readyz"); status != 200 || closes {
		t.Errorf("before the stop: %d, closes %v", status, closes)
	}
	cancel()
	for status, closes := ask("/readyz"); status != 503 || !closes; status,
		closes = ask("/readyz") {
		if t.Context().Err() != nil {
			t.Fatalf("%d, closes %v", status, closes)
		}
	}
	if status, closes := ask("/healthz"); status != 200 || !closes {
		t.Errorf("in the grace: %d, closes %v", status, closes)
	}
	for len(ended) == 0 && t.Context().Err() == nil { // the server may not be waiting yet
		manual.Advance(time.Minute)
		<-time.After(time.Millisecond)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + listener.Addr().String() + "/healthz"); err == nil {
		t.Error("it serves on after the grace")
	}
}

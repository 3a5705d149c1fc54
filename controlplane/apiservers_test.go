package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/pkg/clock"
)

// apiServer is an API server at a node. All of a test know the same tokens.
type apiServer struct {
	t          *testing.T
	ctx        context.Context // of calls
	http       *http.Client
	url        string
	ann, admin string // credentials
	kill       func()
}

// serveAPI serves the API at a node until the test ends.
func (c *nodes) serveAPI(t *testing.T, n int, dir string) *apiServer {
	t.Helper()
	server, err := apiserver.New(apiserver.Config{Client: c.at(n).Client, Clock: clock.System{},
		IDs: c.configs[n].IDs, DataDir: dir, NoRateLimits: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	s := &apiServer{t: t, ctx: t.Context(), http: &http.Client{Transport: transport},
		url: "http://" + listener.Addr().String()}
	for subject, to := range map[string]*string{"ann": &s.ann, "root": &s.admin} {
		if *to, err = apiserver.MintToken(dir, subject, subject == "root", time.Now(),
			time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	s.kill = cancel
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// ask makes a call. The caller closes the answer's body.
func (s *apiServer) ask(method, path, credential string, header map[string]string,
	body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(s.ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+credential)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return s.http.Do(request)
}

// call makes a call that is answered 200 or 204, and reads the answer into a pointer, if not nil.
func (s *apiServer) call(method, path, credential string, header map[string]string, body string,
	to any) error {
	answer, err := s.ask(method, path, credential, header, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	if err == nil && to != nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

// pays adds an amount to ann's wallet.
func (s *apiServer) pays(amount int) {
	s.t.Helper()
	if err := s.call("POST", "/api/admin/customers/ann/wallet/adjustments", s.admin,
		map[string]string{"Idempotency-Key": strconv.Itoa(amount),
			"Content-Type": "application/json"}, fmt.Sprintf(`{"amountMicros":%d}`, amount),
		nil); err != nil {
		s.t.Fatal(err)
	}
}

// follow opens ann's stream behind an event; 0: from now on.
func (s *apiServer) follow(behind uint64) *bufio.Scanner {
	s.t.Helper()
	answer, err := s.ask("GET", "/api/events/stream", s.ann,
		map[string]string{"Last-Event-ID": strconv.FormatUint(behind, 10)}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return bufio.NewScanner(answer.Body)
}

package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func ask(t *testing.T, h http.Handler, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

func TestOpsEndpoints(t *testing.T) {
	m := NewMetrics()
	m.Gauge("shoal_test_held_bytes", "").Set(7)
	var unready, unhashed error
	ops := Ops{Metrics: m, Ready: func(context.Context) error { return unready },
		StateHash: func() (StateHash, error) { return StateHash{Index: 12, Hash: "ab"}, unhashed }}
	h := ops.Handler()
	for _, c := range []struct {
		target string
		status int
		has    string
	}{
		{"/metrics", 200, "shoal_test_held_bytes 7"},
		{"/api/livez", 200, `"ok"`},
		{"/api/readyz", 200, `"ok"`},
		{"/api/readyz", 200, fmt.Sprintf(`"pid":%d,`, os.Getpid())},
		{"/state-hash", 200, `{"index":12,"hash":"ab"}`},
		{"/debug/pprof/", 404, ""},
		{"/", 404, ""},
	} {
		if status, body := ask(t, h, c.target); status != c.status ||
			!strings.Contains(body, c.has) {
			t.Errorf("%s answers %d %s", c.target, status, body)
		}
	}
	unready, unhashed = errors.New("no leader"), errors.New("no replica")
	for _, target := range []string{"/api/readyz", "/state-hash"} {
		status, body := ask(t, h, target)
		var answer map[string]string
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 503 ||
			!strings.HasPrefix(answer["reason"], "no ") {
			t.Errorf("%s answers %d %s", target, status, body)
		}
	}
	if status, _ := ask(t, h, "/api/livez"); status != 200 {
		t.Error("a process that is not ready is not alive")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/livez", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST answers %d", w.Code)
	}
}

func TestProfilesAreBehindASwitch(t *testing.T) {
	status, body := ask(t, Ops{Metrics: NewMetrics(), Pprof: true}.Handler(), "/debug/pprof/")
	if status != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := ask(t, Ops{Metrics: NewMetrics()}.Handler(), "/state-hash"); status != 404 {
		t.Errorf("a process without a replica answers %d", status)
	}
}

func TestOpsServesUntilItsEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Ops{Metrics: NewMetrics()}.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + l.Addr().String() + "/api/livez")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "ok") || answer.Body.Close() != nil {
		t.Errorf("%s %v", body, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
}

func TestOpsSaysWhyItEnded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (Ops{Metrics: NewMetrics()}).Serve(t.Context(), l); err == nil {
		t.Error("a closed port is no reason")
	}
}

func TestLogLevelChangesWhileTheProcessRuns(t *testing.T) {
	level := &slog.LevelVar{}
	var out strings.Builder
	log, err := NewLog(&out, LogConfig{Level: level}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := Ops{Metrics: NewMetrics(), LogLevel: level}.Handler()
	put := func(body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/log-level", strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	log.Debug("before")
	if status, body := put("debug\n"); status != 200 || !strings.Contains(body, `"level":"debug"`) {
		t.Errorf("it answers %d %s", status, body)
	}
	log.Debug("after")
	if strings.Contains(out.String(), "before") || !strings.Contains(out.String(), "after") {
		t.Errorf("the log has %q", out.String())
	}
	for _, body := range []string{"", "loud", strings.Repeat("x", 2*maxLevel)} {
		if status, answer := put(body); status != 400 ||
			!strings.Contains(answer, "want debug, info, warn or error") {
			t.Errorf("%q: it answers %d %s", body, status, answer)
		}
	}
	if status, body := ask(t, h, "/log-level"); status != 200 ||
		!strings.Contains(body, `"level":"debug"`) {
		t.Errorf("it answers %d %s", status, body)
	}
}

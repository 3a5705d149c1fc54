package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/testkit/process"
)

// TestMain is also the child: a stand-in for the binary, controlled by STAND_IN.
func TestMain(m *testing.M) {
	if os.Getenv("STAND_IN") == "" {
		os.Exit(m.Run())
	}
	os.Exit(standIn(os.Getenv("STAND_IN")))
}

func standIn(behaviour string) int {
	if os.Args[1] == "version" {
		fmt.Println("stand-in of", os.Getenv("SHOAL_DATA"))
		return 0
	}
	if behaviour == "fails" {
		fmt.Fprintln(os.Stderr, "cannot start")
		return 7
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	data := os.Args[3] // serve --data DIR
	for name, content := range map[string]string{"api-key": "the key\n",
		"address": "http://" + ln.Addr().String() + "\n"} {
		if os.WriteFile(filepath.Join(data, name), []byte(content), 0o600) != nil {
			return 1
		}
	}
	go func() {
		_ = http.Serve(ln,
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}()
	fmt.Println("serving", os.Args[1:])
	for {
		<-stop
		if behaviour == "serves" {
			return 0
		}
	}
}

func start(t *testing.T, data, behaviour string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Config{Binary: os.Args[0], Data: data, Args: []string{"--more"},
		Env: []string{"STAND_IN=" + behaviour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func ready(t *testing.T, p *process.Process) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.Ready(ctx)
}

func TestLives(t *testing.T) {
	data := t.TempDir()
	first := start(t, data, "serves")
	if err := ready(t, first); err != nil {
		t.Fatal(err)
	}
	usage, err := first.Usage()
	if err != nil || usage.PeakBytes < usage.Bytes || usage.Bytes < 1<<20 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	first.Kill()
	if !first.Killed() {
		t.Error("a killed child does not say so")
	}
	second := start(t, data, "serves")
	if err := ready(t, second); err != nil {
		t.Fatal(err)
	}
	if second.Server() == first.Server() || second.Key() != "the key" {
		t.Errorf("the second serves %q with %q", second.Server(), second.Key())
	}
	if _, err := second.Stop(time.Minute); err != nil || second.Killed() {
		t.Errorf("stop: %v", err)
	}
	if !second.Died().After(first.Died()) ||
		!strings.Contains(second.Said(), "127.0.0.1:0 --more") {
		t.Errorf("said %q", second.Said())
	}
}

func TestAChildThatFailsIsNotReady(t *testing.T) {
	err := ready(t, start(t, t.TempDir(), "fails"))
	if !errors.Is(err, process.ErrEnded) || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("%v", err)
	}
}

func TestAChildThatDoesNotStopIsKilled(t *testing.T) {
	p := start(t, t.TempDir(), "stays")
	if err := ready(t, p); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stop(50 * time.Millisecond); err == nil ||
		!strings.Contains(p.Said(), "goroutine ") {
		t.Errorf("%v", err)
	}
}

func TestAPausedChildGoesOn(t *testing.T) {
	p := start(t, t.TempDir(), "serves")
	if err := ready(t, p); err != nil {
		t.Fatal(err)
	}
	stopped := func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(status), "T (stopped)")
	}
	for want, signal := range map[bool]func() error{true: p.Pause, false: p.Resume} {
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := signal(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.After(time.Minute); stopped() != want; {
			select {
			case <-deadline:
				t.Fatalf("stopped is not %v", want)
			case <-time.After(time.Millisecond):
			}
		}
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestCommand(t *testing.T) {
	t.Setenv("STAND_IN", "serves")
	data := t.TempDir()
	said, err := start(t, data, "serves").Command(t.Context(), "version")
	if err != nil || said != "stand-in of "+data {
		t.Errorf("%q, %v", said, err)
	}
}

package apiserver

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exhausted fails Accept with each of its failures, and then succeeds.
type exhausted struct {
	arriving
	failures []error
}

func (e *exhausted) Accept() (net.Conn, error) {
	if len(e.failures) == 0 {
		return e.arriving.Accept()
	}
	err := e.failures[0]
	e.failures = e.failures[1:]
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
}

func (e *exhausted) Close() error { return nil }

// pausing is a clock that records each pause and passes it to on, which ends it.
type pausing struct {
	pauses []time.Duration
	on     func(end chan<- time.Time)
}

func (p *pausing) Now() time.Time { return time.Unix(0, 0) }

func (p *pausing) After(d time.Duration) <-chan time.Time {
	p.pauses = append(p.pauses, d)
	end := make(chan time.Time, 1)
	p.on(end)
	return end
}

// A temporary failure to accept a connection does not end the server. It retries after a pause,
// which grows.
func TestConnectionsThatCannotBeTaken(t *testing.T) {
	inner := &exhausted{failures: []error{syscall.EMFILE, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOBUFS, syscall.ECONNABORTED}}
	inner.from = []string{"192.0.2.1:80"}
	clock := &pausing{on: func(end chan<- time.Time) { end <- time.Time{} }}
	var log strings.Builder
	l := listen(inner, callers{unlimited: true, logger: slog.New(slog.NewTextHandler(&log, nil))},
		clock)
	if c, err := l.Accept(); err != nil || c == nil {
		t.Fatalf("no connection comes: %v", err)
	}
	if n := len(clock.pauses); n != 5 || clock.pauses[n-1] <= clock.pauses[0] {
		t.Errorf("the pauses are %v", clock.pauses)
	}
	if n := strings.Count(log.String(), "could not be taken"); n != 1 {
		t.Errorf("it is told %d times: %s", n, log.String())
	}
	inner.failures = []error{syscall.EBADF}
	if _, err := l.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("what does not pass: %v", err)
	}
}

// A listener that is closed during the pause does not wait for its end.
func TestClosedWhileConnectionsCannotBeTaken(t *testing.T) {
	inner, clock := &exhausted{failures: []error{syscall.EMFILE}}, &pausing{}
	l := listen(inner, callers{unlimited: true, logger: slog.New(slog.DiscardHandler)}, clock)
	clock.on = func(chan<- time.Time) { _ = l.Close() }
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

package operation

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// firing is a clock whose every timer is due at once: time passes while it is waited for.
type firing struct{ now time.Time }

func (c *firing) Now() time.Time { return c.now }

func (c *firing) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)
	due := make(chan time.Time, 1)
	due <- c.now
	return due
}

// An idle stream pings, and so finds out that its client has gone.
func TestWaitPings(t *testing.T) {
	reader, writer := io.Pipe()
	to := &EventWriter{w: bufio.NewWriter(writer), clock: &firing{},
		gone: func() bool { return false }}
	ended := make(chan error, 1)
	go func() { ended <- to.Wait(context.Background(), nil, nil) }()
	got := make([]byte, len(": ping\n\n"))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != ": ping\n\n" {
		t.Fatalf("%q %v", got, err)
	}
	gone := errors.New("gone")
	_ = reader.CloseWithError(gone) // never fails
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("the wait ended with %v", err)
	}
}

// A stream is not silent for longer than a ping takes to come, and one that is looks for its client
// meanwhile.
func TestWaitLooks(t *testing.T) {
	var sent bytes.Buffer
	looks := 0
	to := &EventWriter{w: bufio.NewWriter(&sent), clock: &firing{},
		gone: func() bool { looks++; return looks == 40 }}
	if err := to.Send("e", "", 1); err != nil {
		t.Fatal(err)
	}
	sent.Reset()
	if err := to.Wait(context.Background(), nil, nil); !errors.Is(err, errClientGone) {
		t.Errorf("the wait ended with %v", err)
	}
	if got, want := sent.String(), strings.Repeat(": ping\n\n", 2); got != want {
		t.Errorf("in 40 looks it sent %q", got)
	}
}

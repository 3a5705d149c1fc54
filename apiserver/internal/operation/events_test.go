package operation

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
)

// firing is a clock whose timers are all due at once; waiting for one advances the time.
type firing struct{ now time.Time }

func (c *firing) Now() time.Time { return c.now }

func (c *firing) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)
	due := make(chan time.Time, 1)
	due <- c.now
	return due
}

// An idle stream pings, and so finds out that its client is gone.
func TestWaitPings(t *testing.T) {
	reader, writer := io.Pipe()
	to := &EventWriter{w: bufio.NewWriter(writer), clock: &firing{},
		gone: func() bool { return false }, holds: always}
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

func always() error { return nil }

// A stream ends, even a silent one, once its caller would be refused.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	refused := errors.New("refused")
	var sent bytes.Buffer
	asked := 0
	to := &EventWriter{w: bufio.NewWriter(&sent), clock: &firing{},
		gone: func() bool { return false }, holds: func() error {
			if asked++; asked > 3 {
				return refused
			}
			return nil
		}}
	if err := to.Send("e", "", 1); err != nil {
		t.Fatal(err)
	}
	sent.Reset()
	if err := to.Wait(t.Context(), nil, nil); !errors.Is(err, refused) {
		t.Errorf("the wait ended with %v", err)
	}
	if err := to.Send("e", "", 2); !errors.Is(err, refused) || sent.Len() > 0 {
		t.Errorf("%v, and it sent %q", err, &sent)
	}
}

// A stream is never silent for longer than pingEvery. A silent one checks meanwhile whether its
// client is still there.
func TestWaitLooks(t *testing.T) {
	var sent bytes.Buffer
	looks := 0
	to := &EventWriter{w: bufio.NewWriter(&sent), clock: &firing{},
		gone: func() bool { looks++; return looks == 40 }, holds: always}
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

func events(send func(ctx context.Context, to *EventWriter) error) *Operation {
	return Define(Declaration{ID: "svc_events", Routes: Routes("GET /events"), Summary: "s",
		Access: auth.Read},
		func(context.Context, *Caller, *struct{}) (Events, error) { return send, nil })
}

func (r *rig) openStream() (net.Conn, *bufio.Reader) {
	r.t.Helper()
	conn, err := r.l.Dial()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, head("GET /events")); err != nil {
		r.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if answer.StatusCode != 200 {
		return nil, nil
	}
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		r.t.Errorf("content type %q", got)
	}
	return conn, bufio.NewReader(answer.Body)
}

func readFrame(t *testing.T, from *bufio.Reader) string {
	t.Helper()
	var frame strings.Builder
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", frame.String(), err)
		}
		if line == "\n" {
			return frame.String()
		}
		frame.WriteString(line)
	}
}

func TestEvents(t *testing.T) {
	waiting := make(chan struct{}, 1)
	r := serve(t, nil, events(func(ctx context.Context, to *EventWriter) error {
		if err := to.Send("status", "7", map[string]int{"n": 1}); err != nil {
			return err
		}
		waiting <- struct{}{}
		return to.Wait(ctx, nil, nil)
	}))
	_, stream := r.openStream()
	for _, want := range []string{"retry: 3000\n", "id: 7\nevent: status\ndata: {\"n\":1}\n"} {
		if got := readFrame(t, stream); got != want {
			t.Errorf("frame %q, want %q", got, want)
		}
	}
	<-waiting
	r.stop() // the server stops: the stream ends complete, and says when to come back
	rest, err := io.ReadAll(stream)
	var millis int
	if _, scanned := fmt.Sscanf(string(rest), "retry: %d\n\n", &millis); err != nil ||
		scanned != nil ||
		millis < minStopRetryMillis || millis >= maxStopRetryMillis {
		t.Errorf("at the end %q %v", rest, err)
	}
}

func TestStreamsAreCounted(t *testing.T) {
	r := serve(t, nil, events(func(ctx context.Context,
		to *EventWriter) error {
		return to.Wait(ctx, nil, nil)
	}))
	for range limits.MaxStreams {
		if _, stream := r.openStream(); stream == nil {
			t.Fatal("a stream is refused")
		}
	}
	r.expect(head("GET /events"), 429, "too_many_streams")
	r.stop()
	if err := r.chain.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if end := r.chain.Streams.Open(t.Context(), "alice"); end == nil {
		t.Error("ended streams still count")
	}
}

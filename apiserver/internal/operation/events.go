package operation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// pingEvery is how long a stream is silent, lookEvery how often an idle one looks whether its
// client is still there. By pings alone that would show only half a minute later: the first write
// after a client's end still succeeds.
const (
	pingEvery = 15 * time.Second
	lookEvery = time.Second
)

var errClientGone = errors.New("the client is gone")

// Events is the answer of an operation that streams. It sends events until it has no more, ctx ends
// (the server stops) or a send fails (the client went away, or its credential did). It runs after
// the handler has returned.
type Events func(ctx context.Context, to *EventWriter) error

// EventWriter sends Server-Sent Events. It is for one goroutine.
type EventWriter struct {
	w     *bufio.Writer
	clock clock.Clock
	gone  func() bool  // whether the client has hung up
	holds func() error // whether its credential still holds
	wrote time.Time    // at its last write
}

// Send sends one event; id may be empty.
func (e *EventWriter) Send(event, id string, data any) error {
	if err := e.holds(); err != nil {
		return err
	}
	payload, err := encode(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event, err)
	}
	frame := fmt.Sprintf("event: %s\ndata: %s\n\n", event, payload)
	if id != "" {
		frame = "id: " + id + "\n" + frame
	}
	return e.write(frame)
}

// Note tells where the stream stands, by an id without an event: whoever comes back names it.
func (e *EventWriter) Note(id string) error {
	if err := e.holds(); err != nil {
		return err
	}
	return e.write("id: " + id + "\n\n")
}

// Wait waits for something to send. It is nil when one of the channels is closed or sends. It is
// ctx's error when the server stops, and an error when the client is gone or its credential does
// not hold any more. A nil channel never does. Meanwhile it keeps the connection alive.
func (e *EventWriter) Wait(ctx context.Context, changed <-chan struct{},
	due <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			return nil
		case <-due:
			return nil
		case <-e.clock.After(lookEvery):
			if e.gone() {
				return errClientGone
			}
			if err := e.holds(); err != nil {
				return err
			}
			if e.clock.Now().Sub(e.wrote) < pingEvery {
				continue
			}
			if err := e.write(": ping\n\n"); err != nil {
				return err
			}
		}
	}
}

func (e *EventWriter) write(frame string) error {
	e.wrote = e.clock.Now()
	if _, err := e.w.WriteString(frame); err != nil {
		return err
	}
	return e.w.Flush()
}

// How soon clients come back after a break, and when the server stops, which others can serve
// already. In the latter case they are spread, so that they do not all come at once.
const (
	retryMillis        = 3000
	minStopRetryMillis = 100
	maxStopRetryMillis = 1500
)

// sendRetry tells the client how soon to come back after a break.
func (e *EventWriter) sendRetry() error { return e.retry(retryMillis) }

// stop tells the client to come back, to another server.
func (e *EventWriter) stop() error {
	return e.retry(minStopRetryMillis + rand.N(maxStopRetryMillis-minStopRetryMillis))
}

func (e *EventWriter) retry(millis int) error {
	return e.write(fmt.Sprintf("retry: %d\n\n", millis))
}

// encode writes JSON as clients get it: addresses with their & as they are, no line break at the
// end.
func encode(value any) ([]byte, error) {
	if own, ok := value.(interface{ JSON() (text []byte, ok bool) }); ok {
		if text, ok := own.JSON(); ok {
			return text, nil
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

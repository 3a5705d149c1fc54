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

// pingEvery is the longest silence of a stream. lookEvery is how often an idle stream checks that
// its client is still there. Pings alone would show a lost client only after half a minute, because
// the first write after its end still succeeds.
const (
	pingEvery = 15 * time.Second
	lookEvery = time.Second
)

var errClientGone = errors.New("the client is gone")

// Events is the answer of an operation that streams. It sends events until there are no more, until
// ctx ends (the server stops), or until a send fails. A send fails when the client is gone or its
// credential is revoked. Events runs after the handler has returned.
type Events func(ctx context.Context, to *EventWriter) error

// EventWriter sends Server-Sent Events. Only one goroutine may use it.
type EventWriter struct {
	w     *bufio.Writer
	clock clock.Clock
	gone  func() bool  // whether the client has hung up
	holds func() error // whether its credential still holds
	wrote time.Time    // time of the last write
}

// Send sends one event. id may be empty.
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

// Note sends an id without an event: the position that a returning client will name.
func (e *EventWriter) Note(id string) error {
	if err := e.holds(); err != nil {
		return err
	}
	return e.write("id: " + id + "\n\n")
}

// Wait waits for something to send, and keeps the connection alive meanwhile. It returns nil when
// one of the channels is closed or sends; a nil channel never does. It returns ctx's error when the
// server stops, and another error when the client or its credential is gone.
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

// How soon clients come back after a break, in milliseconds. When the server stops, others can
// serve at once, so clients return sooner, but spread over time.
const (
	retryMillis        = 3000
	minStopRetryMillis = 100
	maxStopRetryMillis = 1500
)

// sendRetry tells the client how soon to come back after a break.
func (e *EventWriter) sendRetry() error { return e.retry(retryMillis) }

// stop tells the client to come back soon, to another server.
func (e *EventWriter) stop() error {
	return e.retry(minStopRetryMillis + rand.N(maxStopRetryMillis-minStopRetryMillis))
}

func (e *EventWriter) retry(millis int) error {
	return e.write(fmt.Sprintf("retry: %d\n\n", millis))
}

// encode writes JSON as clients get it: & is not escaped, and no line break ends it.
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

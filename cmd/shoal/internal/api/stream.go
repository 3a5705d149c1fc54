package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/wake"
)

// Progress is one message of the job stream. State is RUNNING, SUCCESS, FAILED or CANCELLED.
// Duration, in milliseconds, is set on the last message. The links and the charge (micros, 0 or
// more) are null if the server does not report them.
type Progress struct {
	State         string `json:"state"`
	ItemsQuantity int64  `json:"itemsQuantity"`
	TotalRequests int64  `json:"totalRequests"`
	TotalLinks    *int64 `json:"totalLinks"`
	SuccessLinks  *int64 `json:"successLinks"`
	ErrorLinks    *int64 `json:"errorLinks"`
	ChargedMicros *int64 `json:"chargedMicros"`
	Duration      *int64 `json:"duration"`
	ErrorMessage  string `json:"errorMessage"`
}

// Final says whether this is the stream's last message.
func (p *Progress) Final() bool { return p.State != "RUNNING" && p.State != "" }

// Bounds of the stream.
const (
	silence       = 45 * time.Second // three missed pings: the connection is dead
	firstRetry    = 500 * time.Millisecond
	longestRetry  = 10 * time.Second
	maxReconnects = 30 // in a row, without a message in between
	maxLine       = 1 << 20
)

// Follow reads a job's stream until its final message, which it returns. It reconnects when the
// connection breaks, and passes each message to seen. The error wraps ErrUnreachable if the server
// stays away.
func (c *Client) Follow(ctx context.Context, job string, seen func(Progress)) (Progress, error) {
	s := follower{client: c, job: job, retry: firstRetry}
	for failures := 0; ; failures++ {
		before := s.last
		final, err := s.connect(ctx, seen)
		if final != nil {
			return *final, nil
		}
		if ctx.Err() != nil {
			return Progress{}, ctx.Err()
		}
		if s.last != before {
			failures = 0
		}
		var problem *Problem
		hopeless := errors.As(err, &problem) && problem.Status < 500 &&
			problem.Status != http.StatusTooManyRequests
		if hopeless || failures >= maxReconnects {
			return Progress{}, err
		}
		wait := retry.Backoff{First: s.retry, Most: longestRetry}.After(failures + 1)
		if problem != nil && problem.retryAfter > wait {
			wait = min(problem.retryAfter, longestWait)
		}
		if failures == 1 {
			c.notice(fmt.Sprintf("the stream broke off (%v): connecting again", err))
		}
		if !clock.Pause(ctx, c.clock, wait) {
			return Progress{}, ctx.Err()
		}
	}
}

// follower is the state of a stream that outlives a connection.
type follower struct {
	client *Client
	job    string
	last   string // id of the last event
	retry  time.Duration
}

// connect reads one connection to its end; final is nil if it broke before the final message.
func (f *follower) connect(ctx context.Context, seen func(Progress)) (final *Progress, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	answer, err := f.client.do(ctx, request{
		method: http.MethodGet,
		path:   "/api/scraper-job-status/" + url.PathEscape(f.job) + "/stream", header: header,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	watched := newWatchdog(answer.Body, f.client.clock, cancel)
	defer watched.stop()
	err = readEvents(watched, func(e event) error {
		if e.id != "" {
			f.last = e.id
		}
		if e.retry > 0 {
			f.retry = e.retry
		}
		if e.name != "status" {
			return nil
		}
		var progress Progress
		if err := json.Unmarshal([]byte(e.data), &progress); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		seen(progress)
		if progress.Final() {
			final = &progress
			return io.EOF
		}
		return nil
	})
	if final == nil && (err == nil || !errors.As(err, new(*Problem))) {
		err = fmt.Errorf("%w: stream: %w", ErrUnreachable, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return final, err
}

// event is one server-sent event.
type event struct {
	id, name, data string
	retry          time.Duration
}

// readEvents passes each event to handle until the stream ends or handle returns an error; io.EOF
// ends it without an error.
func readEvents(r io.Reader, handle func(event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var current event
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if current != (event{}) {
				if err := handle(current); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
			}
			current = event{}
			continue
		}
		current.add(line)
	}
	return lines.Err()
}

// add takes one line of an event; it skips comments and unknown fields, as the format requires.
func (e *event) add(line string) {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "id":
		e.id = value
	case "event":
		e.name = value
	case "data":
		if e.data != "" {
			e.data += "\n"
		}
		if len(e.data)+len(value) <= maxLine {
			e.data += value
		}
	case "retry":
		if millis, err := strconv.ParseUint(value, 10, 16); err == nil {
			e.retry = time.Duration(millis) * time.Millisecond
		}
	}
}

// watchdog ends a connection on which nothing, not even a ping, has arrived for too long.
type watchdog struct {
	from io.Reader
	fed  wake.Signal
	done chan struct{}
	idle chan struct{}
}

func newWatchdog(from io.Reader, c clock.Clock, hangUp func()) *watchdog {
	w := &watchdog{from: from, fed: wake.NewSignal(), done: make(chan struct{}),
		idle: make(chan struct{})}
	go func() {
		defer close(w.idle)
		for {
			select {
			case <-w.done:
				return
			case <-w.fed:
			case <-c.After(silence):
				hangUp()
				return
			}
		}
	}()
	return w
}

// Read reads from the connection and feeds the watchdog.
func (w *watchdog) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.fed.Raise()
	}
	return n, err
}

// stop ends the watchdog and waits for it.
func (w *watchdog) stop() {
	close(w.done)
	<-w.idle
}

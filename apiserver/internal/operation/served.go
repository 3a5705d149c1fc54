package operation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Served is an answer that a library's http.Handler makes; it may stream. The handler gets a copy
// of the request, with Body. Its context is that of calls, so a stop lets it finish. The context
// ends early when the client is gone or the credential no longer holds.
type Served struct {
	Handler http.Handler
	Body    []byte
	// Refuse makes the fault of a text that the handler answers with a status of 400 or more.
	Refuse func(status int, text string) error
}

// hand lets the handler answer, on a goroutine that the server waits for.
func (x *exchange) hand(answer Served) {
	ctx, cancel := context.WithCancel(x.Work)
	read, write := io.Pipe()
	w := &handed{header: http.Header{}, pipe: write, begun: make(chan struct{}),
		now: x.Clock.Now}
	request, err := x.copyRequest(ctx, answer.Body)
	if err != nil {
		cancel()
		x.fail(err)
		return
	}
	gone, holds, log := x.from.Gone, x.holds(), x.Logger.With("operation", x.op.ID,
		"correlationId", x.id)
	x.underway.addOne()
	go func() {
		defer x.underway.removeOne()
		defer cancel()
		err := recovering(func() error { answer.Handler.ServeHTTP(w, request); return nil })
		w.end(err)
		if err != nil {
			log.Error("served", "error", err)
		}
	}()
	<-w.begun
	if w.failed == nil && w.whole && w.status >= http.StatusBadRequest &&
		!strings.HasPrefix(w.header.Get("Content-Type"), "application/json") {
		w.failed = answer.Refuse(w.status, strings.TrimSpace(w.before.String()))
	}
	if w.failed != nil {
		x.fail(w.failed)
		return
	}
	for name, values := range w.header {
		if name == "Connection" || name == "Content-Length" {
			continue // the server sets its own
		}
		for _, value := range values {
			x.rc.Response.Header.Add(name, value)
		}
	}
	x.rc.SetStatusCode(w.status)
	if w.whole {
		x.rc.SetBody(w.before.Bytes())
		return
	}
	x.underway.addOne()
	go func() {
		defer x.underway.removeOne()
		x.watch(ctx, cancel, w, gone, holds)
	}()
	x.rc.Response.ImmediateHeaderFlush = true
	x.rc.SetBodyStream(struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(w.before.Bytes()), read), closing(func() {
		cancel()
		_ = read.Close() // never fails
	})}, -1)
}

type closing func()

// Close implements io.Closer.
func (c closing) Close() error { c(); return nil }

// watch ends a stream whose client or credential is gone, and keeps a silent one alive.
func (x *exchange) watch(ctx context.Context, cancel context.CancelFunc, w *handed,
	gone func() bool, holds func() error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.Clock.After(lookEvery):
		}
		if gone() || holds() != nil || w.ping() != nil {
			cancel()
			return
		}
	}
}

// copyRequest copies a request out of the server's buffers.
func (x *exchange) copyRequest(ctx context.Context, body []byte) (*http.Request, error) {
	target, err := url.ParseRequestURI(string(x.rc.RequestURI()))
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: string(x.rc.Method()), URL: target, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Host: string(x.rc.Host()),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: x.address.String(), RequestURI: target.String()}
	for name, value := range x.rc.Request.Header.All() {
		r.Header.Add(string(name), string(value))
	}
	return r.WithContext(ctx), nil
}

// handed is the http.ResponseWriter of a Served. What is written before the first flush is held
// back until that flush, or until the handler ends.
type handed struct {
	header http.Header
	pipe   *io.PipeWriter
	now    func() time.Time
	begun  chan struct{} // closed when the kind of the answer is known

	mu     sync.Mutex
	status int
	before bytes.Buffer
	whole  bool  // the handler has ended; before holds the whole answer
	failed error // why the handler ended without an answer
	wrote  time.Time
	opened bool
}

// Header implements http.ResponseWriter.
func (w *handed) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *handed) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *handed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.wrote = w.now()
	if !w.opened {
		return w.before.Write(p)
	}
	return w.pipe.Write(p)
}

// Flush implements http.Flusher. From then on the answer is a stream.
func (w *handed) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open()
}

func (w *handed) open() {
	if w.opened {
		return
	}
	w.opened = true
	if w.status == 0 {
		w.status = http.StatusOK
	}
	close(w.begun)
}

// end is called when the handler has returned.
func (w *handed) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.opened {
		w.whole, w.failed = true, err
		w.open()
	}
	_ = w.pipe.CloseWithError(err) // never fails
}

// ping writes a comment to a stream of events that has been silent for pingEvery.
func (w *handed) ping() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now().Sub(w.wrote) < pingEvery ||
		!strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	w.wrote = w.now()
	_, err := w.pipe.Write([]byte(": ping\n\n"))
	if errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

package operation

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/pkg/fault"
)

func itoa(n int) string { return strconv.Itoa(n) }

// seconds rounds up.
func seconds(d time.Duration) string { return itoa(int((d + time.Second - 1) / time.Second)) }

// idempotencyKey reads the header. It is "" if the operation ignores the header, or if the header
// is absent and not required.
func (x *exchange) idempotencyKey() (string, error) {
	if x.op.Idempotency == Ignored {
		return "", nil
	}
	if len(x.rc.Request.Header.PeekAll("Idempotency-Key")) > 1 {
		return "", fault.Invalid(fault.InvalidRequest, "Idempotency-Key", "must be given once")
	}
	raw := x.rc.Request.Header.Peek("Idempotency-Key")
	key := strings.TrimSpace(string(raw))
	switch {
	case key == "" && x.op.Idempotency == Required:
		return "", fault.Invalid(fault.IdempotencyRequired, "Idempotency-Key",
			"this operation needs one, a UUID for example")
	case key == "" && raw == nil:
		return "", nil
	case !printable(key, maxKey):
		return "", fault.Invalid(fault.InvalidRequest, "Idempotency-Key", saidOfKeys)
	}
	return key, nil
}

// incoming copies the request out of the server's buffers.
func (x *exchange) incoming(ctx context.Context) (*incoming, error) {
	in := &incoming{query: map[string][]string{}, hasBody: !x.body.ended,
		bodyName: x.bodyName}
	encoding := x.rc.Request.Header.Peek("Content-Encoding")
	if in.hasBody && len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return nil, fault.Invalid(fault.UnsupportedMediaType, "Content-Encoding",
			"bodies are taken uncompressed only")
	}
	in.read = func(limit int) ([]byte, error) { return x.readAdmitted(ctx, limit) }
	for name, value := range x.rc.QueryArgs().All() {
		if !utf8.Valid(name) || !utf8.Valid(value) {
			return nil, fault.New(fault.InvalidRequest, "the query is not valid UTF-8")
		}
		in.query[string(name)] = append(in.query[string(name)], string(value))
	}
	in.header = func(name string) string {
		return strings.ToValidUTF8(string(x.rc.Request.Header.Peek(name)), "\ufffd")
	}
	header := string(x.rc.Request.Header.ContentType())
	if media, _, err := mime.ParseMediaType(header); err == nil {
		in.contentType = media
	}
	in.segment = func(name string) string {
		text, _ := x.rc.UserValue(name).(string)
		if decoded, err := url.PathUnescape(text); err == nil && utf8.ValidString(decoded) {
			return strings.Clone(decoded)
		}
		return ""
	}
	if x.op.request.streams(in.contentType) || x.op.request.splits(in.contentType) {
		x.body.paced(x.rc.Conn(), usualPace(), time.Now().Add(x.op.Timeout))
	}
	if x.op.Sized && x.body.declared < 0 {
		return nil, fault.Invalid(fault.LengthRequired, "Content-Length",
			"this operation takes no body without it")
	}
	in.stream = &Stream{ContentType: in.contentType, Length: x.body.declared}
	in.stream.within = func(d time.Duration) {
		x.body.meter.until = time.Now().Add(d)
	}
	in.receive = func(limit int64, refine Refine) (spooled, error) {
		return x.receive(ctx, limit, refine)
	}
	in.stream.receive = func(ctx context.Context, refine Refine) (spooled, error) {
		return x.receive(ctx, maxReceived, refine)
	}
	return in, nil
}

// hash tells a repeated request from a different one under the same idempotency key. It covers only
// the length of a streamed body, whose bytes are not known when the key is claimed. They have a
// hash of their own.
func (x *exchange) hash(in *incoming, body []byte) uint64 {
	h := xxh3.New()
	part := func(text string) {
		_, _ = h.WriteString(strconv.Itoa(len(text)) + ":" + text) // a hash never fails
	}
	part(string(x.rc.Path()))
	for _, name := range sortedKeys(in.query) {
		for _, value := range in.query[name] {
			part(name)
			part(value)
		}
	}
	part(string(body))
	if len(body) == 0 && in.hasBody && x.body.declared > 0 {
		part(strconv.FormatInt(x.body.declared, 10))
	}
	return h.Sum64()
}

// spaceRetry is when to repeat a call for which there was no disk space.
const spaceRetry = time.Minute

// fail answers with an error.
func (x *exchange) fail(err error) {
	var coded *fault.Error
	if !errors.As(err, &coded) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		if x.from.Gone() {
			err = ErrGone
		} else {
			err = fault.Wrap(fault.Unavailable, err, "the call took too long, or the server stops; "+
				"what it did is not known")
		}
	}
	x.err = err
	problem := NewProblem(err, x.id)
	h := &x.rc.Response.Header
	switch {
	case problem.Status == 401:
		h.Set("WWW-Authenticate", x.challenge())
	case problem.Code == fault.TrialLimitReached || problem.Code == fault.FeedbackLimit:
		now := x.Clock.Now().UTC()
		h.Set("Retry-After", seconds(now.Truncate(24*time.Hour).AddDate(0, 0, 1).Sub(now)))
	case problem.Code == fault.OutOfSpace:
		h.Set("Retry-After", seconds(spaceRetry))
	case x.from.RetryAfter > 0:
		h.Set("Retry-After", seconds(x.from.RetryAfter))
	case problem.Status == 429 || problem.Status == 503:
		if len(h.Peek("Retry-After")) == 0 {
			h.Set("Retry-After", "5")
		}
	}
	x.replayed()
	x.rc.SetStatusCode(problem.Status)
	x.rc.SetContentType("application/problem+json")
	data, err := encode(problem)
	if err != nil {
		panic(err) // cannot fail: plain texts and numbers
	}
	x.rc.SetBody(data)
}

// challenge is the value of WWW-Authenticate. It tells programs where to ask for a credential (RFC
// 9728, section 5.1).
func (x *exchange) challenge() string {
	if own := x.from.Base(); own != "" && x.Metadata != "" {
		return `Bearer resource_metadata="` + own + x.Metadata + x.op.Resource + `"`
	}
	return "Bearer"
}

func (x *exchange) replayed() {
	if x.from.Call != nil && x.from.Call.Replayed {
		x.rc.Response.Header.Set("Idempotency-Replayed", "true")
	}
}

// Raw is an answer that is not JSON, or is encoded already.
type Raw struct {
	ContentType string
	Body        []byte
	// Status replaces the declaration's unless 0. Location redirects a browser.
	Status   int
	Location string
	Forms    bool // the page has forms that post to this server
	Scripts  bool // the page runs scripts of this server, which may call it
	// FormsTo is the origin to which an answer to a form may redirect; "": none.
	FormsTo string
	Secret  bool // no cache may keep it; always so for pages with forms
}

// Download is an answer of any length, written as it is made. An error midway breaks the
// connection, so that the client does not take a part for the whole.
type Download struct {
	ContentType string
	// Name is the file's name for browsers, of letters, digits, '-' and '.'; "": none.
	Name string
	// Foreign marks bytes that came from a scraped site. Browsers must not treat them as a page of
	// this server.
	Foreign bool
	// Cursor is what a later call continues this answer with; "": none can. It becomes the header
	// Shoal-Cursor.
	Cursor string
	Write  func(ctx context.Context, w io.Writer) error // runs after the handler has returned
}

// Streamed is an answer of type T. A short answer is Whole. A long one is written by Write as JSON
// while it is sent, so that it is never in memory at once. An error midway breaks the connection,
// as in a Download.
type Streamed[T any] struct {
	Whole T
	// ContentType is the type of what Write writes if not JSON: another representation of T.
	ContentType string
	// nil: the answer is Whole; Write runs after the handler has returned
	Write func(ctx context.Context, w io.Writer) error
}

func (s Streamed[T]) parts() (whole any, long Download) {
	return s.Whole, Download{ContentType: cmp.Or(s.ContentType, "application/json"),
		Write: s.Write}
}
func (Streamed[T]) shape() reflect.Type { return reflect.TypeFor[T]() }

// streamed is a Streamed of any type.
type streamed interface {
	parts() (whole any, long Download)
	shape() reflect.Type
}

// succeed answers with a value. It drops the view first, which a stream would otherwise keep alive.
// A long answer that still reads the state keeps its own reference.
func (x *exchange) succeed(answer any) {
	x.from.View = nil
	x.replayed()
	if x.from.Reason != "" {
		quoted := strconv.QuoteToASCII(x.from.Reason)
		x.rc.Response.Header.Set("Shoal-Reason", quoted[1:len(quoted)-1])
	}
	x.rc.SetStatusCode(x.op.Status)
	if x.from.Later {
		x.rc.SetStatusCode(http.StatusAccepted)
	}
	if some, ok := answer.(optional); ok {
		if answer = some.given(); answer == nil {
			answer = None{}
			x.rc.SetStatusCode(http.StatusNoContent)
		}
	}
	if long, ok := answer.(streamed); ok {
		whole, written := long.parts()
		if answer = whole; written.Write != nil {
			answer = written
		}
	}
	switch answer := answer.(type) {
	case None:
	case Raw:
		x.rc.SetContentType(answer.ContentType)
		if strings.HasPrefix(answer.ContentType, "text/html") {
			x.protect(&answer)
		}
		if answer.Secret {
			x.rc.Response.Header.Set("Cache-Control", "no-store")
		}
		if answer.Status != 0 {
			x.rc.SetStatusCode(answer.Status)
		}
		if answer.Location != "" {
			x.rc.Response.Header.Set("Location", answer.Location)
		}
		if x.from.RetryAfter > 0 {
			x.rc.Response.Header.Set("Retry-After", seconds(x.from.RetryAfter))
		}
		x.rc.SetBody(answer.Body)
	case Download:
		x.download(answer, -1)
	case File:
		x.file(answer)
	case Events:
		x.stream(answer)
	case Served:
		x.hand(answer)
	default:
		data, err := encode(answer)
		if err != nil {
			x.fail(err)
			return
		}
		x.rc.SetContentType("application/json")
		if err := x.send(data); err != nil {
			x.fail(err)
		}
	}
}

// protect forbids a page to run scripts, load anything, or be framed. Its forms and scripts, if
// allowed, reach only this server, and pages with forms are not cached. Browsers apply form-action
// to the redirects that follow a form, so FormsTo is allowed, too.
func (x *exchange) protect(page *Raw) {
	h, action, scripts := &x.rc.Response.Header, "'none'", ""
	if page.Forms {
		if action = "'self'"; page.FormsTo != "" {
			action += " " + page.FormsTo
		}
		h.Set("Cache-Control", "no-store")
	}
	if page.Scripts {
		scripts = "script-src 'self'; connect-src 'self'; "
	}
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+scripts+
		"base-uri 'none'; form-action "+action+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// stream sends events on a goroutine that the server waits for. That goroutine must not touch the
// request.
func (x *exchange) stream(events Events) {
	h := &x.rc.Response.Header
	h.SetContentType("text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.rc.Response.ImmediateHeaderFlush = true
	end, gone, holds, log := x.ended, x.from.Gone, x.holds(),
		x.Logger.With("operation", x.op.ID, "correlationId", x.id)
	x.underway.addOne()
	x.rc.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer x.underway.removeOne()
		defer end()
		defer func() {
			if value := recover(); value != nil {
				log.Error("stream", "error", recovered(value, debug.Stack()))
			}
		}()
		to := &EventWriter{w: w, clock: x.Clock, gone: gone, holds: holds}
		err := to.sendRetry()
		if err == nil {
			err = events(x.Streaming, to)
		}
		if x.Streaming.Err() != nil && errors.Is(err, context.Canceled) {
			err = to.stop()
		}
		log.Debug("stream ended", "error", err)
	})
}

// holds returns a check for long answers: an error means that the caller would be refused by now.
func (x *exchange) holds() func() error {
	if x.op.Access == auth.Public {
		return func() error { return nil }
	}
	check, caller, reads := x.Auth, x.from.Principal, x.from.Reads
	return func() error {
		if err := check.Holds(&caller); err != nil || reads == nil {
			return err
		}
		return reads()
	}
}

// finish leaves the connection fit for the next request, and counts and logs this one.
func (x *exchange) finish() {
	if !x.body.finish(x.rc.Conn()) {
		x.rc.SetConnectionClose()
	}
	if conn, ok := x.rc.Conn().(interface{ Linger() }); ok && x.rc.Response.ConnectionClose() {
		conn.Linger()
	}
	took, status := x.Clock.Now().Sub(x.started), x.rc.Response.StatusCode()
	if errors.Is(x.err, errGone) {
		status = statusGone
	}
	x.Observer.Answered(x.op.ID, status, took)
	x.endSpan(status)
	level := slog.LevelInfo
	attributes := []any{"operation", x.op.ID, "status", status, "took", took,
		"correlationId", x.id, "customer", x.from.Customer}
	if status >= 400 || x.err != nil { // successful calls are logged briefly
		attributes = append(attributes, "method", string(x.rc.Method()), "path",
			string(x.rc.Path()), "address", x.address.String())
	}
	if !x.from.Job.IsZero() {
		attributes = append(attributes, "job", x.from.Job)
	}
	if x.from.Impersonates() {
		attributes = append(attributes, "subject", x.from.Subject) // the admin who acts
	}
	if x.err != nil {
		attributes = append(attributes, "error", x.err)
	}
	switch {
	case status >= 500 && status != http.StatusBadGateway: // 502 is a customer's site's fault
		level = slog.LevelError
	case x.op.Rate == limits.Unlimited && status < 400:
		level = slog.LevelDebug // machines poll these
	}
	x.Logger.Log(x.Work, level, "call", attributes...)
}

// endSpan ends the call's span, if it is traced.
func (x *exchange) endSpan(status int) {
	if x.span == nil {
		return
	}
	x.span.Text("operation", x.op.ID)
	x.span.Text("correlationId", x.id)
	x.span.Int("status", status)
	if !x.from.Job.IsZero() {
		x.span.Text("job", x.from.Job.String())
	}
	problem := ""
	if x.err != nil {
		problem = string(fault.CodeOf(x.err))
	}
	x.span.End(x.Clock.Now(), problem)
}

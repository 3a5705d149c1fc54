package operation

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
)

// Authenticator turns a credential into its principal, and a view of the state that is no older
// than the call. Its faults: unauthorized, account_disabled, customer_blocked, invalid_request,
// unavailable.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization, customerRef string) (auth.Principal,
		*client.View, error)
	// Known says whether this node can check a credential on its own, so that the check need not be
	// rate limited first.
	Known(authorization string) bool
	// AuthenticateHere checks tokens against this node's state only, which may be old.
	AuthenticateHere(ctx context.Context, authorization string) (auth.Principal, *client.View,
		error)
	// Redeem finds out who asked for a ticket, and takes it. KnowsTicket says, from what this node
	// knows, whether a ticket is valid. Faults: unauthorized, account_disabled, customer_blocked,
	// unavailable.
	Redeem(ctx context.Context, ticket string) (auth.Principal, *client.View, error)
	KnowsTicket(ticket string) bool
	// Holds refuses a principal whose credential has been revoked since, whose account is disabled
	// or whose customer is blocked. It looks only at what this node knows.
	Holds(p *auth.Principal) error
	// Used notes that a principal was let in. from may be the zero address.
	Used(p *auth.Principal, from netip.Addr)
}

// leaderPatience is how long an operation that can do without a leader waits for one.
const leaderPatience = time.Second

// Observer counts calls.
type Observer interface {
	// Answered counts an answered call.
	Answered(operation string, status int, took time.Duration)
	// Limited counts a call that a rate limit refused.
	Limited(class limits.Class)
}

// Chain is what every call passes on its way to its handler and back. It checks request id,
// framing, credential, rate limit, access, plan and idempotency key. Around the handler it decodes
// and encodes; in the end it logs and counts.
type Chain struct {
	Auth     Authenticator
	Limits   limits.Limiter
	Plans    *plans.Source
	Streams  *limits.Streams
	Clock    clock.Clock
	IDs      ids.Source
	Logger   *slog.Logger
	Observer Observer
	Tracer   *telemetry.Tracer // nil: no traces
	// Metadata is the path of the document that tells programs where to ask for access; "": none.
	Metadata string
	// Public is where browsers find the service: https://HOST; "": not configured.
	Public string
	// Work is the context of calls, Streaming that of open streams, which ends first.
	Work, Streaming context.Context

	// Proxies are the trusted proxies, which name the caller behind them.
	Proxies forwarded.Proxies
	// SpoolDir is the folder for bodies that are being received; "": the system's temporary folder.
	SpoolDir string
	// Disk watches the disk of SpoolDir; bodies leave its floor free. nil: 1 GiB stays free.
	Disk *telemetry.Disk

	underway underway
	shares   shares        // of large and streamed bodies
	large    shares        // of large bodies in memory
	places   chan struct{} // one for each of these
	spools   spools
	free     func(dir string) (bytes uint64, known bool) // space on the disk of dir
}

// Handler serves operations.
func (c *Chain) Handler(ops []*Operation) fasthttp.RequestHandler {
	if c.places == nil {
		c.places, c.free = make(chan struct{}, maxLarge), telemetry.FreeSpace
		c.spools.reserve = spoolReserve
		if c.Disk != nil {
			c.free = func(string) (uint64, bool) { return c.Disk.Left() }
			c.spools.reserve = int64(c.Disk.Floor.Bytes())
		}
	}
	return c.Routes(ops, func(op *Operation) fasthttp.RequestHandler {
		return func(rc *fasthttp.RequestCtx) { c.serve(op, rc) }
	})
}

// Routes routes the requests of each operation to the handler that serve makes for it.
func (c *Chain) Routes(ops []*Operation,
	serve func(*Operation) fasthttp.RequestHandler) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	for _, op := range ops {
		for _, route := range op.Routes {
			r.Handle(route.Method, route.Path, serve(op))
			if op.response == fileType { // clients that resume ask for the length
				r.Handle(fasthttp.MethodHead, route.Path, serve(op))
			}
		}
	}
	r.NotFound = c.refuse(fault.New(fault.RouteNotFound, "there is no such path"))
	refuse := c.refuse(errMethod)
	r.MethodNotAllowed = refuse
	open := openPaths(ops)
	// A word of a fixed path is never the parameter of another path.
	for path, methods := range fixedPaths(ops) {
		refuse, preflight := refuse, refuse
		if of := open[path]; of != nil {
			refuse, preflight = c.refuseAs(of, errMethod), c.preflight(of, methods)
		}
		for _, method := range routedMethods {
			switch {
			case slices.Contains(methods, method):
			case method == fasthttp.MethodOptions && open[path] != nil:
				r.Handle(method, path, preflight)
			default:
				r.Handle(method, path, func(rc *fasthttp.RequestCtx) {
					refuse(rc)
					rc.Response.Header.Set("Allow", strings.Join(methods, ", "))
				})
			}
		}
	}
	return r.Handler
}

var errMethod = fault.New(fault.MethodNotAllowed, "the path has other methods")

// routedMethods are the methods of paths with parameters.
var routedMethods = [...]string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// fixedPaths are the paths without parameters, each with its methods in order.
func fixedPaths(ops []*Operation) map[string][]string {
	paths := map[string][]string{}
	for _, op := range ops {
		for _, route := range op.Routes {
			if !strings.Contains(route.Path, "{") {
				paths[route.Path] = append(paths[route.Path], route.Method)
			}
		}
	}
	for _, methods := range paths {
		slices.Sort(methods)
	}
	return paths
}

// Wait waits until no call or stream is under way, or for ctx. Streams end when Streaming does.
func (c *Chain) Wait(ctx context.Context) error { return c.underway.wait(ctx) }

// refuse answers every request with an error.
func (c *Chain) refuse(err error) fasthttp.RequestHandler {
	return c.refuseAs(&Operation{Declaration: Declaration{ID: "none"}}, err)
}

// refuseAs answers with an error, under the cross-site rules of op.
func (c *Chain) refuseAs(op *Operation, err error) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		x := c.beginExchange(op, rc)
		x.fail(err)
		x.openUp()
		x.finish()
	}
}

// Unreadable answers a request that the server could not read.
func (c *Chain) Unreadable(rc *fasthttp.RequestCtx, err error) {
	answer := fault.Wrap(fault.InvalidRequest, err, "the request cannot be read")
	var timeout interface{ Timeout() bool }
	switch small := (*fasthttp.ErrSmallBuffer)(nil); {
	case errors.As(err, &small):
		answer = fault.Wrap(fault.HeaderTooLarge, err,
			"address and header lines together are too long")
	case errors.As(err, &timeout) && timeout.Timeout():
		answer = fault.Wrap(fault.UploadTooSlow, err, "the request took too long")
	}
	rc.SetConnectionClose() // whatever else the client sends
	c.refuse(answer)(rc)
}

// exchange is one call.
type exchange struct {
	*Chain
	op      *Operation
	rc      *fasthttp.RequestCtx
	started time.Time
	id      string
	body    *body
	// bodyName is the name by which the caller knows the body; "": it has none.
	bodyName string
	faults   fault.List // of a tool's arguments
	from     Caller
	address  netip.Addr // of the caller, as far as trusted proxies say
	err      error
	ended    func() // releases the place of a long answer
	// answerOnly says that the call may only get the answer of an earlier one with its key
	answerOnly bool
	span       *telemetry.Span // nil: not traced
	undo       []func()        // releases what the call holds, once it has its answer
}

func (c *Chain) beginExchange(op *Operation, rc *fasthttp.RequestCtx) *exchange {
	x := &exchange{Chain: c, op: op, rc: rc, started: c.Clock.Now(), body: newBody(rc)}
	x.id = string(rc.Request.Header.Peek("X-Request-Id"))
	if !printable(x.id, 128) {
		x.id = c.IDs.New().String()
	}
	x.from.RequestID, x.from.Gone = x.id, func() bool { return false }
	x.from.Disk = x.disk
	if conn, ok := rc.Conn().(interface{ Gone() bool }); ok {
		x.from.Gone = conn.Gone
	}
	peer, _ := netip.AddrFromSlice(rc.RemoteIP()) // the zero address when it has none
	h := &rc.Request.Header
	x.from.Way, x.from.Host, x.from.Public = x.way(peer), string(h.Host()), c.Public
	x.from.cookie = func(name string) string { return string(rc.Request.Header.Cookie(name)) }
	x.address = c.Proxies.Caller(peer, lines(h.PeekAll("Forwarded")),
		lines(h.PeekAll("X-Forwarded-For")))
	x.from.Address = x.address
	rc.Response.Header.Set("X-Request-Id", x.id)
	return x
}

// lines copies header values.
func lines(values [][]byte) (texts []string) {
	for _, value := range values {
		texts = append(texts, string(value))
	}
	return texts
}

// printable says whether text has 1 to most characters, all of them printable ASCII.
func printable(text string, most int) bool {
	if text == "" || len(text) > most {
		return false
	}
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (c *Chain) serve(op *Operation, rc *fasthttp.RequestCtx) {
	c.underway.addOne()
	defer c.underway.removeOne()
	c.beginExchange(op, rc).run(c.Work)
}

// run answers the call within the operation's timeout and the server's lifetime.
func (x *exchange) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, x.op.Timeout)
	defer cancel()
	defer context.AfterFunc(x.Work, cancel)()
	ctx, x.span = x.Tracer.Root(ctx, "api.call", x.started)
	answer, err := x.answer(ctx)
	if err != nil {
		x.fail(err)
	} else {
		x.succeed(answer)
	}
	x.openUp()
	x.sendCookies()
	x.finish()
}

// answer runs the checks and the handler.
func (x *exchange) answer(ctx context.Context) (answer any, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = recovered(value, debug.Stack())
		}
		if err != nil && x.ended != nil {
			x.ended()
		}
		for _, undo := range slices.Backward(x.undo) {
			undo()
		}
	}()
	if err := checkFraming(&x.rc.Request.Header); err != nil {
		x.rc.SetConnectionClose()
		return nil, err
	}
	if err := x.identify(ctx); err != nil {
		return nil, err
	}
	if err := x.op.Access.Check(&x.from.Principal); err != nil {
		return nil, err
	}
	if err := x.checkFeature(); err != nil {
		return nil, err
	}
	ctx = client.WithActor(ctx, x.actor())
	key, err := x.idempotencyKey()
	if err != nil {
		return nil, err
	}
	in, err := x.incoming(ctx)
	if err != nil {
		return nil, err
	}
	value, raw, err := x.op.request.decode(in, x.op.Invalid)
	if err = withFaults(x.faults, err); err != nil {
		return nil, err
	}
	if key != "" {
		x.from.Call = &client.Call{Customer: x.from.Customer, Operation: x.op.ID, Key: key,
			Request: x.hash(in, raw), AnswerOnly: x.answerOnly}
	}
	if x.op.isLong() {
		if x.ended = x.Streams.Open(ctx, x.from.Customer); x.ended == nil {
			return nil, fault.New(fault.TooManyStreams, "at most %d streams may be open",
				limits.MaxStreams)
		}
	}
	answer, err = x.op.handle(ctx, &x.from, value)
	if refused := x.checkRepeated(ctx); refused != nil {
		return nil, refused
	}
	if x.op.Long && err == nil && isWhole(answer) {
		x.ended()
		x.ended = nil
	}
	return answer, err
}

// isWhole says whether an answer is complete, with no part still to be written.
func isWhole(answer any) bool {
	long, is := answer.(streamed)
	if !is {
		return true
	}
	_, written := long.parts()
	return written.Write == nil
}

// checkFeature refuses a customer whose plan lacks the operation's feature. It runs before any look
// at what the request names, so the refusal reveals nothing about that. A repeated call gets its
// answer under any plan, and nothing else.
func (x *exchange) checkFeature() error {
	if x.op.Feature == "" {
		return nil
	}
	err := x.Plans.Check(x.from.View, x.from.Customer, x.op.Feature)
	if err != nil && x.from.View.Answered(x.from.Customer, x.op.ID, x.givenKey()) {
		x.answerOnly = true
		return nil
	}
	return err
}

// actor is the caller as the audit trail records it.
func (x *exchange) actor() *client.Actor {
	p := &x.from.Principal
	actor := &client.Actor{Subject: p.Subject, Admin: p.Admin || p.Impersonates(),
		Customer: p.Customer, Operation: x.op.ID, Correlation: x.id}
	if p.Key != nil {
		actor.Subject, actor.Key, actor.Admin = "", p.Key.ID, false
	}
	if x.address.IsValid() {
		actor.Address = x.address.String()
	}
	return actor
}

// identify finds out who calls, and counts the call against the caller's rate limit.
func (x *exchange) identify(ctx context.Context) error {
	credential, browser := x.credential()
	if (browser || x.op.Browser || x.op.Cookieless) && !x.admits() {
		if err := x.checkSite(); err != nil {
			return err
		}
	}
	if x.op.Access == auth.Public {
		return x.takeFromBucket(ctx, x.holder(), "", x.op.Rate)
	}
	known, ticket := x.Auth.Known(credential), x.ticket()
	if ticket != "" {
		known = x.Auth.KnowsTicket(ticket)
	}
	if !known { // looking the key up asks the leader
		if limited := x.takeFromBucket(ctx, x.holder(), "", limits.Anonymous); limited != nil {
			return limited
		}
	}
	principal, view, err := x.authenticate(ctx, credential, ticket)
	if err != nil {
		if known {
			if limited := x.takeFromBucket(ctx, x.holder(), "", limits.Anonymous); limited != nil {
				return limited
			}
		}
		return err
	}
	x.Auth.Used(&principal, x.address)
	x.from.Principal, x.from.View = principal, view
	class := x.op.Rate
	if x.waitsAgain() {
		class = limits.General
	}
	switch {
	case principal.SignIn() && (class == limits.General || class == limits.Read):
		class = limits.SignIn
	case principal.SelfHosting() && class == limits.Read:
		class = limits.SelfRead
	}
	return x.takeFromBucket(ctx, principal.Holder(), principal.Payer(), class)
}

// waitsAgain says whether the call repeats one that was answered before it was done. Such a repeat
// makes nothing new.
func (x *exchange) waitsAgain() bool {
	key := x.givenKey()
	return x.op.Later && key != "" &&
		x.from.View.Claim(x.from.Customer, x.op.ID, key) != nil
}

// givenKey is the idempotency key as the request gives it, not yet checked; "": none.
func (x *exchange) givenKey() string {
	return strings.TrimSpace(string(x.rc.Request.Header.Peek("Idempotency-Key")))
}

func (x *exchange) authenticate(ctx context.Context, credential, ticket string) (auth.Principal,
	*client.View, error) {
	customer := string(x.rc.Request.Header.Peek("X-Customer-Ref"))
	patience := client.Patience
	if x.op.Leaderless {
		patience = leaderPatience
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if ticket != "" {
		return x.Auth.Redeem(asking, ticket)
	}
	principal, view, err := x.Auth.Authenticate(asking, credential, customer)
	if x.op.Leaderless && fault.CodeOf(err) == fault.Unavailable {
		return x.Auth.AuthenticateHere(ctx, credential)
	}
	return principal, view, err
}

// holder names the rate limit bucket of a caller without a credential.
func (x *exchange) holder() string { return "address " + forwarded.Holder(x.address) }

// takeFromBucket takes the call from a bucket and sets the headers that say what is left.
func (x *exchange) takeFromBucket(ctx context.Context, holder, customer string,
	class limits.Class) error {
	if class == limits.Unlimited {
		return nil
	}
	v := x.Limits.TakeCall(ctx, holder, customer, class)
	if v.Limit > 0 {
		h := &x.rc.Response.Header
		h.Set("RateLimit-Limit", itoa(v.Limit))
		h.Set("RateLimit-Remaining", itoa(v.Remaining))
		h.Set("RateLimit-Reset", seconds(v.Reset))
	}
	if v.Allowed {
		return nil
	}
	x.Observer.Limited(class)
	wait := seconds(max(v.Retry, time.Second))
	x.rc.Response.Header.Set("Retry-After", wait)
	return fault.New(fault.RateLimited, "at most %d calls of this kind are allowed at once, "+
		"refused ones too; try again in %s s", v.Limit, wait)
}

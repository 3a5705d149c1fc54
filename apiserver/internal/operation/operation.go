// Package operation defines what an operation of the API is. A Declaration says everything about
// one: routes, access, rate class, idempotency, request and answer types, errors, streaming. From
// it come routing, decoding with validation, the chain of checks, encoding, error bodies and the
// OpenAPI document. The package knows no resource; handlers live in api/.
//
// # Requests
//
// A request is a struct. Each exported field has one of these tags:
//
//	path:"name"    a segment of the path
//	query:"name"   a query parameter; a slice may be repeated
//	header:"name"  a header line; an empty one counts as absent
//	body:"json"    the body, a struct (or slice); limit:"bytes" overrides 1 MiB
//	body:"form"    the body, a struct of texts, as a browser sends a form; limit as above
//	body:"raw"     the JSON body as it came, unparsed, a []byte.
//	               media:"type" beside it has a body of another type.
//	stream:"text/uri-list,…"  a *Stream: the body as it arrives if it has one of these types.
//	               The JSON body's members are then query parameters, except those tagged
//	               alone:"json". With items:"name", that array of a JSON body is streamed,
//	               too: each item is checked and becomes a line of JSON.
//
// Like the members of bodies, it may also have these tags. The first are required, default, min,
// max (of the value, characters or items), clamp (replaces greater values), enum and not. Texts
// have pattern, unlike, or form, which names a pattern (formOf). must means true and nothing else,
// unique no item twice, and object raw JSON that is an object. each and keys hold rules of items,
// or of a map's values and names, like each:"min=1 max=9". code is the error code of a refused
// value. stamped members are accepted and ignored. doc and format describe. agent:"required" marks
// what only agents must give, agent:"hidden" what they cannot. A type with Values is an enum of
// them. Pointers and optional members may be null. Whole numbers without bounds get those of their
// type, within what JSON holds exactly. Validate() fault.List of a struct is called last.
package operation

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// maxKey is the longest idempotency key, saidOfKeys the message for an invalid one.
const (
	maxKey     = 255
	saidOfKeys = "must be 1 to 255 printable characters"
)

// Idempotency says what an operation does with the header Idempotency-Key.
type Idempotency string

// The ways to treat the header.
const (
	Ignored  Idempotency = ""
	Optional Idempotency = "optional"
	Required Idempotency = "required"
)

// Route is a method and a path, with parameters in braces.
type Route struct {
	Method string
	Path   string
}

// Routes parses lines such as "GET /a/{id}".
func Routes(lines ...string) []Route {
	routes := make([]Route, len(lines))
	for i, line := range lines {
		method, path, _ := strings.Cut(line, " ")
		routes[i] = Route{Method: method, Path: path}
	}
	return routes
}

// Declaration is everything about an operation except its types and its handler.
type Declaration struct {
	ID string // svc_…
	// the specification has the first one; the others are aliases
	Routes      []Route
	Group       string // of the documentation
	Summary     string
	Description string
	// ToAgents replaces Description in the list of tools where Description speaks of HTTP. It is
	// the beginning of a tool's whole text.
	ToAgents    string
	Access      auth.Access
	Agents      Effect        // what agents are told of a call; "": agents cannot make it
	Reaches     bool          // the web, although it costs nothing
	Forgets     bool          // it may make rows go, although it only sets something
	Revocable   bool          // it destroys, but another call takes that back
	Feature     plans.Feature // that the customer's plan must have, if any; "": none
	Rate        limits.Class
	Idempotency Idempotency
	// Leaderless operations answer even while the control plane has no leader. Caller.View may then
	// be old.
	Leaderless bool
	Status     int // of success; 0: 200, or 204 for an operation that answers None
	// Later operations may answer 202 with a partial result, by Caller.Later. Repeats with the same
	// key then count in the general rate class.
	Later bool
	// the code of refused input that has no code of its own; "": invalid_request
	Invalid fault.Code
	// Tickets operations accept the query parameter ticket as a credential when no header is given.
	Tickets bool
	// Browser operations set cookies, so pages of other sites cannot call them.
	Browser bool
	// Resource is the path of a protected resource that is described apart from the API (RFC 9728,
	// section 3.1); "": none.
	Resource string
	// Lenient operations ignore unknown query parameters, as some external standards require.
	Lenient bool
	// Anywhere operations have public answers, which pages of any site may read.
	Anywhere bool
	// Cookieless operations accept no cookie as a credential. So pages of other sites may call them
	// and read the answer; such pages must know a credential themselves. If the service runs on
	// this machine, only pages of this machine may.
	Cookieless bool
	// Errors are the codes that the handler itself can answer, besides those that the declaration
	// implies.
	Errors []fault.Code
	// Long answers take long to make. Until sent, each takes one of the customer's places for
	// streams. Download, File and Events are long without it.
	Long bool
	// Sized operations need the body's length in advance (Content-Length).
	Sized bool
	// Admit is called when a JSON body has come, before it is decoded. leave is called when the
	// call has its answer. nil: no check.
	Admit   func() (leave func(), err error)
	Timeout time.Duration // of everything except a stream of events; 0: 30 s
	// for operations that answer Events: a value of the type of an event's data
	Event any
	// for operations that answer Events of several names: each with a value of its data's type
	NamedEvents []NamedEvent
	// for operations that answer a Download or a Raw: the possible media types, nil:
	// application/octet-stream; for others: those besides JSON
	Media []string
}

// NamedEvent is an event that a stream may send.
type NamedEvent struct {
	Name string
	Data any
}

// Caller is what a handler knows of a call besides its request.
type Caller struct {
	auth.Principal
	// View is the state when the call arrived, or later: current enough for every answer. It is nil
	// for public operations, and once the handler has returned.
	View      *client.View
	Call      *client.Call // idempotency, to be passed to the command; nil without a key
	RequestID string
	// Gone says whether the client has hung up. Handlers that wait call it now and then.
	Gone func() bool
	// Reads is set by a handler with a long answer, if the caller may lose the right to read it. It
	// is called while the answer is sent; an error breaks the answer off.
	Reads func() error
	// Disk returns disk space for the caller's answer. The handler closes it.
	Disk func() *Disk
	// Job is the run that the call made or is about. The handler sets it for the log.
	Job ids.ID
	// Reason says in words why a successful answer is empty. The handler sets it; it becomes the
	// header Shoal-Reason.
	Reason string
	// Origin is the page that the answer comes from, where no argument says it. The handler sets it
	// for agents.
	Origin string
	// Later is set by a handler that answers a partial result: the rest is still being made.
	Later bool
	// Address is where the call came from, as far as trusted proxies say. Way is how it came.
	Address netip.Addr
	Way     Way
	// Host is the name, with a port, by which the caller called this server.
	Host string
	// Public is where browsers find this service, as the operator configured it; "": not set.
	Public string
	// Agent says that the gateway marks the answer's rows as scraped, which needs their origin.
	Agent bool
	// RetryAfter is when a refused call may be repeated; 0: the default. The handler sets it.
	RetryAfter time.Duration

	cookie  func(name string) string // of the request
	cookies []*fasthttp.Cookie       // of the answer
	forgets bool                     // the browser is told to forget its storage
}

// OnlyAnswers reports whether the call has its answer already. What the state has become since
// does not refuse it (specification 4). From then on the call's command can only return that
// answer, so the caller may ignore checks that fail.
func (c *Caller) OnlyAnswers() bool {
	if c.Call == nil || !c.View.Answered(c.Customer, c.Call.Operation, c.Call.Key) {
		return false
	}
	c.Call.AnswerOnly = true
	return true
}

// None is the answer of an operation without a body.
type None struct{}

// Handler answers typed requests. Errors without a code of the catalogue are answered with 500.
type Handler[In, Out any] func(ctx context.Context, from *Caller, in *In) (Out, error)

// Operation is a declared operation, ready to be served.
type Operation struct {
	Declaration
	request  *request
	response reflect.Type
	orNone   bool // the answer may be 204
	handle   func(ctx context.Context, from *Caller, in reflect.Value) (any, error)
}

// Define makes an operation. It panics on a declaration that contradicts itself, which is a
// programming error.
func Define[In, Out any](d Declaration, handle Handler[In, Out]) *Operation {
	op := &Operation{Declaration: d, response: reflect.TypeFor[Out]()}
	switch shaped := reflect.Zero(op.response).Interface().(type) {
	case streamed:
		op.response = shaped.shape()
	case optional:
		op.response, op.orNone = shaped.shape(), true
	}
	if d.ID == "" || len(d.Routes) == 0 || d.Access == "" || d.Summary == "" {
		panic(fmt.Sprintf("operation %q: ID, Routes, Access and Summary are needed", d.ID))
	}
	if op.Status == 0 {
		op.Status = 200
		if op.response == reflect.TypeFor[None]() {
			op.Status = 204
		}
	}
	if op.Invalid == "" {
		op.Invalid = fault.InvalidRequest
	}
	if op.Timeout == 0 {
		op.Timeout = 30 * time.Second
	}
	op.request = compileRequest(op.ID, reflect.TypeFor[In]())
	op.request.lenient = op.Lenient
	op.checkAgents()
	op.handle = func(ctx context.Context, from *Caller, in reflect.Value) (any, error) {
		return handle(ctx, from, in.Interface().(*In))
	}
	return op
}

// Streams says whether the operation answers with events.
func (op *Operation) Streams() bool { return op.response == reflect.TypeFor[Events]() }

// isLong says whether the answer may take long to send. While it is sent, it takes one of the
// customer's places for streams.
func (op *Operation) isLong() bool {
	return op.Long || op.Streams() || op.response == reflect.TypeFor[Download]() ||
		op.response == fileType
}

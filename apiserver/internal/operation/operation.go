// Package operation owns what an operation of the API is. One Declaration says everything about it:
// routes, access, rate class, idempotency, request and answer types, errors, streaming. From it
// come routing, decoding with validation, the chain of checks, encoding, error bodies and the
// OpenAPI document. It knows no resource; handlers live in api/.
//
// # Requests
//
// A request is a struct. Each exported field has one of the tags
//
//	path:"name"    a segment of the path
//	query:"name"   a query parameter; a slice may be repeated
//	header:"name"  a header line; an empty one counts as none
//	body:"json"    the body, a struct (or slice); limit:"bytes" overrides 1 MiB
//	body:"form"    the body, a struct of texts, as a browser sends a form; limit as above
//	body:"raw"     the JSON body as its bytes came, a []byte: nobody has looked at it.
//	               media:"type" beside it has a body of another type.
//	stream:"text/uri-list,…"  a *Stream: the body as it arrives when it has one of these types.
//	               The members of the JSON body then come as query parameters, all but those
//	               tagged alone:"json". items:"name" beside it has that array of a JSON body
//	               come so, too: each item is checked, and is a line of JSON.
//
// and, as the members of bodies have, any of these. The first are required, default, min, max
// (value, characters or items), clamp (greater values become this, however great), enum and not.
// Texts have pattern, unlike, or form, which is a pattern by its name (formOf). Then come must
// (true and nothing else), unique (no item twice) and object (raw JSON that is one). each and keys
// hold rules of items, of the values of a map and of its names, like each:"min=1 max=9". The last
// are code (the error code when the value is refused), stamped (accepted and ignored), doc and
// format. agent:"required" is what agents have to give though others need not, and agent:"hidden"
// what they cannot give. A type that has Values is an enum of them. A pointer may be null, and so
// may what is not required. Whole numbers without bounds have those of their type, and of what JSON
// holds exactly. A struct that has Validate() fault.List is asked last.
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

// maxKey is the most characters of an idempotency key, and saidOfKeys what is said of another one.
const (
	maxKey     = 255
	saidOfKeys = "must be 1 to 255 printable characters"
)

// Idempotency says what an operation does with the header Idempotency-Key.
type Idempotency string

// The ways.
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

// Routes reads "GET /a/{id}" lines.
func Routes(lines ...string) []Route {
	routes := make([]Route, len(lines))
	for i, line := range lines {
		method, path, _ := strings.Cut(line, " ")
		routes[i] = Route{Method: method, Path: path}
	}
	return routes
}

// Declaration is everything about an operation but its types and its handler.
type Declaration struct {
	ID string // svc_…
	// the first is the one that stands in the specification; the others are aliases
	Routes      []Route
	Group       string // of the documentation
	Summary     string
	Description string
	// ToAgents is what the list of tools says in place of Description, where that speaks of HTTP. A
	// tool's whole text begins with it.
	ToAgents    string
	Access      auth.Access
	Agents      Effect        // what agents are told of a call; "": they cannot make it
	Feature     plans.Feature // that a customer with a plan needs; "": none
	Rate        limits.Class
	Idempotency Idempotency
	// Leaderless: it answers while the control plane has no leader, too; Caller.View may be old
	// then.
	Leaderless bool
	Status     int // of success: 200 unless told; an operation that answers None has 204
	// Later says that it may answer 202 with what there is so far, by Caller.Later. The same key
	// again counts as a general call then.
	Later bool
	// of refused input that has no code of its own: invalid_request unless told
	Invalid fault.Code
	// Tickets says that the query parameter ticket is a credential, too, where no header is.
	Tickets bool
	// Browser says that it sets cookies, so that it is refused to pages of other sites.
	Browser bool
	// Resource is the path of a protected resource that is told apart from the API as a whole (RFC
	// 9728, section 3.1); "": it is none.
	Resource string
	// Lenient says that query parameters which it does not have are passed over. Standards of
	// others want that.
	Lenient bool
	// Anywhere says that pages of any site may read the answer, which is public.
	Anywhere bool
	// Cookieless says that no cookie is its credential. So pages of other sites may call it, and
	// read its answer. They have to know a credential themselves. Where the service is this
	// machine's, only pages of this machine may.
	Cookieless bool
	// Errors are the codes that the handler itself can answer, beside those that the declaration
	// implies.
	Errors []fault.Code
	// Long says that the answer takes long to be made: until it is sent it has a place among the
	// customer's streams. Answers that are as long as their maker makes them need not say it.
	Long bool
	// Sized says that a body has to say how long it is (Content-Length).
	Sized bool
	// Admit is asked when a JSON body has come, before it is decoded. leave is called when the call
	// has its answer. nil: all may.
	Admit   func() (leave func(), err error)
	Timeout time.Duration // for everything but a stream of events: 30 s unless told
	// for operations that answer Events: a value of the type of an event's data
	Event any
	// for operations that answer Events of several names: each with a value of its data's type
	NamedEvents []NamedEvent
	// for operations that answer a Download or a Raw: the types that it may have,
	// application/octet-stream unless told; for others those beside JSON
	Media []string
}

// NamedEvent is an event that a stream may have.
type NamedEvent struct {
	Name string
	Data any
}

// Caller is what a handler knows of the call beside its request.
type Caller struct {
	auth.Principal
	// View is the state as it was when the call arrived, or later: current enough for every answer.
	// It is nil for public operations, and once the handler has returned.
	View      *client.View
	Call      *client.Call // idempotency, to be passed to the command; nil without a key
	RequestID string
	// Gone says whether the client has hung up. Handlers that wait ask it now and then.
	Gone func() bool
	// Reads is set by a handler whose answer may take long, of what others may end the caller's
	// reading of. It is asked while the answer is sent, and breaks it off by an error.
	Reads func() error
	// Disk is room for the caller's answer. Who asks for it closes it.
	Disk func() *Disk
	// Job is the run that the call made or is about, set by its handler: the log names it.
	Job ids.ID
	// Reason is why an answer of success is empty, in words, set by its handler: the header
	// Shoal-Reason says it.
	Reason string
	// Later is set by a handler that answers what there is so far: the rest is still being made.
	Later bool
	// Address is from where the call came, as far as trusted proxies say, and Way how.
	Address netip.Addr
	Way     Way
	// Host is the name, with its port, by which the caller has called this server.
	Host string
	// Public is where browsers find this service, as its operator says; "": nobody has said.
	Public string
	// RetryAfter is when a refused call may be repeated, set by its handler; 0: the usual.
	RetryAfter time.Duration

	cookie  func(name string) string // of the request
	cookies []*fasthttp.Cookie       // of the answer
	forgets bool                     // the browser
}

// None is the answer of an operation without a body.
type None struct{}

// Handler answers typed requests. Its errors carry a code of the catalogue, else they answer 500.
type Handler[In, Out any] func(ctx context.Context, from *Caller, in *In) (Out, error)

// Operation is a declared operation, ready to be served.
type Operation struct {
	Declaration
	request  *request
	response reflect.Type
	orNone   bool // the answer may be 204
	handle   func(ctx context.Context, from *Caller, in reflect.Value) (any, error)
}

// Define makes an operation. A declaration that contradicts itself is a programmer's slip and
// panics.
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

// isLong says whether the answer is as long as its maker makes it: while it is sent it has a place
// among the customer's streams.
func (op *Operation) isLong() bool {
	return op.Long || op.Streams() || op.response == reflect.TypeFor[Download]() ||
		op.response == fileType
}

// Package system owns the operations with which machines ask about the server itself: liveness,
// readiness, metrics, description.
package system

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

const group = "System"

// Resource has the operations about the server itself and their dependencies.
type Resource struct {
	Client   client.Reader
	Clock    clock.Clock
	Stopping func() bool // the server accepts no new calls
	// Issuer reports whether there is an OpenID Connect issuer, and its keys can be fetched.
	Issuer   func() (reachable, known bool)
	Metrics  prometheus.Gatherer
	Document func() ([]byte, error) // the OpenAPI description, including these operations
	Agents   func() ([]byte, error) // the part of it that agents may call
}

// Operations lists all operations.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{r.healthz(), r.readyz(), r.metrics(), r.apiDocs(),
		r.agentDocs()}
}

// readyWithin is how soon the control plane must confirm a read for the server to report itself
// ready.
const readyWithin = 2 * time.Second

// readyFor is how long an answer of the control plane is reused, because anyone may ask for
// readiness at any rate.
const readyFor = time.Second

// readiness is the last answer of the control plane. One caller at a time asks it, and the others
// wait for its answer.
type readiness struct {
	state  client.Reader
	clock  clock.Clock
	asking chan struct{} // a lock for the fields below
	asked  time.Time
	err    error
}

func (r *readiness) check(ctx context.Context) error {
	select {
	case r.asking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.asking }()
	if now := r.clock.Now(); r.asked.IsZero() || now.Sub(r.asked) >= readyFor {
		_, r.err = r.state.Fresh(ctx)
		r.asked = r.clock.Now()
	}
	return r.err
}

// Health reports that the server answers.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Readiness reports that calls are served. A server is ready although its issuer is unreachable:
// API keys and tokens with known keys still work. It is ready although disks are short: reads,
// stops and payments still work.
type Readiness struct {
	Status string `json:"status" enum:"ok"`
	Issuer string `json:"issuer,omitempty" enum:"reachable,away" doc:"State of the OpenID Connect issuer; left out if there is none"`
	Space  string `json:"space" enum:"ok,short" doc:"Whether disks have room; while they are low on space, lists, launches and uploads are refused with out_of_space"`
}

// healthz is GET /healthz.
func (Resource) healthz() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_healthz", Routes: operation.Routes("GET /healthz"), Group: group,
		Summary: "Answers as long as the process is alive", Access: auth.Public,
	}, func(context.Context, *operation.Caller, *struct{}) (Health, error) {
		return Health{Status: "ok"}, nil
	})
}

// readyz is GET /readyz.
func (r Resource) readyz() *operation.Operation {
	ready := &readiness{state: r.Client, clock: r.Clock, asking: make(chan struct{}, 1)}
	return operation.Define(operation.Declaration{
		ID: "svc_readyz", Routes: operation.Routes("GET /readyz"), Group: group,
		Summary: "Answers 200 once the server takes calls, otherwise 503", Access: auth.Public,
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) (Readiness, error) {
		if r.Stopping() {
			return Readiness{}, fault.New(fault.Unavailable, "the server stops")
		}
		ctx, cancel := context.WithTimeout(ctx, readyWithin)
		defer cancel()
		if err := ready.check(ctx); err != nil {
			return Readiness{}, fault.Wrap(fault.Unavailable, err,
				"the control plane does not answer")
		}
		answer := Readiness{Status: "ok", Space: "ok"}
		if r.Client.View().IsShort() {
			answer.Space = "short"
		}
		if reachable, known := r.Issuer(); known && reachable {
			answer.Issuer = "reachable"
		} else if known {
			answer.Issuer = "away"
		}
		return answer, nil
	})
}

// metrics is GET /metrics, in the text format of Prometheus. Metrics reveal something about all
// customers, so none of them may read them (decision 61).
func (r Resource) metrics() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_metrics", Routes: operation.Routes("GET /metrics"), Group: group,
		Summary: "Returns the process's counters", Access: auth.Admin,
		Media: []string{"text/plain"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		families, err := r.Metrics.Gather()
		if err != nil {
			return operation.Raw{}, fmt.Errorf("gather metrics: %w", err)
		}
		format := expfmt.NewFormat(expfmt.TypeTextPlain)
		var out bytes.Buffer
		encoder := expfmt.NewEncoder(&out, format)
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				return operation.Raw{}, fmt.Errorf("encode metrics: %w", err)
			}
		}
		return operation.Raw{ContentType: string(format), Body: out.Bytes()}, nil
	})
}

// apiDocs is GET /v3/api-docs.
func (r Resource) apiDocs() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_api_docs", Routes: operation.Routes("GET /v3/api-docs"), Group: group,
		Summary: "Returns this description", Access: auth.Public, Rate: limits.Anonymous,
		Media: []string{"application/json"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return described(r.Document())
	})
}

// agentDocs is GET /v3/api-docs/mcp.
func (r Resource) agentDocs() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_agent_api_docs", Routes: operation.Routes("GET /v3/api-docs/mcp"), Group: group,
		Summary: "Returns the description of the operations that agents may call",
		Description: "It has the operations that are tools of the agent gateway. x-agents has " +
			"what agents are told about each, and the arguments that only agents must give.",
		Access: auth.Public, Rate: limits.Anonymous, Media: []string{"application/json"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return described(r.Agents())
	})
}

// described answers with a description, or with the error of making it.
func described(text []byte, err error) (operation.Raw, error) {
	return operation.Raw{ContentType: "application/json", Body: text}, err
}

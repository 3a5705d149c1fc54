// Package system owns what machines ask of the server itself: is it alive, is it ready, its
// counters, its description.
package system

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

const group = "System"

// readyWithin is how soon the control plane must confirm a read for the server to call itself
// ready.
const readyWithin = 2 * time.Second

// readyFor is how long an answer of the control plane counts: anyone may ask for readiness, and as
// often as they like.
const readyFor = time.Second

// readiness is what the control plane answered last. One caller at a time asks it, and the others
// wait for its answer.
type readiness struct {
	api.Services
	asking chan struct{} // one place; who has it may use what follows
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
	if now := r.Clock.Now(); r.asked.IsZero() || now.Sub(r.asked) >= readyFor {
		_, r.err = r.Client.Fresh(ctx)
		r.asked = r.Clock.Now()
	}
	return r.err
}

// Health says that the server answers.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Healthz is GET /healthz.
func Healthz() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_healthz", Routes: operation.Routes("GET /healthz"), Group: group,
		Summary: "Answers while the process lives", Access: auth.Public,
	}, func(context.Context, *operation.Caller, *struct{}) (Health, error) {
		return Health{Status: "ok"}, nil
	})
}

// Readyz is GET /readyz. stopping says that the server takes no new work.
func Readyz(s api.Services, stopping func() bool) *operation.Operation {
	ready := &readiness{Services: s, asking: make(chan struct{}, 1)}
	return operation.Define(operation.Declaration{
		ID: "svc_readyz", Routes: operation.Routes("GET /readyz"), Group: group,
		Summary: "Answers 200 once calls are served, else 503", Access: auth.Public,
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) (Health, error) {
		if stopping() {
			return Health{}, fault.New(fault.Unavailable, "the server stops")
		}
		ctx, cancel := context.WithTimeout(ctx, readyWithin)
		defer cancel()
		if err := ready.check(ctx); err != nil {
			return Health{}, fault.Wrap(fault.Unavailable, err, "the control plane does not answer")
		}
		return Health{Status: "ok"}, nil
	})
}

// Metrics is GET /metrics, in the text form of Prometheus. What a process counts tells of all
// customers, so that none of them may ask (decision 61).
func Metrics(from prometheus.Gatherer) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_metrics", Routes: operation.Routes("GET /metrics"), Group: group,
		Summary: "Answers the process's counters", Access: auth.Admin,
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		families, err := from.Gather()
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

// APIDocs is GET /v3/api-docs; document gives the OpenAPI description.
func APIDocs(document func() []byte) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_api_docs", Routes: operation.Routes("GET /v3/api-docs"), Group: group,
		Summary: "Answers this description", Access: auth.Public, Rate: limits.Anonymous,
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return operation.Raw{ContentType: "application/json", Body: document()}, nil
	})
}

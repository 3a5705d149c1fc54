package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// SpanContext is a span's place as it travels in records: 16 bytes of trace id, then 8 bytes of
// span id. Nil: not traced. Only spans that are sampled travel.
type SpanContext []byte

const (
	traceIDBytes = 16
	contextBytes = traceIDBytes + 8
)

// Tracer makes the spans of one process. A nil one makes none, and so does the lack of a parent:
// what is off costs a comparison.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// TraceConfig says where spans go.
type TraceConfig struct {
	// Endpoint is the URL of an OTLP collector over HTTP: "http://127.0.0.1:4318", or with a path
	// of its own. What else it needs (headers, certificates) stands in the environment, as
	// OpenTelemetry names it: OTEL_EXPORTER_OTLP_HEADERS.
	Endpoint string
	// Ratio of API calls that begin a trace, above 0, at most 1. A run is traced when the call that
	// launched it is.
	Ratio   float64
	Node    string
	Version string
	// Failed is told when the collector does not take a batch of spans; nil: nobody is.
	Failed func(error)
}

// Bounds of what waits for the collector; further spans are dropped.
const (
	tracesPath     = "/v1/traces" // of a collector whose URL has no path
	maxSpansQueued = 4096
	exportTimeout  = 10 * time.Second
)

// NewTracer makes a tracer that sends spans to a collector, in batches, from a goroutine of its
// own. A collector that cannot be reached costs spans, nothing else.
func NewTracer(ctx context.Context, config TraceConfig) (*Tracer, error) {
	if !(config.Ratio > 0 && config.Ratio <= 1) {
		return nil, fmt.Errorf("telemetry: a share of %g of calls cannot be traced: above "+
			"0, at most 1", config.Ratio)
	}
	endpoint, err := url.Parse(config.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" &&
		endpoint.Scheme != "https" {
		return nil,
			fmt.Errorf("telemetry: the collector's address %q is no http:// or https:// URL",
				config.Endpoint)
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = tracesPath
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("telemetry: trace exporter: %w", err)
	}
	return newTracer(config, sdktrace.WithBatcher(told{exporter, config.Failed},
		sdktrace.WithMaxQueueSize(maxSpansQueued),
		sdktrace.WithExportTimeout(exportTimeout))), nil
}

// told is an exporter whose failures are told to us; the SDK would print them.
type told struct {
	sdktrace.SpanExporter
	failed func(error)
}

// ExportSpans implements sdktrace.SpanExporter.
func (e told) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil && e.failed != nil {
		e.failed(err)
	}
	return nil
}

// NewTracerTo is a tracer whose spans go to an exporter as they end, for tests.
func NewTracerTo(exporter sdktrace.SpanExporter, config TraceConfig) *Tracer {
	return newTracer(config, sdktrace.WithSyncer(exporter))
}

func newTracer(config TraceConfig, out sdktrace.TracerProviderOption) *Tracer {
	provider := sdktrace.NewTracerProvider(out,
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(config.Ratio))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shoal"),
			attribute.String("service.version", config.Version),
			attribute.String("service.instance.id", config.Node))))
	return &Tracer{provider: provider, tracer: provider.Tracer("shoal.dev/shoal")}
}

// Close sends what waits, until ctx ends, and ends the tracer's goroutine.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is one step's time. A nil one takes all calls and does nothing.
type Span struct{ span trace.Span }

// Root begins a trace, and puts it into the context; nil, and ctx itself, when it is not sampled.
func (t *Tracer) Root(ctx context.Context, name string, at time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	_, span := t.tracer.Start(context.Background(), name, trace.WithTimestamp(at))
	if !span.SpanContext().IsSampled() {
		return ctx, nil
	}
	s := &Span{span: span}
	return context.WithValue(ctx, contextKey{}, s), s
}

// Start begins a step behind its parent; nil when the parent is, or cannot be read.
func (t *Tracer) Start(parent SpanContext, name string, at time.Time) *Span {
	if t == nil || len(parent) != contextBytes {
		return nil
	}
	of := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	copy(of.TraceID[:], parent)
	copy(of.SpanID[:], parent[traceIDBytes:])
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(of))
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(at))
	return &Span{span: span}
}

type contextKey struct{}

// FromContext is the context's span as it travels; nil without one.
func FromContext(ctx context.Context) SpanContext {
	span, _ := ctx.Value(contextKey{}).(*Span)
	return span.Context(nil)
}

// Context is the span as it travels; of a nil span it is the parent: who makes no spans hands on
// what came.
func (s *Span) Context(parent SpanContext) SpanContext {
	if s == nil {
		return parent
	}
	of := s.span.SpanContext()
	trace, span := of.TraceID(), of.SpanID()
	return append(append(make(SpanContext, 0, contextBytes), trace[:]...), span[:]...)
}

// Text notes a text of the step.
func (s *Span) Text(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Int notes a number of the step.
func (s *Span) Int(key string, value int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// End ends the step; problem says what went wrong, "" for nothing.
func (s *Span) End(at time.Time, problem string) {
	if s == nil {
		return
	}
	if problem != "" {
		s.span.SetStatus(codes.Error, problem)
	}
	s.span.End(trace.WithTimestamp(at))
}

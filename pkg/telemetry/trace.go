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

// SpanContext identifies a span in records: 16 bytes of trace id, then 8 bytes of span id. Nil: not
// traced. Only sampled spans have one.
type SpanContext []byte

const (
	traceIDBytes = 16
	contextBytes = traceIDBytes + 8
)

// Tracer makes the spans of one process. A nil Tracer makes none, nor does any without a parent:
// disabled tracing costs one comparison.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// TraceConfig says where spans are sent.
type TraceConfig struct {
	// Endpoint is the URL of an OTLP collector over HTTP: "http://127.0.0.1:4318", or with its own
	// path. Other settings (headers, certificates) come from the environment, under OpenTelemetry's
	// names, such as OTEL_EXPORTER_OTLP_HEADERS.
	Endpoint string
	// Ratio of API calls that begin a trace, above 0, at most 1. A run is traced if the call that
	// launched it is.
	Ratio   float64
	Node    string
	Version string
	// Failed is called when the collector does not accept a batch of spans; nil: nothing.
	Failed func(error)
}

// Bounds of what waits for the collector; excess spans are dropped.
const (
	tracesPath     = "/v1/traces" // for a collector whose URL has no path
	maxSpansQueued = 4096
	exportTimeout  = 10 * time.Second
)

// NewTracer makes a tracer that sends spans to a collector, in batches, from its own goroutine. If
// the collector cannot be reached, only spans are lost.
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

// told is an exporter that reports failures to us; the SDK would print them.
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

// NewTracerTo makes a tracer whose spans go to an exporter as they end, for tests.
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

// Close sends waiting spans, until ctx ends, and ends the tracer's goroutine.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is the time of one step. A nil Span accepts all calls and does nothing.
type Span struct{ span trace.Span }

// Root begins a trace, and puts it into the context. If not sampled, it returns ctx and nil.
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

// Start begins a step under its parent; nil if the parent is nil or malformed.
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

// FromContext returns the SpanContext of the context's span; nil without one.
func FromContext(ctx context.Context) SpanContext {
	span, _ := ctx.Value(contextKey{}).(*Span)
	return span.Context(nil)
}

// Context returns the span's SpanContext. A nil span returns the parent: without spans of its own,
// a process passes on what it got.
func (s *Span) Context(parent SpanContext) SpanContext {
	if s == nil {
		return parent
	}
	of := s.span.SpanContext()
	trace, span := of.TraceID(), of.SpanID()
	return append(append(make(SpanContext, 0, contextBytes), trace[:]...), span[:]...)
}

// Text sets a text attribute.
func (s *Span) Text(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Int sets a number attribute.
func (s *Span) Int(key string, value int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// End ends the step; problem says what went wrong, "": nothing.
func (s *Span) End(at time.Time, problem string) {
	if s == nil {
		return
	}
	if problem != "" {
		s.span.SetStatus(codes.Error, problem)
	}
	s.span.End(trace.WithTimestamp(at))
}

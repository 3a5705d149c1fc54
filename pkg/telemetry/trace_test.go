package telemetry

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

var testTime = time.Unix(1_800_000_000, 0)

func TestSpansConnectAcrossRecords(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	api := NewTracerTo(exporter, TraceConfig{Ratio: 1, Node: "a1"})
	// a sampled parent decides
	fetch := NewTracerTo(exporter, TraceConfig{Ratio: 1e-9, Node: "f1"})
	ctx, root := api.Root(t.Context(), "api.call", testTime)
	carried := FromContext(ctx)
	if len(carried) != contextBytes {
		t.Fatalf("%d bytes travel, want %d", len(carried), contextBytes)
	}
	child := fetch.Start(carried, "fetch.page", testTime.Add(time.Second))
	child.Text("host", "a.test")
	child.Int("tries", 2)
	child.End(testTime.Add(2*time.Second), "timeout")
	root.End(testTime.Add(3*time.Second), "")
	spans := exporter.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	page, call := spans[0], spans[1]
	if page.Parent.SpanID() != call.SpanContext.SpanID() ||
		page.SpanContext.TraceID() != call.SpanContext.TraceID() {
		t.Error("the spans are not connected")
	}
	if !page.StartTime.Equal(testTime.Add(time.Second)) ||
		!page.EndTime.Equal(testTime.Add(2*time.Second)) {
		t.Errorf("from %s to %s", page.StartTime, page.EndTime)
	}
	if page.Status.Description != "timeout" || call.Status.Description != "" ||
		len(page.Attributes) != 2 {
		t.Errorf("%+v, %+v, %v", page.Status, call.Status, page.Attributes)
	}
}

// TestOffCostsNothing: without a tracer, or for an untraced run, no span is made and no parent is
// lost.
func TestOffCostsNothing(t *testing.T) {
	var off *Tracer
	on := NewTracerTo(tracetest.NewInMemoryExporter(), TraceConfig{Ratio: 1})
	carried := SpanContext("0123456789abcdef01234567")
	if allocated := testing.AllocsPerRun(100, func() {
		for _, tracer := range []*Tracer{off, on} {
			span := tracer.Start(nil, "fetch.page", testTime)
			span.Text("host", "a.test")
			if span.Context(nil) != nil {
				t.Error("a context comes from nowhere")
			}
			span.End(testTime, "")
		}
		_, span := off.Root(t.Context(), "api.call", testTime)
		span.End(testTime, "")
	}); allocated > 0 {
		t.Errorf("%g allocations", allocated)
	}
	if got := off.Start(carried, "fetch.page",
		testTime).Context(carried); string(got) != string(carried) {
		t.Errorf("a process without traces hands on %q", got)
	}
	for _, damaged := range []SpanContext{{1}, append(carried, 1)} {
		if on.Start(damaged, "fetch.page", testTime) != nil {
			t.Errorf("%q is taken for a context", damaged)
		}
	}
	if FromContext(t.Context()) != nil || off.Close(t.Context()) != nil {
		t.Error("nothing is something")
	}
}

func TestOnlyAShareIsTraced(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := NewTracerTo(exporter, TraceConfig{Ratio: .25})
	traced := 0
	for range 4000 {
		ctx, span := tracer.Root(t.Context(), "api.call", testTime)
		if FromContext(ctx) != nil {
			traced++
		}
		span.End(testTime, "")
	}
	if traced < 800 || traced > 1200 || len(exporter.GetSpans()) != traced {
		t.Errorf("%d of 4000 are traced, %d are exported", traced, len(exporter.GetSpans()))
	}
}

func TestWhatCannotBeTracedIsRefused(t *testing.T) {
	for _, config := range []TraceConfig{
		{Endpoint: "http://127.0.0.1:1"}, {Endpoint: "http://127.0.0.1:1", Ratio: -1},
		{Endpoint: "http://127.0.0.1:1", Ratio: 1.01}, {Endpoint: "127.0.0.1:1", Ratio: 1},
		{Endpoint: "ftp://a", Ratio: 1},
		{Endpoint: "http://", Ratio: 1}, {Ratio: 1},
	} {
		if _, err := NewTracer(t.Context(), config); err == nil {
			t.Errorf("%+v is taken", config)
		}
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		got <- r.URL.Path
	}))
	defer collector.Close()
	tracer, err := NewTracer(t.Context(),
		TraceConfig{Endpoint: collector.URL, Ratio: 1, Node: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Root(t.Context(), "api.call", testTime)
	span.End(testTime, "")
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if path := <-got; path != "/v1/traces" {
		t.Errorf("spans go to %s", path)
	}
}

// TestADeadCollectorCostsSpansOnly: more spans than fit the queue, and nobody accepts them.
func TestADeadCollectorCostsSpansOnly(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer collector.Close()
	failed := make(chan error, 100)
	tracer, err := NewTracer(t.Context(), TraceConfig{Endpoint: collector.URL, Ratio: 1,
		Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxSpansQueued {
		_, span := tracer.Root(t.Context(), "api.call", testTime)
		span.End(testTime, "")
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("nobody was told")
	}
}

func FuzzStart(f *testing.F) {
	tracer := NewTracerTo(tracetest.NewNoopExporter(), TraceConfig{Ratio: 1})
	f.Add([]byte{})
	f.Add(binary.BigEndian.AppendUint64(make([]byte, 16), 7))
	f.Fuzz(func(t *testing.T, carried []byte) {
		span := tracer.Start(carried, "fetch.page", testTime)
		if (span != nil) != (len(carried) == contextBytes) {
			t.Fatalf("%x gives %v", carried, span)
		}
		if again := span.Context(nil); span != nil && len(again) != contextBytes {
			t.Fatalf("%x goes on as %x", carried, again)
		}
		span.End(testTime, "")
	})
}

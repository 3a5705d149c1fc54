package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/streamtest"
	"shoal.dev/shoal/pkg/telemetry"
)

// TestMeasuredConformance: a log with metrics passes the suite.
func TestMeasuredConformance(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) stream.Log {
		return stream.Measured(newMemory(t, stream.Config{Partitions: 8}), clock.System{},
			telemetry.NewMetrics())
	})
}

// repeating is a log that has repeated requests.
type repeating struct{ stream.Log }

func (repeating) Repeated(stream.Topic) uint64 { return 7 }

func TestMeasuredCounts(t *testing.T) {
	metrics := telemetry.NewMetrics()
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	log := stream.Measured(repeating{newMemory(t, stream.Config{Partitions: 1, MaxRecords: 2})},
		now, metrics)
	defer func() { _ = log.Close() }()
	reader, err := log.Consume(stream.Pages, "counting")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Publish(t.Context(), stream.Pages, 0, []byte("abc"), []byte("de")); err != nil {
		t.Fatal(err)
	}
	if err := log.TryPublish(stream.Pages, 0, []byte("f")); !errors.Is(err, stream.ErrFull) {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := log.Publish(ended, stream.Pages, 0, []byte("f")); err == nil {
		t.Fatal("a full partition took a record")
	}
	if messages, err := reader.Fetch(t.Context(), 1); err != nil || len(messages) != 1 {
		t.Fatalf("%v %v", messages, err)
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); len(labels) == 1 && labels[0].GetValue() == "pages" {
				got[family.GetName()] = metric.GetCounter().GetValue() +
					metric.GetGauge().GetValue() +
					float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	for name, want := range map[string]float64{"shoal_stream_published_records_total": 2,
		"shoal_stream_published_bytes_total": 5, "shoal_stream_read_records_total": 1,
		"shoal_stream_full_total":   1,
		"shoal_stream_errors_total": 0, "shoal_stream_publish_seconds": 1,
		"shoal_stream_lag_records":   2,
		"shoal_stream_retries_total": 7} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
}

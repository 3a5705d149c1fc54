package stream

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

// Measured returns the same log with metrics. A call costs a few counters, whatever it carries.
func Measured(log Log, clk clock.Clock, to *telemetry.Metrics) Log {
	published := to.Counters("shoal_stream_published_records_total",
		"Records that the log accepted.", "topic")
	bytes := to.Counters("shoal_stream_published_bytes_total",
		"Bytes of records that the log accepted.", "topic")
	read := to.Counters("shoal_stream_read_records_total",
		"Records delivered to readers of this process.", "topic")
	full := to.Counters("shoal_stream_full_total",
		"Publications refused because the partition was full.", "topic")
	failed := to.Counters("shoal_stream_errors_total", "Calls to the log that failed.", "topic")
	seconds := to.Histograms("shoal_stream_publish_seconds",
		"Time until the log has accepted a publication.",
		telemetry.FastSeconds, "topic")
	m := &measured{Log: log, clock: clk}
	for topic := range topicCount {
		name := topic.String()
		m.topics[topic] = topicMetrics{published: published.WithLabelValues(name),
			bytes: bytes.WithLabelValues(name),
			read:  read.WithLabelValues(name), full: full.WithLabelValues(name),
			failed:  failed.WithLabelValues(name),
			seconds: seconds.WithLabelValues(name)}
	}
	stray := prometheus.NewCounter(prometheus.CounterOpts{})
	m.topics[topicCount] = topicMetrics{published: stray, bytes: stray, read: stray, full: stray,
		failed:  stray,
		seconds: prometheus.ObserverFunc(func(float64) {})}
	telemetry.NewSamples(func() (Log, bool) { return log, true }).
		Gauges("shoal_stream_lag_records", "Records that a topic still holds, as seen by this "+
			"process.", []string{"topic"},
			func(log Log, emit func(float64, ...string)) {
				for topic := range topicCount {
					emit(float64(log.Lag(topic)), topic.String())
				}
			}).
		Counters("shoal_stream_retries_total", "Requests for a partition that the log's servers "+
			"failed and that are retried.",
			[]string{"topic"}, func(log Log, emit func(float64, ...string)) {
				for topic := range topicCount {
					emit(float64(repeated(log, topic)), topic.String())
				}
			}).
		Declare(to)
	return m
}

// repeated returns how many requests a log has repeated, 0 for a log without servers.
func repeated(log Log, topic Topic) uint64 {
	if r, ok := log.(interface{ Repeated(topic Topic) uint64 }); ok {
		return r.Repeated(topic)
	}
	return 0
}

type measured struct {
	Log
	clock clock.Clock
	// the last is for invalid topics, which the log refuses and nobody counts
	topics [topicCount + 1]topicMetrics
}

func (l *measured) of(topic Topic) *topicMetrics { return &l.topics[min(topic, topicCount)] }

type topicMetrics struct {
	published, bytes, read, full, failed prometheus.Counter
	seconds                              prometheus.Observer
}

func (m *topicMetrics) accepted(records [][]byte, size int) {
	m.published.Add(float64(len(records)))
	m.bytes.Add(float64(size))
}

func sizeOf(records [][]byte) int {
	size := 0
	for _, record := range records {
		size += len(record)
	}
	return size
}

// Publish implements Log.
func (l *measured) Publish(ctx context.Context, topic Topic, partition int,
	records ...[]byte) error {
	m, size, began := l.of(topic), sizeOf(records), l.clock.Now()
	err := l.Log.Publish(ctx, topic, partition, records...)
	switch {
	case err == nil:
		m.seconds.Observe(l.clock.Now().Sub(began).Seconds())
		m.accepted(records, size)
	case ctx.Err() == nil:
		m.failed.Inc()
	}
	return err
}

// TryPublish implements Log.
func (l *measured) TryPublish(topic Topic, partition int, records ...[]byte) error {
	m, size := l.of(topic), sizeOf(records)
	err := l.Log.TryPublish(topic, partition, records...)
	switch {
	case err == nil:
		m.accepted(records, size)
	case errors.Is(err, ErrFull):
		m.full.Inc()
	default:
		m.failed.Inc()
	}
	return err
}

// Tail implements Log.
func (l *measured) Tail(topic Topic, partition int) (Reader, error) {
	return l.reader(topic)(l.Log.Tail(topic, partition))
}

// Consume implements Log.
func (l *measured) Consume(topic Topic, group string) (Reader, error) {
	return l.reader(topic)(l.Log.Consume(topic, group))
}

func (l *measured) reader(topic Topic) func(Reader, error) (Reader, error) {
	return func(reader Reader, err error) (Reader, error) {
		if err != nil {
			l.of(topic).failed.Inc()
			return nil, err
		}
		return &measuredReader{Reader: reader, metrics: l.of(topic)}, nil
	}
}

type measuredReader struct {
	Reader
	metrics *topicMetrics
}

// Fetch implements Reader.
func (r *measuredReader) Fetch(ctx context.Context, most int) ([]Message, error) {
	messages, err := r.Reader.Fetch(ctx, most)
	r.metrics.read.Add(float64(len(messages)))
	r.note(ctx, err)
	return messages, err
}

// Commit implements Reader.
func (r *measuredReader) Commit(ctx context.Context, messages []Message) error {
	err := r.Reader.Commit(ctx, messages)
	r.note(ctx, err)
	return err
}

func (r *measuredReader) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		r.metrics.failed.Inc()
	}
}

var _ Log = (*measured)(nil)

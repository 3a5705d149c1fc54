package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// Limits of a request.
const (
	requestBytes = 8 << 20 // only a single batch may be larger
	// replicaWait is how long a broker waits for its replicas. It exceeds the time in which Kafka
	// notices a dead replica (broker.session.timeout.ms, 9 s). A request that is given up and
	// repeated writes its records twice.
	replicaWait = 15 * time.Second
	// answerWait is how much longer a response may take before its connection counts as dead.
	answerWait = 5 * time.Second
	// deposedWait is how long a request may stay under way to a broker that no longer leads its
	// partitions.
	deposedWait = 2 * time.Second
	// pace is the minimum time between the starts of two requests to a broker. A hundred records in
	// one request cost little more than one record.
	pace = 5 * time.Millisecond
	// lastWait is how long Close waits for queued records.
	lastWait = time.Second
)

// serve calls look after each notice until ctx ends. It also calls look again after the time that
// look returned (0: only after the next notice).
func serve(ctx context.Context, w wake.Signal, c clock.Clock, look func() time.Duration) {
	var later <-chan time.Time
	for {
		select {
		case <-w:
		case <-later:
		case <-ctx.Done():
			return
		}
		later = nil
		if wait := look(); wait > 0 {
			later = c.After(wait)
		}
	}
}

// producer writes the lanes. It has one request under way to each broker, with a batch of every
// non-empty lane that the broker leads. Records that come meanwhile form the next batches. So
// batches grow on their own when records come fast, and a lone record is sent at once.
type producer struct {
	cluster  *cluster
	counters []counters
	lanes    []lane // by topic and partition
	wake     wake.Signal
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	closing bool
	flights map[int32]*flight // by broker
	started map[int32]time.Time
	turn    int           // the lane that goes first
	idle    chan struct{} // closed once closing is set and nothing is left
}

// flight is a request under way.
type flight struct {
	broker  int32
	since   time.Time
	cancel  context.CancelFunc
	lanes   []*lane
	batches [][][]byte // by lane
	bytes   int
}

func newProducer(c *cluster, counters []counters) *producer {
	p := &producer{cluster: c, counters: counters, wake: wake.NewSignal(),
		flights: map[int32]*flight{},
		started: map[int32]time.Time{}, idle: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, topic := range stream.Topics() {
		for partition := range c.config.Partitions {
			p.lanes = append(p.lanes, lane{topic: topic, partition: partition})
		}
	}
	p.running.Go(func() { serve(p.ctx, p.wake, p.cluster.config.Clock, p.dispatch) })
	return p
}

func (p *producer) lane(topic stream.Topic, partition int) *lane {
	return &p.lanes[int(topic)*p.cluster.config.Partitions+partition]
}

func (p *producer) errIfClosed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return stream.ErrClosed
	}
	return nil
}

// dispatch starts a request to each broker without one. It returns how long to wait at most for the
// next event; 0: without a limit.
func (p *producer) dispatch() time.Duration {
	known, err := p.cluster.layout(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return pauses.Most // no broker was ever reached
	}
	now := p.cluster.config.Clock.Now()
	p.abandon(known, now)
	next := map[int32]*flight{}
	var wait time.Duration
	if len(p.flights) > 0 {
		wait = pauses.First
	}
	for i := range p.lanes {
		l := &p.lanes[(p.turn+i)%len(p.lanes)]
		if len(l.entries) == 0 || l.sending > 0 {
			continue
		}
		broker := known.leader(l.topic, l.partition)
		if broker < 0 || now.Before(l.retryAt) {
			wait = sooner(wait, pauses.First)
			continue
		}
		if p.flights[broker] != nil {
			continue
		}
		if early := pace - now.Sub(p.started[broker]); early > 0 {
			wait = sooner(wait, early)
			continue
		}
		if next[broker] == nil {
			next[broker] = &flight{broker: broker, since: now}
		}
		p.load(next[broker], l, now)
	}
	p.turn++
	for broker, f := range next {
		if len(f.lanes) == 0 {
			continue
		}
		p.flights[broker], p.started[broker] = f, now
		wait = sooner(wait, pauses.First)
		var ctx context.Context
		ctx, f.cancel = context.WithTimeout(p.ctx, replicaWait+answerWait)
		p.running.Go(func() { p.send(ctx, f) })
	}
	p.noteIdle()
	return wait
}

// sooner returns the shorter wait; 0 means no wait is set.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// load adds a batch of a lane to a flight, if it has room.
func (p *producer) load(f *flight, l *lane, now time.Time) {
	if f.bytes > 0 && f.bytes+min(l.bytes, laneBytes) > requestBytes {
		return
	}
	values, expired := l.batch(now)
	p.counters[l.topic].lost.Add(uint64(expired))
	if len(values) == 0 {
		return
	}
	for _, value := range values {
		f.bytes += len(value)
	}
	f.lanes, f.batches = append(f.lanes, l), append(f.batches, values)
}

// abandon ends requests to brokers that have lost a partition to another broker and do not respond,
// like a frozen one.
func (p *producer) abandon(known layout, now time.Time) {
	for _, f := range p.flights {
		for _, l := range f.lanes {
			leader := known.leader(l.topic, l.partition)
			if leader >= 0 && leader != f.broker && now.Sub(f.since) > deposedWait {
				f.cancel()
			}
		}
	}
}

// send makes the request and notes its outcome.
func (p *producer) send(ctx context.Context, f *flight) {
	defer f.cancel()
	request := &produce.Request{Acks: int16(segmentio.RequireAll),
		Timeout: int32(replicaWait.Milliseconds())}
	at := map[stream.Topic]int{}
	for i, l := range f.lanes {
		if _, ok := at[l.topic]; !ok {
			at[l.topic] = len(request.Topics)
			request.Topics = append(request.Topics,
				produce.RequestTopic{Topic: p.cluster.names[l.topic]})
		}
		t := &request.Topics[at[l.topic]]
		t.Partitions = append(t.Partitions, produce.RequestPartition{Partition: int32(l.partition),
			RecordSet: protocol.RecordSet{Records: &batchReader{values: f.batches[i]}}})
	}
	answer, err := p.cluster.transport.RoundTrip(ctx, p.cluster.client.Addr, request)
	outcome := map[string]map[int32]error{}
	if err == nil {
		for _, t := range answer.(*produce.Response).Topics {
			outcome[t.Topic] = map[int32]error{}
			for _, partition := range t.Partitions {
				outcome[t.Topic][partition.Partition] = errorOf(partition.ErrorCode)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.flights, f.broker)
	for _, l := range f.lanes {
		failure := err
		if err == nil {
			var known bool
			if failure, known = outcome[p.cluster.names[l.topic]][int32(l.partition)]; !known {
				failure = errors.New("no answer for the partition")
			}
		}
		p.land(l, failure)
	}
	p.noteIdle()
	p.wake.Raise()
}

// land notes the outcome of a lane's batch.
func (p *producer) land(l *lane, err error) {
	counters, n := &p.counters[l.topic], l.sending
	switch {
	case err == nil:
		counters.published.Add(uint64(n))
		l.written()
		return
	case errors.Is(err, segmentio.MessageSizeTooLarge),
		errors.Is(err, segmentio.RecordListTooLarge):
		if n > 1 {
			l.most = 1 // retry with a single record
			break
		}
		lost := l.refused(fmt.Errorf("kafka: publish to %s/%d: %w: %w", l.topic, l.partition,
			stream.ErrTooLarge, err))
		counters.lost.Add(uint64(lost))
		return
	}
	counters.retries.Add(1)
	l.failed(p.cluster.config.Clock.Now(), err)
	p.cluster.learn(err, l.failures)
	if worthWarning(l.failures) && p.ctx.Err() == nil {
		p.cluster.config.Logger.Warn("kafka: cannot write", "topic", l.topic, "partition",
			l.partition,
			"failures", l.failures, "error", err)
	}
}

// noteIdle signals that nothing is left to wait for. The caller holds mu.
func (p *producer) noteIdle() {
	if !p.closing {
		return
	}
	for i := range p.lanes {
		if len(p.lanes[i].entries) > 0 {
			return
		}
	}
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// close ends every call, after queued records had lastWait to be written.
func (p *producer) close() {
	p.mu.Lock()
	p.closing = true
	for i := range p.lanes {
		l := &p.lanes[i]
		for _, c := range l.waiting {
			c.fail(stream.ErrClosed)
		}
		l.waiting = nil
	}
	p.noteIdle()
	p.mu.Unlock()
	select {
	case <-p.idle:
	case <-p.cluster.config.Clock.After(lastWait):
	}
	p.cancel()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.lanes {
		l := &p.lanes[i]
		for _, e := range l.entries {
			if e.call.done == nil {
				p.counters[l.topic].lost.Add(1)
			} else {
				e.call.fail(stream.ErrClosed)
			}
		}
		l.entries = nil
	}
}

// batchReader passes records to kafka-go's encoder. It has its own values: an abandoned request may
// still be read.
type batchReader struct {
	values [][]byte
	record protocol.Record
	value  value
}

// value implements protocol.Bytes over a slice.
type value struct{ bytes.Reader }

// Close does nothing.
func (*value) Close() error { return nil }

// ReadRecord returns the next record, which is valid until the next call.
func (r *batchReader) ReadRecord() (*protocol.Record, error) {
	if len(r.values) == 0 {
		return nil, io.EOF
	}
	r.value.Reset(r.values[0])
	r.record.Value = &r.value
	r.values = r.values[1:]
	return &r.record, nil
}

package kafka

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// Limits of reading.
const (
	// pollWait is how long a broker holds a request when it has no records for it.
	pollWait = 250 * time.Millisecond
	// pollBytes bounds a response, and partitionBytes one partition's part of it. A single larger
	// batch comes whole.
	pollBytes      = 8 << 20
	partitionBytes = 512 << 10
	// lowWater is the number of held bytes below which a partition is read again. So a partition
	// holds at most lowWater and partitionBytes, or a larger batch.
	lowWater = 256 << 10
)

// cursor reads one partition. The poller's mu guards all of it.
type cursor struct {
	partition int
	owner     wake.Signal // the reader's

	next     int64 // offset to request next; -1: not known yet
	held     []stream.Message
	bytes    int   // of held
	given    int64 // offset after the last message given to the reader; -1 before the first
	polled   bool  // a request for this partition is under way
	quiet    bool  // a short request found nothing: the next long one includes this partition
	failures int   // in a row
	retryAt  time.Time

	// The message before next is compared to find out whether the topic was re-created while it
	// seemed to be missing.
	suspect    bool
	last       int64 // offset of the last message read; -1: none
	lastTime   time.Time
	restarting bool // next is invalid: the partition's first offset is being looked up
	// committed is for groups: the offset after the last committed message; -1: none.
	committed int64
}

func newCursor(partition int, owner wake.Signal, next int64) *cursor {
	return &cursor{partition: partition, owner: owner, next: next, given: -1, last: -1,
		committed: -1}
}

// poller reads partitions of a topic ahead of their readers. Each broker gets one long request at a
// time, for all partitions that it leads and that have room here. If a partition is new or has room
// again meanwhile, an additional short request reads it.
type poller struct {
	cluster  *cluster
	topic    stream.Topic
	counters *counters
	wake     wake.Signal
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	cursors map[int]*cursor // by partition
	long    map[int32]bool  // by broker: a long request is under way
	short   map[int32]bool
	started map[int32]time.Time
}

func newPoller(c *cluster, topic stream.Topic, counters *counters) *poller {
	p := &poller{cluster: c, topic: topic, counters: counters, wake: wake.NewSignal(),
		cursors: map[int]*cursor{},
		long:    map[int32]bool{}, short: map[int32]bool{}, started: map[int32]time.Time{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(func() { serve(p.ctx, p.wake, p.cluster.config.Clock, p.dispatch) })
	return p
}

// close waits for the requests under way.
func (p *poller) close() {
	p.cancel()
	p.running.Wait()
}

// put begins to read a partition; any earlier cursor of it ends.
func (p *poller) put(c *cursor) {
	p.mu.Lock()
	p.cursors[c.partition] = c
	p.mu.Unlock()
	p.wake.Raise()
}

// remove stops reading, unless another cursor has the partition by now.
func (p *poller) remove(c *cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cursors[c.partition] == c {
		delete(p.cursors, c.partition)
	}
	c.held = nil
}

// handOver returns up to most messages of a cursor for its reader. The caller holds mu.
func (p *poller) handOver(c *cursor, most int) []stream.Message {
	n := min(most, len(c.held))
	if n == 0 {
		return nil
	}
	messages := c.held[:n:n]
	c.held = c.held[n:]
	before := c.bytes
	for _, m := range messages {
		c.bytes -= len(m.Value)
	}
	c.given = messages[n-1].Offset + 1
	p.counters.fetched.Add(uint64(n))
	if before >= lowWater && c.bytes < lowWater {
		p.wake.Raise()
	}
	return messages
}

// poll is a request: the cursors, and the offset at which each is read.
type poll struct {
	broker  int32
	wait    time.Duration
	cursors []*cursor
	from    []int64
}

// dispatch starts all possible requests. It returns how long to wait at most for the next event; 0:
// without a limit.
func (p *poller) dispatch() (wait time.Duration) {
	known, err := p.cluster.layout(p.ctx)
	if err != nil {
		return pauses.Most // no broker was ever reached
	}
	now := p.cluster.config.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[int32]*poll{}
	for _, c := range p.cursors {
		if c.polled || c.bytes >= lowWater {
			continue
		}
		broker := known.leader(p.topic, c.partition)
		if broker < 0 || now.Before(c.retryAt) {
			if known.missing(p.topic) {
				p.cluster.reportMissing()
				c.suspect = true
			}
			wait = sooner(wait, pauses.First)
			continue
		}
		if c.restarting {
			c.polled = true
			p.running.Go(func() { p.restart(c) })
			continue
		}
		if p.long[broker] && (p.short[broker] || c.quiet) {
			continue
		}
		if early := pace - now.Sub(p.started[broker]); early > 0 {
			wait = sooner(wait, early)
			continue
		}
		if next[broker] == nil {
			next[broker] = &poll{broker: broker}
		}
		q := next[broker]
		q.cursors, q.from = append(q.cursors, c), append(q.from, c.from())
		c.polled = true
	}
	for broker, q := range next {
		p.started[broker] = now
		if p.long[broker] {
			p.short[broker] = true
		} else {
			p.long[broker], q.wait = true, pollWait
		}
		p.running.Go(func() { p.send(q) })
	}
	return wait
}

// from returns where to read. If the topic may have been re-created, that is the message before
// next, for comparison.
func (c *cursor) from() int64 {
	if c.suspect && c.last >= 0 && c.last == c.next-1 {
		return c.last
	}
	return c.next
}

// send makes a request and processes its response.
func (p *poller) send(q *poll) {
	request := &fetch.Request{ReplicaID: -1, MaxWaitTime: int32(q.wait.Milliseconds()), MinBytes: 1,
		MaxBytes:  pollBytes,
		SessionID: 0, SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: p.cluster.names[p.topic]}}}
	for i, c := range q.cursors {
		request.Topics[0].Partitions = append(request.Topics[0].Partitions, fetch.RequestPartition{
			Partition: int32(c.partition), CurrentLeaderEpoch: -1, FetchOffset: q.from[i],
			LogStartOffset:    -1,
			PartitionMaxBytes: partitionBytes})
	}
	ctx, cancel := context.WithTimeout(p.ctx, q.wait+answerWait)
	defer cancel()
	answer, err := p.cluster.transport.RoundTrip(ctx, p.cluster.client.Addr, request)
	answers := make([]answered, len(q.cursors))
	for i := range answers {
		answers[i].err = err
	}
	if err == nil {
		p.decode(q, answer.(*fetch.Response), answers)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.wait > 0 {
		delete(p.long, q.broker)
	} else {
		delete(p.short, q.broker)
	}
	for i, c := range q.cursors {
		c.polled = false
		if p.cursors[c.partition] == c {
			p.absorb(c, q.from[i], answers[i])
			c.quiet = q.wait == 0 && len(answers[i].messages) == 0
		}
	}
	p.wake.Raise()
}

// answered is the part of a response for one partition.
type answered struct {
	messages []stream.Message
	times    struct{ first, last time.Time } // of the first and the last message
	end      int64                           // offset after the last message visible to readers
	err      error
}

// decode decodes the response to a poll.
func (p *poller) decode(q *poll, response *fetch.Response, answers []answered) {
	at := make(map[int32]int, len(q.cursors))
	for i, c := range q.cursors {
		at[int32(c.partition)] = i
		answers[i].err = errors.New("no answer for the partition")
		if err := errorOf(response.ErrorCode); err != nil {
			answers[i].err = err
		}
	}
	for _, t := range response.Topics {
		for j := range t.Partitions {
			part := &t.Partitions[j]
			i, ok := at[part.Partition]
			if !ok || t.Topic != p.cluster.names[p.topic] {
				continue
			}
			answers[i] = answered{end: part.HighWatermark, err: errorOf(part.ErrorCode)}
			if answers[i].err == nil && part.RecordSet.Records != nil {
				answers[i].read(part.RecordSet.Records, q.cursors[i].partition, q.from[i])
			}
		}
	}
}

// read takes the records from an offset on; a batch may begin earlier.
func (a *answered) read(records protocol.RecordReader, partition int, from int64) {
	for {
		record, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			if len(a.messages) == 0 {
				a.err = err
			}
			return
		}
		var value []byte
		if record.Value != nil {
			if record.Offset >= from {
				value, err = protocol.ReadAll(record.Value)
			}
			record.Value.Close()
		}
		if record.Key != nil {
			record.Key.Close()
		}
		if err != nil {
			a.err = err
			return
		}
		if record.Offset < from {
			continue
		}
		if len(a.messages) == 0 {
			a.times.first = record.Time
		}
		a.times.last = record.Time
		a.messages = append(a.messages,
			stream.Message{Partition: partition, Offset: record.Offset, Value: value})
	}
}

// absorb applies a response to a cursor. The caller holds mu.
func (p *poller) absorb(c *cursor, from int64, a answered) {
	switch {
	case a.err == nil:
	case errors.Is(a.err, segmentio.OffsetOutOfRange):
		c.restarting = true
		return
	default:
		p.failed(c, a.err)
		return
	}
	c.failures = 0
	if c.suspect {
		if from < c.next { // the response begins with the message to compare, if it exists
			same := len(a.messages) > 0 && a.messages[0].Offset == from &&
				a.times.first.Equal(c.lastTime)
			if !same {
				c.restarting = true
				return
			}
			a.messages = a.messages[1:]
		}
		c.suspect = false
	}
	if len(a.messages) == 0 {
		return
	}
	for _, m := range a.messages {
		c.bytes += len(m.Value)
	}
	c.held = append(c.held, a.messages...)
	c.last, c.lastTime = a.messages[len(a.messages)-1].Offset, a.times.last
	c.next = c.last + 1
	c.owner.Raise()
}

// failed notes a failure and when to retry. The caller holds mu.
func (p *poller) failed(c *cursor, err error) {
	if p.ctx.Err() != nil {
		return
	}
	c.failures++
	c.retryAt = p.cluster.config.Clock.Now().Add(pauses.After(c.failures))
	p.counters.retries.Add(1)
	c.suspect = c.suspect || errors.Is(err, segmentio.UnknownTopicOrPartition)
	p.cluster.learn(err, c.failures)
	if worthWarning(c.failures) {
		p.cluster.config.Logger.Warn("kafka: cannot read", "topic", p.topic, "partition",
			c.partition,
			"failures", c.failures, "error", err)
	}
}

// restart continues at the partition's first record: the topic was re-created, or the next records
// were removed as too old.
func (p *poller) restart(c *cursor) {
	first, err := p.cluster.offsets(p.ctx, p.topic, firstRecord, []int{c.partition})
	p.mu.Lock()
	defer p.mu.Unlock()
	c.polled = false
	if err != nil {
		p.failed(c, err)
	} else {
		if c.next >= 0 {
			p.cluster.config.Logger.Warn("kafka: the log goes on elsewhere", "topic", p.topic,
				"partition", c.partition,
				"expected", c.next, "first", first[0])
		}
		c.next, c.last, c.given, c.committed = first[0], -1, -1, -1
		c.held, c.bytes = nil, 0
		c.failures, c.restarting, c.suspect = 0, false, false
	}
	p.wake.Raise()
}

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
)

// Limits of reading.
const (
	// pollWait is how long a broker holds a request for which it has nothing.
	pollWait = 250 * time.Millisecond
	// pollBytes bounds an answer, partitionBytes a partition's part of it; a single larger batch
	// comes whole.
	pollBytes      = 8 << 20
	partitionBytes = 512 << 10
	// lowWater: a partition is read again once fewer bytes of it are held here. So it holds at most
	// lowWater and partitionBytes, or a larger batch.
	lowWater = 256 << 10
)

// cursor reads one partition. The poller's mu guards all of it.
type cursor struct {
	partition int
	owner     wake // of the reader

	next     int64 // offset that is asked for next; -1 before it is known
	held     []stream.Message
	bytes    int   // of held
	given    int64 // offset after the last message given to the reader; -1 before the first
	polled   bool  // a request for it is under way
	quiet    bool  // a short request found nothing: the next long one takes it along
	failures int   // in a row
	retryAt  time.Time

	// To find out whether the topic was made anew while it seemed to be missing, the message before
	// next is compared.
	suspect    bool
	last       int64 // offset of the last message read, -1 for none
	lastTime   time.Time
	restarting bool // next is not valid: the partition's first offset is looked up
	// committed is for groups: the offset after the last message committed, -1 for none.
	committed int64
}

func newCursor(partition int, owner wake, next int64) *cursor {
	return &cursor{partition: partition, owner: owner, next: next, given: -1, last: -1,
		committed: -1}
}

// poller reads partitions of a topic ahead of their readers. To each broker there is one long
// request at a time, over all partitions that it leads and that have room here. A partition that is
// new, or has room again, while it is under way is asked for by a short request beside it.
type poller struct {
	cluster  *cluster
	topic    stream.Topic
	counters *counters
	wake     wake
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
	p := &poller{cluster: c, topic: topic, counters: counters, wake: make(wake, 1),
		cursors: map[int]*cursor{},
		long:    map[int32]bool{}, short: map[int32]bool{}, started: map[int32]time.Time{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(func() { p.wake.serve(p.ctx, p.cluster.config.Clock, p.dispatch) })
	return p
}

// close waits for the requests that are under way.
func (p *poller) close() {
	p.cancel()
	p.running.Wait()
}

// put begins to read a partition; what read it before ends.
func (p *poller) put(c *cursor) {
	p.mu.Lock()
	p.cursors[c.partition] = c
	p.mu.Unlock()
	p.wake.notify()
}

// remove ends reading, unless another cursor has the partition by now.
func (p *poller) remove(c *cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cursors[c.partition] == c {
		delete(p.cursors, c.partition)
	}
	c.held = nil
}

// handOver gives up to most messages of a cursor to its reader. It needs mu.
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
		p.wake.notify()
	}
	return messages
}

// poll is a request: the cursors, and where each is read from.
type poll struct {
	broker  int32
	wait    time.Duration
	cursors []*cursor
	from    []int64
}

// dispatch starts what requests can be made. It returns how long to wait for something to happen at
// most, 0 for as long as it takes.
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

// from is where to read: at the message before next, if it is in doubt whether that is still the
// same.
func (c *cursor) from() int64 {
	if c.suspect && c.last >= 0 && c.last == c.next-1 {
		return c.last
	}
	return c.next
}

// send makes a request and takes in its answer.
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
	p.wake.notify()
}

// answered is what an answer says of one partition.
type answered struct {
	messages []stream.Message
	times    struct{ first, last time.Time } // of the first and the last message
	end      int64                           // offset after the last message that readers may see
	err      error
}

// decode reads the answers to a poll.
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

// read takes the records from an offset on; a batch may begin before it.
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

// absorb takes in what an answer says of a cursor. It needs mu.
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
		if from < c.next { // the answer begins with the message to compare, if it is there
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
	c.owner.notify()
}

// failed notes a failure and when to try again. It needs mu.
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

// restart goes on at the partition's first record: the topic was made anew, or what came next was
// removed as too old.
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
	p.wake.notify()
}

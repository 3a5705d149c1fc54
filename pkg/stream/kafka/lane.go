package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/stream"
)

// Bounds of what one partition queues in this process.
const (
	laneRecords = 8192
	laneBytes   = 1 << 20 // the first records of an empty lane may exceed it
)

// tryFor is how long a record of TryPublish may wait to be written. Its publisher may have been
// replaced meanwhile, and old records would only repeat work.
const tryFor = 30 * time.Second

// call is one Publish or TryPublish.
type call struct {
	records [][]byte   // of a Publish: those still without room
	left    int        // records not yet written
	done    chan error // of a Publish: buffers the one result; nil for TryPublish
	expires time.Time  // of a TryPublish
	gone    bool       // of a Publish: it has its result, or no longer waits
}

// entry is one record that waits to be written.
type entry struct {
	value []byte
	call  *call
}

// lane is the queue of records to write to one partition, in order. A batch stays at its head until
// it is acknowledged. At most one batch is under way, which keeps the order.
type lane struct {
	topic     stream.Topic
	partition int

	entries  []entry
	bytes    int
	waiting  []*call // Publish calls with records that have no room, oldest first
	sending  int     // entries at the head that are under way
	most     int     // entries of the next batch; 0: no limit
	failures int     // in a row
	failure  error   // the last error
	retryAt  time.Time
}

// fits reports whether there is room. An empty lane has room for a record of any size.
func (l *lane) fits(records, bytes int) bool {
	return len(l.entries)+records <= laneRecords &&
		(l.bytes+bytes <= laneBytes || len(l.entries) == 0)
}

func (l *lane) push(value []byte, c *call) {
	l.entries = append(l.entries, entry{value, c})
	l.bytes += len(value)
}

// admit gives room to the waiting calls, in their order.
func (l *lane) admit() {
	for len(l.waiting) > 0 {
		c := l.waiting[0]
		for len(c.records) > 0 && l.fits(1, len(c.records[0])) {
			l.push(c.records[0], c)
			c.records = c.records[1:]
		}
		if len(c.records) > 0 {
			return
		}
		l.waiting = l.waiting[1:]
	}
	l.waiting = nil
}

// batch returns the next records from the head. expired is the number of TryPublish records that it
// dropped because they were too old.
func (l *lane) batch(now time.Time) (values [][]byte, expired int) {
	for expired < len(l.entries) && l.entries[expired].call.done == nil &&
		now.After(l.entries[expired].call.expires) {
		l.bytes -= len(l.entries[expired].value)
		expired++
	}
	if expired > 0 {
		l.drop(expired)
		l.admit()
	}
	size := 0
	for i := range l.entries {
		size += len(l.entries[i].value)
		if i > 0 && (size > laneBytes || l.most > 0 && i >= l.most) {
			break
		}
		values = append(values, l.entries[i].value)
	}
	l.sending = len(values)
	return values, expired
}

// written removes the batch and notifies the callers.
func (l *lane) written() {
	for _, e := range l.entries[:l.sending] {
		l.bytes -= len(e.value)
		e.call.finish(1, nil)
	}
	l.drop(l.sending)
	l.sending, l.most, l.failures, l.failure = 0, 0, 0, nil
	l.admit()
}

// failed keeps the batch for another try, except for records that nobody waits for any more.
func (l *lane) failed(now time.Time, err error) {
	l.failures++
	l.failure = err
	l.retryAt = now.Add(pauses.After(l.failures))
	l.sending = 0
	l.forget(func(c *call) bool { return c.gone })
}

// refused drops the batch, whose only record can never be written. It returns how many records of
// TryPublish are lost.
func (l *lane) refused(err error) (lost int) {
	for _, e := range l.entries[:l.sending] {
		l.bytes -= len(e.value)
		if e.call.done == nil {
			lost++
			continue
		}
		e.call.fail(err)
	}
	l.drop(l.sending)
	l.sending, l.most, l.failures = 0, 0, 0
	l.forget(func(c *call) bool { return c.gone })
	return lost
}

// forget removes the entries and waiting calls that which selects, but nothing under way.
func (l *lane) forget(which func(*call) bool) {
	kept := l.entries[:l.sending]
	for _, e := range l.entries[l.sending:] {
		if which(e.call) {
			l.bytes -= len(e.value)
			continue
		}
		kept = append(kept, e)
	}
	clear(l.entries[len(kept):])
	l.entries = kept
	l.waiting = slices.DeleteFunc(l.waiting, which)
	l.admit()
}

// drop removes entries from the head. The slice moves on through its array; append allocates a new
// one when it is full.
func (l *lane) drop(n int) {
	clear(l.entries[:n])
	l.entries = l.entries[n:]
	if len(l.entries) == 0 {
		l.entries = nil
	}
}

// finish notes that n more records are done, and notifies the caller after the last one.
func (c *call) finish(n int, err error) {
	c.left -= n
	if c.left == 0 && c.done != nil && !c.gone {
		c.gone = true
		c.done <- err
	}
}

func (c *call) fail(err error) {
	if !c.gone {
		c.gone = true
		c.done <- err
	}
}

// publish queues records and waits until they are written.
func (p *producer) publish(ctx context.Context, topic stream.Topic, partition int,
	records [][]byte) error {
	if len(records) == 0 {
		return p.errIfClosed()
	}
	c := &call{records: records, left: len(records), done: make(chan error, 1)}
	l := p.lane(topic, partition)
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return stream.ErrClosed
	}
	l.waiting = append(l.waiting, c)
	l.admit()
	p.mu.Unlock()
	p.wake.Raise()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.gone {
		return <-c.done
	}
	c.gone = true
	l.forget(func(other *call) bool { return other == c })
	if l.failure != nil {
		return fmt.Errorf("kafka: publish to %s/%d: %w: %w", topic, partition, ctx.Err(), l.failure)
	}
	return ctx.Err()
}

// tryPublish queues all records or none.
func (p *producer) tryPublish(topic stream.Topic, partition int, records [][]byte) error {
	bytes := 0
	for _, record := range records {
		bytes += len(record)
	}
	c := &call{left: len(records), expires: p.cluster.config.Clock.Now().Add(tryFor)}
	l := p.lane(topic, partition)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return stream.ErrClosed
	}
	if len(l.waiting) > 0 || !l.fits(len(records), bytes) {
		return stream.ErrFull
	}
	for _, record := range records {
		l.push(record, c)
	}
	p.wake.Raise()
	return nil
}

package kafka

import (
	"context"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// reader delivers the messages of some cursors to one goroutine. The poller's mu guards closed,
// owned and turn.
type reader struct {
	poller *poller
	wake   wake.Signal
	closed bool
	owned  []*cursor
	turn   int // index in owned
}

// Fetch reads the partitions in turn, so that a busy one does not hold up the others.
func (r *reader) Fetch(ctx context.Context, most int) ([]stream.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		messages, err := r.takeMessages(max(most, 1))
		if err != nil || len(messages) > 0 {
			return messages, err
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

func (r *reader) takeMessages(most int) ([]stream.Message, error) {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	if r.closed {
		return nil, stream.ErrClosed
	}
	var messages []stream.Message
	for range r.owned {
		r.turn = (r.turn + 1) % len(r.owned)
		if some := r.poller.handOver(r.owned[r.turn], most-len(messages)); messages == nil {
			messages = some
		} else {
			messages = append(messages, some...)
		}
		if len(messages) == most {
			break
		}
	}
	return messages, nil
}

// end makes all calls return ErrClosed. It reports whether it was the first call.
func (r *reader) end() bool {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	if r.closed {
		return false
	}
	r.closed = true
	r.wake.Raise()
	return true
}

func (r *reader) isClosed() bool {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	return r.closed
}

// tailReader reads one partition without a group.
type tailReader struct {
	reader
	log *Log
}

// Tail asks the partition's leader for the partition's end. Without an answer within tailTimeout it
// fails.
func (l *Log) Tail(topic stream.Topic, partition int) (stream.Reader, error) {
	if err := stream.CheckPlace(l, topic, partition); err != nil {
		return nil, err
	}
	if l.isClosed() {
		return nil, stream.ErrClosed
	}
	ctx, cancel := context.WithTimeout(l.ctx, tailTimeout)
	defer cancel()
	var end int64
	err := l.cluster.attempt(ctx, "tail "+l.cluster.names[topic], func(ctx context.Context) error {
		ends, err := l.cluster.offsets(ctx, topic, afterLast, []int{partition})
		if err == nil {
			end = ends[0]
		}
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, stream.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	if l.tails[topic] == nil {
		l.tails[topic] = newPoller(l.cluster, topic, &l.counters[topic])
	}
	r := &tailReader{reader: reader{poller: l.tails[topic], wake: wake.NewSignal()}, log: l}
	c := newCursor(partition, r.wake, end)
	c.given = end
	r.owned = []*cursor{c}
	if older := l.tailOf[topic][partition]; older != nil {
		older.end()
	}
	l.tailOf[topic][partition] = r
	r.poller.put(c)
	return r, nil
}

// Commit does nothing.
func (r *tailReader) Commit(context.Context, []stream.Message) error {
	if r.isClosed() {
		return stream.ErrClosed
	}
	return nil
}

// Close stops reading.
func (r *tailReader) Close() error {
	if !r.end() {
		return nil
	}
	c := r.owned[0]
	r.poller.remove(c)
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.tailOf[r.poller.topic][c.partition] == r {
		delete(r.log.tailOf[r.poller.topic], c.partition)
	}
	return nil
}

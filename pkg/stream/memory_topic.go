package stream

import (
	"context"
	"slices"
	"sync"
)

// memoryTopic is one topic of a Memory. mu guards all of it, including its readers and groups.
type memoryTopic struct {
	maxRecords int   // per partition
	maxBytes   int64 // over all partitions

	mu     sync.Mutex
	closed bool
	queues []queue // by partition
	groups []*group
	bytes  int64 // held, overhead included
	held   int64 // records
	// waiting holds the publishers without room, oldest first. Whenever mu is free, each is held up
	// by its full partition, or by the first publisher that lacks bytes of the topic. starved says
	// that such a publisher exists.
	waiting []*publisher
	starved bool
}

// queue holds one partition's records.
type queue struct {
	records [][]byte // records[head:] are held; before head all are nil
	head    int
	first   int64 // offset of records[head]
	tail    *tailReader
}

// publisher waits for room for the remaining records of its call.
type publisher struct {
	partition int
	records   [][]byte
	done      chan error // buffers the one result
}

func cost(record []byte) int64 { return int64(len(record)) + recordOverheadBytes }

func (q *queue) len() int { return len(q.records) - q.head }

// end returns the offset of the next record.
func (q *queue) end() int64 { return q.first + int64(q.len()) }

// at returns the record at an offset in [first, end).
func (q *queue) at(offset int64) []byte { return q.records[q.head+int(offset-q.first)] }

func (t *memoryTopic) publish(ctx context.Context, partition int, records [][]byte) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	rest := records
	if !t.starved {
		rest = t.push(partition, records)
	}
	if len(rest) == 0 {
		t.mu.Unlock()
		return nil
	}
	p := &publisher{partition: partition, records: rest, done: make(chan error, 1)}
	t.waiting = append(t.waiting, p)
	t.starved = t.starved || t.queues[partition].len() < t.maxRecords
	t.mu.Unlock()

	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return t.giveUp(p, ctx.Err())
	}
}

// giveUp removes a publisher from the list, unless it was served meanwhile.
func (t *memoryTopic) giveUp(p *publisher, reason error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, p)
	if i < 0 {
		return <-p.done
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.admit()
	return reason
}

func (t *memoryTopic) tryPublish(partition int, records [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	var size int64
	for _, record := range records {
		size += cost(record)
	}
	if t.starved || t.queues[partition].len()+len(records) > t.maxRecords ||
		t.bytes+size > t.maxBytes {
		return ErrFull
	}
	t.push(partition, records)
	return nil
}

// push appends the records that fit, wakes the partition's readers and returns the rest.
func (t *memoryTopic) push(partition int, records [][]byte) [][]byte {
	q := &t.queues[partition]
	pushed := 0
	for _, record := range records {
		if q.len() >= t.maxRecords || t.bytes+cost(record) > t.maxBytes {
			break
		}
		q.records = append(q.records, record)
		t.bytes += cost(record)
		pushed++
	}
	if pushed == 0 {
		return records
	}
	t.held += int64(pushed)
	if q.tail != nil {
		q.tail.wake.Raise()
	}
	for _, g := range t.groups {
		if owner := g.owners[partition]; owner != nil {
			owner.wake.Raise()
		}
	}
	return records[pushed:]
}

// admit serves the waiting publishers after room was made.
func (t *memoryTopic) admit() {
	t.starved = false
	still := t.waiting[:0]
	for i, p := range t.waiting {
		p.records = t.push(p.partition, p.records)
		if len(p.records) == 0 {
			p.done <- nil
			continue
		}
		still = append(still, p)
		if t.queues[p.partition].len() < t.maxRecords {
			t.starved = true
			still = append(still, t.waiting[i+1:]...)
			break
		}
	}
	clear(t.waiting[len(still):])
	t.waiting = still
}

// release frees the records that all readers of the partition are done with. The caller calls admit
// after its last release.
func (t *memoryTopic) release(partition int) {
	q := &t.queues[partition]
	if q.tail == nil && len(t.groups) == 0 {
		return
	}
	done := q.end()
	if q.tail != nil {
		done = q.tail.next
	}
	for _, g := range t.groups {
		done = min(done, g.committed[partition])
	}
	for ; q.first < done; q.first++ {
		t.bytes -= cost(q.records[q.head])
		t.held--
		q.records[q.head] = nil
		q.head++
	}
	q.compact()
}

// Sizes of a queue's slice.
const (
	keptSlots    = 256 // the most that an empty queue keeps
	compactAfter = 64  // the most free slots before head that are left alone
)

// compact keeps fewer free slots before the head than records after it. So each record moves at
// most once for each record freed.
func (q *queue) compact() {
	switch {
	case q.len() == 0 && cap(q.records) > keptSlots:
		q.records, q.head = nil, 0
	case q.len() == 0:
		q.records, q.head = q.records[:0], 0
	case q.head >= compactAfter && q.head >= q.len():
		n := copy(q.records, q.records[q.head:])
		clear(q.records[n:])
		q.records, q.head = q.records[:n], 0
	}
}

func (t *memoryTopic) lag() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

func (t *memoryTopic) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for _, p := range t.waiting {
		p.done <- ErrClosed
	}
	for i := range t.queues {
		if tail := t.queues[i].tail; tail != nil {
			tail.end()
		}
	}
	for _, g := range t.groups {
		for _, m := range g.members {
			m.end()
		}
	}
	t.waiting, t.queues, t.groups = nil, nil, nil
	t.bytes, t.held = 0, 0
}

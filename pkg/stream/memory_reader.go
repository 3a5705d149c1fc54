package stream

import (
	"context"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/wake"
)

// cursor is common to both kinds of reader. The topic's mu guards closed.
type cursor struct {
	topic  *memoryTopic
	closed bool
	wake   wake.Signal // there may be messages
}

func (c *cursor) end() {
	c.closed = true
	c.wake.Raise()
}

// fetch calls take under the topic's mu until take returns messages.
func (c *cursor) fetch(ctx context.Context, most int, take func(most int) []Message) ([]Message,
	error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.topic.mu.Lock()
		if c.closed {
			c.topic.mu.Unlock()
			return nil, ErrClosed
		}
		messages := take(max(most, 1))
		c.topic.mu.Unlock()
		if len(messages) > 0 {
			return messages, nil
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
		}
	}
}

// tailReader reads one partition; next is the offset to fetch next.
type tailReader struct {
	cursor
	partition int
	next      int64
}

func (t *memoryTopic) openTail(partition int) (Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	q := &t.queues[partition]
	if q.tail != nil {
		q.tail.end()
	}
	r := &tailReader{cursor: cursor{topic: t, wake: wake.NewSignal()}, partition: partition,
		next: q.end()}
	q.tail = r
	t.release(partition)
	t.admit()
	return r, nil
}

// Fetch frees the records that it returns.
func (r *tailReader) Fetch(ctx context.Context, most int) ([]Message, error) {
	return r.fetch(ctx, most, r.takeMessages)
}

func (r *tailReader) takeMessages(most int) []Message {
	q := &r.topic.queues[r.partition]
	n := min(most, int(q.end()-r.next))
	if n == 0 {
		return nil
	}
	messages := make([]Message, 0, n)
	for range n {
		messages = append(messages,
			Message{Partition: r.partition, Offset: r.next, Value: q.at(r.next)})
		r.next++
	}
	r.topic.release(r.partition)
	r.topic.admit()
	return messages
}

// Commit does nothing.
func (r *tailReader) Commit(context.Context, []Message) error {
	r.topic.mu.Lock()
	defer r.topic.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	return nil
}

// Close leaves the partition to the groups, if any.
func (r *tailReader) Close() error {
	r.topic.mu.Lock()
	defer r.topic.mu.Unlock()
	if r.closed {
		return nil
	}
	r.end()
	r.topic.queues[r.partition].tail = nil
	r.topic.release(r.partition) // records that only this reader still needed
	r.topic.admit()
	return nil
}

// group is a set of members that share a topic's partitions. All slices except members are indexed
// by partition.
type group struct {
	name      string
	committed []int64   // offset of the first uncommitted record
	fetched   []int64   // offset of the first record not fetched by the owner
	owners    []*member // nil while there are no members
	members   []*member // in the order in which they joined
}

// member reads the partitions that it owns, in turn.
type member struct {
	cursor
	group *group
	owned []int
	turn  int // index in owned
}

func (t *memoryTopic) join(name string) (Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	i := slices.IndexFunc(t.groups, func(g *group) bool { return g.name == name })
	if i < 0 {
		i = len(t.groups)
		t.groups = append(t.groups, t.newGroup(name))
	}
	g := t.groups[i]
	m := &member{cursor: cursor{topic: t, wake: wake.NewSignal()}, group: g}
	g.members = append(g.members, m)
	g.deal()
	return m, nil
}

func (t *memoryTopic) newGroup(name string) *group {
	g := &group{name: name, committed: make([]int64, len(t.queues)),
		fetched: make([]int64, len(t.queues)),
		owners:  make([]*member, len(t.queues))}
	for i := range t.queues {
		g.committed[i] = t.queues[i].first
	}
	return g
}

// deal gives free partitions to the members with the fewest, then evens out. It moves no more
// partitions than necessary.
func (g *group) deal() {
	if len(g.members) == 0 {
		return
	}
	fewer := func(a, b *member) int { return len(a.owned) - len(b.owned) }
	for partition, owner := range g.owners {
		if owner == nil {
			g.give(partition, slices.MinFunc(g.members, fewer))
		}
	}
	for {
		from, to := slices.MaxFunc(g.members, fewer), slices.MinFunc(g.members, fewer)
		if len(from.owned) <= len(to.owned)+1 {
			break
		}
		last := len(from.owned) - 1
		partition := from.owned[last]
		from.owned = from.owned[:last]
		g.give(partition, to)
	}
}

// give makes a member the owner of a partition, starting at the committed position.
func (g *group) give(partition int, to *member) {
	g.owners[partition] = to
	g.fetched[partition] = g.committed[partition]
	to.owned = append(to.owned, partition)
	to.wake.Raise()
}

// Fetch reads the partitions in turn, so that a busy one does not hold up the others.
func (m *member) Fetch(ctx context.Context, most int) ([]Message, error) {
	return m.fetch(ctx, most, m.takeMessages)
}

func (m *member) takeMessages(most int) []Message {
	var unread int64
	for _, partition := range m.owned {
		unread += m.topic.queues[partition].end() - m.group.fetched[partition]
	}
	if unread == 0 {
		return nil
	}
	most = int(min(int64(most), unread))
	messages := make([]Message, 0, most)
	for len(messages) < most {
		m.turn = (m.turn + 1) % len(m.owned)
		partition := m.owned[m.turn]
		q, next := &m.topic.queues[partition], &m.group.fetched[partition]
		for *next < q.end() && len(messages) < most {
			messages = append(messages,
				Message{Partition: partition, Offset: *next, Value: q.at(*next)})
			*next++
		}
	}
	return messages
}

// Commit frees the records that no other group still needs.
func (m *member) Commit(ctx context.Context, messages []Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.topic.mu.Lock()
	defer m.topic.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	g := m.group
	for _, message := range messages {
		p := message.Partition
		if p < 0 || p >= len(m.topic.queues) || message.Offset >= m.topic.queues[p].end() {
			return fmt.Errorf("stream: commit of offset %d of partition %d, which is not there",
				message.Offset, p)
		}
		g.committed[p] = max(g.committed[p], message.Offset+1)
		g.fetched[p] = max(g.fetched[p], g.committed[p])
	}
	// Messages come in runs of one partition: releasing at the end of each run is enough.
	for i, message := range messages {
		if i+1 == len(messages) || messages[i+1].Partition != message.Partition {
			m.topic.release(message.Partition)
		}
	}
	m.topic.admit()
	return nil
}

// Close gives the member's partitions to the others.
func (m *member) Close() error {
	m.topic.mu.Lock()
	defer m.topic.mu.Unlock()
	if m.closed {
		return nil
	}
	m.end()
	g := m.group
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	for _, partition := range m.owned {
		g.owners[partition] = nil
	}
	m.owned = nil
	g.deal()
	return nil
}

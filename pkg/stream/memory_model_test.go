package stream

import (
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// logModel is a slow model of a Memory's topic: for each partition, every record ever accepted, and
// positions. It has one tail per partition, and one group with up to three members.
type logModel struct {
	log        *Memory
	maxRecords int
	accepted   [][]uint32 // by partition: the records' numbers
	discarded  []int      // by partition: records before a Tail, freed unless the group needs them
	tails      []Reader
	read       []int // by partition: number of records that the tail has read
	grouped    bool
	members    []Reader
	committed  []int // by partition
	fetched    [][]Message
}

const modelPartitions = 3

func TestMemoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxRecords := rapid.IntRange(1, 12).Draw(t, "maxRecords")
		log, err := NewMemory(Config{Partitions: modelPartitions, MaxRecords: maxRecords})
		must(t, err)
		defer log.Close()
		m := &logModel{log: log, maxRecords: maxRecords,
			accepted:  make([][]uint32, modelPartitions),
			discarded: make([]int, modelPartitions), tails: make([]Reader, modelPartitions),
			read: make([]int, modelPartitions), committed: make([]int, modelPartitions)}
		t.Repeat(map[string]func(*rapid.T){
			"publish":   m.publish,
			"tail":      m.tail,
			"read":      m.readTail,
			"closeTail": m.closeTail,
			"join":      m.join,
			"fetch":     m.fetch,
			"commit":    m.commit,
			"leave":     m.leave,
			"":          m.check,
		})
	})
}

func drawPartition(t *rapid.T) int {
	return rapid.IntRange(0, modelPartitions-1).Draw(t,
		"partition")
}

// freed returns the first record that a partition must still hold.
func (m *logModel) freed(partition int) int {
	freed := m.discarded[partition]
	switch {
	case m.tails[partition] != nil && m.grouped:
		freed = max(freed, min(m.read[partition], m.committed[partition]))
	case m.tails[partition] != nil:
		freed = max(freed, m.read[partition])
	case m.grouped:
		freed = max(freed, m.committed[partition])
	}
	m.discarded[partition] = freed
	return freed
}

func (m *logModel) publish(t *rapid.T) {
	p, n := drawPartition(t), rapid.IntRange(1, 5).Draw(t, "records")
	var records [][]byte
	for i := range n {
		records = append(records, binary.BigEndian.AppendUint32(nil, uint32(len(m.accepted[p])+i)))
	}
	fits := len(m.accepted[p])-m.freed(p)+n <= m.maxRecords
	err := m.log.TryPublish(Pages, p, records...)
	if fits != (err == nil) || err != nil && !errors.Is(err, ErrFull) {
		t.Fatalf("fits: %v, error %v", fits, err)
	}
	if fits {
		for _, record := range records {
			m.accepted[p] = append(m.accepted[p], binary.BigEndian.Uint32(record))
		}
	}
}

func (m *logModel) tail(t *rapid.T) {
	p := drawPartition(t)
	older := m.tails[p]
	r, err := m.log.Tail(Pages, p)
	must(t, err)
	if older != nil {
		if _, err := older.Fetch(t.Context(), 1); !errors.Is(err, ErrClosed) {
			t.Fatalf("the older tail: %v", err)
		}
	}
	m.tails[p], m.read[p] = r, len(m.accepted[p])
	m.freed(p)
}

func (m *logModel) readTail(t *rapid.T) {
	p := drawPartition(t)
	if m.tails[p] == nil || m.read[p] == len(m.accepted[p]) {
		t.Skip("it would wait")
	}
	most := rapid.IntRange(1, 5).Draw(t, "most")
	messages, err := m.tails[p].Fetch(t.Context(), most)
	must(t, err)
	if want := min(most, len(m.accepted[p])-m.read[p]); len(messages) != want {
		t.Fatalf("%d messages, want %d", len(messages), want)
	}
	for _, message := range messages {
		m.checkMessage(t, message, p, m.read[p])
		m.read[p]++
	}
	m.freed(p)
}

func (m *logModel) checkMessage(t *rapid.T, message Message, partition, n int) {
	if message.Partition != partition || message.Offset != int64(n) ||
		binary.BigEndian.Uint32(message.Value) != m.accepted[partition][n] {
		t.Fatalf("message %+v, want record %d of partition %d", message, n, partition)
	}
}

func (m *logModel) closeTail(t *rapid.T) {
	p := drawPartition(t)
	if m.tails[p] == nil {
		t.Skip("no tail")
	}
	must(t, m.tails[p].Close())
	m.tails[p] = nil
	m.freed(p)
}

func (m *logModel) join(t *rapid.T) {
	if len(m.members) == 3 {
		t.Skip("enough members")
	}
	if !m.grouped {
		for p := range modelPartitions {
			m.committed[p] = m.freed(p)
		}
		m.grouped = true
	}
	r, err := m.log.Consume(Pages, "group")
	must(t, err)
	m.members = append(m.members, r)
	m.fetched = append(m.fetched, nil)
}

// fetch lets a member read, if there is something to read: everything comes in order, from the
// committed position on.
func (m *logModel) fetch(t *rapid.T) {
	if len(m.members) == 0 {
		t.Skip("no members")
	}
	i := rapid.IntRange(0, len(m.members)-1).Draw(t, "member")
	own, group, unread := m.members[i].(*member), m.log.topics[Pages].groups[0], 0
	for _, p := range own.owned {
		if int(group.fetched[p]) < m.committed[p] {
			t.Fatalf("partition %d: what is committed would come again", p)
		}
		unread += len(m.accepted[p]) - int(group.fetched[p])
	}
	if unread == 0 {
		t.Skip("it would wait")
	}
	next := append([]int64(nil), group.fetched...)
	most := rapid.IntRange(1, 5).Draw(t, "most")
	messages, err := own.Fetch(t.Context(), most)
	must(t, err)
	if len(messages) != min(most, unread) {
		t.Fatalf("%d messages, want %d", len(messages), min(most, unread))
	}
	for _, message := range messages {
		if group.owners[message.Partition] != own {
			t.Fatalf("partition %d is not the member's", message.Partition)
		}
		m.checkMessage(t, message, message.Partition, int(next[message.Partition]))
		next[message.Partition]++
	}
	m.fetched[i] = append(m.fetched[i], messages...)
}

func (m *logModel) commit(t *rapid.T) {
	if len(m.members) == 0 {
		t.Skip("no members")
	}
	i := rapid.IntRange(0, len(m.members)-1).Draw(t, "member")
	n := rapid.IntRange(0, len(m.fetched[i])).Draw(t, "messages")
	must(t, m.members[i].Commit(t.Context(), m.fetched[i][:n]))
	for _, message := range m.fetched[i][:n] {
		p := message.Partition
		m.committed[p] = max(m.committed[p], int(message.Offset)+1)
		m.freed(p)
	}
	m.fetched[i] = m.fetched[i][n:]
}

// leave closes a member. If it was the last one, uncommitted records must come again to the next
// member.
func (m *logModel) leave(t *rapid.T) {
	if len(m.members) == 0 {
		t.Skip("no members")
	}
	i := rapid.IntRange(0, len(m.members)-1).Draw(t, "member")
	left := m.members[i].(*member)
	owned := append([]int(nil), left.owned...)
	must(t, left.Close())
	m.members = append(m.members[:i], m.members[i+1:]...)
	m.fetched = append(m.fetched[:i], m.fetched[i+1:]...)
	if len(m.members) == 0 {
		return
	}
	group := m.log.topics[Pages].groups[0]
	for _, p := range owned {
		if int(group.fetched[p]) != m.committed[p] {
			t.Fatalf("partition %d goes on at %d, but only %d is committed", p, group.fetched[p],
				m.committed[p])
		}
	}
}

func (m *logModel) check(t *rapid.T) {
	held := 0
	for p := range modelPartitions {
		held += len(m.accepted[p]) - m.freed(p)
	}
	if lag := m.log.Lag(Pages); lag != int64(held) {
		t.Fatalf("lag %d, want %d", lag, held)
	}
	if bytes := m.log.topics[Pages].bytes; bytes != int64(held)*(4+recordOverheadBytes) {
		t.Fatalf("%d bytes counted for %d records", bytes, held)
	}
}

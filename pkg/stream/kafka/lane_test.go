package kafka

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/stream"
)

// laneModel drives a lane like the producer, with calls that give up and batches that fail. It
// checks what a reader of the partition would see.
type laneModel struct {
	lane    lane
	now     time.Time
	calls   []*call
	numbers map[*call][]int // of the call's records
	written []int
	under   []int // records under way
	next    int
}

func (m *laneModel) records(t *rapid.T, c *call) [][]byte {
	var records [][]byte
	for range rapid.IntRange(1, 4).Draw(t, "records") {
		record := make([]byte,
			rapid.SampledFrom([]int{4, 1000, laneBytes / 2, laneBytes + 1}).Draw(t, "size"))
		binary.BigEndian.PutUint32(record, uint32(m.next))
		m.numbers[c] = append(m.numbers[c], m.next)
		records = append(records, record)
		m.next++
	}
	return records
}

func (m *laneModel) publish(t *rapid.T) {
	c := &call{done: make(chan error, 1)}
	c.records = m.records(t, c)
	c.left = len(c.records)
	m.calls = append(m.calls, c)
	m.lane.waiting = append(m.lane.waiting, c)
	m.lane.admit()
}

func (m *laneModel) tryPublish(t *rapid.T) {
	c := &call{expires: m.now.Add(tryFor)}
	next := m.next
	records := m.records(t, c)
	c.left = len(records)
	size := 0
	for _, record := range records {
		size += len(record)
	}
	if len(m.lane.waiting) > 0 || !m.lane.fits(len(records), size) {
		m.next = next
		return
	}
	for _, record := range records {
		m.lane.push(record, c)
	}
}

func (m *laneModel) giveUp(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("nobody waits")
	}
	c := rapid.SampledFrom(m.calls).Draw(t, "who")
	if !c.gone {
		c.gone = true
		m.lane.forget(func(other *call) bool { return other == c })
	}
}

func (m *laneModel) send(t *rapid.T) {
	if m.lane.sending > 0 {
		t.Skip("under way")
	}
	values, _ := m.lane.batch(m.now)
	m.under = nil
	size := 0
	for _, value := range values {
		m.under = append(m.under, int(binary.BigEndian.Uint32(value)))
		size += len(value)
	}
	if size > laneBytes && len(values) > 1 || m.lane.most == 1 && len(values) > 1 {
		t.Fatalf("a batch of %d bytes in %d records", size, len(values))
	}
}

// land ends a batch: it was written and acknowledged, written without an acknowledgement, or not
// written.
func (m *laneModel) land(t *rapid.T) {
	if m.lane.sending == 0 {
		t.Skip("nothing is under way")
	}
	outcome := rapid.IntRange(0, 2).Draw(t, "outcome")
	if outcome < 2 {
		m.written = append(m.written, m.under...)
	}
	if outcome == 0 {
		m.lane.written()
		return
	}
	m.lane.failed(m.now, errors.New("failed"))
}

func (m *laneModel) refuse(t *rapid.T) {
	if m.lane.sending != 1 {
		t.Skip("not alone")
	}
	m.lane.refused(stream.ErrTooLarge)
}

func (m *laneModel) wait(t *rapid.T) { m.now = m.now.Add(tryFor / 3) }

// check: first appearances are in order, successful calls are written whole, and the bounds hold.
func (m *laneModel) check(t *rapid.T) {
	seen, last := map[int]bool{}, -1
	for _, n := range m.written {
		if !seen[n] && n < last {
			t.Fatalf("record %d was written after %d", n, last)
		}
		seen[n] = true
		last = max(last, n)
	}
	for _, c := range m.calls {
		select {
		case err := <-c.done:
			c.done <- err
			if missing := func(n int) bool { return !seen[n] }; err == nil &&
				slices.ContainsFunc(m.numbers[c], missing) {
				t.Fatalf("a call succeeded, but not all of %v is written", m.numbers[c])
			}
		default:
		}
	}
	bytes := 0
	for _, e := range m.lane.entries {
		bytes += len(e.value)
	}
	if bytes != m.lane.bytes || len(m.lane.entries) > laneRecords {
		t.Fatalf("%d bytes counted for %d in %d records", m.lane.bytes, bytes, len(m.lane.entries))
	}
	if len(m.lane.entries) == 0 && len(m.lane.waiting) > 0 {
		t.Fatal("calls wait for room in an empty lane")
	}
}

func TestLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &laneModel{now: time.Unix(1e9, 0), numbers: map[*call][]int{}}
		t.Repeat(map[string]func(*rapid.T){"publish": m.publish, "tryPublish": m.tryPublish,
			"giveUp": m.giveUp,
			"send":   m.send, "land": m.land, "refuse": m.refuse, "wait": m.wait, "": m.check})
	})
}

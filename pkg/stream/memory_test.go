package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustMemory(t testing.TB, config Config) *Memory {
	t.Helper()
	m, err := NewMemory(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNewMemoryRefuses(t *testing.T) {
	for setting, config := range map[string]Config{
		"Partitions is 0":     {},
		"Partitions is 65536": {Partitions: 65536},
		"MaxRecords":          {Partitions: 1, MaxRecords: -1},
		"MaxBytes":            {Partitions: 1, MaxBytes: 3 * MaxRecordBytes},
	} {
		if _, err := NewMemory(config); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%+v: error %v, want one that names %q", config, err, setting)
		}
	}
}

// TestBytesBound: a topic has its third of the bytes for all its partitions, and takes none from
// other topics.
func TestBytesBound(t *testing.T) {
	const size = 1<<20 - recordOverheadBytes
	m := mustMemory(t, Config{Partitions: 3, MaxBytes: 30 << 20})
	for n := range 10 {
		must(t, m.TryPublish(Pages, n%3, make([]byte, size)))
	}
	if err := m.TryPublish(Pages, 0, nil); !errors.Is(err, ErrFull) {
		t.Errorf("record beyond the bound: %v", err)
	}
	must(t, m.TryPublish(Receipts, 0, make([]byte, size)))
	r, err := m.Consume(Pages, "g")
	must(t, err)
	messages, err := r.Fetch(t.Context(), 10)
	must(t, err)
	must(t, r.Commit(t.Context(), messages[:1]))
	must(t, m.TryPublish(Pages, 0, make([]byte, size)))
}

// waitFor returns once n publishers wait for room in the topic.
func waitFor(t *testing.T, m *Memory, topic Topic, n int) {
	t.Helper()
	for {
		m.topics[topic].mu.Lock()
		waiting := len(m.topics[topic].waiting)
		m.topics[topic].mu.Unlock()
		if waiting == n {
			return
		}
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLargeRecordIsNotStarved: small records do not take the room that a large one waits for, until
// that one gives up.
func TestLargeRecordIsNotStarved(t *testing.T) {
	const size = 1<<20 - recordOverheadBytes
	m := mustMemory(t, Config{Partitions: 2, MaxBytes: 30 << 20})
	for range 9 {
		must(t, m.TryPublish(Pages, 0, make([]byte, size)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { large <- m.Publish(ctx, Pages, 1, make([]byte, 3<<20)) }()
	waitFor(t, m, Pages, 1)
	if err := m.TryPublish(Pages, 0, nil); !errors.Is(err, ErrFull) {
		t.Errorf("a record went past the one that waits: %v", err)
	}
	go func() { small <- m.Publish(t.Context(), Pages, 1, []byte("small")) }()
	waitFor(t, m, Pages, 2)

	r, err := m.Consume(Pages, "g")
	must(t, err)
	messages, err := r.Fetch(t.Context(), 1)
	must(t, err)
	must(t, r.Commit(t.Context(), messages))
	waitFor(t, m, Pages, 2)
	if err := m.TryPublish(Pages, 0, nil); !errors.Is(err, ErrFull) {
		t.Errorf("a record went past the one that waits: %v", err)
	}
	cancel()
	if err := <-large; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Publish: %v", err)
	}
	must(t, <-small)
}

// TestFullPartitionHoldsUpOnlyItsOwn: the topic's other partitions still take records, in the order
// of publishing.
func TestFullPartitionHoldsUpOnlyItsOwn(t *testing.T) {
	m := mustMemory(t, Config{Partitions: 2, MaxRecords: 2})
	r, err := m.Tail(Tasks, 0)
	must(t, err)
	must(t, m.TryPublish(Tasks, 0, []byte("0"), []byte("1")))
	published := make(chan error, 2)
	for n := 2; n < 6; n += 2 {
		records := [][]byte{fmt.Append(nil, n), fmt.Append(nil, n+1)}
		go func() { published <- m.Publish(t.Context(), Tasks, 0, records...) }()
		waitFor(t, m, Tasks, n/2)
	}
	must(t, m.TryPublish(Tasks, 1, []byte("x"), []byte("y")))
	var got []string
	for len(got) < 6 {
		messages, err := r.Fetch(t.Context(), 1)
		must(t, err)
		got = append(got, string(messages[0].Value))
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5"}, got); diff != "" {
		t.Error(diff)
	}
	must(t, <-published)
	must(t, <-published)
}

func TestCommitOfWhatIsNotThere(t *testing.T) {
	m := mustMemory(t, Config{Partitions: 2})
	r, err := m.Consume(Pages, "g")
	must(t, err)
	for _, message := range []Message{{Partition: -1}, {Partition: 2}, {Partition: 0, Offset: 0}} {
		if err := r.Commit(t.Context(), []Message{message}); err == nil {
			t.Errorf("commit of %+v went through", message)
		}
	}
}

// TestQueueLetsGo: records that were read hold no memory, and neither do their slots.
func TestQueueLetsGo(t *testing.T) {
	m := mustMemory(t, Config{Partitions: 1})
	r, err := m.Tail(Tasks, 0)
	must(t, err)
	q := &m.topics[Tasks].queues[0]
	for n := range 3 * DefaultMaxRecords {
		must(t, m.TryPublish(Tasks, 0, []byte{1}, []byte{2}))
		if n%2 == 0 || n > DefaultMaxRecords {
			_, err := r.Fetch(t.Context(), 3)
			must(t, err)
		}
		if q.head > compactAfter && q.head > q.len() {
			t.Fatalf("%d free slots before %d records", q.head, q.len())
		}
		for _, record := range q.records[:q.head] {
			if record != nil {
				t.Fatal("a record that was read is still held")
			}
		}
	}
	if topic := m.topics[Tasks]; topic.held != 0 || topic.bytes != 0 || cap(q.records) > keptSlots {
		t.Errorf("empty topic holds %d records, %d bytes, %d slots", topic.held, topic.bytes,
			cap(q.records))
	}
}

// TestDealIsEven: members own equally many partitions, each partition has one owner, and no more
// move than necessary.
func TestDealIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 20).Draw(t, "partitions")
		m, err := NewMemory(Config{Partitions: partitions})
		must(t, err)
		defer m.Close()
		var members []Reader
		var before []*member
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if joins := len(members) == 0 || rapid.Bool().Draw(t, "joins"); joins {
				r, err := m.Consume(Pages, "g")
				must(t, err)
				members = append(members, r)
			} else {
				i := rapid.IntRange(0, len(members)-1).Draw(t, "leaves")
				must(t, members[i].Close())
				members = append(members[:i], members[i+1:]...)
			}
			g := m.topics[Pages].groups[0]
			owned := map[*member]int{}
			moved := 0
			for partition, owner := range g.owners {
				if (owner == nil) != (len(members) == 0) {
					t.Fatalf("partition %d: owner %v with %d members", partition, owner,
						len(members))
				}
				owned[owner]++
				if before != nil && before[partition] != owner && before[partition] != nil &&
					!before[partition].closed {
					moved++
				}
			}
			for _, r := range members {
				n := owned[r.(*member)]
				if n < partitions/len(members) || n > (partitions+len(members)-1)/len(members) {
					t.Fatalf("a member of %d owns %d of %d partitions", len(members), n, partitions)
				}
				if n != len(r.(*member).owned) {
					t.Fatalf("a member believes to own %d partitions, not %d",
						len(r.(*member).owned), n)
				}
			}
			if len(members) > 0 && moved > (partitions+len(members)-1)/len(members) {
				t.Fatalf("%d partitions moved between %d members", moved, len(members))
			}
			before = append([]*member(nil), g.owners...)
		}
	})
}

func BenchmarkMemory(b *testing.B) {
	record := EncodePage(examplePage())
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("tail/batch=%d", batch), func(b *testing.B) {
			m := mustMemory(b, Config{Partitions: 64})
			r, err := m.Tail(Tasks, 5)
			must(b, err)
			benchmarkMemory(b, m, Tasks, r, record, batch)
		})
		b.Run(fmt.Sprintf("group/batch=%d", batch), func(b *testing.B) {
			m := mustMemory(b, Config{Partitions: 64})
			r, err := m.Consume(Pages, "g")
			must(b, err)
			benchmarkMemory(b, m, Pages, r, record, batch)
		})
	}
}

// benchmarkMemory counts a record once it is published, fetched and committed.
func benchmarkMemory(b *testing.B, m *Memory, topic Topic, r Reader, record []byte, batch int) {
	b.ReportAllocs()
	ctx := b.Context()
	records := make([][]byte, batch)
	for i := range records {
		records[i] = record
	}
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		if err := m.Publish(ctx, topic, 5, records...); err != nil {
			b.Fatal(err)
		}
		messages, err := r.Fetch(ctx, batch)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Commit(ctx, messages); err != nil {
			b.Fatal(err)
		}
	}
}

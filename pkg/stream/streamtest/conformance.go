// Package streamtest holds what tests of logs need: the suite that every implementation of
// stream.Log passes, and a log that loses records. It uses only the interface of an implementation.
package streamtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/stream"
)

// patience ends a test that hangs. It is long because a real group takes seconds to join.
const patience = 2 * time.Minute

// group is the only group in the suite.
const group = "conformance"

// Run runs the suite. open makes an empty log for each test, with at least 4 partitions that each
// hold at least 32 small records. The suite closes it.
func Run(t *testing.T, open func(t *testing.T) stream.Log) {
	tests := []struct {
		name string
		run  func(t *testing.T, log stream.Log)
	}{
		{"Places", testPlaces},
		{"TooLarge", testTooLarge},
		{"TailOrder", testTailOrder},
		{"TailStartsAtEnd", testTailStartsAtEnd},
		{"TailTakesOver", testTailTakesOver},
		{"TailReaderClose", testTailReaderClose},
		{"TopicsApart", testTopicsApart},
		{"ConsumeFromStart", testConsumeFromStart},
		{"ConsumeRedelivers", testConsumeRedelivers},
		{"ConsumeDealsOut", testConsumeDealsOut},
		{"GroupsApart", testGroupsApart},
		{"FetchCancel", testFetchCancel},
		{"FetchMost", testFetchMost},
		{"TryPublishAllOrNone", testTryPublishAllOrNone},
		{"PublishCancel", testPublishCancel},
		{"Lag", testLag},
		{"Claim", testClaim},
		{"CloseEndsCalls", testCloseEndsCalls},
		{"ConcurrentTail", testConcurrentTail},
		{"ConcurrentConsume", testConcurrentConsume},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log := open(t)
			defer func() {
				if err := log.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			if log.Partitions() < minPartitions {
				t.Fatalf("%d partitions, the suite needs %d", log.Partitions(), minPartitions)
			}
			test.run(t, log)
		})
	}
}

const minPartitions = 4

// record returns the n-th record that a source publishes to a partition, with padding.
func record(source, n, padding int) []byte {
	value := make([]byte, 8+padding)
	binary.BigEndian.PutUint32(value, uint32(source))
	binary.BigEndian.PutUint32(value[4:], uint32(n))
	return value
}

func records(source, from, to int) [][]byte {
	var all [][]byte
	for n := from; n < to; n++ {
		all = append(all, record(source, n, 0))
	}
	return all
}

// stretch is one source's records in a partition.
type stretch struct{ partition, source int }

// seen notes delivered records. Repeats are allowed, but not records before earlier ones.
type seen struct {
	mu   sync.Mutex
	next map[stretch]int // number of the next record
}

func newSeen() *seen { return &seen{next: map[stretch]int{}} }

// add notes messages and refuses gaps.
func (s *seen) add(messages []stream.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, message := range messages {
		if len(message.Value) < 8 {
			return fmt.Errorf("partition %d: record of %d bytes was never published",
				message.Partition, len(message.Value))
		}
		key := stretch{message.Partition, int(binary.BigEndian.Uint32(message.Value))}
		n := int(binary.BigEndian.Uint32(message.Value[4:]))
		if n > s.next[key] {
			return fmt.Errorf("partition %d: record %d of source %d came, %d did not",
				key.partition, n, key.source, s.next[key])
		}
		s.next[key] = max(s.next[key], n+1)
	}
	return nil
}

// count returns how many different records of a source came in a partition.
func (s *seen) count(partition, source int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next[stretch{partition, source}]
}

// total returns how many different records came in all.
func (s *seen) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.next {
		total += n
	}
	return total
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func publish(t *testing.T, log stream.Log, topic stream.Topic, partition int, records ...[]byte) {
	t.Helper()
	if err := log.Publish(patient(t), topic, partition, records...); err != nil {
		t.Fatalf("Publish to %s/%d: %v", topic, partition, err)
	}
}

func tail(t *testing.T, log stream.Log, topic stream.Topic, partition int) stream.Reader {
	t.Helper()
	return reader(t)(log.Tail(topic, partition))
}

func consume(t *testing.T, log stream.Log, topic stream.Topic, group string) stream.Reader {
	t.Helper()
	return reader(t)(log.Consume(topic, group))
}

func reader(t *testing.T) func(stream.Reader, error) stream.Reader {
	return func(r stream.Reader, err error) stream.Reader {
		t.Helper()
		if err != nil {
			t.Fatalf("open reader: %v", err)
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Errorf("Close of a reader: %v", err)
			}
		})
		return r
	}
}

// fetch reads until s has n different records, and returns the messages read.
func fetch(t *testing.T, r stream.Reader, s *seen, n int) []stream.Message {
	t.Helper()
	ctx := patient(t)
	var all []stream.Message
	for s.total() < n {
		messages, err := r.Fetch(ctx, n-s.total())
		if err != nil {
			t.Fatalf("Fetch after %d of %d records: %v", s.total(), n, err)
		}
		if err := s.add(messages); err != nil {
			t.Fatal(err)
		}
		for _, message := range messages {
			message.Value = nil // not ours after the next Fetch
			all = append(all, message)
		}
	}
	return all
}

func commit(t *testing.T, r stream.Reader, messages []stream.Message) {
	t.Helper()
	if err := r.Commit(patient(t), messages); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

// wantErr fails unless err is want.
func wantErr(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

func closeReader(t *testing.T, r stream.Reader) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatalf("Close of a reader: %v", err)
	}
}

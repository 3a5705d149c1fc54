package streamtest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"shoal.dev/shoal/pkg/stream"
)

func testPlaces(t *testing.T, log stream.Log) {
	for _, partition := range []int{-1, log.Partitions()} {
		if err := log.Publish(t.Context(), stream.Tasks, partition, []byte("x")); err == nil {
			t.Errorf("Publish to partition %d of %d went through", partition, log.Partitions())
		}
		if err := log.TryPublish(stream.Tasks, partition, []byte("x")); err == nil ||
			errors.Is(err, stream.ErrFull) {
			t.Errorf("TryPublish to partition %d of %d: %v", partition, log.Partitions(), err)
		}
		if _, err := log.Tail(stream.Tasks, partition); err == nil {
			t.Errorf("Tail of partition %d of %d went through", partition, log.Partitions())
		}
	}
	const noTopic = stream.Topic(200)
	if err := log.Publish(t.Context(), noTopic, 0, []byte("x")); err == nil {
		t.Error("Publish to an unknown topic went through")
	}
	if _, err := log.Consume(noTopic, group); err == nil {
		t.Error("Consume of an unknown topic went through")
	}
}

func testTooLarge(t *testing.T, log stream.Log) {
	r := tail(t, log, stream.Pages, 1)
	small, large, over := record(0, 0, 0), record(0, 1, 1<<20),
		make([]byte, stream.MaxRecordBytes+1)
	wantErr(t, "Publish", log.Publish(t.Context(), stream.Pages, 1, over), stream.ErrTooLarge)
	wantErr(t, "TryPublish", log.TryPublish(stream.Pages, 1, small, over), stream.ErrTooLarge)
	publish(t, log, stream.Pages, 1, small, bytes.Clone(large))
	s := newSeen()
	fetch(t, r, s, 1)
	messages, err := r.Fetch(patient(t), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("Fetch: %d messages, %v", len(messages), err)
	}
	if !bytes.Equal(messages[0].Value, large) {
		t.Errorf("a record of %d bytes came as another one of %d", len(large),
			len(messages[0].Value))
	}
}

func testTailOrder(t *testing.T, log stream.Log) {
	r := tail(t, log, stream.Tasks, 2)
	ctx := patient(t)
	go func() {
		for n := 0; n < 1000; n += 10 {
			if log.Publish(ctx, stream.Tasks, 2, records(0, n, n+10)...) != nil {
				return // fetch reports missing records
			}
		}
	}()
	last := int64(-1)
	for _, message := range fetch(t, r, newSeen(), 1000) {
		if message.Partition != 2 {
			t.Fatalf("message of partition %d, want 2", message.Partition)
		}
		if message.Offset < last {
			t.Fatalf("offset %d after %d", message.Offset, last)
		}
		last = message.Offset
	}
	if err := r.Commit(patient(t), nil); err != nil {
		t.Errorf("Commit of a Tail: %v", err)
	}
}

func testTailStartsAtEnd(t *testing.T, log stream.Log) {
	publish(t, log, stream.Tasks, 0, records(1, 0, 5)...)
	r := tail(t, log, stream.Tasks, 0)
	publish(t, log, stream.Tasks, 0, records(2, 0, 3)...)
	s := newSeen()
	fetch(t, r, s, 3)
	if n := s.count(0, 1); n != 0 {
		t.Errorf("%d records from before the Tail were delivered", n)
	}
	closeReader(t, r)

	publish(t, log, stream.Tasks, 0, records(3, 0, 5)...)
	r = tail(t, log, stream.Tasks, 0)
	publish(t, log, stream.Tasks, 0, records(4, 0, 3)...)
	s = newSeen()
	fetch(t, r, s, 3)
	if n := s.count(0, 3); n != 0 {
		t.Errorf("%d records from between two Tails were delivered", n)
	}
}

func testTailTakesOver(t *testing.T, log stream.Log) {
	older := tail(t, log, stream.Tasks, 0)
	other := tail(t, log, stream.Tasks, 1)
	ctx, ended := patient(t), make(chan error, 1)
	go func() {
		_, err := older.Fetch(ctx, 1)
		ended <- err
	}()
	newer := tail(t, log, stream.Tasks, 0)
	wantErr(t, "Fetch of the older one, waiting", <-ended, stream.ErrClosed)
	_, err := older.Fetch(patient(t), 1)
	wantErr(t, "Fetch of the older one", err, stream.ErrClosed)
	wantErr(t, "Commit of the older one", older.Commit(patient(t), nil), stream.ErrClosed)
	closeReader(t, older)

	publish(t, log, stream.Tasks, 0, records(0, 0, 3)...)
	publish(t, log, stream.Tasks, 1, records(0, 0, 2)...)
	fetch(t, newer, newSeen(), 3)
	fetch(t, other, newSeen(), 2)
}

func testTailReaderClose(t *testing.T, log stream.Log) {
	r := tail(t, log, stream.Tasks, 0)
	ctx, ended := patient(t), make(chan error, 1)
	go func() {
		_, err := r.Fetch(ctx, 1)
		ended <- err
	}()
	closeReader(t, r)
	wantErr(t, "Fetch, waiting", <-ended, stream.ErrClosed)
	closeReader(t, r)
	publish(t, log, stream.Tasks, 0, records(0, 0, 1)...)
	_, err := r.Fetch(patient(t), 1)
	wantErr(t, "Fetch of a closed reader", err, stream.ErrClosed)
}

func testTopicsApart(t *testing.T, log stream.Log) {
	topics := []stream.Topic{stream.Tasks, stream.Pages, stream.Receipts}
	readers := map[stream.Topic]stream.Reader{}
	for _, topic := range topics {
		readers[topic] = tail(t, log, topic, 3)
	}
	for i, topic := range topics {
		publish(t, log, topic, 3, records(i, 0, i+1)...)
	}
	for i, topic := range topics {
		s := newSeen()
		fetch(t, readers[topic], s, i+1)
		if s.count(3, i) != i+1 {
			t.Errorf("%s delivered another topic's records", topic)
		}
	}
}

func testFetchCancel(t *testing.T, log stream.Log) {
	for name, r := range map[string]stream.Reader{
		"Tail":    tail(t, log, stream.Tasks, 0),
		"Consume": consume(t, log, stream.Pages, group),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := r.Fetch(ctx, 1)
			ended <- err
		}()
		cancel()
		wantErr(t, name, <-ended, context.Canceled)
	}
	// A cancelled Fetch must not have swallowed any records.
	publish(t, log, stream.Pages, 0, records(0, 0, 2)...)
	r := consume(t, log, stream.Pages, group+"-2")
	fetch(t, r, newSeen(), 2)
}

func testFetchMost(t *testing.T, log stream.Log) {
	r := tail(t, log, stream.Tasks, 0)
	publish(t, log, stream.Tasks, 0, records(0, 0, 10)...)
	s := newSeen()
	for s.total() < 10 {
		messages, err := r.Fetch(patient(t), 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) < 1 || len(messages) > 3 {
			t.Fatalf("Fetch of at most 3 returned %d", len(messages))
		}
		if err := s.add(messages); err != nil {
			t.Fatal(err)
		}
	}
}

// testConcurrentTail runs several publishers and one reader for each partition.
func testConcurrentTail(t *testing.T, log stream.Log) {
	const publishers, each = 3, 400
	var readers []stream.Reader
	for partition := range minPartitions {
		readers = append(readers, tail(t, log, stream.Tasks, partition))
	}
	ctx := patient(t)
	failed := make(chan error, publishers*minPartitions+minPartitions)
	for partition := range minPartitions {
		for source := range publishers {
			go func() { failed <- publishAll(ctx, log, stream.Tasks, partition, source, each) }()
		}
		go func() {
			s := newSeen()
			for s.total() < publishers*each {
				messages, err := readers[partition].Fetch(ctx, 50)
				if err == nil {
					err = s.add(messages)
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// publishAll publishes a source's records one by one, in order.
func publishAll(ctx context.Context, log stream.Log, topic stream.Topic, partition, source,
	n int) error {
	for i := range n {
		if err := log.Publish(ctx, topic, partition, record(source, i, 16)); err != nil {
			return err
		}
	}
	return nil
}

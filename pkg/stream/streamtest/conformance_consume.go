package streamtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/stream"
)

func testConsumeFromStart(t *testing.T, log stream.Log) {
	for partition := range minPartitions {
		publish(t, log, stream.Pages, partition, records(partition, 0, 20)...)
	}
	r := consume(t, log, stream.Pages, group)
	s := newSeen()
	fetch(t, r, s, 20*minPartitions)
	for partition := range minPartitions {
		if n := s.count(partition, partition); n != 20 {
			t.Errorf("partition %d delivered %d of its 20 records", partition, n)
		}
	}
	publish(t, log, stream.Pages, 1, records(9, 0, 5)...)
	fetch(t, r, s, 20*minPartitions+5)
}

// testConsumeRedelivers reads ten records, commits four, and expects the others again from a new
// member.
func testConsumeRedelivers(t *testing.T, log stream.Log) {
	publish(t, log, stream.Pages, 0, records(0, 0, 10)...)
	r := consume(t, log, stream.Pages, group)
	messages := fetch(t, r, newSeen(), 10)
	commit(t, r, messages[:4])
	commit(t, r, messages[:2]) // an older commit undoes nothing
	closeReader(t, r)
	wantErr(t, "Commit of a closed reader", r.Commit(patient(t), messages), stream.ErrClosed)

	r = consume(t, log, stream.Pages, group)
	s := newSeen()
	s.next[stretch{0, 0}] = 4
	again := fetch(t, r, s, 10)
	if again[0].Offset != messages[4].Offset {
		t.Errorf("a new member begins at offset %d, want %d", again[0].Offset, messages[4].Offset)
	}
	commit(t, r, again)
	closeReader(t, r)

	publish(t, log, stream.Pages, 0, records(1, 0, 1)...)
	r = consume(t, log, stream.Pages, group)
	s = newSeen()
	fetch(t, r, s, 1)
	if s.count(0, 0) != 0 {
		t.Error("committed records came again")
	}
}

// testConsumeDealsOut publishes a record to every partition in rounds, until each of two members
// has one. Then it closes one member and expects the other to get all.
func testConsumeDealsOut(t *testing.T, log stream.Log) {
	ctx := patient(t)
	got := make(chan delivery)
	var members []*worker
	for range 2 {
		members = append(members, startWorker(ctx, consume(t, log, stream.Pages, group), got))
	}
	s := newSeen()
	round := 0
	turn := func() map[*worker]bool {
		served := map[*worker]bool{}
		for partition := range log.Partitions() {
			publish(t, log, stream.Pages, partition, record(0, round, 0))
		}
		for round++; s.total() < round*log.Partitions(); {
			d := <-got
			if d.err != nil {
				t.Fatal(d.err)
			}
			if err := s.add(d.messages); err != nil {
				t.Fatal(err)
			}
			served[d.by] = true
			close(d.noted)
		}
		return served
	}
	for served := map[*worker]bool{}; len(served) < 2; {
		for by := range turn() {
			served[by] = true
		}
	}
	members[1].stop(t, got)
	for range 3 {
		turn()
	}
	members[0].stop(t, got)
}

// delivery is what a worker fetched. The worker commits it once noted is closed.
type delivery struct {
	by       *worker
	messages []stream.Message
	err      error
	noted    chan struct{}
}

// worker fetches and commits until its reader is closed.
type worker struct {
	reader stream.Reader
	ended  chan struct{}
}

func startWorker(ctx context.Context, r stream.Reader, got chan<- delivery) *worker {
	w := &worker{reader: r, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			messages, err := r.Fetch(ctx, 100)
			if errors.Is(err, stream.ErrClosed) {
				return
			}
			d := delivery{by: w, messages: messages, err: err, noted: make(chan struct{})}
			select {
			case got <- d:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case <-d.noted:
			case <-ctx.Done():
				return
			}
			if err := r.Commit(ctx, messages); err != nil {
				return // the messages come again
			}
		}
	}()
	return w
}

// stop closes the worker's reader and waits for its end; anything fetched meanwhile is a repeat.
func (w *worker) stop(t *testing.T, got <-chan delivery) {
	t.Helper()
	closeReader(t, w.reader)
	for {
		select {
		case d := <-got:
			if d.err != nil {
				t.Fatal(d.err)
			}
			close(d.noted)
		case <-w.ended:
			return
		}
	}
}

func testGroupsApart(t *testing.T, log stream.Log) {
	one, two := consume(t, log, stream.Receipts, group+"-1"),
		consume(t, log, stream.Receipts, group+"-2")
	publish(t, log, stream.Receipts, 0, records(0, 0, 10)...)
	commit(t, one, fetch(t, one, newSeen(), 10))
	commit(t, two, fetch(t, two, newSeen(), 10))
}

// testConcurrentConsume publishes to each partition while members come and go.
func testConcurrentConsume(t *testing.T, log stream.Log) {
	const publishers, each, all = 2, 300, 2 * 300 * minPartitions
	ctx := patient(t)
	s := newSeen()
	done := make(chan struct{})
	var once sync.Once
	failed := make(chan error, 16)
	var running sync.WaitGroup
	for partition := range minPartitions {
		for source := range publishers {
			running.Go(func() {
				failed <- publishAll(ctx, log, stream.Pages, partition, source,
					each)
			})
		}
	}
	work := func(fetches int) {
		r, err := log.Consume(stream.Pages, group)
		if err != nil {
			failed <- err
			return
		}
		running.Go(func() { <-done; _ = r.Close() })
		for n := 0; n != fetches; n++ {
			messages, err := r.Fetch(ctx, 20)
			if err == nil {
				err = s.add(messages)
			}
			if errors.Is(err, stream.ErrClosed) {
				return
			}
			if err != nil {
				failed <- err
				return
			}
			if s.total() == all {
				once.Do(func() { close(done) })
				return
			}
			if n+1 != fetches { // the last fetch of a member comes again
				if err := r.Commit(ctx, messages); err != nil && !errors.Is(err, stream.ErrClosed) {
					failed <- err
					return
				}
			}
		}
		_ = r.Close()
	}
	running.Go(func() { work(-1) })
	running.Go(func() {
		for range 3 {
			work(4)
		}
	})
	go func() { running.Wait(); close(failed) }()
	for err := range failed {
		if err != nil {
			t.Error(err)
			once.Do(func() { close(done) })
		}
	}
}

package streamtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/stream"
)

// enough is the most records that the tests of bounds publish. If a log takes them all, its bound
// is larger, and the tests still hold.
const enough = 20_000

// testTryPublishAllOrNone fills a partition in batches and expects exactly the accepted batches.
func testTryPublishAllOrNone(t *testing.T, log stream.Log) {
	const batch = 7
	accepted := 0
	for accepted < enough {
		err := log.TryPublish(stream.Pages, 0, records(0, accepted, accepted+batch)...)
		if errors.Is(err, stream.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		accepted += batch
	}
	if accepted == 0 {
		t.Fatal("an empty log is full")
	}
	// The next record shows that nothing lies between it and the accepted ones.
	r := consume(t, log, stream.Pages, group)
	s := newSeen()
	commit(t, r, fetch(t, r, s, accepted))
	publish(t, log, stream.Pages, 0, records(1, 0, 1)...)
	fetch(t, r, s, accepted+1)
	if n := s.count(0, 0); n != accepted {
		t.Errorf("%d records came, %d were accepted", n, accepted)
	}
}

// testPublishCancel publishes until the log is full or has enough, then cancels.
func testPublishCancel(t *testing.T, log stream.Log) {
	gone, cancelled := context.WithCancel(t.Context())
	cancelled()
	wantErr(t, "Publish with a cancelled context",
		log.Publish(gone, stream.Pages, 0, record(0, 0, 0)), context.Canceled)

	full := 0
	for ; full < enough; full++ {
		err := log.TryPublish(stream.Pages, 0, record(1, full, 0))
		if errors.Is(err, stream.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if full < enough {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Publish(ctx, stream.Pages, 0, record(2, 0, 0)) }()
		cancel()
		wantErr(t, "Publish to a full partition", <-ended, context.Canceled)
	}

	// A waiting publisher continues once there is room.
	ctx, ended := patient(t), make(chan error, 1)
	go func() { ended <- log.Publish(ctx, stream.Pages, 0, records(1, full, full+10)...) }()
	r := consume(t, log, stream.Pages, group)
	s := newSeen()
	for s.count(0, 1) < full+10 {
		messages, err := r.Fetch(ctx, 100)
		if err == nil {
			err = s.add(messages)
		}
		if err != nil {
			t.Fatal(err)
		}
		commit(t, r, messages)
	}
	if err := <-ended; err != nil {
		t.Errorf("Publish that waited: %v", err)
	}
}

// awaitLag waits until the lag is want: a log on other machines asks them only now and then.
func awaitLag(t *testing.T, log stream.Log, topic stream.Topic, want int64) {
	t.Helper()
	ctx, again := patient(t), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for log.Lag(topic) != want {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("the lag of %s stays at %d, want %d", topic, log.Lag(topic), want)
		}
	}
}

func testLag(t *testing.T, log stream.Log) {
	awaitLag(t, log, stream.Pages, 0)
	r := consume(t, log, stream.Pages, group)
	publish(t, log, stream.Pages, 0, records(0, 0, 5)...)
	publish(t, log, stream.Pages, 1, records(0, 0, 5)...)
	awaitLag(t, log, stream.Pages, 10)
	messages := fetch(t, r, newSeen(), 10)
	awaitLag(t, log, stream.Pages, 10) // read, but not committed
	commit(t, r, messages)
	awaitLag(t, log, stream.Pages, 0)

	tasks := tail(t, log, stream.Tasks, 0)
	publish(t, log, stream.Tasks, 0, records(0, 0, 5)...)
	awaitLag(t, log, stream.Tasks, 5)
	fetch(t, tasks, newSeen(), 5)
	awaitLag(t, log, stream.Tasks, 0)
}

// testClaim: a log without an owner belongs to whoever claims it. An embedded one has no name.
func testClaim(t *testing.T, log stream.Log) {
	const owner = "cluster1"
	for range 2 {
		if whose, err := log.Claim(patient(t), owner, false); err != nil || whose != owner {
			t.Fatalf("claimed by %s, it is %q's: %v", owner, whose, err)
		}
	}
	if name, err := log.Identity(patient(t)); err != nil || log.Embedded() && name != "" {
		t.Errorf("embedded %v, it is called %q: %v", log.Embedded(), name, err)
	}
}

func testCloseEndsCalls(t *testing.T, log stream.Log) {
	t1, c1 := tail(t, log, stream.Tasks, 0), consume(t, log, stream.Pages, group)
	ctx, ended := patient(t), make(chan error, 2)
	for _, r := range []stream.Reader{t1, c1} {
		go func() {
			_, err := r.Fetch(ctx, 1)
			ended <- err
		}()
	}
	// A publisher may be waiting for room, or have found it.
	published := make(chan error, 1)
	go func() {
		var err error
		for n := 0; n < enough && err == nil; n++ {
			err = log.Publish(ctx, stream.Receipts, 0, record(0, n, 0))
		}
		published <- err
	}()
	for range 2 {
		if err := log.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for range 2 {
		wantErr(t, "Fetch, waiting", <-ended, stream.ErrClosed)
	}
	if err := <-published; err != nil {
		wantErr(t, "Publish", err, stream.ErrClosed)
	}
	wantErr(t, "Publish", log.Publish(patient(t), stream.Tasks, 0, record(0, 0, 0)),
		stream.ErrClosed)
	wantErr(t, "TryPublish", log.TryPublish(stream.Tasks, 0, record(0, 0, 0)), stream.ErrClosed)
	_, err := log.Tail(stream.Tasks, 1)
	wantErr(t, "Tail", err, stream.ErrClosed)
	_, err = log.Consume(stream.Pages, group)
	wantErr(t, "Consume", err, stream.ErrClosed)
	wantErr(t, "Commit", c1.Commit(patient(t), nil), stream.ErrClosed)
	closeReader(t, t1)
	closeReader(t, c1)
}

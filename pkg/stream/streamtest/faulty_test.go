package streamtest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFaulty(t *testing.T, seed uint64) *streamtest.Faulty {
	t.Helper()
	memory, err := stream.NewMemory(stream.Config{Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := streamtest.NewFaulty(memory, seed)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestWithoutFaultsItConforms(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) stream.Log { return newFaulty(t, 1) })
}

// publish publishes records named by number, then the record "end", which is exempt from faults.
func publish(t *testing.T, f *streamtest.Faulty, topic stream.Topic, faults streamtest.Faults,
	n int) {
	t.Helper()
	f.Set(topic, faults)
	for i := range n {
		if err := f.Publish(t.Context(), topic, 0, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	f.Set(topic, streamtest.Faults{})
	if err := f.TryPublish(topic, 0, []byte("end")); err != nil {
		t.Fatal(err)
	}
}

// readToEnd returns the records before "end".
func readToEnd(t *testing.T, r stream.Reader) []string {
	t.Helper()
	var got []string
	for {
		messages, err := r.Fetch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		for _, message := range messages {
			if string(message.Value) == "end" {
				return got
			}
			got = append(got, string(message.Value))
		}
	}
}

func TestDropAndRepeat(t *testing.T) {
	const n = 1000
	var runs [2][]string
	for run := range runs {
		f := newFaulty(t, 7)
		r, err := f.Consume(stream.Pages, "g")
		if err != nil {
			t.Fatal(err)
		}
		publish(t, f, stream.Pages, streamtest.Faults{Drop: 0.2, Repeat: 0.1}, n)
		runs[run] = readToEnd(t, r)
		different := map[string]bool{}
		for _, value := range runs[run] {
			different[value] = true
		}
		if lost := f.Lost(stream.Pages); int(lost) != n-len(different) || lost < n/10 ||
			lost > n*3/10 {
			t.Errorf("%d lost by its count, %d did not come", lost, n-len(different))
		}
		if repeats := len(runs[run]) - len(different); repeats < n/20 || repeats > n/5 {
			t.Errorf("%d repeats", repeats)
		}
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("one seed, two outcomes: %s", diff)
	}
}

func TestRefusedIsNotLostNorRepeated(t *testing.T) {
	memory, err := stream.NewMemory(stream.Config{Partitions: 1, MaxRecords: 2})
	if err != nil {
		t.Fatal(err)
	}
	f := streamtest.NewFaulty(memory, 1)
	defer f.Close()
	r, err := f.Tail(stream.Tasks, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(stream.Tasks, streamtest.Faults{Drop: 0.5, Repeat: 1})
	refused := make([][]byte, 20)
	for i := range refused {
		refused[i] = []byte("refused")
	}
	if err := f.TryPublish(stream.Tasks, 0, refused...); !errors.Is(err, stream.ErrFull) {
		t.Fatal(err)
	}
	if lost := f.Lost(stream.Tasks); lost != 0 {
		t.Errorf("%d lost of what was refused", lost)
	}
	f.Set(stream.Tasks, streamtest.Faults{Repeat: 1})
	for range 20 {
		if err := f.TryPublish(stream.Tasks, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		messages, err := r.Fetch(t.Context(), 2)
		if err != nil || len(messages) != 2 || string(messages[0].Value) != "x" ||
			string(messages[1].Value) != "x" {
			t.Fatalf("messages %v, error %v", messages, err)
		}
	}
}

func TestWipe(t *testing.T) {
	f := newFaulty(t, 1)
	tail, err := f.Tail(stream.Tasks, 0)
	if err != nil {
		t.Fatal(err)
	}
	member, err := f.Consume(stream.Pages, "g")
	if err != nil {
		t.Fatal(err)
	}
	for topic, r := range map[stream.Topic]stream.Reader{stream.Tasks: tail, stream.Pages: member} {
		publish(t, f, topic, streamtest.Faults{}, 5)
		f.Wipe(topic)
		if err := f.Publish(t.Context(), topic, 0, []byte("after")); err != nil {
			t.Fatal(err)
		}
		publish(t, f, topic, streamtest.Faults{}, 0)
		if diff := cmp.Diff([]string{"after"}, readToEnd(t, r)); diff != "" {
			t.Errorf("%s: %s", topic, diff)
		}
		if lost := f.Lost(topic); lost != 6 {
			t.Errorf("%s: %d lost, want 6", topic, lost)
		}
	}
}

// TestWipedLeavesNoLag: a group's wiped records are committed as soon as all earlier ones are, and
// not sooner.
func TestWipedLeavesNoLag(t *testing.T) {
	f := newFaulty(t, 1)
	r, err := f.Consume(stream.Pages, "g")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(t.Context(), stream.Pages, 0, []byte("open")); err != nil {
		t.Fatal(err)
	}
	open, err := r.Fetch(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(t.Context(), stream.Pages, 0, []byte("wiped"),
		[]byte("wiped")); err != nil {
		t.Fatal(err)
	}
	f.Wipe(stream.Pages)
	// The record in another partition ends the Fetch that reaches the wiped ones.
	if err := f.Publish(t.Context(), stream.Pages, 1, []byte("other")); err != nil {
		t.Fatal(err)
	}
	other, err := r.Fetch(t.Context(), 10)
	if err != nil || f.Lost(stream.Pages) != 2 {
		t.Fatalf("%d lost, error %v", f.Lost(stream.Pages), err)
	}
	if lag := f.Lag(stream.Pages); lag != 4 {
		t.Errorf("lag %d before any commit, want 4", lag)
	}
	if err := r.Commit(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if lag := f.Lag(stream.Pages); lag != 0 {
		t.Errorf("lag %d after all commits", lag)
	}
}

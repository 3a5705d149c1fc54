package billing

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settler remembers what it was given, in order, and fails as often as it is told.
type settler struct {
	mu      sync.Mutex
	fail    int
	batches []batch
	changed chan struct{}
}

func newSettler(fail int) *settler { return &settler{fail: fail, changed: make(chan struct{}, 1)} }

func (s *settler) Settle(_ context.Context, receipts []model.Receipt, markers []model.Marker) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return errors.New("not now")
	}
	s.batches = append(s.batches, batch{receipts: receipts, markers: markers})
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// await waits until so many receipts and markers were settled, and returns the batches.
func (s *settler) await(t *testing.T, receipts, markers int) []batch {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		gotReceipts, gotMarkers := 0, 0
		for _, b := range s.batches {
			gotReceipts += len(b.receipts)
			gotMarkers += len(b.markers)
		}
		batches := s.batches
		s.mu.Unlock()
		if gotReceipts >= receipts && gotMarkers >= markers {
			return batches
		}
		select {
		case <-s.changed:
		case <-deadline:
			t.Fatalf("settled %d receipts and %d markers, want %d and %d", gotReceipts, gotMarkers, receipts, markers)
		}
	}
}

func newLog(t testing.TB, partitions int) *stream.Memory {
	t.Helper()
	log, err := stream.NewMemory(stream.Config{Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func newRole(log stream.Log, s Settler) *Role {
	return New(Config{Settler: s, Log: log, Clock: clock.System{}, Point: func(string) {},
		Logger: slog.New(slog.DiscardHandler)})
}

// run runs a role until the test ends.
func run(t *testing.T, r *Role) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func receipt(seq uint32) model.Receipt {
	return model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: seq}, Outcome: model.Delivered, Last: true}
}

func publish(t testing.TB, log stream.Log, partition int, records ...[]byte) {
	t.Helper()
	if err := log.Publish(context.Background(), stream.Receipts, partition, records...); err != nil {
		t.Fatal(err)
	}
}

func TestMarkersFollowTheirReceipts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const partitions = 3
		log := newLog(t, partitions)
		defer func() { _ = log.Close() }()
		seq, markers := uint32(0), uint64(0)
		before := map[uint64][]uint32{} // marker → receipts published before it in its partition
		published := make([][]uint32, partitions)
		for range rapid.IntRange(1, 60).Draw(rt, "records") {
			partition := rapid.IntRange(0, partitions-1).Draw(rt, "partition")
			if rapid.IntRange(0, 4).Draw(rt, "kind") > 0 {
				publish(t, log, partition, stream.EncodeReceipt(receipt(seq)))
				published[partition] = append(published[partition], seq)
				seq++
				continue
			}
			markers++
			publish(t, log, partition, stream.EncodeMarker(model.Marker{Leader: 1, Number: markers}))
			before[markers] = append([]uint32(nil), published[partition]...)
		}
		s := newSettler(0)
		stop := run(t, newRole(log, s))
		settled := map[uint32]bool{}
		for _, b := range s.await(t, int(seq), int(markers)) {
			for _, r := range b.receipts {
				settled[r.Unit.Seq] = true
			}
			for _, m := range b.markers {
				for _, want := range before[m.Number] {
					if !settled[want] {
						rt.Fatalf("marker %d came before receipt %d", m.Number, want)
					}
				}
			}
		}
		stop()
		if lag := log.Lag(stream.Receipts); lag != 0 {
			rt.Fatalf("%d records are not committed", lag)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	log := newLog(t, 1)
	defer func() { _ = log.Close() }()
	const total = maxBatch + 100
	for seq := range uint32(total) {
		publish(t, log, 0, stream.EncodeReceipt(receipt(seq)))
	}
	s := newSettler(0)
	run(t, newRole(log, s))
	batches := s.await(t, total, 0)
	if len(batches[0].receipts) != maxBatch {
		t.Fatalf("the first batch has %d receipts, want %d", len(batches[0].receipts), maxBatch)
	}
}

func TestWhatIsNotSettledIsNotCommitted(t *testing.T) {
	log := newLog(t, 1)
	defer func() { _ = log.Close() }()
	publish(t, log, 0, stream.EncodeReceipt(receipt(7)))
	never := newSettler(1 << 30)
	asked := make(chan struct{}, 1)
	role := newRole(log, never)
	role.cfg.Point = func(name string) {
		if name == "billing.before_settle" {
			asked <- struct{}{}
		}
	}
	stop := run(t, role)
	<-asked
	stop()
	if lag := log.Lag(stream.Receipts); lag != 1 {
		t.Fatalf("%d records are left, want 1", lag)
	}
	s := newSettler(2)
	run(t, newRole(log, s))
	if got := s.await(t, 1, 0)[0].receipts[0].Unit.Seq; got != 7 {
		t.Fatalf("settled seq %d, want 7", got)
	}
}

func TestUndecodableRecordsAreSkippedAndCounted(t *testing.T) {
	log := newLog(t, 1)
	defer func() { _ = log.Close() }()
	publish(t, log, 0, []byte("nonsense"), stream.EncodeReceipt(receipt(1)), []byte{})
	s, role := newSettler(0), (*Role)(nil)
	role = newRole(log, s)
	run(t, role)
	s.await(t, 1, 0)
	if role.Skipped() != 2 {
		t.Fatalf("%d records were skipped, want 2", role.Skipped())
	}
}

func TestRunFailsWhenTheLogCloses(t *testing.T) {
	log := newLog(t, 1)
	role := newRole(log, newSettler(0))
	done := make(chan error, 1)
	go func() { done <- role.Run(context.Background()) }()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, stream.ErrClosed) {
		t.Fatalf("Run: %v, want %v", err, stream.ErrClosed)
	}
}

func TestLingerGrowsWithWhatComes(t *testing.T) {
	manual := clock.NewManual(time.Unix(1, 0))
	r := New(Config{Clock: manual})
	if got := r.linger(1); got != minLinger {
		t.Fatalf("the first receipt lingers %s, want %s", got, minLinger)
	}
	for range 20 { // 1,500 a second
		r.count(75)
		manual.Advance(50 * time.Millisecond)
	}
	if got := r.linger(1); got != maxLinger {
		t.Fatalf("in bulk a batch lingers %s, want %s", got, maxLinger)
	}
	manual.Advance(10 * time.Second)
	if got := r.linger(1); got != minLinger {
		t.Fatalf("after a while a batch lingers %s, want %s", got, minLinger)
	}
}

package billing_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger accepts settled batches; it refuses the first few calls.
type ledger struct {
	mu      sync.Mutex
	refuse  int
	poison  uint32 // seq of a receipt that is refused for good, 0: none
	seqs    []uint32
	markers []uint64
	before  map[uint64]int // receipts seen when a marker came
	changed chan struct{}
}

func (l *ledger) settleReceipts(_ context.Context, receipts []model.Receipt,
	markers []model.Marker) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse > 0 {
		l.refuse--
		return errors.New("no leader")
	}
	for _, r := range receipts {
		if r.Unit.Seq == l.poison && l.poison != 0 {
			return fault.New(fault.InvalidRequest, "no node could decode it")
		}
	}
	for _, r := range receipts {
		l.seqs = append(l.seqs, r.Unit.Seq)
	}
	for _, m := range markers {
		l.markers = append(l.markers, m.Number)
		l.before[m.Number] = len(l.seqs)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return nil
}

func start(t *testing.T, l *ledger, log stream.Log) (*billing.Billing, func()) {
	t.Helper()
	b := billing.New(billing.Config{Log: log, Settle: l.settleReceipts})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return b, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestReceiptsBeforeMarkersAreSettledBeforeThem(t *testing.T) {
	log, err := stream.NewMemory(stream.Config{Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	const n = 10_000
	l := &ledger{refuse: 2, before: map[uint64]int{}, changed: make(chan struct{}, 1)}
	b, stop := start(t, l, log)
	ctx := context.Background()
	for seq := range uint32(n) {
		record := stream.EncodeReceipt(model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: seq},
			Outcome: model.Delivered})
		if err := log.Publish(ctx, stream.Receipts, 0, record); err != nil {
			t.Fatal(err)
		}
		if seq == n/2 {
			if err := log.Publish(ctx, stream.Receipts, 0, []byte("no record"),
				stream.EncodeMarker(model.Marker{Number: 7})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Publish(ctx, stream.Receipts, 0,
		stream.EncodeMarker(model.Marker{Number: 8})); err != nil {
		t.Fatal(err)
	}
	for settled := false; !settled; {
		<-l.changed
		l.mu.Lock()
		settled = len(l.markers) == 2
		l.mu.Unlock()
	}
	stop()
	if len(l.seqs) != n || l.before[7] < n/2+1 || l.before[8] != n {
		t.Fatalf("%d receipts; before the markers: %v", len(l.seqs), l.before)
	}
	for i, seq := range l.seqs {
		if seq != uint32(i) {
			t.Fatalf("receipt %d is of seq %d", i, seq)
		}
	}
	counts := b.Counts()
	if counts.Receipts != n || counts.Undecodable != 1 || counts.Retries != 2 ||
		counts.Batches > n/400 {
		t.Fatalf("counts %+v", counts)
	}
}

// A receipt that no node accepts does not hold up the others, and is not retried forever.
func TestReceiptsRefusedForGoodAreSkipped(t *testing.T) {
	log, err := stream.NewMemory(stream.Config{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	records := make([][]byte, 0, 12)
	for seq := range uint32(11) {
		records = append(records,
			stream.EncodeReceipt(model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: seq},
				Outcome: model.Delivered}))
	}
	records = append(records, stream.EncodeMarker(model.Marker{Number: 7}))
	if err := log.Publish(t.Context(), stream.Receipts, 0, records...); err != nil {
		t.Fatal(err)
	}
	l := &ledger{poison: 4, before: map[uint64]int{}, changed: make(chan struct{}, 1)}
	b, stop := start(t, l, log)
	for settled := false; !settled; {
		<-l.changed
		l.mu.Lock()
		settled = len(l.markers) == 1
		l.mu.Unlock()
	}
	stop()
	if counts := b.Counts(); len(l.seqs) != 10 || l.before[7] != 10 || counts.Undecodable != 1 ||
		counts.Receipts != 10 {
		t.Errorf("settled %v, before the marker %d, counts %+v", l.seqs, l.before[7], counts)
	}
}

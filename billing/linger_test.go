package billing

import (
	"context"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

func TestLingerGrowsWithWhatComes(t *testing.T) {
	manual := clock.NewManual(time.Unix(1, 0))
	b := New(Config{Clock: manual})
	if got := b.linger(1); got != minLinger {
		t.Fatalf("the first receipt lingers %s, want %s", got, minLinger)
	}
	for range 40 { // 1,200 a second, in batches of minLinger
		b.count(30)
		manual.Advance(minLinger)
	}
	if got := b.linger(1); got != maxLinger {
		t.Fatalf("in bulk a batch lingers %s, want %s", got, maxLinger)
	}
	manual.Advance(10 * time.Second)
	if got := b.linger(1); got != minLinger {
		t.Fatalf("after a while a batch lingers %s, want %s", got, minLinger)
	}
}

// impatient is a clock whose waits end at once; it records how long they would have been.
type impatient struct {
	*clock.Manual
	waits []time.Duration
}

func (c *impatient) After(d time.Duration) <-chan time.Time {
	c.waits = append(c.waits, d)
	return c.Manual.After(0)
}

// reads is a reader that returns these batches, and then nothing.
type reads struct{ left [][]stream.Message }

func (r *reads) Fetch(ctx context.Context, _ int) ([]stream.Message, error) {
	if len(r.left) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	next := r.left[0]
	r.left = r.left[1:]
	return next, nil
}

func (*reads) Commit(context.Context, []stream.Message) error { return nil }

func (*reads) Close() error { return nil }

func TestABatchEndsWhenNothingComes(t *testing.T) {
	receipt := stream.Message{Value: stream.EncodeReceipt(model.Receipt{})}
	for _, c := range []struct {
		come  []int // receipts of each read
		waits []time.Duration
	}{
		{[]int{1}, []time.Duration{minLinger}},
		{[]int{50}, []time.Duration{50 * maxLinger / bulk}},
		{[]int{bulk, 10, 10}, []time.Duration{quiet, quiet, quiet}},
		{[]int{bulk, maxReceipts}, []time.Duration{quiet}},
	} {
		clock := &impatient{Manual: clock.NewManual(time.Unix(1, 0))}
		reader, want := &reads{}, 0
		for _, n := range c.come {
			reader.left = append(reader.left, slices.Repeat([]stream.Message{receipt}, n))
			want += n
		}
		batch, err := New(Config{Clock: clock}).gather(t.Context(), reader)
		if err != nil || len(batch.receipts) != want || !slices.Equal(clock.waits, c.waits) {
			t.Errorf("reads of %v: %d receipts after waits of %v, want %v; %v", c.come,
				len(batch.receipts), clock.waits, c.waits, err)
		}
	}
}

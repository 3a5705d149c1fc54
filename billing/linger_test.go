package billing

import (
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

func TestLingerGrowsWithWhatComes(t *testing.T) {
	manual := clock.NewManual(time.Unix(1, 0))
	b := New(Config{Clock: manual})
	if got := b.linger(1); got != minLinger {
		t.Fatalf("the first receipt lingers %s, want %s", got, minLinger)
	}
	for range 40 { // 1,200 a second, as they come in batches of the least wait
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

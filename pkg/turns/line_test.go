package turns

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Two customers come again at random times, one of them a thousand times as often. Each gets about
// every second place.
func TestWhoComesOftenIsServedByTurns(t *testing.T) {
	const within = 12 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	line := NewLine(within)
	now := time.Unix(0, 0)
	seldom := now
	var served [2]int
	leaves := now // the one place is free from then on
	try := func(customer int) {
		name := []string{"often", "seldom"}[customer]
		begun, ok := line.Begin(name, now)
		switch {
		case !ok:
		case now.Before(leaves):
			line.Refuse(begun, now)
		default:
			served[customer]++
			leaves = now.Add(20 * time.Second)
		}
	}
	for range 2_000_000 {
		now = now.Add(8 * time.Millisecond)
		try(0)
		if !now.Before(seldom) {
			try(1)
			seldom = now.Add(4*time.Second + time.Duration(random.Int64N(int64(8*time.Second))))
		}
	}
	if served[0] < 250 || served[1] < served[0]-1 || served[1] > served[0]+1 {
		t.Errorf("places were found %d and %d times, of 2,000,000 and some 2,000 tries", served[0],
			served[1])
	}
	// Who does not come again is waited for no longer than that.
	begun, _ := line.Begin("gone", now)
	line.Refuse(begun, now)
	now = now.Add(within + 1)
	if _, ok := line.Begin("often", now); !ok {
		t.Error("somebody who does not come again is waited for")
	}
	if len(line.customers) != 1 {
		t.Errorf("%d customers are remembered, want one", len(line.customers))
	}
}

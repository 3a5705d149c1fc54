package turns

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestWhoComesOftenIsServedByTurns: two customers try at random times, one of them a thousand times
// as often. Each gets about every second place.
func TestWhoComesOftenIsServedByTurns(t *testing.T) {
	const within = 12 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	line := NewLine(1, within)
	now := time.Unix(0, 0)
	seldom := now
	var served [2]int
	leaves, has := now, "" // when the holder of the one place leaves, and its name
	try := func(customer int) {
		name := []string{"often", "seldom"}[customer]
		if line.Enter(name, now) {
			served[customer]++
			leaves, has = now.Add(20*time.Second), name
		}
	}
	for range 2_000_000 {
		now = now.Add(8 * time.Millisecond)
		if has != "" && !now.Before(leaves) {
			line.Leave(has, now)
			has = ""
		}
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
	if has != "" {
		line.Leave(has, now)
	}
	// A customer who does not come back is not waited for any longer.
	line.Enter("another", now)
	line.Enter("gone", now)
	line.Leave("another", now)
	now = now.Add(within + 1)
	if !line.Enter("often", now) {
		t.Error("somebody who does not come again is waited for")
	}
	if len(line.customers) != 1 {
		t.Errorf("%d customers are remembered, want one", len(line.customers))
	}
}

// TestNobodyHasAllPlacesOfALine: the last free place is for customers without one, however little
// others have had. No place is given twice or lost.
func TestNobodyHasAllPlacesOfALine(t *testing.T) {
	for places := 1; places <= 5; places++ {
		random := rand.New(rand.NewPCG(3, uint64(places)))
		line := NewLine(places, time.Minute)
		now := time.Unix(0, 0)
		held := map[string]int{}
		taken := 0
		for n := range 20_000 {
			now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))))
			customer := fmt.Sprint("customer ", random.IntN(4))
			if random.IntN(2) == 0 {
				if held[customer] > 0 {
					held[customer]--
					taken--
					line.Leave(customer, now)
				}
			} else if line.Enter(customer, now) {
				held[customer]++
				taken++
			}
			if taken > places || held[customer] > max(places-1, 1) {
				t.Fatalf("of %d places %v are held", places, held)
			}
			if n%1000 != 0 || taken == places {
				continue
			}
			// a new customer finds the free one
			now = now.Add(2 * time.Minute)
			if !line.Enter("new", now) {
				t.Fatalf("of %d places %v are held, and who has none finds none", places, held)
			}
			line.Leave("new", now)
		}
		for customer, n := range held {
			for range n {
				line.Leave(customer, now)
			}
		}
		if line.free != places {
			t.Errorf("of %d places %d are free at the end", places, line.free)
		}
	}
}

// TestLongStaysCountAsLong: one customer's stays are thirty times as long as those of four others,
// who always return at once. It gets as much time as each of them, not as many stays.
func TestLongStaysCountAsLong(t *testing.T) {
	const places, others = 2, 4
	line := NewLine(places, time.Minute)
	now := time.Unix(0, 0)
	type stay struct {
		customer string
		until    time.Time
	}
	var stays []stay
	had := map[string]time.Duration{}
	for range 36_000 {
		now = now.Add(100 * time.Millisecond)
		left := stays[:0]
		for _, s := range stays {
			if now.Before(s.until) {
				left = append(left, s)
			} else {
				line.Leave(s.customer, now)
			}
		}
		stays = left
		for n := range others + 1 {
			customer, length := fmt.Sprint("short ", n), time.Second
			if n == others {
				customer, length = "long", 30*time.Second
			}
			if line.Enter(customer, now) {
				stays = append(stays, stay{customer, now.Add(length)})
				had[customer] += length
			}
		}
	}
	for customer, time := range had {
		if most := 40 * time / 30; had["long"] > most {
			t.Errorf("had %v, and %s %v", had["long"], customer, time)
		}
	}
}

// TestWhoIsServedWaitsNoMore: once a refused customer has had a place, nobody waits for it.
func TestWhoIsServedWaitsNoMore(t *testing.T) {
	line := NewLine(4, time.Minute)
	now := time.Unix(0, 0)
	for range 3 {
		line.Enter("long", now)
	}
	line.Enter("short", now)
	now = now.Add(time.Second)
	if line.Enter("short", now) {
		t.Fatal("five have one of four places")
	}
	line.Leave("long", now)
	line.Leave("long", now)
	if !line.Enter("short", now) {
		t.Fatal("who has had less is refused")
	}
	line.Leave("short", now)
	if !line.Enter("long", now.Add(time.Second)) {
		t.Error("a place stays empty for who was served")
	}
}

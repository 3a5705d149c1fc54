package state

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLaunchesAreThoseOfTheLastDays compares the counts with a plain list of all launches.
func TestLaunchesAreThoseOfTheLastDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, index, today := NewStore(), uint64(0), int64(20_000)
		var all []int64
		for range rapid.IntRange(1, 80).Draw(t, "launches") {
			today += rapid.Int64Range(0, LaunchDays+5).Draw(t, "days later")
			all = append(all, today)
			index++
			if err := s.Update(index, 0, func(tx *Tx) error {
				tx.CountLaunch("a", today)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			look := today + rapid.Int64Range(0, LaunchDays+1).Draw(t, "looked at later")
			want := 0
			for _, day := range all {
				if day > look-LaunchDays {
					want++
				}
			}
			if got := s.View().Launches("a", look); got != want {
				t.Fatalf("%d launches in the days up to %d, want %d of %v", got, look, want, all)
			}
			if kept := launchesTable.first(s.View(), "id", "a"); len(kept.Days) > LaunchDays {
				t.Fatalf("%d days are kept", len(kept.Days))
			}
		}
		if s.View().Launches("b", today) != 0 {
			t.Fatal("another customer has launched")
		}
	})
}

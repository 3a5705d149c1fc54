package launch

import (
	"testing"

	"pgregory.net/rapid"
)

// A set has what was added to it, wherever it falls, in 20 bytes of each at most.
func TestHashSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set hashSet
		known := map[uint64]bool{}
		hash := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 60),
			func(n uint64) uint64 { return n<<32 | 7 }), rapid.Uint64Range(1, 60))
		for _, h := range rapid.SliceOfN(hash, 0, 300).Draw(t, "hashes") {
			if added := set.add(h); added == known[max(h, 1)] {
				t.Fatalf("%d is added: %v", h, added)
			}
			known[max(h, 1)] = true
		}
		if set.count != len(known) {
			t.Fatalf("%d hashes, want %d", set.count, len(known))
		}
	})
	var set hashSet
	const step = 0x9E3779B97F4A7C15 // the golden ratio: it spreads
	for n := range uint64(300_000) {
		set.add(n * step)
		places := 0
		for _, table := range set.tables {
			places += len(table)
		}
		if n > 30_000 && uint64(8*places) > 20*n {
			t.Fatalf("%d places for %d hashes", places, n)
		}
	}
}

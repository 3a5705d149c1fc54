package launch

import (
	"testing"

	"pgregory.net/rapid"
)

// A set has what was added to it, wherever it falls, in 20 bytes of each at most.
func TestHashSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := newHashSet()
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
	set := newHashSet()
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

// Hashes that a customer has chosen to fall together are spread as others are.
func TestHashSetIsSeeded(t *testing.T) {
	set := newHashSet()
	const hashes = 64_000
	for n := range uint64(hashes) {
		set.add(n<<20 | 7) // one table's, and one place's, by their bits
	}
	for i, used := range set.used {
		if used < hashes/64/2 || used > hashes/64*2 {
			t.Errorf("table %d has %d of %d", i, used, hashes)
		}
	}
}

package kafka

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDeal: every partition has one owner, shares differ by one at most, and no more moves than
// necessary.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 70).Draw(t, "partitions")
		members := map[string][]int{}
		for i := range rapid.IntRange(1, 8).Draw(t, "members") {
			members[fmt.Sprint("m", i)] = nil
		}
		before := map[int]string{}
		if rapid.Bool().Draw(t, "dealt before") {
			members = deal(members, partitions)
			before = owners(t, members, partitions)
			if len(members) > 1 && rapid.Bool().Draw(t, "one leaves") {
				delete(members, rapid.SampledFrom(slices.Sorted(maps.Keys(members))).Draw(t, "who"))
			}
			if rapid.Bool().Draw(t, "one joins") {
				members["new"] = nil
			}
			if rapid.Bool().Draw(t, "one claims too much") {
				members["zombie"] = []int{-1, 0, 0, partitions - 1, partitions}
			}
		}
		_, joined := members["new"]
		_, zombie := members["zombie"]
		after := owners(t, deal(members, partitions), partitions)
		moved := 0
		for partition, owner := range before {
			if _, stays := members[owner]; stays && after[partition] != owner {
				moved++
			}
		}
		need := 0
		if joined {
			need = (partitions + len(members) - 1) / len(members)
		}
		if moved > need && !zombie {
			t.Fatalf("%d of %d partitions moved between %d members", moved, partitions,
				len(members))
		}
	})
}

// owners checks that a deal is fair, and returns the owners.
func owners(t *rapid.T, dealt map[string][]int, partitions int) map[int]string {
	t.Helper()
	found := map[int]string{}
	least, most := partitions, 0
	for id, owned := range dealt {
		least, most = min(least, len(owned)), max(most, len(owned))
		for _, partition := range owned {
			if other, taken := found[partition]; taken || partition < 0 || partition >= partitions {
				t.Fatalf("partition %d of %d is dealt to %s and %q", partition, partitions, id,
					other)
			}
			found[partition] = id
		}
	}
	if len(found) != partitions || most > least+1 {
		t.Fatalf("%d of %d partitions dealt, %d to %d each", len(found), partitions, least, most)
	}
	return found
}

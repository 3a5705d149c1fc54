package shards

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestSharesFollowWeights(t *testing.T) {
	candidates := []Candidate{{"a", 1}, {"b", 2}, {"c", 5}, {"none", 0}}
	got := map[string]int{}
	const n = 40_000
	for shard := range uint16(n) {
		got[Best(shard, candidates)]++
	}
	for _, c := range candidates {
		want := n * int(c.Weight) / 8
		if diff := got[c.Node] - want; diff < -n/50 || diff > n/50 {
			t.Errorf("%s has %d shards, want about %d", c.Node, got[c.Node], want)
		}
	}
}

func TestOnlyTheChangedMembersShardsMove(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var candidates []Candidate
		for i := range rapid.IntRange(1, 8).Draw(rt, "members") {
			candidates = append(candidates, Candidate{fmt.Sprintf("node-%d", i), rapid.Uint32Range(1, 9).Draw(rt, "weight")})
		}
		joined := Candidate{"new", rapid.Uint32Range(1, 9).Draw(rt, "weight of the new one")}
		for shard := range uint16(256) {
			before, after := Best(shard, candidates), Best(shard, append([]Candidate{joined}, candidates...))
			if after != before && after != joined.Node {
				rt.Fatalf("shard %d went from %s to %s when %s joined", shard, before, after, joined.Node)
			}
		}
	})
}

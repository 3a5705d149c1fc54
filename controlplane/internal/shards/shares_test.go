package shards

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/state"
)

// drawCandidates draws up to eight nodes, numbered from a number on.
func drawCandidates(t *rapid.T, from int) (candidates []Candidate) {
	for i := range rapid.IntRange(1, 8).Draw(t, "members") {
		candidates = append(candidates,
			Candidate{fmt.Sprintf("node-%d", from+i), rapid.Uint32Range(1, 9).Draw(t, "weight")})
	}
	return candidates
}

func newShards(number int) (list []*state.Shard) {
	for n := range number {
		list = append(list, &state.Shard{Number: uint16(n)})
	}
	return list
}

func give(list []*state.Shard, to []string) {
	for i, node := range to {
		list[i].Owner, list[i].Next = node, ""
	}
}

// checkShares fails if a candidate has other than its exact share, rounded up or down.
func checkShares(t *rapid.T, to []string, candidates []Candidate) {
	total, got := 0, map[string]int{}
	for _, c := range candidates {
		total += int(c.Weight)
	}
	for _, node := range to {
		got[node]++
	}
	for _, c := range candidates {
		if share := len(to) * int(c.Weight); got[c.Node] < share/total ||
			got[c.Node] > (share+total-1)/total {
			t.Fatalf("%s has %d shards of %d, with weight %d of %d", c.Node, got[c.Node], len(to),
				c.Weight, total)
		}
	}
	if got[""] > 0 && total > 0 {
		t.Fatalf("%d shards belong to nobody", got[""])
	}
}

// Whoever has the shards before, each candidate gets its share, and the result is stable.
func TestSharesFollowWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := newShards(rapid.IntRange(1, 128).Draw(t, "shards"))
		names := []string{"", "node-1", "node-2", "node-3", "gone"}
		for _, s := range list {
			s.Owner, s.Next = rapid.SampledFrom(names).Draw(t, "owner"),
				rapid.SampledFrom(names).Draw(t, "next")
		}
		candidates := append(drawCandidates(t, 1), Candidate{"none", 0})
		to := shareOut(list, candidates)
		checkShares(t, to, candidates)
		give(list, to)
		for i, node := range shareOut(list, candidates) {
			if node != to[i] {
				t.Fatalf("shard %d moves from %q to %q without a reason", i, to[i], node)
			}
		}
	})
}

func TestNobodyIsThere(t *testing.T) {
	for _, candidates := range [][]Candidate{nil, {{"none", 0}}} {
		for _, node := range shareOut([]*state.Shard{{Owner: "gone"}, {Number: 1}}, candidates) {
			if node != "" {
				t.Errorf("%q has a shard", node)
			}
		}
	}
}

// Among equal nodes, a joining one takes its share and nothing else moves. When it leaves, only its
// shards move.
func TestOnlyTheChangedMembersShardsMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var candidates []Candidate
		for i := range rapid.IntRange(1, 12).Draw(t, "members") {
			candidates = append(candidates, Candidate{fmt.Sprintf("node-%d", i), 1})
		}
		list := newShards(64)
		give(list, shareOut(list, candidates))
		joined := append(candidates, Candidate{"new", 1})
		after := shareOut(list, joined)
		checkShares(t, after, joined)
		for i, s := range list {
			if after[i] != s.Owner && after[i] != "new" {
				t.Fatalf("shard %d went from %s to %s when another node joined", i, s.Owner,
					after[i])
			}
		}
		give(list, after)
		for i, node := range shareOut(list, candidates) {
			if node != list[i].Owner && list[i].Owner != "new" {
				t.Fatalf("shard %d went from %s to %s when another node left", i, list[i].Owner,
					node)
			}
		}
	})
}

// A node that declares an excessive capacity counts as at most eight times the next heaviest.
func TestNoCandidateOutweighsTheOthersByFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := drawCandidates(t, 1)
		told := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "told")
		next := uint64(0)
		for _, c := range honest {
			next = max(next, uint64(c.Weight))
		}
		got := bounded(append(slices.Clone(honest), Candidate{"liar", told}))
		if want := min(uint64(told), 8*next); uint64(got[len(honest)].Weight) != want {
			t.Fatalf("it told %d beside %v and counts as %d", told, honest, got[len(honest)].Weight)
		}
	})
}

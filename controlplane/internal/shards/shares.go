package shards

import (
	"cmp"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/state"
)

// Candidate is a node that may be given shards in proportion to its weight; with weight 0 it gets
// none.
type Candidate struct {
	Node   string
	Weight uint32
}

// shareOut returns the node that each shard should belong to, in the order of shards; "" if there
// is no candidate. Each candidate gets its exact share, rounded up or down. Within that number it
// keeps what it has or is about to get. So a joining candidate takes its share from the others, a
// leaving one gives its share to them, and little else moves. Weighted rendezvous hashing picks the
// shards. Alone, it would spread 64 shards over eight nodes very unevenly, some 4 to 13 each. A run
// takes as long as the busiest node.
func shareOut(shards []*state.Shard, candidates []Candidate) []string {
	homes := map[string][]int{}
	for _, c := range candidates {
		homes[c.Node] = nil
	}
	to := make([]string, len(shards))
	for i, s := range shards {
		for _, node := range []string{s.Next, s.Owner} {
			if _, there := homes[node]; there {
				homes[node] = append(homes[node], i)
				break
			}
		}
	}
	room := quotas(len(shards), candidates, homes)
	for _, c := range candidates {
		kept := homes[c.Node]
		slices.SortStableFunc(kept, func(a, b int) int {
			return cmp.Compare(score(shards[b].Number, c), score(shards[a].Number, c))
		})
		for _, i := range kept[:min(room[c.Node], len(kept))] {
			to[i] = c.Node
			room[c.Node]--
		}
	}
	for i, s := range shards {
		if to[i] == "" {
			to[i] = best(s.Number, candidates, room)
			room[to[i]]--
		}
	}
	return to
}

// quotas returns how many shards each candidate gets. The largest fractions of exact shares are
// rounded up. Among equal fractions, the candidate that already has more than its whole part goes
// first.
func quotas(shards int, candidates []Candidate, homes map[string][]int) map[string]int {
	var total uint64
	for _, c := range candidates {
		total += uint64(c.Weight)
	}
	quota := make(map[string]int, len(candidates))
	if total == 0 {
		return quota
	}
	fraction, left := map[string]uint64{}, shards
	var order []string
	for _, c := range candidates {
		exact := uint64(shards) * uint64(c.Weight)
		quota[c.Node], fraction[c.Node] = int(exact/total), exact%total
		left -= quota[c.Node]
		order = append(order, c.Node)
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(fraction[b], fraction[a]),
			cmp.Compare(len(homes[b])-quota[b], len(homes[a])-quota[a]),
			cmp.Compare(a, b))
	})
	for _, node := range order[:left] {
		quota[node]++
	}
	return quota
}

// best returns the candidate with room and the highest score for a shard, or "".
func best(shard uint16, candidates []Candidate, room map[string]int) string {
	found, highest := "", 0.0
	for _, c := range candidates {
		if room[c.Node] <= 0 {
			continue
		}
		s := score(shard, c)
		if found == "" || s > highest || (s == highest && c.Node < found) {
			found, highest = c.Node, s
		}
	}
	return found
}

// score is above 0. With u uniform in (0,1), -weight/ln(u) is the greatest for each candidate in
// proportion to its weight.
func score(shard uint16, c Candidate) float64 {
	hash := xxh3.HashStringSeed(c.Node, uint64(shard)+1)
	u := (float64(hash>>11) + 0.5) / (1 << 53)
	return -float64(c.Weight) / math.Log(u)
}

// heaviest bounds a candidate's weight. A node declares its own capacity, which counts as at most
// heaviest times the next largest.
const heaviest = 8

// bounded returns the candidates with that bound applied. A single candidate keeps its weight.
func bounded(live []Candidate) []Candidate {
	bounded := slices.Clone(live)
	for i := range bounded {
		var next uint64
		for j, other := range live {
			if j != i {
				next = max(next, uint64(other.Weight))
			}
		}
		if next > 0 && uint64(live[i].Weight) > heaviest*next {
			bounded[i].Weight = uint32(heaviest * next)
		}
	}
	return bounded
}

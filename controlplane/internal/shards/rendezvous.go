package shards

import (
	"math"

	"github.com/zeebo/xxh3"
)

// Candidate is a member that may be given shards, in proportion to its weight, 1 or more.
type Candidate struct {
	Node   string
	Weight uint32
}

// Best is the candidate that a shard belongs to, "" when there is none. A candidate that joins takes its share from
// the others and a candidate that leaves gives its share to them: no other shard moves (weighted rendezvous hashing).
func Best(shard uint16, candidates []Candidate) string {
	best, highest := "", 0.0
	for _, c := range candidates {
		if c.Weight == 0 {
			continue
		}
		s := score(shard, c)
		if best == "" || s > highest || (s == highest && c.Node < best) {
			best, highest = c.Node, s
		}
	}
	return best
}

// score is above 0. With u even in (0,1), the greatest of -weight/ln(u) falls to each in proportion to its weight.
func score(shard uint16, c Candidate) float64 {
	hash := xxh3.HashStringSeed(c.Node, uint64(shard)+1)
	u := (float64(hash>>11) + 0.5) / (1 << 53)
	return -float64(c.Weight) / math.Log(u)
}

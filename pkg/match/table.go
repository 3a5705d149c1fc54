package match

import "slices"

// table counts tokens. An index on their upper bits speeds up look-ups.
type table struct {
	tokens []uint64
	counts []uint32
	starts []uint32
}

const tableBits = 16

// newTable counts the tokens of a sorted list.
func newTable(all []uint64) table {
	distinct := 0
	for i := range all {
		if i == 0 || all[i] != all[i-1] {
			distinct++
		}
	}
	t := table{tokens: make([]uint64, 0, distinct), counts: make([]uint32, 0, distinct),
		starts: make([]uint32, 1<<tableBits+1)}
	for i, token := range all {
		if i == 0 || token != all[i-1] {
			t.tokens, t.counts = append(t.tokens, token), append(t.counts, 0)
		}
		t.counts[len(t.counts)-1]++
	}
	at := 0
	for i := range t.starts {
		for at < len(t.tokens) && t.tokens[at]>>(64-tableBits) < uint64(i) {
			at++
		}
		t.starts[i] = uint32(at)
	}
	return t
}

// count returns how often a token was in the list.
func (t *table) count(token uint64) uint32 {
	bucket := token >> (64 - tableBits)
	from := t.starts[bucket]
	place, found := slices.BinarySearch(t.tokens[from:t.starts[bucket+1]], token)
	if !found {
		return 0
	}
	return t.counts[from+uint32(place)]
}

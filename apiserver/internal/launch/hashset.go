package launch

// hashSet is a set of hashes: open-addressed tables, 10 to 20 bytes a hash. A map takes twice as
// much. The tables are many, so that only a small part of the set is there twice while it grows.
type hashSet struct {
	tables [64][]uint64 // by the upper bits of a hash; 0 is empty
	used   [64]int
	count  int
}

// add says whether the set did not have the hash. 0 is 1.
func (s *hashSet) add(hash uint64) bool {
	hash = max(hash, 1)
	n := hash >> 58
	if 5*(s.used[n]+1) > 4*len(s.tables[n]) { // at most 0.8 full
		bigger := make([]uint64, max(2*len(s.tables[n]), 16))
		for _, known := range s.tables[n] {
			if known != 0 {
				*placeOf(bigger, known) = known
			}
		}
		s.tables[n] = bigger
	}
	place := placeOf(s.tables[n], hash)
	if *place == hash {
		return false
	}
	*place = hash
	s.used[n]++
	s.count++
	return true
}

// placeOf is where a hash stands in a table of a power of two of places, or would.
func placeOf(table []uint64, hash uint64) *uint64 {
	for at := hash; ; at++ {
		if place := &table[at&uint64(len(table)-1)]; *place == 0 || *place == hash {
			return place
		}
	}
}

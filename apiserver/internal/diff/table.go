package diff

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/fault"
)

// hashed is a row in the form that is compared.
type hashed struct{ key, content xxh3.Uint128 }

// entry is a row of the older run: row n of the batch after a place.
type entry struct {
	hashed
	after int64
	n     uint16
}

// table is the older run's rows in one part of the keys, sorted by key, then content. The slices
// beside entries have an element for each entry.
type table struct {
	entries []entry
	// claims counts, at the first of equal rows, how many of them the newer run has as well
	claims []uint32
	// others counts, at a key's first row, the newer run's rows that match no equal row. After
	// countRows, it counts how many of those have been looked up.
	others []uint32
	// queue holds, from a key's first row on, the rows without an equal one, in storage order.
	// nobody ends it.
	queue []uint32
	// taken rows are matched with a row of the newer run
	taken []bool
}

func (t *table) add(row hashed, after int64, n int) error {
	if len(t.entries) == maxTable {
		return fault.Invalid(fault.InvalidRequest, "key",
			"too many rows have the same key: name fields that tell them apart")
	}
	t.entries = append(t.entries, entry{row, after, uint16(n)})
	return nil
}

// nobody ends a key's part of the queue.
const nobody = math.MaxUint32

func order(a, b xxh3.Uint128) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

func stored(a, b entry) int {
	return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.n, b.n))
}

func (t *table) sort() {
	slices.SortFunc(t.entries, func(a, b entry) int {
		return cmp.Or(order(a.key, b.key), order(a.content, b.content), stored(a, b))
	})
	t.claims = make([]uint32, len(t.entries))
	t.others = make([]uint32, len(t.entries))
	t.queue = make([]uint32, len(t.entries))
	t.taken = make([]bool, len(t.entries))
}

// find returns where the rows of a key begin, where those equal to row begin, and how many they
// are. known says whether the key has rows.
func (t *table) find(row hashed) (first, equal int, count uint32, known bool) {
	first = sort.Search(len(t.entries), func(i int) bool {
		return order(t.entries[i].key, row.key) >= 0
	})
	if first == len(t.entries) || t.entries[first].key != row.key {
		return 0, 0, 0, false
	}
	from := func(begin int, reached func(e *entry) bool) int {
		return begin + sort.Search(len(t.entries)-begin,
			func(i int) bool { return reached(&t.entries[begin+i]) })
	}
	equal = from(first, func(e *entry) bool {
		return e.key != row.key || order(e.content, row.content) >= 0
	})
	end := from(equal, func(e *entry) bool { return e.hashed != row })
	return first, equal, uint32(end - equal), true
}

// match counts a row of the newer run; false: the older run has no row with its key.
func (t *table) match(row hashed) bool {
	first, equal, count, known := t.find(row)
	switch {
	case !known:
		return false
	case count > 0 && t.claims[equal] < count:
		t.claims[equal]++
	default:
		t.others[first]++
	}
	return true
}

// countRows counts the rows after all of the newer run are matched. Added lacks the rows whose keys
// the older run does not have.
func (t *table) countRows() (sums Sums) {
	for begin := 0; begin < len(t.entries); {
		end, left := begin, 0
		for equal := begin; end < len(t.entries) &&
			t.entries[end].key == t.entries[begin].key; end++ {
			if t.entries[end].content != t.entries[equal].content {
				equal = end
			}
			t.queue[end] = nobody
			if t.taken[end] = uint32(end-equal) < t.claims[equal]; !t.taken[end] {
				t.queue[begin+left] = uint32(end)
				left++
			}
		}
		slices.SortFunc(t.queue[begin:begin+left], func(a, b uint32) int {
			return stored(t.entries[a], t.entries[b])
		})
		others := int(t.others[begin])
		t.others[begin] = 0
		sums.Unchanged += uint64(end - begin - left)
		sums.Changed += uint64(min(left, others))
		sums.Removed += uint64(max(left-others, 0))
		sums.Added += uint64(max(others-left, 0))
		begin = end
	}
	return sums
}

// matchRow says what a row of the newer run is. It must see the rows in the same order as match.
// For a changed row it returns the older row.
func (t *table) matchRow(row hashed) (before *entry, kind Kind) {
	first, equal, count, known := t.find(row)
	if !known {
		return nil, Added
	}
	if count > 0 && t.claims[equal] > 0 {
		t.claims[equal]--
		return nil, ""
	}
	place := first + int(t.others[first])
	if place == len(t.entries) || t.entries[place].key != row.key || t.queue[place] == nobody {
		return nil, Added
	}
	t.others[first]++
	i := t.queue[place]
	t.taken[i] = true
	return &t.entries[i], Changed
}

// left are the older run's rows without a match, in storage order. The table is unusable
// afterwards.
func (t *table) left() []entry {
	n := 0
	for i, e := range t.entries {
		if !t.taken[i] {
			t.entries[n] = e
			n++
		}
	}
	rest := t.entries[:n]
	slices.SortFunc(rest, stored)
	return rest
}

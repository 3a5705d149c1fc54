package measure

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts durations in buckets at most 1/128 of their value wide. So its results are off
// by less than 1%, however long the tail. It is not safe for concurrent use: each worker has its
// own, and they are merged.
type histogram struct {
	counts  [subBuckets * 57]int64 // nanoseconds up to 2^63
	n       int64
	longest time.Duration
}

// subBuckets is how many buckets share a power of two.
const (
	subBits    = 7
	subBuckets = 1 << subBits
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))]++
	h.n++
	h.longest = max(h.longest, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.longest = max(h.longest, other.longest)
}

// quantile returns the value that the share q of all do not exceed; 0 without any.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(h.n)))
	var seen int64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(time.Duration(upperOf(i)), h.longest)
		}
	}
	return h.longest
}

// bucketOf returns the bucket of a value: one per value below subBuckets, then subBuckets per
// further power of two.
func bucketOf(value uint64) int {
	shift := max(bits.Len64(value)-1-subBits, 0)
	return shift<<subBits + int(value>>shift)
}

// upperOf is the largest value of a bucket.
func upperOf(bucket int) uint64 {
	shift := max(bucket>>subBits-1, 0)
	return (uint64(bucket-shift<<subBits)+1)<<shift - 1
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

package profile

import (
	"math"
	"slices"
	"sort"
)

// Numbers of a field are counted in buckets. The numbers in one bucket share their first bits as a
// float64: the sign, the exponent and a part of the mantissa. If there are too many buckets, one
// more bit is left out, which merges pairs of buckets. The result depends only on the numbers, not
// on their order or how they were divided.
const (
	// MaxBuckets is the most buckets of a field.
	MaxBuckets = 32
	// finest is how many bits the finest buckets leave out: numbers in one differ by at most 3%.
	finest = 47
	// coarsest is how many more bits may be left out. Only the sign is left then: two buckets.
	coarsest = 63 - finest
	// fewShown buckets may be shown of any numbers. Of many, twice the cube root of their count.
	fewShown = 8
	// least is the smallest edge but zero: numbers that share a bucket with zero count as zero
	least = 1e-300
)

// Bucket is how many numbers lie between two bounds. A positive number on the border of two buckets
// is in the upper one, a negative one in the lower.
type Bucket struct {
	From, To float64
	Count    uint64
}

// buckets are those of a field's numbers, ascending; none while all numbers are equal.
type buckets struct {
	coarse uint8 // bits left out beyond the finest
	counts []counted
	// unknown says that an older program summed up some numbers without buckets
	unknown bool
}

type counted struct {
	at    int64 // the remaining bits, inverted for negative numbers
	count uint64
}

// placeOf returns the bucket of a number.
func (b *buckets) placeOf(number float64) int64 {
	out := finest + b.coarse
	if number < 0 {
		return ^int64(math.Float64bits(-number) >> out)
	}
	return int64(math.Float64bits(number+0) >> out) // make -0 a 0
}

// edge returns the least number with these first bits, or the greatest of all without any.
func (b *buckets) edge(at int64) float64 {
	bits := uint64(at) << (finest + b.coarse)
	edge := math.Float64frombits(min(bits, math.Float64bits(math.MaxFloat64)))
	if edge < least {
		return 0
	}
	return edge
}

// limits returns the numbers between which a bucket lies.
func (b *buckets) limits(at int64) (from, to float64) {
	if at < 0 {
		return -b.edge(^at + 1), -b.edge(^at) + 0
	}
	return b.edge(at), b.edge(at + 1)
}

// add adds count numbers to a bucket.
func (b *buckets) add(at int64, count uint64) {
	n := sort.Search(len(b.counts), func(n int) bool { return b.counts[n].at >= at })
	if n < len(b.counts) && b.counts[n].at == at {
		b.counts[n].count += count
		return
	}
	b.counts = slices.Insert(b.counts, n, counted{at, count})
	b.cut(MaxBuckets)
}

// cut makes buckets coarser until there are at most most, which is two or more.
func (b *buckets) cut(most int) {
	for len(b.counts) > most {
		b.coarsen()
	}
}

func (b *buckets) coarsen() {
	b.coarse++
	kept := b.counts[:0]
	for _, c := range b.counts {
		c.at >>= 1
		if last := len(kept) - 1; last >= 0 && kept[last].at == c.at {
			kept[last].count += c.count
		} else {
			kept = append(kept, c)
		}
	}
	b.counts = kept
}

// atMost returns a copy with at most most buckets.
func (b *buckets) atMost(most int) buckets {
	made := *b
	if len(b.counts) > most {
		made.counts = slices.Clone(b.counts)
		made.cut(most)
	}
	return made
}

// bucket adds count equal numbers to the buckets. Call it before they are counted.
func (f *Field) bucket(number float64, count uint64) {
	if f.Numbers() == 0 || f.Min == f.Max && f.Min == number || f.buckets.unknown {
		return
	}
	f.spread()
	f.buckets.add(f.buckets.placeOf(number), count)
}

// spread makes the bucket for numbers that were all equal.
func (f *Field) spread() {
	if len(f.buckets.counts) == 0 && f.Numbers() > 0 {
		f.buckets.add(f.buckets.placeOf(f.Min), f.Numbers())
	}
}

// mergeBuckets merges the other field's buckets. Call it before its numbers are counted.
func (f *Field) mergeBuckets(from *Field) {
	b, other := &f.buckets, &from.buckets
	switch {
	case from.Numbers() == 0:
	case b.unknown || other.unknown:
		*b = buckets{unknown: true}
	case len(other.counts) == 0:
		f.bucket(from.Min, from.Numbers())
	default:
		for f.spread(); b.coarse < other.coarse; {
			b.coarsen()
		}
		for _, c := range other.counts {
			b.add(c.at>>(b.coarse-other.coarse), c.count)
		}
	}
}

// Histogram returns the distribution of a field's numbers, ascending. Few numbers have few buckets,
// and empty ones are left out. The first bucket may begin below the least number, and the last one
// end above the greatest. nil: there are no numbers, or an older program summed them up.
func (f *Field) Histogram() (made []Bucket) {
	if f.Numbers() == 0 || f.buckets.unknown {
		return nil
	}
	if len(f.buckets.counts) == 0 {
		return []Bucket{{f.Min, f.Max, f.Numbers()}}
	}
	b := f.buckets.atMost(max(fewShown, int(2*math.Cbrt(float64(f.Numbers())))))
	for _, c := range b.counts {
		from, to := b.limits(c.at)
		made = append(made, Bucket{from, to, c.count})
	}
	return made
}

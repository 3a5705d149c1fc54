package profile

import (
	"math"
	"slices"
	"sort"
)

// Numbers of a field lie in buckets. Those in one begin with the same bits as a float64: the sign,
// the exponent and a part of the mantissa. Where there are too many buckets, one more bit is left
// out, and each two that differ in it alone become one. Which ones there are depends on the numbers
// alone, neither on their order nor on how they were divided.
const (
	// MaxBuckets are kept of a field.
	MaxBuckets = 32
	// finest is how many bits the finest buckets leave out: the numbers of one are within 3%.
	finest = 47
	// coarsest is how many more may be left out. What is left then is the sign: two buckets.
	coarsest = 63 - finest
	// fewShown may be shown of however few numbers. Of more it is twice the cube root of how many.
	fewShown = 8
	// least is what no edge but zero is below: what is with zero in a bucket is zero
	least = 1e-300
)

// Bucket is how many numbers lie from one to another. A positive number on the border of two is in
// the upper one, and a negative one in the lower.
type Bucket struct {
	From, To float64
	Count    uint64
}

// buckets are those of a field's numbers, ascending. There are none while all numbers are equal.
type buckets struct {
	coarse uint8 // bits left out beyond the finest
	counts []counted
	// unknown says that earlier programs summed up some of the numbers, without buckets
	unknown bool
}

type counted struct {
	at    int64 // the bits that are not left out, inverted of negative numbers
	count uint64
}

// placeOf is which bucket a number is in.
func (b *buckets) placeOf(number float64) int64 {
	out := finest + b.coarse
	if number < 0 {
		return ^int64(math.Float64bits(-number) >> out)
	}
	return int64(math.Float64bits(number+0) >> out) // of the two zeros, one
}

// edge is the least number whose bits begin like this, or the greatest of all where none does.
func (b *buckets) edge(at int64) float64 {
	bits := uint64(at) << (finest + b.coarse)
	edge := math.Float64frombits(min(bits, math.Float64bits(math.MaxFloat64)))
	if edge < least {
		return 0
	}
	return edge
}

// limits are between which numbers a bucket is.
func (b *buckets) limits(at int64) (from, to float64) {
	if at < 0 {
		return -b.edge(^at + 1), -b.edge(^at) + 0
	}
	return b.edge(at), b.edge(at + 1)
}

// add adds so many numbers of a bucket.
func (b *buckets) add(at int64, count uint64) {
	n := sort.Search(len(b.counts), func(n int) bool { return b.counts[n].at >= at })
	if n < len(b.counts) && b.counts[n].at == at {
		b.counts[n].count += count
		return
	}
	b.counts = slices.Insert(b.counts, n, counted{at, count})
	b.cut(MaxBuckets)
}

// cut makes buckets coarser until there are at most so many, which are two or more.
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

// atMost is a copy with at most so many.
func (b *buckets) atMost(most int) buckets {
	made := *b
	if len(b.counts) > most {
		made.counts = slices.Clone(b.counts)
		made.cut(most)
	}
	return made
}

// bucket adds so many equal numbers to the buckets. It goes before they are counted.
func (f *Field) bucket(number float64, count uint64) {
	if f.Numbers() == 0 || f.Min == f.Max && f.Min == number || f.buckets.unknown {
		return
	}
	f.spread()
	f.buckets.add(f.buckets.placeOf(number), count)
}

// spread makes the bucket of numbers that were all equal.
func (f *Field) spread() {
	if len(f.buckets.counts) == 0 && f.Numbers() > 0 {
		f.buckets.add(f.buckets.placeOf(f.Min), f.Numbers())
	}
}

// mergeBuckets goes before the other field's numbers are counted.
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

// Histogram says where the numbers of a field lie, the least first. Few numbers have few buckets,
// of which those without one are left out. The first may begin before the least number, and the
// last one end behind the greatest. nil: there are no numbers, or earlier programs summed them up.
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

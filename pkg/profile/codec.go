package profile

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// The encoding of sums begins with its version. Numbers are uvarints, except that fractions and
// hashes are 8 bytes, little-endian. The first version had no buckets, the second no truths.
const (
	version       = 3
	withoutTruths = 2
	withoutBucket = 1
)

// Bounds of an encoding. With MaxFields long names and numbers it takes about 250 KiB.
const (
	// allBuckets is the most buckets encoded for all fields, but at least fewBuckets for each
	allBuckets = 512
	fewBuckets = 4
	// mostHashes of one field are encoded, and allHashes of all, but at least fewHashes of each
	mostHashes = 256
	allHashes  = 8_192
	fewHashes  = 16
	// pageBytes bounds the sums in a page's record, because many records are read at a time
	pageBytes = 8 << 10
)

// Flags in a field's first byte, besides its kinds.
const (
	hasBound = 1 << kinds // some hashes are missing
	hasOne   = hasBound << 1
)

var errSums = errors.New("profile: not an encoding of sums")

// Append appends the encoding of sums.
func (s *Sums) Append(to []byte) []byte { return s.append(to, s.mostHashes()) }

// EncodePage encodes the sums of a page for its record. It halves the hashes of each field until
// the record has room, so only estimates of distinct values suffer. nil: one hash is too much.
func (s *Sums) EncodePage() []byte {
	hashes := s.mostHashes()
	encoded := s.append(nil, hashes)
	for len(encoded) > pageBytes {
		if hashes /= 2; hashes == 0 {
			return nil
		}
		encoded = s.append(nil, hashes)
	}
	return encoded
}

// mostHashes returns how many hashes of a field are encoded if there is room.
func (s *Sums) mostHashes() int {
	return max(min(mostHashes, allHashes/max(len(s.Fields), 1)), fewHashes)
}

// append appends the encoding with at most so many hashes of each field.
func (s *Sums) append(to []byte, hashes int) []byte {
	size := 16
	for _, f := range s.Fields { // enough for most pages
		size += 32 + len(f.Name) + 8*min(hashes, len(f.values.hashes)) + 4*len(f.buckets.counts)
	}
	to = slices.Grow(to, size)
	to = binary.AppendUvarint(append(to, version), s.Rows)
	more := byte(0)
	if s.More {
		more = 1
	}
	to = binary.AppendUvarint(append(to, more), uint64(len(s.Fields)))
	mostBuckets := max(min(MaxBuckets, allBuckets/max(len(s.Fields), 1)), fewBuckets)
	for _, f := range s.Fields {
		to = append(binary.AppendUvarint(to, uint64(len(f.Name))), f.Name...)
		to = f.append(to, hashes, mostBuckets)
	}
	return to
}

func (f *Field) append(to []byte, most, mostBuckets int) []byte {
	values := f.values
	values.cut(most)
	head := byte(0)
	for kind, count := range f.Kinds {
		if count > 0 {
			head |= 1 << kind
		}
	}
	if values.bound != 0 {
		head |= hasBound
	}
	one := f.Min == f.Max && f.Sum == f.Min*float64(f.Numbers())
	if one {
		head |= hasOne
	}
	to = append(to, head)
	for _, count := range f.Kinds {
		if count > 0 {
			to = binary.AppendUvarint(to, count)
		}
	}
	if f.Kinds[Boolean] > 0 {
		to = f.truths.append(to)
	}
	if f.Numbers() > 0 {
		to = appendFloat(to, f.Min)
		if !one {
			to = appendFloat(appendFloat(to, f.Max), f.Sum)
		}
		if f.Min != f.Max {
			to = f.buckets.append(to, mostBuckets)
		}
	}
	if f.Kinds[Text]+f.Kinds[Numeric] > 0 {
		to = binary.AppendUvarint(to, f.Length)
	}
	if values.bound != 0 {
		to = binary.LittleEndian.AppendUint64(to, values.bound)
	}
	to = binary.AppendUvarint(to, uint64(len(values.hashes)))
	for _, hash := range values.hashes {
		to = binary.LittleEndian.AppendUint64(to, hash)
	}
	return to
}

// append encodes the count from 1 on; 0: it is unknown.
func (t truths) append(to []byte) []byte {
	if t.unknown {
		return append(to, 0)
	}
	return binary.AppendUvarint(to, t.count+1)
}

// append encodes the buckets, or that there are none if they are unknown.
func (b *buckets) append(to []byte, most int) []byte {
	few := b.atMost(most)
	to = append(to, byte(len(few.counts)), few.coarse)
	before := int64(0)
	for n, c := range few.counts {
		if n == 0 {
			to = binary.AppendVarint(to, c.at)
		} else {
			to = binary.AppendUvarint(to, uint64(c.at-before))
		}
		to, before = binary.AppendUvarint(to, c.count), c.at
	}
	return to
}

func appendFloat(to []byte, number float64) []byte {
	return binary.LittleEndian.AppendUint64(to, math.Float64bits(number))
}

// Decode reads what Append wrote.
func Decode(encoded []byte) (*Sums, error) {
	r := reader{left: encoded}
	of := r.byte()
	if of < withoutBucket || of > version {
		return nil, errSums
	}
	s := &Sums{Rows: r.number(), More: r.byte() == 1}
	count := r.number()
	if count > MaxFields {
		return nil, errSums
	}
	for range count {
		f := &Field{Name: string(r.bytes(min(r.number(), MaxName+1)))}
		f.read(&r, of)
		if r.failed {
			return nil, errSums
		}
		s.Fields = append(s.Fields, f)
	}
	if r.failed || len(r.left) > 0 {
		return nil, errSums
	}
	return s, nil
}

func (f *Field) read(r *reader, of byte) {
	head := r.byte()
	for kind := range f.Kinds {
		if head&(1<<kind) != 0 {
			f.Kinds[kind] = r.number()
		}
	}
	if f.Kinds[Boolean] > 0 {
		f.truths.read(r, of, f.Kinds[Boolean])
	}
	if f.Numbers() > 0 {
		f.Min = r.float()
		f.Max, f.Sum = f.Min, f.Min*float64(f.Numbers())
		if head&hasOne == 0 {
			f.Max, f.Sum = r.float(), r.float()
		}
		switch {
		case f.Min == f.Max:
		case of == withoutBucket:
			f.buckets.unknown = true
		default:
			f.buckets.read(r, f.Numbers())
		}
	}
	if f.Kinds[Text]+f.Kinds[Numeric] > 0 {
		f.Length = r.number()
	}
	if head&hasBound != 0 {
		f.values.bound = r.word()
	}
	hashes := r.number()
	if hashes > uint64(len(r.left)/8) {
		r.failed = true
		return
	}
	for range hashes {
		f.values.hashes = append(f.values.hashes, r.word())
	}
}

// read decodes the truths of some booleans.
func (t *truths) read(r *reader, of byte, booleans uint64) {
	counted := uint64(0)
	if of > withoutTruths {
		counted = r.number()
	}
	if t.unknown = counted == 0; !t.unknown {
		t.count = counted - 1
	}
	r.failed = r.failed || t.count > booleans
}

// read decodes the buckets of some numbers.
func (b *buckets) read(r *reader, numbers uint64) {
	count := r.byte()
	b.coarse, b.unknown = r.byte(), count == 0
	if count > MaxBuckets || b.coarse > coarsest {
		r.failed = true
		return
	}
	b.counts = make([]counted, 0, count)
	at := int64(0)
	for n := range count {
		if n == 0 {
			at = r.signed()
		} else {
			at += int64(r.number())
		}
		b.counts = append(b.counts, counted{at, r.number()})
		numbers -= b.counts[n].count
	}
	r.failed = r.failed || numbers != 0 && !b.unknown
}

// reader reads an encoding. Once it has failed, everything it reads is zero.
type reader struct {
	left   []byte
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.failed, r.left = true, nil
		return nil
	}
	read := r.left[:n]
	r.left = r.left[n:]
	return read
}

func (r *reader) byte() byte {
	if read := r.bytes(1); read != nil {
		return read[0]
	}
	return 0
}

func (r *reader) number() uint64 {
	number, size := binary.Uvarint(r.left)
	if size <= 0 {
		r.failed, r.left = true, nil
		return 0
	}
	r.left = r.left[size:]
	return number
}

func (r *reader) signed() int64 {
	number, size := binary.Varint(r.left)
	if size <= 0 {
		r.failed, r.left = true, nil
		return 0
	}
	r.left = r.left[size:]
	return number
}

func (r *reader) word() uint64 {
	if read := r.bytes(8); read != nil {
		return binary.LittleEndian.Uint64(read)
	}
	return 0
}

func (r *reader) float() float64 { return math.Float64frombits(r.word()) }

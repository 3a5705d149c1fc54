package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

const (
	digestMillis = 60_000 // state time between two digests
	digestsKept  = 4
)

// DigestForm numbers what a digest sums and how. Only digests of one form can be compared.
const DigestForm = 1

// Digest is a checksum of the state at an index. It is equal on all replicas that applied the same
// commands, even if they started from a snapshot.
type Digest struct {
	Index uint64 `cbor:"1,keyasint"`
	Sum   uint64 `cbor:"2,keyasint"`
}

// summer sums records modulo 2^64, in any order. It reuses its buffers, so that a record costs no
// allocation.
type summer struct {
	codec  *codec.Codec
	buffer bytes.Buffer
	line   []byte        // of a run
	into   map[*kind]any // by table: the record that kind.encoded may use
}

func newSummer() summer { return summer{codec: codec.New(), into: map[*kind]any{}} }

// record returns what a record adds to the sum.
func (s *summer) record(k *kind, record any) uint64 {
	s.buffer.Reset()
	if s.into[k] == nil {
		s.into[k] = k.empty()
	}
	if err := s.codec.Write(&s.buffer, k.encoded(record, s.into[k])); err != nil {
		// a programmer's slip: snapshots encode it, too
		panic(fmt.Sprintf("state: encode a record of %s: %v", k.name, err))
	}
	return xxh3.HashSeed(s.buffer.Bytes(), xxh3.HashString(k.name))
}

// run returns what a run's sets add to the sum. Sums of its closed and set-aside seqs are kept:
// these may be many.
func (s *summer) run(r *Run) uint64 {
	sum := s.words(r.Job, nil, uint64(len(r.Out)), r.closedSum, r.begunSum)
	for seq, o := range r.Out {
		var flags uint64
		for i, set := range [...]bool{o.Limited, o.Unbilled, o.Read != nil} {
			if set {
				flags |= 1 << i
			}
		}
		var read Read
		if o.Read != nil {
			read = *o.Read
		}
		sum += s.words(r.Job, &o.Chain, uint64(seq), o.Number, uint64(o.Attempt), uint64(o.Tiers),
			uint64(o.Grant), uint64(o.Free), uint64(o.Price), uint64(read.Day), read.Domain, flags)
	}
	return sum
}

// words hashes numbers of a run and, unless it is nil, a chain.
func (s *summer) words(job ids.ID, chain *Chain, numbers ...uint64) uint64 {
	b := append(s.line[:0], job[:]...)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	if chain != nil {
		b = chain.append(b)
	}
	s.line = b
	return xxh3.Hash(b)
}

// append adds the chain to what is hashed.
func (c *Chain) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, c.Domain), c.Start)
	from := c.From
	if from == nil {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, from.Page)
	for _, hashes := range [...][]uint64{from.Seen, from.KnownRows} {
		b = append(b, byte(len(hashes))) // at most MaxKnownRows
		for _, n := range hashes {
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	if from.Rendered {
		b = append(b, 1)
	}
	return append(b, from.URL...)
}

// sumOfChain returns what a seq that is set aside adds to its run's sum.
func sumOfChain(seq uint32, chain *Chain) uint64 {
	return xxh3.Hash(chain.append(binary.BigEndian.AppendUint32(nil, seq)))
}

// sumOfSeq returns what a closed seq adds to its run's sum. It is the output function of SplitMix64
// (Steele, Lea and Flood, 2014), so that neighbours do not cancel out.
func sumOfSeq(seq uint32) uint64 {
	z := (uint64(seq) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Digests returns the newest digests of this replica, ascending. All replicas take them at the same
// indexes: at the first command of each minute of state time.
func (s *Store) Digests() []Digest {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.digests)
}

// digest takes the state's digest after a command. The caller holds the lock.
func (s *Store) digest() {
	sum := s.sum + xxh3.Hash(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil,
		uint64(s.now)), s.dispatched))
	for _, run := range s.runs {
		sum += s.summer.run(run)
	}
	if len(s.digests) == digestsKept {
		s.digests = slices.Delete(s.digests, 0, 1)
	}
	s.digests = append(s.digests, Digest{Index: s.index, Sum: sum})
}

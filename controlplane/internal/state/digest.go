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

// run returns what a run's sets add to the sum. It covers the whole out set, but only the sizes of
// the closed and begun sets, which may be large.
func (s *summer) run(r *Run) uint64 {
	words := func(job ids.ID, numbers ...uint64) uint64 {
		s.buffer.Reset()
		_, _ = s.buffer.Write(job[:]) // a buffer never fails
		for _, n := range numbers {
			_, _ = s.buffer.Write(binary.BigEndian.AppendUint64(s.buffer.AvailableBuffer(), n))
		}
		return xxh3.Hash(s.buffer.Bytes())
	}
	sum := words(r.Job, uint64(len(r.Out)), r.Closed.GetCardinality(), uint64(len(r.Begun)))
	for seq, o := range r.Out {
		flags := uint64(o.Domain) << 1
		if o.Limited {
			flags |= 1
		}
		sum += words(r.Job, uint64(seq), uint64(o.Start), o.Number, uint64(o.Attempt),
			uint64(o.Tiers), uint64(o.Grant),
			uint64(o.Free), uint64(o.Price), flags)
	}
	return sum
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

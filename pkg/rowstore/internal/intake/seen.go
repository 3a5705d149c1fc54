package intake

import (
	"encoding/binary"
	"fmt"
	"os"
)

// A slot of the table of seen addresses holds 41 bits of the hash, then 23 bits of seq + 1; 0 is
// empty. With the 6 bits that choose the segment, 47 bits of two hashes must agree before the
// addresses are compared.
const (
	segmentBits  = 6
	seqBits      = 23
	fragmentBits = 64 - seqBits
	firstSlots   = 16
)

// seen is the set of the canonical addresses of a list. It is an open-addressed table of their
// seeded hashes, 10 to 20 bytes per address. Segments grow one at a time, so only a small part is
// in memory twice.
type seen struct {
	segments [1 << segmentBits][]uint64
	used     [1 << segmentBits]int
}

// add adds seq under a hash, unless same reports that a seq with an equal hash has the same
// address.
func (s *seen) add(hash uint64, seq uint32, same func(seq uint32) (bool, error)) (added bool,
	err error) {
	segment := hash >> (64 - segmentBits)
	fragment := hash << segmentBits >> (64 - fragmentBits)
	slots := s.segments[segment]
	if 5*(s.used[segment]+1) > 4*len(slots) { // at most 0.8 full
		slots = grown(slots)
		s.segments[segment] = slots
	}
	at := home(fragment, len(slots))
	for slots[at] != 0 {
		if slots[at]>>seqBits == fragment {
			if found, err := same(uint32(slots[at]&(1<<seqBits-1)) - 1); found || err != nil {
				return false, err
			}
		}
		at = (at + 1) % len(slots)
	}
	slots[at] = fragment<<seqBits | uint64(seq+1)
	s.used[segment]++
	return true, nil
}

// home returns the first slot to try for a fragment. The number of slots is a power of two.
func home(fragment uint64, slots int) int { return int(fragment) & (slots - 1) }

// grown returns a table of twice the size with the same content.
func grown(slots []uint64) []uint64 {
	bigger := make([]uint64, max(2*len(slots), firstSlots))
	for _, slot := range slots {
		if slot == 0 {
			continue
		}
		at := home(slot>>seqBits, len(bigger))
		for bigger[at] != 0 {
			at = (at + 1) % len(bigger)
		}
		bigger[at] = slot
	}
	return bigger
}

// bytes returns the memory that the table takes.
func (s *seen) bytes() int {
	slots := 0
	for _, segment := range s.segments {
		slots += cap(segment)
	}
	return 8 * slots
}

const (
	spoolBlock  = 64       // addresses between two known offsets
	spoolBuffer = 64 << 10 // bytes written at once
)

// spool keeps the canonical addresses of a list during its intake, for comparison. Its file has no
// name, so it vanishes when it is closed or the process dies.
type spool struct {
	file    *os.File
	offsets []int64 // of every block's first address
	count   uint32
	written int64
	tail    []byte // not written yet
	block   []byte // for reading
}

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, "intake-*")
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // the first error counts
		return nil, fmt.Errorf("spool: %w", err)
	}
	return &spool{file: file}, nil
}

func (s *spool) close() error { return s.file.Close() }

func (s *spool) add(address string) error {
	if s.count%spoolBlock == 0 {
		s.offsets = append(s.offsets, s.written+int64(len(s.tail)))
	}
	s.count++
	s.tail = binary.AppendUvarint(s.tail, uint64(len(address)))
	s.tail = append(s.tail, address...)
	if len(s.tail) >= spoolBuffer {
		return s.flush()
	}
	return nil
}

func (s *spool) flush() error {
	if _, err := s.file.WriteAt(s.tail, s.written); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.written += int64(len(s.tail))
	s.tail = s.tail[:0]
	return nil
}

// is reports whether the address added under seq equals address.
func (s *spool) is(seq uint32, address string) (bool, error) {
	block := int(seq / spoolBlock)
	from, to := s.offsets[block], s.written+int64(len(s.tail))
	if block+1 < len(s.offsets) {
		to = s.offsets[block+1]
	}
	if to > s.written {
		if err := s.flush(); err != nil {
			return false, err
		}
	}
	if n := int(to - from); cap(s.block) < n {
		s.block = make([]byte, n)
	}
	data := s.block[:to-from]
	if _, err := s.file.ReadAt(data, from); err != nil {
		return false, fmt.Errorf("spool: %w", err)
	}
	for range seq % spoolBlock {
		length, n := binary.Uvarint(data)
		data = data[n+int(length):]
	}
	length, n := binary.Uvarint(data)
	return string(data[n:n+int(length)]) == address, nil
}

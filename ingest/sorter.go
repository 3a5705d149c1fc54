package ingest

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/upload"
)

// sorter sorts more rows than fit into memory. Parts that fit are sorted there, and written to one
// file. The file has no name any more: nothing is left of a process that dies. Then all parts are
// read side by side.
type sorter struct {
	memory int   // bytes of rows of a part
	disk   int64 // bytes of all parts
	floor  *telemetry.Disk

	file   *os.File
	parts  []part  // on the disk
	length int64   // of the file
	left   strands // rows that are not visited yet, once parts are read
	read   bool    // they are
	rows   []sorted
	size   int // of rows, in bytes
}

// part is where a sorted part lies in the file.
type part struct{ from, to int64 }

// sorted is a row with what it is sorted by.
type sorted struct {
	key   string
	place uint32 // of its run
	doc   []byte
}

const (
	rowOverhead = 64       // bytes of memory of a row beside its texts
	partBuffer  = 16 << 10 // bytes of a part that are read at a time
)

// errNoRoom says that the disk on which rows are sorted has less room than its floor.
var errNoRoom = errors.New("the disk has too little room to sort rows")

// newSorter makes one in a directory, "" for the system's. The floor of its disk stays free; nil:
// it is not looked.
func newSorter(dir string, floor *telemetry.Disk, memory int, disk int64) (*sorter, error) {
	if floor.Short() {
		return nil, errNoRoom
	}
	file, err := os.CreateTemp(dir, "merge-*")
	if err != nil {
		return nil, fmt.Errorf("room for sorting: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("room for sorting: %w", err), file.Close())
	}
	return &sorter{memory: memory, disk: disk, floor: floor, file: file}, nil
}

// Close gives back the disk.
func (s *sorter) Close() error { return s.file.Close() }

// Add adds a row of a run. Of equal keys those of a lower place come first, and of equal places
// those that were added first. The row is the sorter's from then on. Its error is a Refusal where
// the bound of all parts is reached, and errNoRoom where the disk is short.
func (s *sorter) Add(key string, place uint32, doc []byte) error {
	s.rows = append(s.rows, sorted{key, place, doc})
	if s.size += len(key) + len(doc) + rowOverhead; s.size < s.memory {
		return nil
	}
	return s.spill()
}

// spill writes what is in memory, sorted.
func (s *sorter) spill() error {
	if s.floor.Short() {
		return errNoRoom
	}
	slices.SortStableFunc(s.rows, inOrder)
	to := bufio.NewWriterSize(s.file, partBuffer)
	from := s.length
	var head []byte
	for _, row := range s.rows {
		head = appendHead(head[:0], row)
		s.length += int64(len(head) + len(row.key) + len(row.doc))
		if s.length > s.disk {
			return &upload.Refusal{Reason: "the runs are too large to be merged: together they " +
				fmt.Sprintf("have more than %d GiB", s.disk>>30)}
		}
		_, _ = to.Write(head) // Flush has the error
		_, _ = to.WriteString(row.key)
		_, _ = to.Write(row.doc)
	}
	if err := to.Flush(); err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	s.parts = append(s.parts, part{from, s.length})
	clear(s.rows)
	s.rows, s.size = s.rows[:0], 0
	return nil
}

// appendHead appends what stands before a row's texts.
func appendHead(to []byte, row sorted) []byte {
	to = binary.AppendUvarint(to, uint64(len(row.key)))
	to = binary.AppendUvarint(to, uint64(row.place))
	return binary.AppendUvarint(to, uint64(len(row.doc)))
}

func inOrder(a, b sorted) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place))
}

// Each visits all rows in their order, once nothing is added any more. Where visit ends it, the
// next Each goes on behind the row that was visited last.
func (s *sorter) Each(visit func(key string, place uint32, doc []byte) error) error {
	if !s.read {
		if err := s.open(); err != nil {
			return err
		}
	}
	for len(s.left) > 0 {
		first := s.left[0]
		row := first.row
		more, err := first.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&s.left, 0)
		} else {
			heap.Pop(&s.left)
		}
		if err := visit(row.key, row.place, row.doc); err != nil {
			return err
		}
	}
	return nil
}

// open begins to read the parts.
func (s *sorter) open() error {
	if err := s.spill(); err != nil {
		return err
	}
	for n, p := range s.parts {
		one := &strand{part: n, end: p.from, from: bufio.NewReaderSize(io.NewSectionReader(s.file,
			p.from, p.to-p.from), partBuffer)}
		if more, err := one.next(); err != nil {
			return err
		} else if more {
			s.left = append(s.left, one)
		}
	}
	heap.Init(&s.left)
	s.read = true
	return nil
}

// Pause gives back the memory of the rows that are not visited yet. Each goes on with them.
func (s *sorter) Pause() {
	slices.SortFunc(s.left, func(a, b *strand) int { return cmp.Compare(a.part, b.part) })
	parts := make([]part, 0, len(s.left))
	for _, one := range s.left {
		parts = append(parts, part{one.at, s.parts[one.part].to})
	}
	s.parts, s.left, s.read = parts, nil, false
}

// strand reads a part.
type strand struct {
	part int
	from *bufio.Reader
	row  sorted
	at   int64 // where row begins in the file
	end  int64 // and ends
}

// next reads a row, and says whether there was one.
func (s *strand) next() (more bool, err error) {
	length, err := binary.ReadUvarint(s.from)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	place, errPlace := binary.ReadUvarint(s.from)
	doc, errDoc := binary.ReadUvarint(s.from)
	if err := errors.Join(err, errPlace, errDoc); err != nil {
		return false, fmt.Errorf("sorted rows: %w", err)
	}
	text := make([]byte, length+doc)
	if _, err := io.ReadFull(s.from, text); err != nil {
		return false, fmt.Errorf("sorted rows: %w", err)
	}
	s.row = sorted{string(text[:length]), uint32(place), text[length:]}
	head := len(appendHead(make([]byte, 0, 3*binary.MaxVarintLen64), s.row))
	s.at, s.end = s.end, s.end+int64(head+len(text))
	return true, nil
}

// strands is a heap with the first row on top. Parts were made one after the other. So the earlier
// part has what was added first.
type strands []*strand

func (s strands) Len() int { return len(s) }
func (s strands) Less(i, j int) bool {
	return cmp.Or(inOrder(s[i].row, s[j].row), cmp.Compare(s[i].part, s[j].part)) < 0
}
func (s strands) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *strands) Push(x any)   { *s = append(*s, x.(*strand)) }
func (s *strands) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

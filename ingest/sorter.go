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

// sorter sorts more rows than fit into memory. It sorts parts that fit in memory and writes them to
// one file. The file is unlinked, so a process that dies leaves nothing. Then it merges the parts.
type sorter struct {
	memory int   // bytes of rows per part
	disk   int64 // bytes of all parts
	floor  *telemetry.Disk

	file   *os.File
	parts  []part  // on disk
	length int64   // of the file
	left   strands // rows not visited yet, once parts are read
	read   bool    // parts are being read
	rows   []sorted
	size   int // of rows, in bytes
}

// part is the position of a sorted part in the file.
type part struct{ from, to int64 }

// sorted is a row with its sort key.
type sorted struct {
	key   string
	place uint32 // of its run
	doc   []byte
}

const (
	rowOverhead = 64       // bytes of memory per row besides its texts
	partBuffer  = 16 << 10 // bytes of a part that are read at a time
)

// errNoRoom says that the disk on which rows are sorted has less room than its floor.
var errNoRoom = errors.New("the disk has too little room to sort rows")

// newSorter makes a sorter in a directory, "" for the system's. It keeps the floor of the disk
// free; nil: no check.
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

// Close releases the disk space.
func (s *sorter) Close() error { return s.file.Close() }

// Add adds a row of a run. Equal keys are sorted by place, and equal places in the order of Add.
// The sorter owns the row from then on. The error is a Refusal if all parts reach their bound, and
// errNoRoom if the disk is short.
func (s *sorter) Add(key string, place uint32, doc []byte) error {
	s.rows = append(s.rows, sorted{key, place, doc})
	if s.size += len(key) + len(doc) + rowOverhead; s.size < s.memory {
		return nil
	}
	return s.spill()
}

// spill writes the rows in memory to the disk, sorted.
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
		_, _ = to.Write(head) // Flush returns the error
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

// appendHead appends the header before a row's texts.
func appendHead(to []byte, row sorted) []byte {
	to = binary.AppendUvarint(to, uint64(len(row.key)))
	to = binary.AppendUvarint(to, uint64(row.place))
	return binary.AppendUvarint(to, uint64(len(row.doc)))
}

func inOrder(a, b sorted) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place))
}

// Each visits all rows in order, after the last Add. If visit ends it, the next Each continues
// after the last visited row.
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

// Pause releases the memory of the rows not visited yet. Each continues with them.
func (s *sorter) Pause() {
	slices.SortFunc(s.left, func(a, b *strand) int { return cmp.Compare(a.part, b.part) })
	parts := make([]part, 0, len(s.left))
	for _, one := range s.left {
		parts = append(parts, part{one.at, s.parts[one.part].to})
	}
	s.parts, s.left, s.read = parts, nil, false
}

// strand reads one part.
type strand struct {
	part int
	from *bufio.Reader
	row  sorted
	at   int64 // offset of the row in the file
	end  int64 // end of the part
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

// strands is a heap with the first row on top. Parts are numbered in the order they were made. So
// among equal rows the one added first comes first.
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

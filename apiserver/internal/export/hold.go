package export

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Disk is where an export may put what it cannot send yet, in files without a name.
type Disk interface {
	// Dir is the folder; "" is the system's for temporary files.
	Dir() string
	// TakeRoom takes room of so many bytes before they are written. An error: there is none.
	TakeRoom(bytes int64) error
}

const (
	// heldInMemory is how many bytes of cells are in memory, and wait for a file of their own.
	heldInMemory = 256 << 10
	// maxHeld is how many are held of one export: about two million rows of 480 bytes.
	maxHeld = 1 << 30
)

// hold keeps the cells of rows from the look at them to their writing. A block has the length of
// its bytes before it, then rows: how many cells, and of each its place, length and text. It gives
// up where there is no room.
type hold struct {
	disk    Disk
	file    *os.File // nil: all is in last
	written int64
	last    []byte // behind what is in the file
	gone    bool   // it has given up
}

// newHold is empty. Without a disk it gives up at once.
func newHold(disk Disk) *hold { return &hold{disk: disk, gone: disk == nil} }

func (h *hold) add(cells []cell) {
	if h.gone {
		return
	}
	h.last = binary.AppendUvarint(h.last, uint64(len(cells)))
	for _, c := range cells {
		h.last = binary.AppendUvarint(h.last, uint64(c.place))
		h.last = append(binary.AppendUvarint(h.last, uint64(len(c.value))), c.value...)
	}
	if len(h.last) >= heldInMemory && h.put() != nil {
		h.close()
	}
}

// errNoRoom is why a hold gives up.
var errNoRoom = errors.New("export: no room to hold the rows")

// put writes what is in memory to the file, as a block.
func (h *hold) put() error {
	size := int64(len(h.last)) + binary.MaxVarintLen64
	if h.written+size > maxHeld {
		return errNoRoom
	}
	if err := h.disk.TakeRoom(size); err != nil {
		return err
	}
	if h.file == nil {
		file, err := os.CreateTemp(h.disk.Dir(), "rows-*")
		if err != nil {
			return err
		}
		h.file = file
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
	}
	length := binary.AppendUvarint(nil, uint64(len(h.last)))
	for _, bytes := range [][]byte{length, h.last} {
		n, err := h.file.Write(bytes)
		if err != nil {
			return err
		}
		h.written += int64(n)
	}
	h.last = h.last[:0]
	return nil
}

// whole says whether it has all rows that were added.
func (h *hold) whole() bool { return !h.gone }

// close removes what it holds.
func (h *hold) close() {
	if h.file != nil {
		_ = h.file.Close() // nothing of it is kept
	}
	h.gone, h.file, h.last = true, nil, nil
}

// each visits the cells of the rows that were added, until close.
func (h *hold) each(ctx context.Context, visit func([]cell) error) error {
	var cells []cell
	if h.file != nil {
		in := bufio.NewReaderSize(io.NewSectionReader(h.file, 0, h.written), 64<<10)
		for {
			length, err := binary.ReadUvarint(in)
			if errors.Is(err, io.EOF) {
				break
			}
			block := make([]byte, length)
			if err == nil {
				_, err = io.ReadFull(in, block)
			}
			if err != nil {
				return fmt.Errorf("read held rows back: %w", err)
			}
			if cells, err = eachHeld(ctx, string(block), cells, visit); err != nil {
				return err
			}
		}
	}
	_, err := eachHeld(ctx, string(h.last), cells, visit)
	return err
}

// eachHeld visits the rows of a block. cells is room for those of a row.
func eachHeld(ctx context.Context, block string, cells []cell,
	visit func([]cell) error) ([]cell, error) {
	if err := ctx.Err(); err != nil {
		return cells, err
	}
	number := func() (n uint64) {
		for shift := 0; ; shift += 7 {
			b := block[0]
			block = block[1:]
			if n |= uint64(b&0x7f) << shift; b < 0x80 {
				return n
			}
		}
	}
	for block != "" {
		cells = cells[:0]
		for range number() {
			place, length := number(), number()
			cells = append(cells, cell{int(place), block[:length]})
			block = block[length:]
		}
		if err := visit(cells); err != nil {
			return cells, err
		}
	}
	return cells, nil
}

package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Disk is where an export may keep what it cannot send yet, in unnamed files.
type Disk interface {
	// Dir is the folder; "": the system's temporary folder.
	Dir() string
	// TakeRoom reserves space before it is written. It fails if there is none.
	TakeRoom(bytes int64) error
}

const (
	// spooledInMemory is how many bytes stay in memory before they go to a file.
	spooledInMemory = 256 << 10
	// maxSpooled is how many bytes an export keeps: about two million rows of 480 bytes.
	maxSpooled = 1 << 30
)

// spool keeps bytes from the first pass over rows to their writing. Without room it gives up.
type spool struct {
	disk    Disk
	file    *os.File // nil: everything is in last
	written int64
	last    []byte // bytes that are not in the file yet
	gone    bool   // it gave up, or was closed
}

// newSpool makes an empty spool. Without a disk it gives up at once.
func newSpool(disk Disk) spool { return spool{disk: disk, gone: disk == nil} }

// full says whether the bytes in memory have to go to the file.
func (s *spool) full() bool { return len(s.last) >= spooledInMemory }

// put writes head and the bytes in memory to the file, or gives up.
func (s *spool) put(head []byte) {
	if s.tryPut(head) != nil {
		s.close()
	}
}

// errNoRoom is why a spool gives up.
var errNoRoom = errors.New("export: no room to keep the rows")

func (s *spool) tryPut(head []byte) error {
	size := int64(len(head) + len(s.last))
	if s.written+size > maxSpooled {
		return errNoRoom
	}
	if err := s.disk.TakeRoom(size); err != nil {
		return err
	}
	if s.file == nil {
		file, err := os.CreateTemp(s.disk.Dir(), "rows-*")
		if err != nil {
			return err
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
	}
	for _, part := range [][]byte{head, s.last} {
		n, err := s.file.Write(part)
		if s.written += int64(n); err != nil {
			return err
		}
	}
	s.last = s.last[:0]
	return nil
}

// putBlock writes the bytes in memory with their length in front, for eachBlock.
func (s *spool) putBlock() { s.put(binary.AppendUvarint(nil, uint64(len(s.last)))) }

// eachBlock visits the blocks in the file.
func (s *spool) eachBlock(ctx context.Context, visit func(block string) error) error {
	in := bufio.NewReaderSize(s.filed(), 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		length, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var block strings.Builder
		if err == nil {
			block.Grow(int(length))
			_, err = io.CopyN(&block, in, int64(length))
		}
		if err != nil {
			return fmt.Errorf("read held rows back: %w", err)
		}
		if err := visit(block.String()); err != nil {
			return err
		}
	}
}

// size is how many bytes it holds.
func (s *spool) size() int64 { return s.written + int64(len(s.last)) }

// filed reads the bytes in the file.
func (s *spool) filed() io.Reader {
	if s.file == nil {
		return bytes.NewReader(nil)
	}
	return io.NewSectionReader(s.file, 0, s.written)
}

// whole says whether it holds all that was added.
func (s *spool) whole() bool { return !s.gone }

// close drops what it holds.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // the file has no name and goes
	}
	s.gone, s.file, s.last = true, nil, nil
}

// Package backup owns the file format of a saved cluster state, and the check that a file is
// complete. Package state defines the state's bytes. Other packages decide when a backup is taken,
// and what happens at a restore.
//
// A file has the eight bytes of magic, a header, pieces, and the SHA-256 of everything before the
// digest. Each piece follows its length, four bytes (big-endian); a piece of length 0 is the last.
// So a file can be streamed, and Read refuses one that is cut off or damaged anywhere.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// Format is the version written. Every version ever released stays readable (testdata).
const Format = 1

const (
	magic     = "shoalbak"
	maxHeader = 4 << 10
	maxPiece  = 1 << 20
	piece     = 256 << 10
)

// Header describes a backup.
type Header struct {
	Format  int    `cbor:"1,keyasint"`
	Cluster ids.ID `cbor:"2,keyasint"`
	Shards  uint16 `cbor:"3,keyasint"`
	Index   uint64 `cbor:"4,keyasint"` // Raft index of the newest command included
	Term    uint64 `cbor:"5,keyasint"`
	Taken   int64  `cbor:"6,keyasint"` // Unix milliseconds
}

// ErrDamaged is wrapped by errors of Read whose cause is the file.
var ErrDamaged = errors.New("not a whole backup")

// Write writes a backup of the bytes that state writes.
func Write(w io.Writer, h Header, state func(io.Writer) error) error {
	h.Format = Format
	header, err := codec.New().Marshal(h)
	if err != nil {
		return fmt.Errorf("backup: header: %w", err)
	}
	sum := sha256.New()
	to := &pieces{w: io.MultiWriter(w, sum)}
	if _, err := to.w.Write([]byte(magic)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := to.put(header); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	buffered := bufio.NewWriterSize(to, piece)
	if err := state(buffered); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := to.put(nil); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// pieces splits each Write into pieces.
type pieces struct{ w io.Writer }

func (p *pieces) put(data []byte) error {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(data)))
	if _, err := p.w.Write(length[:]); err != nil {
		return err
	}
	_, err := p.w.Write(data)
	return err
}

// Write implements io.Writer.
func (p *pieces) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		n := min(len(data), maxPiece)
		if err := p.put(data[:n]); err != nil {
			return written, err
		}
		written, data = written+n, data[n:]
	}
	return written, nil
}

// Read reads a backup to its end and copies the state's bytes to state. Use them only if it returns
// nil.
func Read(r io.Reader, state io.Writer) (Header, error) {
	sum := sha256.New()
	from := &reader{r: bufio.NewReaderSize(r, 1<<16), sum: sum}
	start := make([]byte, len(magic))
	if err := from.full(start); err != nil {
		return Header{}, err
	}
	if string(start) != magic {
		return Header{}, fmt.Errorf("backup: %w: it does not begin like one", ErrDamaged)
	}
	var h Header
	encoded, err := from.next(maxHeader)
	if err != nil {
		return h, err
	}
	if err := codec.New().Unmarshal(encoded, &h); err != nil {
		return h, fmt.Errorf("backup: %w: header: %w", ErrDamaged, err)
	}
	if h.Format < 1 || h.Format > Format {
		return h, fmt.Errorf("backup: %w: its format is %d, known here up to %d", ErrDamaged,
			h.Format, Format)
	}
	for {
		data, err := from.next(maxPiece)
		if err != nil {
			return h, err
		}
		if len(data) == 0 {
			return h, from.end()
		}
		if _, err := state.Write(data); err != nil {
			return h, fmt.Errorf("backup: keep the state: %w", err)
		}
	}
}

type reader struct {
	r   *bufio.Reader
	sum hash.Hash
	buf []byte
}

func (r *reader) full(into []byte) error {
	if _, err := io.ReadFull(r.r, into); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("backup: %w: it is cut off", ErrDamaged)
		}
		return fmt.Errorf("backup: read: %w", err)
	}
	_, _ = r.sum.Write(into) // a hash never fails
	return nil
}

// next reads a piece, which is valid until the next call.
func (r *reader) next(most uint32) ([]byte, error) {
	var length [4]byte
	if err := r.full(length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > most {
		return nil, fmt.Errorf("backup: %w: a piece of %d bytes", ErrDamaged, n)
	}
	if uint32(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	data := r.buf[:n]
	return data, r.full(data)
}

// end checks the digest, and that nothing follows it.
func (r *reader) end() error {
	want := r.sum.Sum(nil)
	digest := make([]byte, sha256.Size)
	if err := r.full(digest); err != nil {
		return err
	}
	if !bytes.Equal(digest, want) {
		return fmt.Errorf("backup: %w: its digest does not fit", ErrDamaged)
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("backup: %w: something follows its end", ErrDamaged)
	}
	return nil
}

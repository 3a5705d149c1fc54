// Package intake takes in link lists for every row store. It owns the exact deduplication of
// addresses in bounded memory, and the encoding of links in chunks. It also limits how many lists
// are taken in at a time. It does not store anything: a store writes the chunks that come out.
package intake

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Bounds of lists.
const (
	MaxLinks     = 5_000_000
	MaxLinkBytes = 8 << 10
	maxIntakes   = 32      // lists taken in at a time
	hugeFrom     = 200_000 // links; of larger lists, one at a time
	chunksAtOnce = 8       // gathered before they are written
	bytesAtOnce  = 1 << 20 // packed, about
)

// ErrOver is the error for a list that was already finished or aborted.
var ErrOver = errors.New("row store: the intake is over")

// Gate limits how many lists are taken in at a time: 32, of which one may exceed 200,000 links.
type Gate struct{ all, huge chan struct{} }

// NewGate makes a gate for one store.
func NewGate() *Gate {
	return &Gate{all: make(chan struct{}, maxIntakes), huge: make(chan struct{}, 1)}
}

// List is a list that is being taken in: its full chunks gather until the store has written them.
// Only one goroutine may use it.
type List struct {
	gate *Gate
	name string
	hash func(canonical string, seed uint64) uint64
	seed uint64
	seen seen
	file *spool

	count  uint32
	chunk  []byte   // being filled
	packed [][]byte // full, not written yet
	bytes  int      // of packed
	stored int      // chunks written
	huge   bool     // holds the permit
	over   bool
}

// BeginList waits for its turn and begins a list. dir holds the canonical addresses meanwhile
// (empty: the system's temporary folder). Errors call the list name.
func (g *Gate) BeginList(ctx context.Context, dir, name string) (*List, error) {
	select {
	case g.all <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("row store: wait for an intake: %w", ctx.Err())
	}
	file, err := newSpool(dir)
	if err != nil {
		<-g.all
		return nil, fmt.Errorf("row store: list %s: %w", name, err)
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // Read crashes the program instead of failing
	return &List{gate: g, name: name, hash: xxh3.HashStringSeed,
		seed: binary.LittleEndian.Uint64(seed[:]), file: file}, nil
}

// Add adds an address unless the list has its canonical form. The caller checks Full first.
func (l *List) Add(url, canonical string) (bool, error) {
	switch {
	case l.over:
		return false, ErrOver
	case l.count == MaxLinks:
		return false, fmt.Errorf("row store: list %s has %d links already", l.name, MaxLinks)
	case len(url) > MaxLinkBytes || len(canonical) > MaxLinkBytes:
		return false, fmt.Errorf("row store: a link of list %s has more than %d bytes", l.name,
			MaxLinkBytes)
	}
	added, err := l.seen.add(l.hash(canonical, l.seed), l.count, func(seq uint32) (bool, error) {
		return l.file.is(seq, canonical)
	})
	if err == nil && added {
		err = l.file.add(canonical)
	}
	if err != nil {
		return false, fmt.Errorf("row store: list %s: %w", l.name, err)
	}
	if !added {
		return false, nil
	}
	l.chunk = appendLink(l.chunk, url)
	l.count++
	if l.count%ChunkLinks == 0 {
		l.Pack()
	}
	return true, nil
}

// Wait blocks until this list may grow large: only one list at a time may.
func (l *List) Wait(ctx context.Context) error {
	if l.over {
		return ErrOver
	}
	if l.count != hugeFrom || l.huge {
		return nil
	}
	select {
	case l.gate.huge <- struct{}{}:
		l.huge = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("row store: wait for another large list: %w", ctx.Err())
	}
}

// Full reports that the gathered chunks must be written before more is added.
func (l *List) Full() bool { return len(l.packed) >= chunksAtOnce || l.bytes >= bytesAtOnce }

// Pack ends the chunk that is being filled.
func (l *List) Pack() {
	if len(l.chunk) > 0 {
		data := packChunk(l.chunk)
		l.packed = append(l.packed, data)
		l.bytes += len(data)
		l.chunk = l.chunk[:0]
	}
}

// Packed returns the gathered chunks and the number of the first.
func (l *List) Packed() (first int, chunks [][]byte) { return l.stored, l.packed }

// Written drops the gathered chunks: they are stored.
func (l *List) Written() {
	l.stored += len(l.packed)
	clear(l.packed)
	l.packed, l.bytes = l.packed[:0], 0
}

// Count returns how many links were added.
func (l *List) Count() uint32 { return l.count }

// Over reports whether End was called.
func (l *List) Over() bool { return l.over }

// End releases what the list holds. Idempotent.
func (l *List) End() error {
	if l.over {
		return nil
	}
	l.over = true
	if l.huge {
		<-l.gate.huge
	}
	<-l.gate.all
	l.seen, l.chunk, l.packed = seen{}, nil, nil
	return l.file.close()
}

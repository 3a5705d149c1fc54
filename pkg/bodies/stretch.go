package bodies

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/blobstore"
)

// Bounds of one read of a pack. A longer entry is read alone.
const (
	maxStretch = 256 << 10
	// maxGap is the most bytes between two entries that are read in vain. Opening a pack again
	// takes longer, above all on a server.
	maxGap = 64 << 10
	// maxRoom is the most memory that a Reader keeps between two entries.
	maxRoom = 4 << 20
)

// Stretch is a part of one pack, with entries that are read together.
type Stretch struct {
	Places []*Place // in the order of their bytes

	key  blobstore.Key
	from int64
	end  int64
}

// key returns the key of the pack of a place.
func (p *Place) key() blobstore.Key {
	by := p.From()
	return Pack{Group: by.Group, Scraper: p.Scraper, Job: by.Job, ID: p.Kept.Pack,
		Days: p.Kept.Days}.Key(p.Customer)
}

// Has reports whether the record refers to any bodies.
func (p *Place) Has() bool {
	return p.Kept != nil && p.Kept.Length > 0 && p.Kept.Length <= MaxEntry
}

// Stretches returns the parts of packs that hold the entries of places. Has must be true for each
// place. It sorts places.
func Stretches(places []*Place) (all []Stretch) {
	slices.SortStableFunc(places, func(a, b *Place) int {
		return cmp.Or(bytes.Compare(a.Kept.Pack[:], b.Kept.Pack[:]),
			cmp.Compare(a.Kept.Offset, b.Kept.Offset))
	})
	var last *Stretch
	for _, p := range places {
		key, from := p.key(), int64(p.Kept.Offset)
		end := from + int64(p.Kept.Length)
		if last == nil || last.key != key || from-last.end > maxGap || end-last.from > maxStretch {
			all = append(all, Stretch{key: key, from: from})
			last = &all[len(all)-1]
		}
		last.Places, last.end = append(last.Places, p), max(last.end, end)
	}
	return all
}

// Reader reads stretches, one at a time. It reuses its memory for each entry.
type Reader struct {
	Codec  Codec
	Source Source

	packed, body []byte
}

// Read calls visit for the entry at each place of a stretch. body is the body of the unit's own
// page, valid until visit returns. gone wraps ErrGone if nothing is kept there. This includes
// entries of another fetch than the record's, and bodies that do not match their hash. Read's own
// errors are visit's and the blob store's.
func (r *Reader) Read(ctx context.Context, s *Stretch,
	visit func(at *Place, e *Entry, body []byte, gone error) error) error {
	gone, err := r.load(ctx, s)
	if err != nil {
		return err
	}
	for _, at := range s.Places {
		var e Entry
		var body []byte
		gone := gone
		from := int64(at.Kept.Offset) - s.from
		end := from + int64(at.Kept.Length)
		switch {
		case gone != nil:
		case end > int64(len(r.packed)):
			gone = fmt.Errorf("%w: its pack is shorter", ErrGone)
		default:
			body, gone = r.entry(at, r.packed[from:end], &e)
		}
		if err := visit(at, &e, body, gone); err != nil {
			return err
		}
	}
	return nil
}

// load reads the available bytes of a stretch.
func (r *Reader) load(ctx context.Context, s *Stretch) (gone, err error) {
	from, err := r.Source.Open(ctx, s.key, s.from, s.end-s.from)
	if errors.Is(err, blobstore.ErrNotFound) {
		return ErrGone, nil
	}
	if err != nil {
		return nil, err
	}
	if cap(r.packed) > maxRoom {
		r.packed = nil
	}
	r.packed = slices.Grow(r.packed[:0], int(s.end-s.from))[:s.end-s.from]
	n, err := io.ReadFull(from, r.packed)
	_ = from.Close() // it was only read
	r.packed = r.packed[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("bodies: read %s: %w", s.key, err)
	}
	return nil, nil
}

// entry decodes an entry, and the body of its unit's own page.
func (r *Reader) entry(at *Place, encoded []byte, e *Entry) (body []byte, gone error) {
	if err := cbor.Unmarshal(encoded, e); err != nil || len(e.Pages) == 0 ||
		e.Fetch != at.From().Fetch {
		return nil, fmt.Errorf("%w: another one is at its place", ErrGone)
	}
	if cap(r.body) > maxRoom {
		r.body = nil
	}
	body, err := unpack(r.Codec.hashed, e.Pages[0], r.body)
	if err != nil {
		return nil, err
	}
	r.body = body
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], at.Hash) {
		return nil, fmt.Errorf("%w: it is another than was read", ErrGone)
	}
	return body, nil
}

// Read reads the entry of a unit, and the body of its own page. Its errors are ErrGone and the blob
// store's.
func (c Codec) Read(ctx context.Context, from Source, at *Place) (e Entry, body []byte,
	err error) {
	if !at.Has() {
		return e, nil, ErrGone
	}
	stretches := Stretches([]*Place{at})
	r := Reader{Codec: c, Source: from}
	err = r.Read(ctx, &stretches[0], func(_ *Place, read *Entry, own []byte, gone error) error {
		e, body = *read, own
		return gone
	})
	if err != nil {
		return Entry{}, nil, err
	}
	return e, body, nil
}

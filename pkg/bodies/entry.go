package bodies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// ErrGone is the error for bodies that are missing: never kept, removed, or not what the page
// record says.
var ErrGone = errors.New("bodies: the body is not kept")

// Entry is what one fetch of a unit has read: the unit's own page first, then those that its
// extraction requested.
type Entry struct {
	Fetch ids.ID `cbor:"1,keyasint"`
	Pages []Page `cbor:"2,keyasint"`
}

// Page is one page of an Entry.
type Page struct {
	// Asked is the canonical address that an extraction requested; "": the unit's own page.
	Asked       string `cbor:"1,keyasint,omitempty"`
	URL         string `cbor:"2,keyasint"` // canonical, after redirects
	ContentType string `cbor:"3,keyasint,omitempty"`
	Bytes       uint32 `cbor:"4,keyasint"` // of the body
	Packed      []byte `cbor:"5,keyasint"` // the body, compressed
	// At is when it was read, in Unix microseconds, before its page record was made.
	At int64 `cbor:"6,keyasint,omitempty"`
}

// Codec packs and unpacks bodies. It is safe for concurrent use; its zero value is not usable.
type Codec struct {
	pack   *zstd.Encoder
	unpack *zstd.Decoder
	hashed *zstd.Decoder // for bodies with a known hash, which need no checksum
}

// NewCodec makes a codec.
func NewCodec() Codec {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // only for invalid options: a programming error
	}
	return Codec{pack: pack, unpack: unpacker(false), hashed: unpacker(true)}
}

func unpacker(ignoresChecksum bool) *zstd.Decoder {
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBody),
		zstd.IgnoreChecksum(ignoresChecksum))
	if err != nil {
		panic(err) // only for invalid options: a programming error
	}
	return unpack
}

// Pack makes a page of a body. The caller may reuse body afterwards.
func (c Codec) Pack(asked, url, contentType string, body []byte) Page {
	return Page{Asked: asked, URL: url, ContentType: contentType, Bytes: uint32(len(body)),
		Packed: c.pack.EncodeAll(body, nil)}
}

// Body returns the body of a page. Its error wraps ErrGone.
func (c Codec) Body(p Page) ([]byte, error) { return unpack(c.unpack, p, nil) }

// unpack is Body, and uses room if it suffices.
func unpack(by *zstd.Decoder, p Page, room []byte) ([]byte, error) {
	if p.Bytes > maxBody {
		return nil, fmt.Errorf("%w: it says that it has %d bytes", ErrGone, p.Bytes)
	}
	body, err := by.DecodeAll(p.Packed, slices.Grow(room[:0], int(p.Bytes)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if len(body) != int(p.Bytes) {
		return nil, fmt.Errorf("%w: it has %d bytes, not %d", ErrGone, len(body), p.Bytes)
	}
	return body, nil
}

// Encode returns the encoding of an entry in a pack.
func (e Entry) Encode() ([]byte, error) {
	encoded, err := cbor.Marshal(utf8text.MendText(&e))
	if err != nil {
		return nil, fmt.Errorf("bodies: %w", err)
	}
	return encoded, nil
}

// Source is where packs are.
type Source interface {
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
}

// Place says which page record's bodies are wanted: its run, its fetch, when its page was read, and
// the hash of its body.
type Place struct {
	Customer string
	Group    ids.ID
	Scraper  ids.ID
	Job      ids.ID
	Fetch    ids.ID
	At       int64 // Unix microseconds
	Hash     []byte
	Kept     *model.KeptBody
}

// Until returns when the bodies go at the latest.
func (p *Place) Until() time.Time {
	if p.Kept == nil {
		return time.Time{}
	}
	return time.UnixMicro(p.At).Add(time.Duration(p.Kept.Days) * day)
}

// From returns who kept the bodies, in the form for another record.
func (p *Place) From() *model.KeptFrom {
	if p.Kept != nil && p.Kept.From != nil {
		return p.Kept.From
	}
	return &model.KeptFrom{Job: p.Job, Group: p.Group, Fetch: p.Fetch}
}

package synthweb

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/andybalholm/brotli/matchfinder"
	"github.com/klauspost/compress/flate"
	"github.com/valyala/fasthttp"
)

// A compressed page is put together from blocks that end at byte boundaries and refer to nothing
// before them. What many pages share is compressed once, when the web is made, and what is a page's
// own goes between as it is. So a web that compresses serves about as many pages a second as one
// that does not.

// piece is text that many pages have in them, and the blocks that it is in both codings.
type piece struct {
	text            []byte
	deflate, brotli []byte // nil without that coding
}

// Bounds of what is put together.
const (
	leastPiece = 512 // bytes of a piece that is worth a block of its own
	// bytes of a page's own text that go as they are; a page with more is compressed as a whole
	mostPlain  = 4 << 10
	pieceStart = 64 // bytes by which a piece is looked for
)

// newPiece compresses a piece in the codings that the web has.
func (w *Web) newPiece(text []byte) piece {
	p := piece{text: text}
	if w.config.Gzip {
		p.deflate = deflateBlocks(text)
	}
	if w.config.Brotli {
		p.brotli = brotliBlock(text)
	}
	return p
}

// pieces are what a page has in it, in their order, unless it is one of the few that have none of
// it.
func (w *Web) pieces(p page) []piece {
	switch {
	case p.class == templated:
		return w.template
	case p.class == API:
		return w.related[w.size(p):][:1]
	}
	return w.padding[w.size(p):][:1]
}

// coding is a way to write a stream of blocks.
type coding interface {
	name() string
	openStream(dst []byte) []byte
	// plain writes text, at most mostPlain of it, as it is.
	plain(dst, text []byte) []byte
	blocks(p piece) []byte
	// end ends the stream of a whole body.
	end(dst, body []byte) []byte
	// whole compresses a body without pieces.
	whole(dst, body []byte) []byte
}

// coding is the one that the client accepts and the web is told to have; nil: none.
func (w *Web) coding(ctx *fasthttp.RequestCtx) coding {
	switch {
	case w.config.Brotli && ctx.Request.Header.HasAcceptEncoding("br"):
		return brotliCoding{}
	case w.config.Gzip && ctx.Request.Header.HasAcceptEncoding("gzip"):
		return gzipCoding{}
	}
	return nil
}

// compressed appends what a page shows, compressed, to dst, and says of what type it is.
func (w *Web) compressed(c coding, dst []byte, p page, fetch, status int) (sent []byte,
	contentType string) {
	plain, _ := w.plain.Get().(*[]byte)
	if plain == nil {
		plain = new([]byte)
	}
	defer w.plain.Put(plain)
	*plain, contentType = w.body((*plain)[:0], p, fetch, status)
	if sent, ok := assemble(c, dst, *plain, w.pieces(p)); ok {
		return sent, contentType
	}
	return c.whole(dst, *plain), contentType
}

// assemble appends a body, put together from its pieces; false when too much of it is its own.
func assemble(c coding, dst, body []byte, pieces []piece) ([]byte, bool) {
	made := c.openStream(dst)
	rest, own := body, 0
	for _, shared := range pieces {
		if len(shared.text) < leastPiece {
			continue
		}
		at := bytes.Index(rest, shared.text[:pieceStart])
		if at < 0 || !bytes.HasPrefix(rest[at:], shared.text) {
			break
		}
		if own += at; own > mostPlain {
			return nil, false
		}
		made = append(c.plain(made, rest[:at]), c.blocks(shared)...)
		rest = rest[at+len(shared.text):]
	}
	if own+len(rest) > mostPlain {
		return nil, false
	}
	return c.end(c.plain(made, rest), body), true
}

// gzipCoding is RFC 1952 around RFC 1951.
type gzipCoding struct{}

func (gzipCoding) name() string { return "gzip" }

func (gzipCoding) whole(dst, body []byte) []byte {
	return fasthttp.AppendGzipBytesLevel(dst, body, fasthttp.CompressBestSpeed)
}

func (gzipCoding) openStream(dst []byte) []byte {
	return append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255)
}

func (gzipCoding) plain(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	dst = append(dst, 0) // a stored block, not the last
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(text)))
	dst = binary.LittleEndian.AppendUint16(dst, ^uint16(len(text)))
	return append(dst, text...)
}

func (gzipCoding) blocks(p piece) []byte { return p.deflate }

func (gzipCoding) end(dst, body []byte) []byte {
	dst = append(dst, 3, 0) // the last block, empty
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
}

// deflateBlocks compresses text to blocks that end at a byte boundary, none of them the last.
func deflateBlocks(text []byte) []byte {
	var blocks bytes.Buffer
	compressor, err := flate.NewWriter(&blocks, flate.DefaultCompression)
	if err == nil {
		_, err = compressor.Write(text)
	}
	if err == nil {
		err = compressor.Flush()
	}
	if err != nil {
		panic(err) // the level is one, and memory takes all
	}
	return blocks.Bytes()
}

// brotliCoding is RFC 7932.
type brotliCoding struct{}

func (brotliCoding) name() string { return "br" }

func (brotliCoding) whole(dst, body []byte) []byte {
	return fasthttp.AppendBrotliBytesLevel(dst, body, fasthttp.CompressBrotliBestSpeed)
}

// alignment is a meta-block that is empty and not the last, whose bits are followed by zeros up to
// a byte boundary.
const (
	alignment     = 0b000110
	alignmentBits = 6
)

func (brotliCoding) openStream(dst []byte) []byte {
	return binary.LittleEndian.AppendUint16(dst, 0b1111|alignment<<windowBits) // the largest window
}

// windowBits is how many bits of a stream say how large its window is.
const windowBits = 4

func (brotliCoding) plain(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	// Not the last, a length of 16 bits, and that it is not compressed.
	head := uint32(len(text)-1)<<3 | 1<<19
	dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
	return append(dst, text...)
}

func (brotliCoding) blocks(p piece) []byte { return p.brotli }

func (brotliCoding) end(dst, _ []byte) []byte { return append(dst, 3) } // the last block, empty

// brotliBlock compresses text to one meta-block that ends at a byte boundary and is not the last.
// The encoder uses neither the dictionary nor distances or text from before its block, so that it
// means the same wherever it stands. But it makes a whole stream, whose ends are cut off.
func brotliBlock(text []byte) []byte {
	finder := matchfinder.M4{MaxDistance: 1 << 20, ChainLength: 32, HashLen: 5}
	var encoder brotli.Encoder
	stream := encoder.Encode(nil, text, finder.FindMatches(nil, text), true)
	// It ends with two bits that are set, and zeros up to a byte boundary.
	end := 8*len(stream) - bits.LeadingZeros8(stream[len(stream)-1]) - 2
	block := make([]byte, (end-windowBits+alignmentBits+7)/8)
	put := func(at int, bit byte) { block[at/8] |= bit << (at % 8) }
	for at := windowBits; at < end; at++ {
		put(at-windowBits, stream[at/8]>>(at%8)&1)
	}
	for i := range alignmentBits {
		put(end-windowBits+i, alignment>>i&1)
	}
	return block
}

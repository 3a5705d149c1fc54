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

// A compressed page is assembled from blocks that end at byte boundaries and refer to nothing
// before them. What many pages share is compressed once, when the web is made. A page's own text
// goes in between, uncompressed. So a compressing web serves about as many pages a second as any
// other.

// piece is text that many pages share, and its blocks in both codings.
type piece struct {
	text            []byte
	deflate, brotli []byte // nil without that coding
}

// Bounds of assembling.
const (
	leastPiece = 512 // bytes from which a piece gets its own block
	// bytes of a page's own text that stay uncompressed; a page with more is compressed as a whole
	mostPlain  = 4 << 10
	pieceStart = 64 // bytes by which a piece is found
)

// newPiece compresses a piece in the web's codings.
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

// pieces returns the pieces that a page contains, in order. A few pages have none of them.
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
	// plain writes text uncompressed, at most mostPlain of it.
	plain(dst, text []byte) []byte
	blocks(p piece) []byte
	// end ends the stream of a whole body.
	end(dst, body []byte) []byte
	// whole compresses a body without pieces.
	whole(dst, body []byte) []byte
}

// coding returns the coding that the client accepts and the web has; nil: none.
func (w *Web) coding(ctx *fasthttp.RequestCtx) coding {
	switch {
	case w.config.Brotli && ctx.Request.Header.HasAcceptEncoding("br"):
		return brotliCoding{}
	case w.config.Gzip && ctx.Request.Header.HasAcceptEncoding("gzip"):
		return gzipCoding{}
	}
	return nil
}

// compressed appends a page's compressed body to dst, and returns its content type.
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

// assemble appends a body made from its pieces; false if too much of it is not in pieces.
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

// gzipCoding is gzip (RFC 1952) with DEFLATE (RFC 1951).
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
	dst = append(dst, 0) // header of a stored block, not the last
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

// deflateBlocks compresses text to blocks that end at a byte boundary; none is the last.
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
		panic(err) // the level is valid, and memory accepts everything
	}
	return blocks.Bytes()
}

// brotliCoding is Brotli (RFC 7932).
type brotliCoding struct{}

func (brotliCoding) name() string { return "br" }

func (brotliCoding) whole(dst, body []byte) []byte {
	return fasthttp.AppendBrotliBytesLevel(dst, body, fasthttp.CompressBrotliBestSpeed)
}

// alignment is an empty meta-block, not the last, whose bits are padded with zeros to a byte
// boundary.
const (
	alignment     = 0b000110
	alignmentBits = 6
)

func (brotliCoding) openStream(dst []byte) []byte {
	return binary.LittleEndian.AppendUint16(dst, 0b1111|alignment<<windowBits) // the largest window
}

// windowBits is how many bits encode a stream's window size.
const windowBits = 4

func (brotliCoding) plain(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	// Not the last, a 16-bit length, uncompressed.
	head := uint32(len(text)-1)<<3 | 1<<19
	dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
	return append(dst, text...)
}

func (brotliCoding) blocks(p piece) []byte { return p.brotli }

func (brotliCoding) end(dst, _ []byte) []byte { return append(dst, 3) } // the last block, empty

// brotliBlock compresses text to one meta-block that ends at a byte boundary and is not the last.
// The encoder uses no dictionary, and neither distances nor text from before its block. So the
// block means the same anywhere. But the encoder makes a whole stream, whose ends are cut off.
func brotliBlock(text []byte) []byte {
	finder := matchfinder.M4{MaxDistance: 1 << 20, ChainLength: 32, HashLen: 5}
	var encoder brotli.Encoder
	stream := encoder.Encode(nil, text, finder.FindMatches(nil, text), true)
	// The stream ends with two set bits, and zeros up to a byte boundary.
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

package intake

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"
)

// ChunkLinks is the number of links in a chunk; the last chunk of a list may have fewer. Chunk n
// begins with seq n*ChunkLinks.
const ChunkLinks = 1_024

// maxChunkBytes is the size of a chunk of the longest links.
const maxChunkBytes = ChunkLinks * (MaxLinkBytes + binary.MaxVarintLen32)

var errMalformedChunk = errors.New("malformed chunk")

func appendLink(chunk []byte, url string) []byte {
	chunk = binary.AppendUvarint(chunk, uint64(len(url)))
	return append(chunk, url...)
}

func packChunk(chunk []byte) []byte { return s2.EncodeBetter(nil, chunk) }

// Unpack returns the links of a chunk; they share one piece of memory of the returned size.
func Unpack(data []byte) (links []string, bytes int, err error) {
	size, err := s2.DecodedLen(data)
	if err != nil || size > maxChunkBytes {
		return nil, 0, errors.Join(err, errMalformedChunk)
	}
	chunk, err := s2.Decode(nil, data)
	if err != nil {
		return nil, 0, err
	}
	links = make([]string, 0, ChunkLinks)
	for text, at := string(chunk), 0; at < len(chunk); {
		length, n := binary.Uvarint(chunk[at:])
		if at += max(n, 0); n <= 0 || length > uint64(len(chunk)-at) {
			return nil, 0, errMalformedChunk
		}
		links = append(links, text[at:at+int(length)])
		at += int(length)
	}
	return links, size, nil
}

package stream

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// A record is a version byte, a kind byte and a body in CBOR. The body is a map with integer keys,
// without indefinite lengths, tags or repeated keys. New fields may join a body under new keys,
// which older readers ignore. Any other change needs a new version.
const recordVersion = 1

// kind is the type of a record's body.
type kind byte

// The kinds. Records store the numbers: append only.
const (
	kindTask kind = iota + 1
	kindPage
	kindReceipt
	kindMarker
)

// headerBytes is the length of the header before the body.
const headerBytes = 2

// majorMap is CBOR's major type for a map, in the top three bits of a body's first byte.
const majorMap = 5

// Bounds of a body besides its size. Its longest array is a marker's open tasks: at most what one
// fetcher holds open of one run.
const (
	maxNesting       = 16
	maxArrayElements = 1 << 17
	maxMapPairs      = 256
)

// ErrUndecodable is wrapped by every error of the decoders: the record belongs to another topic, is
// newer than this program, or is damaged. Retrying does not help: skip it and count it.
var ErrUndecodable = errors.New("stream: undecodable record")

var (
	encoding = mustMode(cbor.EncOptions{
		Sort:        cbor.SortBytewiseLexical,
		IndefLength: cbor.IndefLengthForbidden,
		TagsMd:      cbor.TagsForbidden,
	}.UserBufferEncMode())
	// Only records of older writers hold text that is not UTF-8. It is mended when they are read.
	decoding = mustMode(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   maxNesting,
		MaxArrayElements:  maxArrayElements,
		MaxMapPairs:       maxMapPairs,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		UTF8:              cbor.UTF8DecodeInvalid,
		BinaryUnmarshaler: cbor.BinaryUnmarshalerNone,
	}.DecMode())
)

// mustMode is for options fixed in the source: any test run finds an invalid one.
func mustMode[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// EncodeTask makes a record of `tasks`.
func EncodeTask(task model.Task) []byte { return encode(kindTask, &task) }

// EncodePage makes a record of `pages`. Only its rows can make it longer than MaxRecordBytes, which
// the log refuses. The writer must bound them.
func EncodePage(page model.Page) []byte { return encode(kindPage, &page) }

// EncodeReceipt makes a record of `receipts`.
func EncodeReceipt(receipt model.Receipt) []byte { return encode(kindReceipt, &receipt) }

// EncodeMarker makes a marker record, for any topic.
func EncodeMarker(marker model.Marker) []byte { return encode(kindMarker, &marker) }

// DecodeTasks decodes a record of `tasks`. Exactly one of task, marker and err is set; err wraps
// ErrUndecodable. Like all decoders, it returns nothing that shares memory with value.
func DecodeTasks(value []byte) (task *model.Task, marker *model.Marker, err error) {
	return decode[model.Task](kindTask, value)
}

// DecodePages decodes a record of `pages`, like DecodeTasks.
func DecodePages(value []byte) (page *model.Page, marker *model.Marker, err error) {
	return decode[model.Page](kindPage, value)
}

// DecodeReceipts decodes a record of `receipts`, like DecodeTasks.
func DecodeReceipts(value []byte) (receipt *model.Receipt, marker *model.Marker, err error) {
	return decode[model.Receipt](kindReceipt, value)
}

// maxPooledBytes keeps the buffers of rare huge records out of the pool.
const maxPooledBytes = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func encode(k kind, body any) []byte {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	buffer.WriteByte(recordVersion)
	buffer.WriteByte(byte(k))
	if err := encoding.MarshalToBuffer(utf8text.MendText(body), buffer); err != nil {
		// The bodies consist of integers, strings, bytes, and structs and slices of these: all of
		// them can be encoded.
		panic(fmt.Sprintf("stream: encode record of kind %d: %v", k, err))
	}
	record := bytes.Clone(buffer.Bytes())
	if buffer.Cap() <= maxPooledBytes {
		buffers.Put(buffer)
	}
	return record
}

// decode decodes a record of the topic whose own kind has body B.
func decode[B any](own kind, value []byte) (*B, *model.Marker, error) {
	if len(value) <= headerBytes || len(value) > MaxRecordBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrUndecodable, len(value))
	}
	if value[0] != recordVersion {
		return nil, nil, fmt.Errorf("%w: version %d", ErrUndecodable, value[0])
	}
	k, body := kind(value[1]), value[headerBytes:]
	switch k {
	case own:
		record, err := decodeBody[B](k, body)
		return record, nil, err
	case kindMarker:
		marker, err := decodeBody[model.Marker](k, body)
		return nil, marker, err
	}
	return nil, nil, fmt.Errorf("%w: kind %d where %d or a marker belongs", ErrUndecodable, k, own)
}

func decodeBody[B any](k kind, body []byte) (*B, error) {
	// A CBOR null would leave a zero record and no error.
	if body[0]>>5 != majorMap {
		return nil, fmt.Errorf("%w: kind %d: body is not a map", ErrUndecodable, k)
	}
	record := new(B)
	if err := decoding.Unmarshal(body, record); err != nil {
		return nil, fmt.Errorf("%w: kind %d: %w", ErrUndecodable, k, err)
	}
	return utf8text.MendText(record).(*B), nil
}

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
// without indefinite lengths, tags or repeated keys. Fields may join a body under new keys, which
// older readers ignore; any other change is a new version.
const recordVersion = 1

// kind says what a record's body is.
type kind byte

// The kinds. The numbers stand in stored records: append only.
const (
	kindTask kind = iota + 1
	kindPage
	kindReceipt
	kindMarker
)

// headerBytes is what stands before the body.
const headerBytes = 2

// majorMap is CBOR's major type of a map, in the top three bits of a body's first byte.
const majorMap = 5

// Bounds of a body beside its size. A marker's open tasks are its longest array, at most what one
// fetcher holds open of one run.
const (
	maxNesting       = 16
	maxArrayElements = 1 << 17
	maxMapPairs      = 256
)

// ErrUndecodable is wrapped by every error of the decoders: the record is of another topic, newer
// than this program, or damaged. It will not get better: skip it and count it.
var ErrUndecodable = errors.New("stream: undecodable record")

var (
	encoding = mustMode(cbor.EncOptions{
		Sort:        cbor.SortBytewiseLexical,
		IndefLength: cbor.IndefLengthForbidden,
		TagsMd:      cbor.TagsForbidden,
	}.UserBufferEncMode())
	// Text that is not UTF-8 stands in records of older writers only. It is mended when they are
	// read.
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

// mustMode is for options that stand in the source: a test run finds a wrong one.
func mustMode[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// EncodeTask makes a record of `tasks`.
func EncodeTask(task model.Task) []byte { return encode(kindTask, &task) }

// EncodePage makes a record of `pages`. Only its rows can make it longer than MaxRecordBytes, which
// the log refuses: the writer bounds them.
func EncodePage(page model.Page) []byte { return encode(kindPage, &page) }

// EncodeReceipt makes a record of `receipts`.
func EncodeReceipt(receipt model.Receipt) []byte { return encode(kindReceipt, &receipt) }

// EncodeMarker makes a record of any topic.
func EncodeMarker(marker model.Marker) []byte { return encode(kindMarker, &marker) }

// DecodeTasks reads a record of `tasks`: exactly one of task and marker is set, or err, which wraps
// ErrUndecodable. Nothing decoded shares memory with value; the same holds for the other decoders.
func DecodeTasks(value []byte) (task *model.Task, marker *model.Marker, err error) {
	return decode[model.Task](kindTask, value)
}

// DecodePages reads a record of `pages`, as DecodeTasks does.
func DecodePages(value []byte) (page *model.Page, marker *model.Marker, err error) {
	return decode[model.Page](kindPage, value)
}

// DecodeReceipts reads a record of `receipts`, as DecodeTasks does.
func DecodeReceipts(value []byte) (receipt *model.Receipt, marker *model.Marker, err error) {
	return decode[model.Receipt](kindReceipt, value)
}

// maxPooledBytes keeps a rare huge record's buffer out of the pool.
const maxPooledBytes = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func encode(k kind, body any) []byte {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	buffer.WriteByte(recordVersion)
	buffer.WriteByte(byte(k))
	if err := encoding.MarshalToBuffer(utf8text.MendText(body), buffer); err != nil {
		// The bodies are integers, strings, bytes, and structs and slices of these: all of them
		// have an encoding.
		panic(fmt.Sprintf("stream: encode record of kind %d: %v", k, err))
	}
	record := bytes.Clone(buffer.Bytes())
	if buffer.Cap() <= maxPooledBytes {
		buffers.Put(buffer)
	}
	return record
}

// decode reads a record of a topic whose own kind is own with body B.
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

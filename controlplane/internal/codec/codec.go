// Package codec owns how commands, their results and snapshots are written: CBOR in its core
// deterministic form, with integer keys. So equal values have equal bytes on every node, and
// unknown members of newer writers are passed over.
package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/utf8text"
)

// How deep values may be nested. The bounds of commands decide what an entry of the log does, so
// they are part of its format. Every version must have the same ones.
const (
	// CommandLevels is of commands with their envelopes: the 32 of a request's body, and as many
	// for what is around it.
	CommandLevels = 64
	// FirstCommandLevels is what nodes of cluster version 1 read of commands.
	FirstCommandLevels = 32
	// StateLevels is of everything else. What commands bring gets a record, a result or a message
	// around it.
	StateLevels = 96
)

// Codec encodes and decodes. It is safe for concurrent use.
type Codec struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode
}

// New makes the codec of the state, of results and of messages. Decoding bounds nesting to
// StateLevels, and arrays and maps to 4,194,304 members, like that of the others.
func New() *Codec { return newCodec(StateLevels, cbor.UTF8RejectInvalid) }

// NewForCommands makes the codec of what stands in the log.
func NewForCommands() *Codec { return newCodec(CommandLevels, cbor.UTF8RejectInvalid) }

// NewForFirstCommands makes the codec by which nodes of cluster version 1 read the log.
func NewForFirstCommands() *Codec { return newCodec(FirstCommandLevels, cbor.UTF8RejectInvalid) }

// NewLenient makes a codec that reads what earlier versions wrote and could not read: text that is
// not UTF-8, and nesting to 65,535 levels. Nothing that it reads may become state.
func NewLenient() *Codec { return newCodec(math.MaxUint16, cbor.UTF8DecodeInvalid) }

func newCodec(levels int, text cbor.UTF8Mode) *Codec {
	enc, err := cbor.CoreDetEncOptions().UserBufferEncMode()
	if err != nil {
		panic(fmt.Sprintf("codec: %v", err)) // constant options: a programmer's slip
	}
	dec, err := cbor.DecOptions{
		MaxArrayElements: 1 << 22, MaxMapPairs: 1 << 22, MaxNestedLevels: levels,
		DefaultMapType: reflect.TypeFor[map[string]any](), UTF8: text,
	}.DecMode()
	if err != nil {
		panic(fmt.Sprintf("codec: %v", err))
	}
	return &Codec{enc: enc, dec: dec}
}

// Marshal encodes a value. Text that is not UTF-8 is mended.
func (c *Codec) Marshal(value any) ([]byte,
	error) {
	return c.enc.Marshal(utf8text.MendText(value))
}

// Write encodes a value whose text is UTF-8 at the end of a buffer.
func (c *Codec) Write(to *bytes.Buffer, value any) error { return c.enc.MarshalToBuffer(value, to) }

// Unmarshal decodes into a pointer.
func (c *Codec) Unmarshal(data []byte, into any) error { return c.dec.Unmarshal(data, into) }

// Modes are the underlying encoder and decoder, for streams.
func (c *Codec) Modes() (cbor.EncMode, cbor.DecMode) { return c.enc, c.dec }

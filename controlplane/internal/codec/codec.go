// Package codec owns the encoding of commands, their results and snapshots: core deterministic CBOR
// with integer keys. So equal values have equal bytes on every node, and decoding ignores unknown
// members of newer writers.
package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/utf8text"
)

// The most levels of nesting. Whether a command decodes decides what a log entry does. So the
// bounds of commands are part of the log's format, and every version must have the same ones.
const (
	// CommandLevels is for commands with envelopes: 32 for a request's body, and 32 around it.
	CommandLevels = 64
	// FirstCommandLevels is what cluster version 1 accepts for commands.
	FirstCommandLevels = 32
	// StateLevels is for everything else: records, results and messages wrap what commands contain.
	StateLevels = 96
)

// Codec encodes and decodes. It is safe for concurrent use.
type Codec struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode
}

// New makes the codec of state, results and messages. Decoding bounds nesting to StateLevels. Like
// all codecs here, it bounds arrays and maps to 4,194,304 members.
func New() *Codec { return newCodec(StateLevels, cbor.UTF8RejectInvalid) }

// NewForCommands makes the codec of the log.
func NewForCommands() *Codec { return newCodec(CommandLevels, cbor.UTF8RejectInvalid) }

// NewForFirstCommands makes the codec with which cluster version 1 reads the log.
func NewForFirstCommands() *Codec { return newCodec(FirstCommandLevels, cbor.UTF8RejectInvalid) }

// NewLenient makes a codec for data that earlier versions wrote and could not read: text that is
// not UTF-8, and nesting to 65,535 levels. What it reads must never become state.
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

// Marshal encodes a value. It repairs text that is not UTF-8.
func (c *Codec) Marshal(value any) ([]byte,
	error) {
	return c.enc.Marshal(utf8text.MendText(value))
}

// Write appends the encoding of a value whose text is UTF-8 to a buffer.
func (c *Codec) Write(to *bytes.Buffer, value any) error { return c.enc.MarshalToBuffer(value, to) }

// Unmarshal decodes into a pointer.
func (c *Codec) Unmarshal(data []byte, into any) error { return c.dec.Unmarshal(data, into) }

// Modes returns the underlying encoder and decoder, for streams.
func (c *Codec) Modes() (cbor.EncMode, cbor.DecMode) { return c.enc, c.dec }

// Package codec owns how commands, their results and snapshots are written: CBOR in its core deterministic form, with
// integer keys, so that equal values have equal bytes on every node and unknown members of newer writers are passed over.
package codec

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Codec encodes and decodes. It is safe for concurrent use.
type Codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

// New makes the codec. Decoding bounds arrays and maps to 4,194,304 members and nesting to 32 levels.
func New() *Codec {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(fmt.Sprintf("codec: %v", err)) // constant options: a programmer's slip
	}
	dec, err := cbor.DecOptions{
		MaxArrayElements: 1 << 22, MaxMapPairs: 1 << 22, MaxNestedLevels: 32,
		DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if err != nil {
		panic(fmt.Sprintf("codec: %v", err))
	}
	return &Codec{enc: enc, dec: dec}
}

// Marshal encodes a value.
func (c *Codec) Marshal(value any) ([]byte, error) { return c.enc.Marshal(value) }

// Unmarshal decodes into a pointer.
func (c *Codec) Unmarshal(data []byte, into any) error { return c.dec.Unmarshal(data, into) }

// Modes are the underlying encoder and decoder, for streams.
func (c *Codec) Modes() (cbor.EncMode, cbor.DecMode) { return c.enc, c.dec }

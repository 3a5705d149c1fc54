// Package record encodes the fields of a page record that no query looks into: the same bytes in
// every row store. Which other columns an engine has is not its concern.
package record

import (
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/utf8text"
)

// Content is the encoded part of a record. Old encodings stay readable: a field number is never
// reused.
type Content struct {
	Fetch  ids.ID              `cbor:"1,keyasint"`
	Code   string              `cbor:"2,keyasint,omitempty"`
	Status uint16              `cbor:"3,keyasint,omitempty"`
	URL    string              `cbor:"4,keyasint,omitempty"`
	Final  string              `cbor:"5,keyasint,omitempty"`
	Tries  []model.Try         `cbor:"6,keyasint,omitempty"`
	Bytes  uint32              `cbor:"7,keyasint,omitempty"`
	Millis uint32              `cbor:"8,keyasint,omitempty"`
	At     int64               `cbor:"9,keyasint,omitempty"`
	Spent  bool                `cbor:"10,keyasint,omitempty"`
	Next   *model.Continuation `cbor:"11,keyasint,omitempty"`
	Detail string              `cbor:"12,keyasint,omitempty"`
	Body   []byte              `cbor:"13,keyasint,omitempty"` // SHA-256
	Kept   *model.KeptBody     `cbor:"14,keyasint,omitempty"`
	Sums   []byte              `cbor:"15,keyasint,omitempty"` // of the rows (pkg/profile)
}

// Codec encodes contents. Its zero value is not usable.
type Codec struct{ mode cbor.EncMode }

// NewCodec makes a codec.
func NewCodec() (Codec, error) {
	mode, err := cbor.EncOptions{}.EncMode()
	if err != nil {
		return Codec{}, fmt.Errorf("record encoding: %w", err)
	}
	return Codec{mode}, nil
}

// Encode encodes the Content of a page's record.
func (c Codec) Encode(p *model.Page) ([]byte, error) {
	encoded, err := c.mode.Marshal(utf8text.MendText(&Content{Fetch: p.Fetch, Code: p.Code,
		Status: p.Status, URL: p.URL, Final: p.Final,
		Tries: p.Tries, Bytes: p.Bytes, Millis: p.Millis, At: p.At, Spent: p.Spent, Next: p.Next,
		Detail: p.Detail, Body: p.BodyHash, Kept: p.Kept, Sums: p.Sums}))
	if err != nil {
		return nil, fmt.Errorf("encode record %v: %w", p.Unit, err)
	}
	return encoded, nil
}

// decoding also reads records of older writers, whose text need not be UTF-8. It is mended.
var decoding = sync.OnceValues(cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode)

// Decode completes a record whose own columns the engine has set. It returns the continuation of
// its chain.
func Decode(encoded []byte, r *rowstore.Record) (*model.Continuation, error) {
	mode, err := decoding()
	if err != nil {
		return nil, fmt.Errorf("record decoding: %w", err)
	}
	var read Content
	if err := mode.Unmarshal(encoded, &read); err != nil {
		return nil, fmt.Errorf("decode record %v: %w", r.Unit, err)
	}
	c := utf8text.MendText(&read).(*Content)
	r.Fetch, r.Code, r.Status, r.URL, r.At = c.Fetch, c.Code, c.Status, c.URL, c.At
	r.Detail, r.Final, r.Tries, r.BodyHash = c.Detail, c.Final, c.Tries, c.Body
	r.Bytes, r.Millis, r.Kept = c.Bytes, c.Millis, c.Kept
	r.Sums = c.Sums
	return c.Next, nil
}

// Receipt returns the receipt of a page that is stored as it is.
func Receipt(p *model.Page) *model.Receipt {
	return &model.Receipt{Job: p.Job, Unit: p.Unit, Outcome: p.Outcome, PriceRow: p.PriceRow,
		Quantity: p.Quantity, Items: uint32(len(p.Rows)), Last: p.Last, Next: p.Next}
}

// Duplicate returns the Duplicate that a page becomes when the run already has its address.
func Duplicate(p *model.Page) *model.Page {
	copied := *p
	copied.Outcome, copied.Code, copied.Last, copied.Spent = model.Duplicate, "", true, false
	copied.Detail, copied.Kept, copied.Sums = "", nil, nil
	copied.Next, copied.Rows, copied.PriceRow, copied.Quantity = nil, nil, "", 0
	return &copied
}

package model

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"

	"shoal.dev/shoal/pkg/ids"
)

// RowID names a stored row for good: its run and unit, and its place among the rows of the page. So
// it leads to the page's record in every row store, and stays the same if the page is fetched
// again.
type RowID struct {
	Job   ids.ID
	Unit  Unit
	Place uint32 // from 0
}

// maxRowID is the most bytes of a RowID: the run's id, and three numbers.
const maxRowID = len(ids.ID{}) + 3*binary.MaxVarintLen32

// MaxRowIDText is the most characters of a RowID's text: 36.
const MaxRowIDText = (maxRowID*4 + 2) / 3

var errNoRowID = errors.New("is no id of a row")

// AppendText appends the id as people see it: opaque, in characters that an address may hold.
func (r RowID) AppendText(to []byte) ([]byte, error) {
	raw := make([]byte, 0, maxRowID)
	raw = append(raw, r.Job[:]...)
	raw = binary.AppendUvarint(raw, uint64(r.Unit.Seq))
	raw = binary.AppendUvarint(raw, uint64(r.Unit.Page))
	raw = binary.AppendUvarint(raw, uint64(r.Place))
	return base64.RawURLEncoding.AppendEncode(to, raw), nil
}

// MarshalText implements encoding.TextMarshaler.
func (r RowID) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// String returns the id as people see it.
func (r RowID) String() string {
	text, _ := r.AppendText(nil) // never fails
	return string(text)
}

// UnmarshalText reads only what AppendText writes: an id has exactly one text.
func (r *RowID) UnmarshalText(text []byte) error {
	if len(text) > MaxRowIDText {
		return errNoRowID
	}
	raw, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(raw) < len(ids.ID{}) {
		return errNoRowID
	}
	read := RowID{Job: ids.ID(raw[:len(ids.ID{})])}
	raw = raw[len(read.Job):]
	for _, number := range []*uint32{&read.Unit.Seq, &read.Unit.Page, &read.Place} {
		value, size := binary.Uvarint(raw)
		if size <= 0 || value > math.MaxUint32 {
			return errNoRowID
		}
		*number, raw = uint32(value), raw[size:]
	}
	if len(raw) > 0 || read.Unit.Seq > math.MaxInt32 || read.String() != string(text) {
		return errNoRowID
	}
	*r = read
	return nil
}

package record

import (
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/rowstore"
)

// sum is the encoding of a condensed job's Recount.
type sum struct {
	Delivered uint64            `cbor:"1,keyasint,omitempty"`
	Errored   uint64            `cbor:"2,keyasint,omitempty"`
	Items     uint64            `cbor:"3,keyasint,omitempty"`
	Quantity  map[string]uint64 `cbor:"4,keyasint,omitempty"`
}

// EncodeSum encodes the sum of a job's records.
func EncodeSum(of rowstore.Recount) ([]byte, error) {
	encoded, err := cbor.Marshal(sum(of))
	if err != nil {
		return nil, fmt.Errorf("encode the sum of records: %w", err)
	}
	return encoded, nil
}

// DecodeSum reads what EncodeSum wrote.
func DecodeSum(encoded []byte) (rowstore.Recount, error) {
	var read sum
	if err := cbor.Unmarshal(encoded, &read); err != nil {
		return rowstore.Recount{}, fmt.Errorf("decode the sum of records: %w", err)
	}
	if read.Quantity == nil {
		read.Quantity = map[string]uint64{}
	}
	return rowstore.Recount(read), nil
}

// PackHashes writes hashes, 8 bytes each.
func PackHashes(hashes []uint64) []byte {
	packed := make([]byte, 0, 8*len(hashes))
	for _, hash := range hashes {
		packed = binary.LittleEndian.AppendUint64(packed, hash)
	}
	return packed
}

// UnpackHashes reads what PackHashes wrote.
func UnpackHashes(packed []byte) ([]uint64, error) {
	if len(packed)%8 != 0 {
		return nil, fmt.Errorf("%d bytes are no hashes", len(packed))
	}
	hashes := make([]uint64, 0, len(packed)/8)
	for ; len(packed) > 0; packed = packed[8:] {
		hashes = append(hashes, binary.LittleEndian.Uint64(packed))
	}
	return hashes, nil
}

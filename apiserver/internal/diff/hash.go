package diff

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// The server's members that make up a position.
const (
	memberURL   = "_sourceUrl"
	memberRowID = "_rowId"
)

// The first byte of the text from which a key is hashed.
const (
	byValues = iota
	byAddress
	byUnit
	byNumber
)

// hasher turns the rows of a run, in order, into what is compared.
type hasher struct {
	runs   Runs
	part   uint64
	parts  uint64
	values []string // of the key's members in the current row
	has    []bool   // which of them any row has had
	text   []byte
	number uint64 // of the current row
}

func (r Runs) hasher(part int) *hasher {
	return &hasher{runs: r, part: uint64(part), parts: uint64(r.parts()),
		values: make([]string, len(r.Key)), has: make([]bool, len(r.Key))}
}

// row hashes the next row; of says whether its key is in the part. Members that are null count as
// absent. A row's hash is the sum of its members' hashes, so their order does not matter.
func (h *hasher) row(doc json.RawMessage) (row hashed, of bool) {
	h.number++
	clear(h.values)
	url, id := "", ""
	for m := rowstore.MembersOf(doc); m.Next(); {
		switch m.Key {
		case memberURL:
			url = m.Value
		case memberRowID:
			id, _ = rowstore.TextOf(m.Value)
		}
		if m.Value == "null" {
			continue
		}
		if i := slices.Index(h.runs.Key, m.Key); i >= 0 {
			h.values[i], h.has[i] = m.Value, true
		}
		if h.runs.compares(m.Key) {
			row.content = add(row.content, h.hash(0, m.Key, m.Value))
		}
	}
	row.key = h.key(url, id)
	return row, row.key.Lo%h.parts == h.part
}

// compares says whether a member is compared.
func (r Runs) compares(member string) bool {
	if r.Fields != nil {
		return slices.Contains(r.Fields, member)
	}
	return !model.IsServerKey(member)
}

// key is the row's key. A row that lacks a member of the key is matched by position.
func (h *hasher) key(url, id string) xxh3.Uint128 {
	if len(h.values) > 0 && !slices.Contains(h.values, "") {
		return h.hash(byValues, h.values...)
	}
	var of model.RowID
	known := of.UnmarshalText([]byte(id)) == nil
	h.text = h.text[:0]
	switch {
	case url != "":
		h.text = append(binary.AppendUvarint(append(h.text, byAddress), uint64(of.Place)), url...)
	case known:
		h.text = append(h.text, byUnit)
		for _, part := range []uint32{of.Unit.Seq, of.Unit.Page, of.Place} {
			h.text = binary.AppendUvarint(h.text, uint64(part))
		}
	default: // old rows have no ids
		h.text = binary.AppendUvarint(append(h.text, byNumber), h.number)
	}
	return xxh3.Hash128(h.text)
}

// hash is the hash of texts, each with its length.
func (h *hasher) hash(kind byte, texts ...string) xxh3.Uint128 {
	h.text = append(h.text[:0], kind)
	for _, text := range texts {
		h.text = append(binary.AppendUvarint(h.text, uint64(len(text))), text...)
	}
	return xxh3.Hash128(h.text)
}

// add adds 128-bit numbers.
func add(a, b xxh3.Uint128) xxh3.Uint128 {
	sum := xxh3.Uint128{Lo: a.Lo + b.Lo, Hi: a.Hi + b.Hi}
	if sum.Lo < a.Lo {
		sum.Hi++
	}
	return sum
}

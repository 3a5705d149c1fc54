// Package trail verifies the audit trail. It recomputes the hash of each entry from what the API
// returns, and reports where the chain of hashes breaks. It shares no code with the server:
// docs/operations/audit-trail.md specifies what is hashed.
package trail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/jsontext"
)

// Hash is a SHA-256 hash.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("a hash has %d hexadecimal digits", hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Entry is an entry of the trail. Its encoding with integer keys is what is hashed.
type Entry struct {
	Generation ids.ID   `cbor:"1,keyasint"`
	Number     uint64   `cbor:"2,keyasint"`
	Before     Hash     `cbor:"3,keyasint"` // of the previous entry
	Index      uint64   `cbor:"4,keyasint"`
	At         int64    `cbor:"5,keyasint"` // in milliseconds since 1970
	Action     string   `cbor:"6,keyasint"`
	Actor      Actor    `cbor:"7,keyasint,omitzero"`
	Customer   string   `cbor:"8,keyasint,omitempty"`
	Changes    []Change `cbor:"9,keyasint,omitempty"`
	More       uint32   `cbor:"10,keyasint,omitempty"`
	Count      uint32   `cbor:"11,keyasint,omitempty"`
	Restored   *Mark    `cbor:"12,keyasint,omitempty"`
	FailedFrom int64    `cbor:"13,keyasint,omitempty"` // in milliseconds since 1970
	// Stated is the hash that came with the entry. It is not hashed.
	Stated Hash `cbor:"-"`
}

// Actor is who made the change.
type Actor struct {
	Subject     string `cbor:"1,keyasint,omitempty"`
	Key         ids.ID `cbor:"2,keyasint,omitzero"`
	Admin       bool   `cbor:"3,keyasint,omitempty"`
	Customer    string `cbor:"4,keyasint,omitempty"`
	Operation   string `cbor:"5,keyasint,omitempty"`
	Address     string `cbor:"6,keyasint,omitempty"`
	Correlation string `cbor:"7,keyasint,omitempty"`
}

// Change is a record before and after, as JSON.
type Change struct {
	Table  string `cbor:"1,keyasint"`
	Record string `cbor:"2,keyasint"`
	Before string `cbor:"3,keyasint,omitempty"`
	After  string `cbor:"4,keyasint,omitempty"`
}

// Mark names the newest entry that a restore left behind.
type Mark struct {
	Generation ids.ID `cbor:"1,keyasint" json:"generation"`
	Number     uint64 `cbor:"2,keyasint" json:"number"`
	Hash       Hash   `cbor:"3,keyasint" json:"hash"`
}

// core is CBOR in its core deterministic form (RFC 8949, 4.2.1).
var core = func() cbor.EncMode {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(fmt.Sprintf("trail: %v", err)) // constant options: a programming error
	}
	return mode
}()

// Sum computes the hash of the entry.
func (e *Entry) Sum() Hash {
	body, err := core.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("trail: encode an entry: %v", err)) // a plain struct
	}
	return sha256.Sum256(body)
}

// line is an entry in the API's format.
type line struct {
	Number            uint64       `json:"number"`
	At                time.Time    `json:"at"`
	Action            string       `json:"action"`
	Actor             lineActor    `json:"actor"`
	CustomerUniqueRef string       `json:"customerUniqueRef"`
	Changes           []lineChange `json:"changes"`
	MoreChanges       uint32       `json:"moreChanges"`
	Count             uint32       `json:"count"`
	FailedFrom        *time.Time   `json:"failedFrom"`
	LeftBehind        *Mark        `json:"leftBehind"`
	Generation        ids.ID       `json:"generation"`
	Index             uint64       `json:"index"`
	Hash              Hash         `json:"hash"`
	PreviousHash      Hash         `json:"previousHash"`
}

type lineActor struct {
	Subject           string  `json:"subject"`
	KeyID             *ids.ID `json:"keyId"`
	Admin             bool    `json:"admin"`
	CustomerUniqueRef string  `json:"customerUniqueRef"`
	Operation         string  `json:"operation"`
	Address           string  `json:"address"`
	CorrelationID     string  `json:"correlationId"`
}

type lineChange struct {
	Record string          `json:"record"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Read parses an entry from a JSON object of the API or of an export. Unknown members are an error,
// since they may be hashed, too.
func Read(text []byte) (*Entry, error) {
	var l line
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&l); err != nil {
		member, said := jsontext.Reason(err)
		return nil, fmt.Errorf("not an entry of the trail as this version knows it: %s",
			strings.TrimSpace(member+" "+said))
	}
	e := &Entry{Generation: l.Generation, Number: l.Number, Before: l.PreviousHash,
		Index: l.Index, At: l.At.UnixMilli(), Action: l.Action, Customer: l.CustomerUniqueRef,
		More: l.MoreChanges, Count: l.Count, Restored: l.LeftBehind, Stated: l.Hash,
		Actor: Actor{Subject: l.Actor.Subject, Admin: l.Actor.Admin,
			Customer: l.Actor.CustomerUniqueRef, Operation: l.Actor.Operation,
			Address: l.Actor.Address, Correlation: l.Actor.CorrelationID}}
	if l.FailedFrom != nil {
		e.FailedFrom = l.FailedFrom.UnixMilli()
	}
	if l.Actor.KeyID != nil {
		e.Actor.Key = *l.Actor.KeyID
	}
	for _, c := range l.Changes {
		table, record, _ := strings.Cut(c.Record, " ")
		e.Changes = append(e.Changes, Change{Table: table, Record: record,
			Before: detail(c.Before), After: detail(c.After)})
	}
	return e, nil
}

// detail is a record as it was hashed: "" for null.
func detail(value json.RawMessage) string {
	var compact bytes.Buffer
	if len(value) == 0 || string(value) == "null" || json.Compact(&compact, value) != nil {
		return ""
	}
	return compact.String()
}

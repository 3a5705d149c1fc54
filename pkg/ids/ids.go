// Package ids owns identifiers: 12-byte object ids, written as 24 lower-case hex digits (decision
// 3). It does not decide who makes ids. A caller that needs new ids gets a Source, so that tests
// and replayed commands are exact.
package ids

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ID is an object id: 4 bytes of big-endian Unix seconds, then 8 random bytes. Its zero value means
// "none".
type ID [12]byte

// ErrMalformed is wrapped by every error of Parse.
var ErrMalformed = errors.New("malformed id")

// Parse reads 24 hex digits.
func Parse(text string) (ID, error) {
	var id ID
	if len(text) != 24 {
		return id, fmt.Errorf("%w: want 24 hex digits, got %d characters", ErrMalformed, len(text))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ID{}, fmt.Errorf("%w: %q is not hex", ErrMalformed, text)
	}
	return id, nil
}

// String writes 24 lower-case hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id means "none".
func (id ID) IsZero() bool { return id == ID{} }

// Seconds returns the Unix time in the id's first four bytes.
func (id ID) Seconds() int64 { return int64(binary.BigEndian.Uint32(id[:4])) }

// MarshalText writes the hex form; a zero id is the empty text.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads the hex form; the empty text is the zero id.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Source makes new ids.
type Source interface {
	New() ID
}

// Random is the production Source: the clock's seconds and crypto/rand.
type Random struct{ Now func() time.Time }

// New makes an id that no other call makes.
func (r Random) New() ID {
	var id ID
	binary.BigEndian.PutUint32(id[:4], uint32(r.Now().Unix()))
	// crypto/rand.Read never fails on the platforms Go supports: it crashes the program instead.
	_, _ = rand.Read(id[4:])
	return id
}

// Sequence is a Source for tests: ids that count up from 1.
type Sequence struct{ n uint64 }

// New makes the next id.
func (s *Sequence) New() ID {
	s.n++
	var id ID
	binary.BigEndian.PutUint64(id[4:], s.n)
	return id
}

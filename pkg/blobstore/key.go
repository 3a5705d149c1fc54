package blobstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is a purpose of blobs, with its bounds.
type Kind struct {
	Name     string
	MaxBytes int64 // of one blob
	// Lifetime is how long a blob is kept, referred to or not. 0: for as long as it is referred to.
	Lifetime time.Duration
}

// The kinds of blobs.
var (
	// Uploads are files that are being imported.
	Uploads = Kind{Name: "uploads", MaxBytes: 200 << 20, Lifetime: 24 * time.Hour}
	// Parts are parts of multipart uploads, kept until the last part has come.
	Parts = Kind{Name: "parts", MaxBytes: 4_000_000, Lifetime: 24 * time.Hour}
	// Bodies are packs of kept page bodies.
	Bodies = Kind{Name: "bodies", MaxBytes: 64 << 20, Lifetime: 30 * 24 * time.Hour}
	// Exports are rows as files that customers keep. They go with the records that refer to them.
	Exports = Kind{Name: "exports", MaxBytes: 4 << 30}
	// Catalogues are files of products. They go with the records that refer to them.
	Catalogues = Kind{Name: "catalogues", MaxBytes: 200 << 20}
	// Backups are backups of the replicated state, owned by the cluster from which they come.
	Backups = Kind{Name: "backups", MaxBytes: 64 << 30}
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Uploads, Parts, Bodies, Exports, Catalogues, Backups} }

// Bounds of the parts of a key, in bytes.
const (
	maxOwner = 128
	maxID    = 128
)

// Key names a blob: KIND/OWNER/ID. A key is only ever written with the same bytes.
type Key struct {
	Kind  Kind
	Owner string // a customer, or the cluster; at most 128 bytes
	ID    string // letters, digits, '-', '_' and, not first, '.'; at most 128
}

// String returns the key as the store has it.
func (k Key) String() string { return k.Kind.Name + "/" + escape(k.Owner) + "/" + k.ID }

func (k Key) check() error {
	if k.Kind.MaxBytes == 0 || k.Owner == "" || len(k.Owner) > maxOwner || !isID(k.ID) {
		return fmt.Errorf("blobstore: %q: %w", k.String(), ErrBadKey)
	}
	return nil
}

// isID reports whether a text may be an id. It must not have a suffix of the library's own files.
func isID(text string) bool {
	if text == "" || len(text) > maxID || strings.HasSuffix(text, unfinished) ||
		strings.HasSuffix(text, attributes) || text[0] == '.' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !plain(c) && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// plain reports whether a byte needs no escape anywhere.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// escape encodes an owner in bytes that sort after '/'. In a directory the library lists by folder
// but continues by whole keys. A list would miss an owner with a byte before '/'.
func escape(owner string) string {
	var b strings.Builder
	for i := range len(owner) {
		if c := owner[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02x", c)
		}
	}
	return b.String()
}

// unescape reverses escape.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for text != "" {
		if text[0] != '~' {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		if len(text) < 3 {
			return "", false
		}
		c, err := strconv.ParseUint(text[1:3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		text = text[3:]
	}
	return b.String(), true
}

// parse parses a key of a kind as the store has it.
func parse(kind Kind, text string) (Key, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] != kind.Name {
		return Key{}, false
	}
	owner, ok := unescape(parts[1])
	key := Key{Kind: kind, Owner: owner, ID: parts[2]}
	return key, ok && key.check() == nil && key.String() == text
}

package oidc

import (
	"crypto/sha256"
	"sync"
)

// Bounds of the tokens remembered per key set. A token's claims take a few times its bytes.
const (
	maxVerified      = 10_000
	maxVerifiedBytes = 16 << 20 // of the tokens
)

// memory holds the claims of tokens that a key set has verified, so that each signature is verified
// once, not at each call. It belongs to its key set, so it forgets tokens of withdrawn keys. It
// does not remember whether a token is valid now. The zero value is ready to use.
type memory struct {
	mu    sync.Mutex
	said  map[[sha256.Size]byte]claims // by the token's hash
	bytes int                          // of these tokens
}

func (m *memory) recall(hash [sha256.Size]byte) (claims, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.said[hash]
	return c, known
}

// keep remembers the claims of a token of size bytes.
func (m *memory) keep(hash [sha256.Size]byte, c claims, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.said[hash]; known {
		return
	}
	if m.said == nil || len(m.said) >= maxVerified || m.bytes+size > maxVerifiedBytes {
		m.said, m.bytes = map[[sha256.Size]byte]claims{}, 0 // forgotten tokens are verified again
	}
	m.said[hash] = c
	m.bytes += size
}

package oidc

import (
	"crypto/sha256"
	"sync"
)

// Bounds of the tokens that are remembered of a key set. What one says takes a few times its bytes.
const (
	maxVerified      = 10_000
	maxVerifiedBytes = 16 << 20 // of the tokens
)

// memory is what tokens say that a key set has verified, so that a signature costs its verification
// once and not at each call. It goes with its key set, and so with any key that was taken back.
// Whether a token holds now is not remembered. The zero value is ready.
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

// keep remembers what a token of so many bytes says.
func (m *memory) keep(hash [sha256.Size]byte, c claims, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.said[hash]; known {
		return
	}
	if m.said == nil || len(m.said) >= maxVerified || m.bytes+size > maxVerifiedBytes {
		m.said, m.bytes = map[[sha256.Size]byte]claims{}, 0 // they are verified once more
	}
	m.said[hash] = c
	m.bytes += size
}

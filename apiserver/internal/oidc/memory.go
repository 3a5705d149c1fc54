package oidc

import (
	"crypto/sha256"
	"sync"
)

// maxVerified bounds the tokens that are remembered of a key set.
const maxVerified = 10_000

// memory is what tokens say that a key set has verified, so that a signature costs its verification
// once and not at each call. It goes with its key set, and so with any key that was taken back.
// Whether a token holds now is not remembered. The zero value is ready.
type memory struct {
	mu   sync.Mutex
	said map[[sha256.Size]byte]claims // by the token's hash
}

func (m *memory) recall(hash [sha256.Size]byte) (claims, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.said[hash]
	return c, known
}

func (m *memory) keep(hash [sha256.Size]byte, c claims) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said == nil || len(m.said) >= maxVerified {
		m.said = map[[sha256.Size]byte]claims{} // what is forgotten is verified once more
	}
	m.said[hash] = c
}

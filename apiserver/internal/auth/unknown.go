package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// unknownFor is how long a key that nobody knew stays unknown without another look. Keys are
	// made here, so that none is known later but by the restoring of a backup.
	unknownFor = 10 * time.Second
	maxUnknown = 10_000
)

// unknown are keys that the whole cluster did not know when they were last asked for. The zero
// value is ready.
type unknown struct {
	mu    sync.Mutex
	since map[[32]byte]time.Time // by hash
}

func (u *unknown) remember(key string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.since) >= maxUnknown || u.since == nil {
		u.since = map[[32]byte]time.Time{} // whoever is forgotten is asked for once more
	}
	u.since[sha256.Sum256([]byte(key))] = now
}

func (u *unknown) remembers(key string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	hash := sha256.Sum256([]byte(key))
	at, known := u.since[hash]
	if known && now.Sub(at) >= unknownFor {
		delete(u.since, hash)
		return false
	}
	return known
}

package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// unknownFor is how long an unknown key is refused without asking again. Keys are made here, so
	// only a restored backup can bring one back.
	unknownFor = 10 * time.Second
	maxUnknown = 10_000
)

// unknown holds keys that the cluster did not know when last asked. The zero value is ready to use.
type unknown struct {
	mu    sync.Mutex
	since map[[32]byte]time.Time // by hash
}

func (u *unknown) remember(key string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.since) >= maxUnknown || u.since == nil {
		u.since = map[[32]byte]time.Time{} // forgotten keys are looked up again
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

package operation

import (
	"context"
	"sync"
)

// underway counts the calls and streams that have not ended.
type underway struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when count falls to 0; nil while nobody waits
}

func (u *underway) addOne() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
}

func (u *underway) removeOne() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count--; u.count == 0 && u.none != nil {
		close(u.none)
		u.none = nil
	}
}

// wait waits until nothing is under way, or until ctx ends.
func (u *underway) wait(ctx context.Context) error {
	u.mu.Lock()
	if u.count == 0 {
		u.mu.Unlock()
		return nil
	}
	if u.none == nil {
		u.none = make(chan struct{})
	}
	none := u.none
	u.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const (
	flushEvery   = time.Minute
	flushTimeout = time.Second
	// maxTouches bounds memory. Further keys and sessions of that minute keep their older time.
	maxTouches = 100_000
	// touchBatch keeps a command far below the log's bound of 512 KiB.
	touchBatch = 4_000
)

// Touches collects when keys and sessions were used, and from where. It reports them to the control
// plane once a minute.
type Touches struct {
	client client.Client
	clock  clock.Clock
	log    *slog.Logger

	mu       sync.Mutex
	last     map[ids.ID]Use
	sessions map[client.Hash]int64
}

// Use is one use of a key.
type Use struct {
	At      int64  // Unix milliseconds; 0: never
	Address string // of the caller, "" if unknown
}

// NewTouches makes a collector; Run flushes it.
func NewTouches(c client.Client, k clock.Clock, log *slog.Logger) *Touches {
	return &Touches{client: c, clock: k, log: log, last: map[ids.ID]Use{},
		sessions: map[client.Hash]int64{}}
}

func (t *Touches) touch(key ids.ID, from netip.Addr) {
	use := Use{At: t.clock.Now().UnixMilli()}
	if from.IsValid() {
		use.Address = from.Unmap().WithZone("").String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.last[key]; known || len(t.last) < maxTouches {
		t.last[key] = use
	}
}

func (t *Touches) touchSession(session client.Hash) {
	at := t.clock.Now().UnixMilli()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.sessions[session]; known || len(t.sessions) < maxTouches {
		t.sessions[session] = at
	}
}

// LastUse is the newest use of a key that this process or the state knows.
func (t *Touches) LastUse(key *client.Key) Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	if here, known := t.last[key.ID]; known && here.At >= key.LastUsedAt {
		return here
	}
	return Use{At: key.LastUsedAt, Address: key.LastAddress}
}

// Run flushes every minute until ctx ends, and once more then.
func (t *Touches) Run(ctx context.Context) {
	for clock.Pause(ctx, t.clock, flushEvery) {
		t.flush(ctx)
	}
	t.flush(context.WithoutCancel(ctx))
}

// flush proposes what was collected. A failed proposal is dropped: the key's next use reports anew.
func (t *Touches) flush(ctx context.Context) {
	t.mu.Lock()
	gathered, used := t.last, t.sessions
	t.last, t.sessions = map[ids.ID]Use{}, map[client.Hash]int64{}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	touches := make([]client.KeyTouch, 0, len(gathered))
	for id, use := range gathered {
		touches = append(touches, client.KeyTouch{ID: id, At: use.At, Address: use.Address})
	}
	for batch := range slices.Chunk(touches, touchBatch) {
		if _, err := client.Do(ctx, t.client, client.TouchKeys{Keys: batch}, nil); err != nil {
			t.log.Warn("last uses of keys are lost", "keys", len(batch), "error", err)
		}
	}
	sessions := make([]client.SessionTouch, 0, len(used))
	for hash, at := range used {
		sessions = append(sessions, client.SessionTouch{Hash: hash, At: at})
	}
	for batch := range slices.Chunk(sessions, touchBatch) {
		if _, err := client.Do(ctx, t.client, client.TouchSessions{Sessions: batch},
			nil); err != nil {
			t.log.Warn("last uses of sessions are lost", "sessions", len(batch), "error", err)
		}
	}
}

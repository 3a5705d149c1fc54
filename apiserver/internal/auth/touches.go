package auth

import (
	"context"
	"log/slog"
	"maps"
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
	// maxTouches bounds memory. Further keys and sessions keep their older time.
	maxTouches = 100_000
	// touchBatch keeps a command far below the log's bound of 512 KiB.
	touchBatch = 4_000
)

// Touches collects when keys and sessions were used, and from where. It reports them to the control
// plane once a minute, and keeps each use until the control plane has it.
type Touches struct {
	client client.Client
	clock  clock.Clock
	logger *slog.Logger

	mu       sync.Mutex
	keys     map[ids.ID]client.KeyTouch
	sessions map[client.Hash]client.SessionTouch
}

// Use is one use of a key.
type Use struct {
	At      int64  // Unix milliseconds; 0: never
	Address string // of the caller, "" if unknown
}

// NewTouches makes a collector; Run flushes it.
func NewTouches(c client.Client, k clock.Clock, logger *slog.Logger) *Touches {
	return &Touches{client: c, clock: k, logger: logger, keys: map[ids.ID]client.KeyTouch{},
		sessions: map[client.Hash]client.SessionTouch{}}
}

func (t *Touches) touch(key ids.ID, from netip.Addr) {
	use := client.KeyTouch{ID: key, At: t.clock.Now().UnixMilli()}
	if from.IsValid() {
		use.Address = from.Unmap().WithZone("").String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.keys[key]; use.At >= was.At && (known || len(t.keys) < maxTouches) {
		t.keys[key] = use
	}
}

func (t *Touches) touchSession(session client.Hash) {
	use := client.SessionTouch{Hash: session, At: t.clock.Now().UnixMilli()}
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.sessions[session]
	if use.At >= was.At && (known || len(t.sessions) < maxTouches) {
		t.sessions[session] = use
	}
}

// LastUse is the newest use of a key that this process or the state knows.
func (t *Touches) LastUse(key *client.Key) Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	if here, known := t.keys[key.ID]; known && here.At >= key.LastUsedAt {
		return Use{At: here.At, Address: here.Address}
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

// flush proposes what was collected.
func (t *Touches) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	flushUses(t, "keys", t.keys, func(use client.KeyTouch) ids.ID { return use.ID },
		func(batch []client.KeyTouch) error {
			_, err := client.Do(ctx, t.client, client.TouchKeys{Keys: batch}, nil)
			return err
		})
	flushUses(t, "sessions", t.sessions,
		func(use client.SessionTouch) client.Hash { return use.Hash },
		func(batch []client.SessionTouch) error {
			_, err := client.Do(ctx, t.client, client.TouchSessions{Sessions: batch}, nil)
			return err
		})
}

// flushUses proposes uses, and forgets each that this node's state then has. After an error they
// stay for the next flush; proposing them twice changes nothing.
func flushUses[K, U comparable](t *Touches, of string, uses map[K]U, keyOf func(U) K,
	propose func([]U) error) {
	t.mu.Lock()
	collected := slices.Collect(maps.Values(uses))
	t.mu.Unlock()
	for batch := range slices.Chunk(collected, touchBatch) {
		if err := propose(batch); err != nil {
			t.logger.Warn("last uses are not recorded yet", "of", of, "uses", len(batch),
				"error", err)
			continue
		}
		t.mu.Lock()
		for _, use := range batch {
			if key := keyOf(use); uses[key] == use { // not used again meanwhile
				delete(uses, key)
			}
		}
		t.mu.Unlock()
	}
}

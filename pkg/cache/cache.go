// Package cache owns what may be lost: token buckets, counts of open places, and values that can be
// had again. One interface, in process (Local) and shared by many processes (Redis). It does not
// own what is limited, or what a value means. Nothing in it is a record of anything: all of it may
// vanish at any moment. Whoever uses it must then come to the same result, only later.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxValueBytes bounds a value; longer ones are not kept.
const MaxValueBytes = 1 << 20

// Limit allows Count calls in each Per, and as many at once. Both are positive.
type Limit struct {
	Count int
	Per   time.Duration
}

// MaxLimitCount and MaxLimitPer bound limits that are read from text, whose Per is a second at
// least.
const (
	MaxLimitCount = 1_000_000
	MaxLimitPer   = 24 * time.Hour
)

// ParseLimit reads COUNT/PER: 10/1m is ten a minute.
func ParseLimit(text string) (Limit, error) {
	count, per, _ := strings.Cut(text, "/")
	var l Limit
	var err error
	if l.Count, err = strconv.Atoi(count); err == nil {
		l.Per, err = time.ParseDuration(per)
	}
	if err != nil {
		return Limit{}, fmt.Errorf("%.50q: want COUNT/PER, 10/1m for ten a minute", text)
	}
	if l.Count < 1 || l.Count > MaxLimitCount || l.Per < time.Second || l.Per > MaxLimitPer {
		return Limit{}, fmt.Errorf("%.50q: want 1 to %d calls in 1s to %v", text, MaxLimitCount,
			MaxLimitPer)
	}
	return l, nil
}

// Verdict answers a call. Limit 0 means that nothing limits it.
type Verdict struct {
	Allowed   bool
	Limit     int           // calls that the full bucket allows
	Remaining int           // calls that it allows now
	Reset     time.Duration // until it is full
	Retry     time.Duration // until the next call is allowed, when this one is not
}

// Limiter counts calls and places. No method fails: what cannot be asked is decided by the process
// alone, on its safe side. Implementations are safe for concurrent use.
type Limiter interface {
	// TakeCall takes one call from the bucket of this name. A bucket that is not known is full.
	TakeCall(ctx context.Context, bucket string, limit Limit) Verdict
	// Enter takes one of at most so many places of a room. leave gives it back, once however often
	// it is called; it is nil when the room is full.
	Enter(ctx context.Context, room string, most int) (leave func())
}

// Values keeps values for a while. No method fails: what cannot be asked is not found, and what
// cannot be kept is not kept. Implementations are safe for concurrent use.
type Values interface {
	// Get answers a value that was set and has not expired. It may be gone at any time. It must not
	// be changed.
	Get(ctx context.Context, key string) (value []byte, found bool)
	// Set keeps a value of at most MaxValueBytes for ttl, which is positive. The value must not be
	// changed afterwards.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration)
	// Delete forgets a value.
	Delete(ctx context.Context, key string)
}

// Cache is both, and its end.
type Cache interface {
	Limiter
	Values
	// Counts is what has happened since the cache was made.
	Counts() Counts
	// Close frees the cache. Nothing of it may be used afterwards.
	Close() error
}

// Counts tells of a cache. All but Down only grow.
type Counts struct {
	Hits, Misses uint64 // of Get
	// Failures are requests to Redis that failed or took too long.
	Failures uint64
	// Alone are limits that the process decided by itself because Redis did not answer.
	Alone uint64
	// Down says that Redis does not answer, and is not asked until it does again.
	Down bool
}

// almost is the part of a call that rounding may take from a bucket.
const almost = 1e-3

// verdict tells what a bucket with so many tokens allows, after the call was allowed or not.
func (l Limit) verdict(allowed bool, tokens float64) Verdict {
	perCall := float64(l.perCall())
	tokens = max(0, min(tokens, float64(l.Count)))
	v := Verdict{Allowed: allowed, Limit: l.Count, Remaining: int(math.Floor(tokens + almost)),
		Reset: time.Duration((float64(l.Count) - tokens) * perCall)}
	if !allowed {
		v.Remaining = 0
		v.Retry = time.Duration(max(0, 1-tokens) * perCall)
	}
	return v
}

// perCall is the time in which a bucket gains one call.
func (l Limit) perCall() time.Duration { return l.Per / time.Duration(l.Count) }

// maxNameBytes bounds names of buckets, rooms and values: some are made of what callers send.
const maxNameBytes = 128

// bounded is a name, or a digest of one that is too long.
func bounded(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	return "sha256 " + hex.EncodeToString(digest[:])
}

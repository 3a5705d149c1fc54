// Package cache owns data that may be lost: token buckets, counts of open places, and values that
// can be obtained again. One interface has two implementations: Local works in one process, and
// Redis is shared by many. The package knows neither what is limited nor what a value means. All of
// it may vanish at any moment. Callers must then reach the same result, only later.
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

// MaxValueBytes bounds a value; longer values are not kept.
const MaxValueBytes = 1 << 20

// Limit allows Count calls in each Per, all of them at once if need be. Both are positive.
type Limit struct {
	Count int
	Per   time.Duration
}

// MaxLimitCount and MaxLimitPer bound the limits that ParseLimit accepts. Their Per is at least a
// second.
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

// Verdict is the decision about a call. If Limit is 0, the call is not limited.
type Verdict struct {
	Allowed   bool
	Limit     int           // calls that the full bucket allows
	Remaining int           // calls that the bucket allows now
	Reset     time.Duration // until the bucket is full
	Retry     time.Duration // until the next call is allowed, if this one is refused
}

// Limiter counts calls and places. No method fails: if the shared store does not answer, the
// process decides alone, on the safe side. Implementations are safe for concurrent use.
type Limiter interface {
	// TakeCall takes one call from the bucket of this name. An unknown bucket is full.
	TakeCall(ctx context.Context, bucket string, limit Limit) Verdict
	// Enter takes a place in a room that has at most most places. leave gives the place back;
	// further calls do nothing. If the room is full, leave is nil.
	Enter(ctx context.Context, room string, most int) (leave func())
}

// Values keeps values for a while. No method fails: if the store does not answer, Get finds nothing
// and Set keeps nothing. Implementations are safe for concurrent use.
type Values interface {
	// Get returns a value that was set and has not expired. It may vanish earlier. The caller must
	// not change it.
	Get(ctx context.Context, key string) (value []byte, found bool)
	// Set keeps a value of at most MaxValueBytes for ttl, which is positive. The caller must not
	// change the value afterwards.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration)
	// Delete forgets a value.
	Delete(ctx context.Context, key string)
}

// Cache combines Limiter and Values.
type Cache interface {
	Limiter
	Values
	// Counts returns the totals since the cache was made.
	Counts() Counts
	// Close frees the cache. It must not be used afterwards.
	Close() error
}

// Counts are the totals of a cache. All but Down only grow.
type Counts struct {
	Hits, Misses uint64 // of Get
	// Failures counts requests to Redis that failed or took too long.
	Failures uint64
	// Alone counts decisions that the process made alone because Redis did not answer.
	Alone uint64
	// Down says that Redis does not answer. No call asks it until it answers again.
	Down bool
}

// almost is the fraction of a call that a bucket may lack through rounding.
const almost = 1e-3

// verdict describes a bucket that has these tokens after a call that was allowed or refused.
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

// maxNameBytes bounds names of buckets, rooms and values: some contain what callers send.
const maxNameBytes = 128

// bounded returns the name, or its digest if it is too long.
func bounded(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	return "sha256 " + hex.EncodeToString(digest[:])
}

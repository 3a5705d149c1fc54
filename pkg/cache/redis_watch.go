package cache

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// ask makes one request to Redis within the time that a call may cost. It is false when there was
// no answer: the caller does without. While Redis is known to be down it is not asked.
func (r *Redis) ask(ctx context.Context, request func(ctx context.Context) error) (asked bool) {
	if r.down.Load() {
		return false
	}
	short, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	err := request(short)
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		r.inARow.Store(0)
		return true
	case ctx.Err() != nil:
		return false // the caller gave up, which says nothing of Redis
	}
	r.failures.Add(1)
	if r.inARow.Add(1) >= tripAfter && r.down.CompareAndSwap(false, true) {
		r.config.Logger.Warn("Redis does not answer: limits are decided by each process alone",
			"error", err)
		select {
		case r.tripped <- struct{}{}:
		default: // watch has not seen the one before
		}
	}
	return false
}

// watch asks a Redis that is down whether it is there again, and renews the places of one that is
// up, until ctx ends.
func (r *Redis) watch(ctx context.Context) {
	for {
		wait := r.config.Lease / 3
		if r.down.Load() {
			wait = probeEvery
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.tripped:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if r.down.Load() && !r.probe(ctx) {
			continue
		}
		r.renew(ctx)
	}
}

// probe writes: a Redis that can only be read is of no use.
func (r *Redis) probe(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	if err := r.client.Set(short, r.key("probe", r.places.process), 1,
		time.Second).Err(); err != nil {
		return false
	}
	r.inARow.Store(0)
	r.down.Store(false)
	r.config.Logger.Info("Redis answers again")
	return true
}

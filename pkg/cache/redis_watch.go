package cache

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// ask makes one request to Redis within Config.Timeout, unless Redis is down. If asked is false,
// Redis did not answer or answered with an error, and the caller continues without it.
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
		return false // the caller gave up, which says nothing about Redis
	}
	r.failures.Add(1)
	if r.inARow.Add(1) >= tripAfter && r.down.CompareAndSwap(false, true) {
		r.config.Logger.Warn("Redis does not answer: limits are decided by each process alone",
			"error", err)
		r.tripped.Raise()
	}
	return false
}

// watch works until ctx ends. While Redis is down, it probes it. While Redis is up, it renews the
// places.
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

// probe says whether Redis takes writes again: a Redis that can only be read is of no use.
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

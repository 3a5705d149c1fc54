package cache

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/wake"
)

// Config says where Redis is and how to use it. Zero values mean the defaults.
type Config struct {
	// Addr is HOST:PORT, or redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss://… for TLS.
	Addr string
	// Username and Password, where set, replace those of Addr. Without a user Redis takes default.
	Username string
	Password string
	// RootCAs are the authorities trusted for a rediss:// server; nil: the system's.
	RootCAs *x509.CertPool
	// Prefix lets several clusters share a Redis: keys are PREFIX* and rate:PREFIX*.
	// "": "shoal:".
	Prefix string
	// Timeout bounds one call of a method, whatever Redis does. 0: 50 ms.
	Timeout time.Duration
	// Lease is how long a place stays taken after its process has died. 0: 30 s.
	Lease time.Duration
	// Processes returns how many processes share the limits. It is called at most once a second.
	// While Redis does not answer, each process allows its share of a limit, at least 1. nil: one
	// process.
	Processes func() int
	// Clock is the clock of the process's own buckets; nil: the system's.
	Clock clock.Clock
	// Logger reports when Redis goes down and comes back; it may be nil.
	Logger *slog.Logger
}

const (
	defaultTimeout = 50 * time.Millisecond
	defaultLease   = 30 * time.Second
	// tripAfter is how many requests in a row must fail until Redis counts as down.
	tripAfter = 3
	// probeEvery is how often watch then probes Redis, independently of calls.
	probeEvery = 250 * time.Millisecond
	// dialTimeout bounds a dial. TLS takes several round trips, so the dial continues after the
	// call that began it has given up.
	dialTimeout = time.Second
)

// Redis is the Cache that processes share. Every call ends within Config.Timeout, and at once while
// Redis is down. Then the process applies its own share of each limit, and finds no values.
type Redis struct {
	config  Config
	client  *redis.Client
	buckets *redis_rate.Limiter
	places  places
	// alone has this process's share of every bucket. It counts all calls, so that its buckets are
	// not full when Redis goes down.
	alone *Local

	sharers atomic.Pointer[sharers]

	hits, misses, failures, decided atomic.Uint64

	inARow  atomic.Int32 // failed requests since the last that succeeded
	down    atomic.Bool
	tripped wake.Signal // wakes watch
	stop    context.CancelFunc
	watched sync.WaitGroup
}

var _ Cache = (*Redis)(nil)

// Open makes a cache on a Redis without contacting it. An unreachable Redis is not an error: the
// cache treats it like one that goes down later.
func Open(config Config) (*Redis, error) {
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	if config.Prefix == "" {
		config.Prefix = "shoal:"
	}
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if config.Lease <= 0 {
		config.Lease = defaultLease
	}
	if config.Processes == nil {
		config.Processes = func() int { return 1 }
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	// This silences the whole library, which prints every failed dial. We count failures instead.
	logging.Disable()
	options.DialTimeout = max(dialTimeout, config.Timeout)
	options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = config.Timeout, config.Timeout,
		config.Timeout
	options.ContextTimeoutEnabled = true
	// No retries: the next call asks again.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{
		Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(options)
	ctx, stop := context.WithCancel(context.Background())
	r := &Redis{config: config, client: client, buckets: redis_rate.NewLimiter(client),
		alone:   NewLocal(config.Clock),
		places:  places{process: rand.Text(), rooms: map[string]map[string]struct{}{}},
		tripped: wake.NewSignal(), stop: stop}
	r.watched.Go(func() { r.watch(ctx) })
	return r, nil
}

// Close ends the background work and closes the connections. Places that are still taken end with
// their lease.
func (r *Redis) Close() error {
	r.stop()
	r.watched.Wait()
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// Counts implements Cache.
func (r *Redis) Counts() Counts {
	return Counts{Hits: r.hits.Load(), Misses: r.misses.Load(), Failures: r.failures.Load(),
		Alone: r.decided.Load(),
		Down:  r.down.Load()}
}

// TakeCall implements Limiter.
func (r *Redis) TakeCall(ctx context.Context, name string, limit Limit) Verdict {
	share := r.alone.TakeCall(ctx, name, Limit{Count: r.share(limit.Count), Per: limit.Per})
	verdict, asked := r.askBucket(ctx, r.key("bucket", name), limit)
	if !asked {
		r.decided.Add(1)
		return share
	}
	return verdict
}

// askBucket takes a call from the bucket in Redis. asked is false if Redis did not answer.
func (r *Redis) askBucket(ctx context.Context, key string, limit Limit) (v Verdict, asked bool) {
	asked = r.ask(ctx, func(ctx context.Context) error {
		figure := redis_rate.Limit{Rate: limit.Count, Burst: limit.Count, Period: limit.Per}
		answer, err := r.buckets.Allow(ctx, key, figure)
		if err == nil && answer.ResetAfter > limit.Per+time.Second {
			// Even an empty bucket fills within Per. So Redis's clock was put back, or the limit
			// had a longer Per before.
			if err = r.buckets.Reset(ctx, key); err == nil {
				answer, err = r.buckets.Allow(ctx, key, figure)
			}
		}
		if err != nil {
			return err
		}
		tokens := float64(limit.Per-answer.ResetAfter) / float64(limit.perCall())
		v = limit.verdict(answer.Allowed > 0, tokens)
		return nil
	})
	return v, asked
}

// sharers is how many processes shared the limits at one moment.
type sharers struct {
	at        time.Time
	processes int
}

// share returns this process's share of a count, at least 1.
func (r *Redis) share(count int) int {
	now, known := r.config.Clock.Now(), r.sharers.Load()
	if known == nil || now.Sub(known.at) >= time.Second {
		known = &sharers{at: now, processes: max(1, r.config.Processes())}
		r.sharers.Store(known)
	}
	return max(1, count/known.processes)
}

// Get implements Values.
func (r *Redis) Get(ctx context.Context, key string) (value []byte, found bool) {
	r.ask(ctx, func(ctx context.Context) error {
		var err error
		value, err = r.client.Get(ctx, r.key("value", key)).Bytes()
		found = err == nil
		return err
	})
	if !found {
		r.misses.Add(1)
		return nil, false
	}
	r.hits.Add(1)
	return value, true
}

// Set implements Values.
func (r *Redis) Set(ctx context.Context, key string, value []byte, ttl time.Duration) {
	if len(value) > MaxValueBytes {
		r.Delete(ctx, key)
		return
	}
	r.ask(ctx, func(ctx context.Context) error {
		return r.client.Set(ctx, r.key("value", key), value, max(ttl, time.Millisecond)).Err()
	})
}

// Delete implements Values.
func (r *Redis) Delete(ctx context.Context, key string) {
	r.ask(ctx, func(ctx context.Context) error {
		return r.client.Del(ctx,
			r.key("value", key)).Err()
	})
}

func (r *Redis) key(kind, name string) string {
	return r.config.Prefix + kind + ":" + bounded(name)
}

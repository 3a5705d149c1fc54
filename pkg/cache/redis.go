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
)

// Config says which Redis, and how. Zero values mean the defaults.
type Config struct {
	// Addr is HOST:PORT, or redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss://… for TLS.
	Addr string
	// of Redis's access control list, instead of the address's; "" is its default user
	Username string
	Password string
	// RootCAs are who may have signed the certificate of a rediss:// server; the system's when nil.
	RootCAs *x509.CertPool
	// Prefix begins every key, so that several clusters can share a Redis: keys are PREFIX* and
	// rate:PREFIX*. "shoal:" when "".
	Prefix string
	// Timeout bounds one call of a method, whatever Redis does. 50 ms when 0.
	Timeout time.Duration
	// Lease is how long a place stays taken when its process has died. 30 s when 0.
	Lease time.Duration
	// Processes is how many processes share the limits, as known now; it is asked at most once a
	// second. While Redis does not answer, each allows that part of a limit, and at least 1. 1 when
	// nil.
	Processes func() int
	// Clock is for the process's own buckets while Redis does not answer; the system's when nil.
	Clock clock.Clock
	// Log hears when Redis goes and comes back; nobody when nil.
	Logger *slog.Logger
}

const (
	defaultTimeout = 50 * time.Millisecond
	defaultLease   = 30 * time.Second
	// tripAfter is how many requests in a row must fail before Redis is not asked any more.
	tripAfter = 3
	// probeEvery is how often it is then asked whether it is there again, by nobody's call.
	probeEvery = 250 * time.Millisecond
	// dialTimeout bounds a dial, which goes on when the call that wanted it has given up: TLS takes
	// several round trips.
	dialTimeout = time.Second
)

// Redis is the Cache that processes share. Every call ends within Config.Timeout, and at once while
// Redis is known not to answer. Then the process decides limits alone, by its part of them, and
// finds no values.
type Redis struct {
	config  Config
	client  *redis.Client
	buckets *redis_rate.Limiter
	places  places
	// alone has the process's own part of every bucket. It sees all calls, so that it is not full
	// when Redis goes.
	alone *Local

	sharers atomic.Pointer[sharers]

	hits, misses, failures, decided atomic.Uint64

	inARow  atomic.Int32 // requests that failed since one did not
	down    atomic.Bool
	tripped chan struct{} // wakes watch
	stop    context.CancelFunc
	watched sync.WaitGroup
}

var _ Cache = (*Redis)(nil)

// Open makes a cache on a Redis. It asks nothing of it yet: a Redis that is not there is one that
// is down.
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
	// of the whole library: it writes every failed dial to the terminal, and we count them
	logging.Disable()
	options.DialTimeout = max(dialTimeout, config.Timeout)
	options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = config.Timeout, config.Timeout,
		config.Timeout
	options.ContextTimeoutEnabled = true
	// asking again is for the caller that comes next
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{
		Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(options)
	ctx, stop := context.WithCancel(context.Background())
	r := &Redis{config: config, client: client, buckets: redis_rate.NewLimiter(client),
		alone:   NewLocal(config.Clock),
		places:  places{process: rand.Text(), rooms: map[string]map[string]struct{}{}},
		tripped: make(chan struct{}, 1), stop: stop}
	r.watched.Go(func() { r.watch(ctx) })
	return r, nil
}

// Close ends what runs in the background and closes the connections. Places that are still taken
// end with their lease.
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

// askBucket asks Redis's bucket.
func (r *Redis) askBucket(ctx context.Context, key string, limit Limit) (v Verdict, asked bool) {
	asked = r.ask(ctx, func(ctx context.Context) error {
		figure := redis_rate.Limit{Rate: limit.Count, Burst: limit.Count, Period: limit.Per}
		answer, err := r.buckets.Allow(ctx, key, figure)
		if err == nil && answer.ResetAfter > limit.Per+time.Second {
			// No bucket is emptier than empty: Redis's clock was put back, or the limit is a
			// shorter one now.
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

// sharers is how many processes shared the limits at a time.
type sharers struct {
	at        time.Time
	processes int
}

// share is this process's part of a count.
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

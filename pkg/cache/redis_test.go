package cache_test

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/cache/cachetest"
	"shoal.dev/shoal/pkg/clock"
)

// open opens a cache, and closes it when the test has ended. The timeout of calls allows for a
// busy machine.
func open(t *testing.T, config cache.Config) *cache.Redis {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	c, err := cache.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // some tests have closed it before
	return c
}

// frozenMini returns a miniredis whose time only a manual clock moves.
func frozenMini(t testing.TB) (mini *miniredis.Miniredis, now *clock.Manual,
	advance func(time.Duration)) {
	mini, now = miniredis.RunT(t), clock.NewManual(time.Unix(1_800_000_000, 0))
	mini.SetTime(now.Now())
	mini.ClockTTL(true)
	return mini, now, func(d time.Duration) {
		now.Advance(d)
		mini.SetTime(now.Now())
	}
}

func TestMiniredis(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) cachetest.Subject {
		mini, now, advance := frozenMini(t)
		return cachetest.Subject{Cache: open(t, cache.Config{Addr: mini.Addr(), Clock: now}),
			Advance: advance}
	})
}

func TestMiniredisShared(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cachetest.RunShared(t, func(t *testing.T) cachetest.Server {
		mini := miniredis.RunT(t)
		mini.ClockTTL(true)
		return cachetest.Server{
			Open: opener(mini.Addr()),
			Wipe: mini.FlushAll,
			Kill: mini.Close,
			Start: func() {
				if err := mini.Restart(); err != nil {
					t.Error(err)
				}
			},
			Freeze: func() {
				thawed := make(chan struct{})
				mini.Server().SetPreHook(func(*server.Peer, string,
					...string) bool {
					<-thawed
					return false
				})
				t.Cleanup(sync.OnceFunc(func() { close(thawed) }))
			},
			// Frozen requests stay frozen: their callers are gone.
			Thaw: func() { mini.Server().SetPreHook(nil) },
		}
	})
}

// opener returns a function that opens the cache of one more process. Only a short lease needs a
// short timeout, which a busy machine may miss.
func opener(addr string) func(*testing.T, int, time.Duration) cache.Cache {
	return func(t *testing.T, processes int, lease time.Duration) cache.Cache {
		return open(t, cache.Config{Addr: addr, Lease: lease,
			Processes: func() int { return processes },
			Timeout:   min(lease/2, 5*time.Second)})
	}
}

// TestAlike: buckets in Redis and in the process give the same verdicts, call by call.
func TestAlike(t *testing.T) {
	mini, now, advance := frozenMini(t)
	shared := open(t, cache.Config{Addr: mini.Addr(), Clock: now})
	rapid.Check(t, func(t *rapid.T) {
		mini.FlushAll()
		local := cache.NewLocal(now)
		limit := cache.Limit{
			// In the process a call takes whole nanoseconds, so these divide each Per.
			Count: rapid.SampledFrom([]int{1, 2, 5, 10, 40, 100, 250, 500, 625}).Draw(t, "count"),
			Per: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t,
				"per")}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			gap := time.Duration(rapid.IntRange(0, 3_000).Draw(t, "gap")) * time.Millisecond
			// Never exactly when a call becomes available: the two round differently.
			advance(gap + 137*time.Microsecond)
			ours, theirs := local.TakeCall(t.Context(), "b", limit),
				shared.TakeCall(t.Context(), "b", limit)
			near := func(a, b time.Duration) bool {
				return math.Abs(float64(a-b)) < float64(time.Millisecond)
			}
			if ours.Allowed != theirs.Allowed || ours.Limit != theirs.Limit ||
				ours.Remaining != theirs.Remaining ||
				!near(ours.Reset, theirs.Reset) || !near(ours.Retry, theirs.Retry) {
				t.Fatalf("in process %+v, in Redis %+v", ours, theirs)
			}
		}
	})
}

// TestClockOfRedisIsPutBack: a bucket that was last emptied in the future is full, and a place that
// was leased in the future is free.
func TestClockOfRedisIsPutBack(t *testing.T) {
	mini, _, advance := frozenMini(t)
	a, b := open(t, cache.Config{Addr: mini.Addr()}), open(t, cache.Config{Addr: mini.Addr()})
	limit := cache.Limit{Count: 2, Per: time.Minute}
	cachetest.Allowed(t, a, "b", limit, 3)
	if a.Enter(t.Context(), "r", 1) == nil {
		t.Fatal("refused")
	}
	advance(-10 * time.Minute)
	if got := cachetest.Allowed(t, a, "b", limit, 3); got != 2 {
		t.Errorf("%d calls allowed", got)
	}
	if b.Enter(t.Context(), "r", 1) == nil {
		t.Error("a lease from the future holds")
	}
}

// TestRefusedByRedis: a Redis that answers with errors counts as down.
func TestRefusedByRedis(t *testing.T) {
	mini := miniredis.RunT(t)
	mini.RequireAuth("secret")
	c := open(t, cache.Config{Addr: mini.Addr(), Password: "wrong"})
	if got := cachetest.Allowed(t, c, "b", cache.Limit{Count: 4, Per: time.Hour}, 8); got != 4 ||
		!c.Counts().Down {
		t.Errorf("%d calls allowed, %+v", got, c.Counts())
	}
	c = open(t, cache.Config{Addr: mini.Addr(), Password: "secret"})
	c.TakeCall(t.Context(), "b", cache.Limit{Count: 4, Per: time.Hour})
	if c.Counts().Failures != 0 {
		t.Errorf("with the password: %+v", c.Counts())
	}
	for _, key := range mini.Keys() {
		if !strings.HasPrefix(key, "shoal:") && !strings.HasPrefix(key, "rate:shoal:") ||
			mini.TTL(key) <= 0 {
			t.Errorf("key %q lives %v", key, mini.TTL(key))
		}
	}
	if len(mini.Keys()) == 0 {
		t.Error("no keys")
	}
}

// realRedis returns the address that the cluster suites set. Without an address it skips the test,
// or fails it where those suites run.
func realRedis(t *testing.T) string {
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" && os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
		t.Fatal("REDIS_ADDR is not set")
	}
	if addr == "" {
		t.Skip("REDIS_ADDR is not set")
	}
	return addr
}

func TestRedis(t *testing.T) {
	addr := realRedis(t)
	cachetest.Run(t, func(t *testing.T) cachetest.Subject {
		return cachetest.Subject{
			Cache: open(t, cache.Config{Addr: addr,
				Prefix: "test-" + t.Name() + time.Now().String()}),
			Advance: func(d time.Duration) { <-time.After(d) },
		}
	})
}

// TestRedisShared starts a server for each test, since the tests kill and freeze it.
func TestRedisShared(t *testing.T) {
	realRedis(t)
	cachetest.RunShared(t, func(t *testing.T) cachetest.Server {
		p := &redisProcess{t: t, socket: t.TempDir() + "/s"}
		p.start()
		t.Cleanup(p.kill)
		return cachetest.Server{Open: opener(p.socket), Wipe: p.wipe, Kill: p.kill, Start: p.start,
			Freeze: func() { p.signal(syscall.SIGSTOP) },
			Thaw:   func() { p.signal(syscall.SIGCONT) }}
	})
}

// redisProcess is a redis-server on a socket in the test's folder.
type redisProcess struct {
	t      *testing.T
	socket string
	child  *exec.Cmd
}

func (p *redisProcess) start() {
	p.child = exec.Command("redis-server", "--port", "0", "--unixsocket", p.socket, "--save", "",
		"--appendonly", "no")
	if err := p.child.Start(); err != nil {
		p.t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: p.socket})
	defer func() { _ = client.Close() }()
	for end := time.Now().Add(time.Minute); client.Ping(p.t.Context()).Err() != nil; {
		if time.Now().After(end) {
			p.t.Fatal("redis-server does not answer")
		}
	}
}

func (p *redisProcess) kill() {
	_ = p.child.Process.Kill() // it may have ended
	_ = p.child.Wait()
}

func (p *redisProcess) signal(s syscall.Signal) {
	if err := p.child.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

func (p *redisProcess) wipe() {
	client := redis.NewClient(&redis.Options{Addr: p.socket})
	defer func() { _ = client.Close() }()
	if err := client.FlushAll(p.t.Context()).Err(); err != nil {
		p.t.Error(err)
	}
}

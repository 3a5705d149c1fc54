package apiserver_test

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/ids"
)

// The keys of a self-hosting customer have their own read limit, which is off by default (decision
// 64).
func TestSelfHostingKeysReadByTheirOwnFigure(t *testing.T) {
	for _, figure := range []int{0, 3} {
		s := apitest.Start(t, apitest.WithRateLimits, func(config *apiserver.Config) {
			config.Rates = map[string]apiserver.Rate{"read": {Count: 1, Per: 24 * time.Hour}}
			if figure > 0 {
				config.Rates["self-read"] = apiserver.Rate{Count: figure, Per: 24 * time.Hour}
			}
		})
		var err error
		if s.Secrets["self"], err = apiserver.SelfKey(t.Context(), s.Client, s.IDs,
			s.DataDir); err != nil {
			t.Fatal(err)
		}
		for call := range 5 {
			want := http.StatusOK
			if figure > 0 && call >= figure {
				want = http.StatusTooManyRequests
			}
			if status, _ := whoami(t, s, "self"); status != want {
				t.Errorf("figure %d, call %d: %d, want %d", figure, call, status, want)
			}
		}
		for call, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if status, _ := whoami(t, s, apitest.Reader); status != want {
				t.Errorf("another's call %d: %d, want %d", call, status, want)
			}
		}
	}
}

// Two servers with one Redis enforce one limit exactly, and report the same bucket.
func TestServersShareLimits(t *testing.T) { onRedis(t, testServersShareLimits) }

// The keys of a customer share its limit across two servers, too.
func TestServersShareCustomersLimits(t *testing.T) { onRedis(t, testServersShareCustomersLimits) }

func onRedis(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("miniredis", func(t *testing.T) { test(t, miniredis.RunT(t).Addr()) })
	t.Run("redis", func(t *testing.T) {
		addr := os.Getenv("REDIS_ADDR")
		if addr == "" && os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("REDIS_ADDR is not set")
		}
		if addr == "" {
			t.Skip("REDIS_ADDR is not set")
		}
		test(t, addr)
	})
}

// twoServers starts two servers that count in one Redis.
func twoServers(t *testing.T, addr string, figures func(*apiserver.Config)) []*apitest.Server {
	prefix := "test-" + ids.Random{Now: time.Now}.New().String()
	start := func() *apitest.Server {
		shared, err := cache.Open(cache.Config{Addr: addr, Prefix: prefix,
			Timeout:   10 * time.Second,
			Processes: func() int { return 2 }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := shared.Close(); err != nil {
				t.Error(err)
			}
		})
		return apitest.Start(t, apitest.WithRateLimits, figures,
			func(config *apiserver.Config) { config.Limiter = shared })
	}
	return []*apitest.Server{start(), start()}
}

func testServersShareCustomersLimits(t *testing.T, addr string) {
	const own, together, calls = 4, 6, 5
	servers := twoServers(t, addr, func(config *apiserver.Config) {
		config.Rates = map[string]apiserver.Rate{"general": {Count: own, Per: 24 * time.Hour},
			"read": {Count: own, Per: 24 * time.Hour}}
		config.CustomerRates = map[string]apiserver.Rate{"general": {Count: together,
			Per: 24 * time.Hour},
			"read": {Count: together, Per: 24 * time.Hour}}
	})
	var mu sync.Mutex
	allowed, limits := 0, map[string]int{}
	var callersDone sync.WaitGroup
	for _, s := range servers { // each has its own keys, all of one customer
		for _, key := range []string{apitest.User, apitest.LLM, apitest.Reader} {
			callersDone.Go(func() {
				for range calls {
					status, header := whoami(t, s, key)
					mu.Lock()
					if status == http.StatusOK {
						allowed++
					}
					limits[header.Get("RateLimit-Limit")]++
					mu.Unlock()
				}
			})
		}
	}
	callersDone.Wait()
	if allowed != together || limits[strconv.Itoa(together)] == 0 {
		t.Errorf("%d calls are allowed, want %d; they were told of limits of %v", allowed, together,
			limits)
	}
}

func testServersShareLimits(t *testing.T, addr string) {
	const limit, callers, calls = 21, 6, 10
	servers := twoServers(t, addr, func(config *apiserver.Config) {
		// nothing is refilled during the test
		config.Rates = map[string]apiserver.Rate{"sign-in": {Count: limit, Per: 24 * time.Hour}}
	})

	var mu sync.Mutex
	statuses, left := map[int]int{}, map[int]int{}
	var callersDone sync.WaitGroup
	for i := range callers {
		s := servers[i%len(servers)]
		callersDone.Go(func() {
			for range calls {
				status, header := whoami(t, s, apitest.SignIn)
				remaining, err := strconv.Atoi(header.Get("RateLimit-Remaining"))
				if err != nil || header.Get("RateLimit-Limit") != strconv.Itoa(limit) ||
					header.Get("RateLimit-Reset") == "" ||
					(status == http.StatusTooManyRequests) != (header.Get("Retry-After") != "") {
					t.Errorf("status %d, headers %v", status, header)
				}
				mu.Lock()
				statuses[status]++
				if status == http.StatusOK {
					left[remaining]++
				}
				mu.Unlock()
			}
		})
	}
	callersDone.Wait()
	if statuses[http.StatusOK] != limit ||
		statuses[http.StatusTooManyRequests] != callers*calls-limit {
		t.Errorf("statuses %v, want %d times 200 and then 429", statuses, limit)
	}
	for remaining := range limit {
		if left[remaining] != 1 {
			t.Errorf("%d calls were told that %d are left", left[remaining], remaining)
		}
	}
}

// whoami makes a call. A token names its subject, so it is the same caller at any server.
func whoami(t *testing.T, s *apitest.Server, as string) (status int, header http.Header) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/key/whoami",
		nil)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+s.Secrets[as])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Header
}

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

// Two servers with one Redis enforce one limit, just at its edge, and tell of one bucket.
func TestServersShareLimits(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) { testServersShareLimits(t, miniredis.RunT(t).Addr()) })
	t.Run("redis", func(t *testing.T) {
		addr := os.Getenv("REDIS_ADDR")
		if addr == "" && os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("REDIS_ADDR is not set")
		}
		if addr == "" {
			t.Skip("REDIS_ADDR is not set")
		}
		testServersShareLimits(t, addr)
	})
}

func testServersShareLimits(t *testing.T, addr string) {
	const limit, callers, calls = 21, 6, 10
	prefix := "test-" + ids.Random{Now: time.Now}.New().String()
	start := func() *apitest.Server {
		shared, err := cache.Open(cache.Config{Addr: addr, Prefix: prefix, Timeout: 10 * time.Second,
			Processes: func() int { return 2 }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := shared.Close(); err != nil {
				t.Error(err)
			}
		})
		return apitest.Start(t, apitest.WithRateLimits, func(cfg *apiserver.Config) {
			cfg.Limiter = shared
			cfg.Rates = map[string]apiserver.Rate{"sign-in": {Count: limit, Per: 24 * time.Hour}} // none comes back meanwhile
		})
	}
	servers := []*apitest.Server{start(), start()}

	var mu sync.Mutex
	statuses, left := map[int]int{}, map[int]int{}
	var callersDone sync.WaitGroup
	for i := range callers {
		s := servers[i%len(servers)]
		callersDone.Go(func() {
			for range calls {
				status, header := whoami(t, s)
				remaining, err := strconv.Atoi(header.Get("RateLimit-Remaining"))
				if err != nil || header.Get("RateLimit-Limit") != strconv.Itoa(limit) || header.Get("RateLimit-Reset") == "" ||
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
	if statuses[http.StatusOK] != limit || statuses[http.StatusTooManyRequests] != callers*calls-limit {
		t.Errorf("statuses %v, want %d times 200 and then 429", statuses, limit)
	}
	for remaining := range limit {
		if left[remaining] != 1 {
			t.Errorf("%d calls were told that %d are left", left[remaining], remaining)
		}
	}
}

// whoami makes the same caller's call of any server: the token names its subject, and buckets go by that.
func whoami(t *testing.T, s *apitest.Server) (status int, header http.Header) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/key/whoami", nil)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+s.Secrets[apitest.SignIn])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Header
}

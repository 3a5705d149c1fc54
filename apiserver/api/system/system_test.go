package system_test

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client/clienttest"
)

func TestHealth(t *testing.T) {
	s := apitest.Start(t, apitest.WithRateLimits)
	alive := apitest.Scenario{Name: "alive", Do: "GET /healthz", Status: 200,
		Has: map[string]any{"status": "ok"}}
	ready := apitest.Scenario{Name: "ready", Do: "GET /readyz", Status: 200,
		Headers: map[string]string{"RateLimit-Limit": ""}}
	s.Run(t, alive, ready)
	s.Client.Fail(clienttest.Down())
	s.Run(t, ready) // an answer up to a second old
	s.Clock.Advance(time.Second)
	s.Run(t, alive,
		apitest.Scenario{Name: "not ready", Do: "GET /readyz", Status: 503, Code: "unavailable",
			Headers: map[string]string{"Retry-After": "*"}},
		apitest.Scenario{Name: "no call is served", As: apitest.User, Do: "GET /api/wallet",
			Status: 503, Code: "unavailable"})
	s.Client.Fail(nil)
	s.Clock.Advance(time.Second)
	s.Run(t, ready)
}

func TestMetrics(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t,
		apitest.Scenario{Name: "a call", As: apitest.User, Do: "GET /api/wallet", Status: 200},
		apitest.Scenario{Name: "no customer may ask", As: apitest.User, Do: "GET /metrics",
			Status: 401},
		apitest.Scenario{Name: "nobody may ask", As: apitest.Nobody, Do: "GET /metrics",
			Status: 401},
		apitest.Scenario{Name: "is counted", As: apitest.Admin, Do: "GET /metrics", Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if !strings.Contains(string(a.Body),
					`shoal_apiserver_calls_total{operation="svc_get_wallet",status="2xx"} 1`) {
					t.Errorf("%s", a.Body)
				}
			}})
}

func TestAPIDocs(t *testing.T) {
	s := apitest.Start(t, apitest.WithRateLimits)
	s.Run(t, apitest.Scenario{Name: "the description", Do: "GET /v3/api-docs", Status: 200,
		Has:     map[string]any{"openapi": "3.1.0", "info.version": "1.0"},
		Headers: map[string]string{"RateLimit-Limit": "120"}})
}

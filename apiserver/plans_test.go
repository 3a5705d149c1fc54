package apiserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client/clienttest"
)

// planFile is a catalogue in which PRO costs the given euros.
func planFile(euros int) string {
	return fmt.Sprintf(`[{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [],
		"limits": {}}, {"plan": "PRO", "level": 1, "monthlyPrice": %d, "offered": true,
		"features": ["API"], "limits": {"MAX_GROUPS": 2}}]`, euros)
}

func withPlanFile(euros int) apitest.Option {
	return func(c *apiserver.Config) { c.Plans = []byte(planFile(euros)) }
}

// sells requires all servers to sell PRO at one price.
func sells(t *testing.T, euros int, servers ...*apitest.Server) {
	t.Helper()
	for _, s := range servers {
		s.Run(t, apitest.Scenario{Name: "prices", Do: "GET /api/subscription/prices", Status: 200,
			Has: map[string]any{"0.plan": "PRO", "0.monthly.amount": euros}, Lacks: []string{"1"}})
	}
}

const doesNotCount = "--plans does not count"

// All servers of a cluster sell the plans of the first server, until an operator sets others. No
// later start reverts those.
func TestServersShareThePlans(t *testing.T) {
	first := apitest.Start(t, withPlanFile(79))
	sells(t, 79, first)
	second, third := first.Beside(t, withPlanFile(99)), first.Beside(t)
	sells(t, 79, first, second, third)
	if !strings.Contains(second.Logs.String(), doesNotCount) {
		t.Errorf("a server does not say that its plans do not count: %s", second.Logs)
	}
	for _, s := range []*apitest.Server{first, third} {
		if strings.Contains(s.Logs.String(), doesNotCount) {
			t.Errorf("a server says that others hold: %s", s.Logs)
		}
	}
	second.Run(t, apitest.Scenario{Name: "set", As: apitest.Admin, Do: "PUT /api/admin/settings",
		Body: `{"plans": ` + planFile(109) + `}`, Status: 200,
		Has: map[string]any{"revision": 1, "plans.1.plan": "PRO", "plans.1.monthlyPrice": 109,
			"plans.1.offered": true, "plans.1.limits": map[string]any{"MAX_GROUPS": 2}}})
	sells(t, 109, first, second, third, first.Beside(t, withPlanFile(79)))
}

// A server retries while the cluster takes no commands, and sells its own plans meanwhile.
func TestPlansAreBroughtLater(t *testing.T) {
	s := apitest.Start(t)
	s.Client.Fail(clienttest.Down())
	own := s.Beside(t, withPlanFile(79))
	sells(t, 79, own)
	s.Client.Fail(nil)
	for minutes := 0; len(s.Client.View().Settings().Plans) == 0; minutes++ {
		if minutes == 1_000 {
			t.Fatal("the plans are not brought")
		}
		<-time.After(time.Millisecond) // it may not be waiting yet
		s.Clock.Advance(time.Minute)
	}
	sells(t, 79, s, own)
}

package customers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/model"
)

func TestNotificationPreferences(t *testing.T) {
	s := apitest.Start(t)
	const path = "/api/customer/preferences/notifications"
	defaults := map[string]any{}
	for _, event := range model.Events() {
		defaults[string(event)] = string(event.Preference())
	}
	s.Run(t,
		apitest.Scenario{Name: "no credential", Do: "GET " + path, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "a read key may not", As: apitest.Reader, Do: "PUT " + path,
			Body: `{}`, Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "unknown event", As: apitest.User, Do: "PUT " + path,
			Body:   `{"RUN_FAILED":"NONE","SCRAPER_RUN_FAILED":"NONE","MORE_NOTICES":"NONE"}`,
			Status: 400, Code: "invalid_request", Has: map[string]any{
				"errors.0.field": "MORE_NOTICES", "errors.1.field": "RUN_FAILED"}},
		apitest.Scenario{Name: "unknown way", As: apitest.User, Do: "PUT " + path,
			Body: `{"SCRAPER_RUN_FAILED":"email"}`, Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "SCRAPER_RUN_FAILED"}},
		apitest.Scenario{Name: "nothing of that was kept", As: apitest.Reader,
			Do: "GET " + path, Status: 200, Has: defaults},
		apitest.Scenario{Name: "set", As: apitest.User, Do: "PUT " + path, Status: 200,
			Body: `{"SCRAPER_RUN_FAILED":"NONE","RUN_ANOMALY":"EMAIL"}`,
			Has: map[string]any{"SCRAPER_RUN_FAILED": "NONE", "RUN_ANOMALY": "EMAIL",
				"SCRAPER_RUN_COMPLETED": "IN_APP", "API_KEY_CREATED": "BOTH"}},
		apitest.Scenario{Name: "the rest stays", As: apitest.User, Do: "PUT " + path,
			Status: 200, Body: `{"RUN_ANOMALY":"IN_APP"}`, Has: map[string]any{
				"SCRAPER_RUN_FAILED": "NONE", "RUN_ANOMALY": "IN_APP"}},
		apitest.Scenario{Name: "nobody else's", As: apitest.Other, Do: "GET " + path,
			Status: 200, Has: defaults},
	)
}

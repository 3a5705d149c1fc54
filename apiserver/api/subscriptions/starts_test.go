package subscriptions_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// withPlansOfStarts sets a catalogue in which each plan has one feature of starts, and STARTER has
// none.
func withPlansOfStarts(c *apiserver.Config) {
	const plan = `{"plan": %q, "level": %d, "monthlyPrice": %d, "features": [%s], "limits": {}}`
	c.Plans = fmt.Appendf(nil, "["+plan+","+plan+","+plan+","+plan+"]", "STARTER", 0, 0, "",
		"BASIC", 1, 1, `"MANUAL_RUN"`, "PRO", 2, 2, `"DAILY_SCHEDULER"`,
		"TEAM", 3, 3, `"WEEKLY_SCHEDULER"`)
}

// startsOf are what each plan of withPlansOfStarts allows beside NONE.
var startsOf = map[string]string{"STARTER": "", "BASIC": "MANUAL", "PRO": "DAILY", "TEAM": "WEEKLY"}

// gated calls with a new key. refused is the feature that a plan lacks, "" if it lacks none.
func gated(t *testing.T, s *apitest.Server, name, do, body, plan, refused string) {
	t.Helper()
	sc := apitest.Scenario{Name: name, As: apitest.User, Do: do, Body: body, Status: 200,
		Header: map[string]string{"Idempotency-Key": s.IDs.New().String()}}
	if refused != "" {
		sc.Status, sc.Code = 402, "feature_not_in_plan"
		sc.Has = map[string]any{"detail": "the plan " + plan + " lacks the feature " + refused}
	}
	s.Run(t, sc)
}

// TestPlansGateStartTypes: a group's start type needs the plan's feature, by every route that sets
// it. A group keeps the one that it has, and a new one may be MANUAL.
func TestPlansGateStartTypes(t *testing.T) {
	features := map[string]string{"MANUAL": "MANUAL_RUN", "DAILY": "DAILY_SCHEDULER",
		"WEEKLY": "WEEKLY_SCHEDULER", "NONE": ""}
	for plan, allowed := range startsOf {
		s := apitest.Start(t, withPlansOfStarts)
		subscribe(t, s, "alice", plan)
		of := func(startType string) string { // a group of this start type
			group := s.NewGroup(t, "alice", s.IDs.New().String())
			s.Client.Must(t, client.PutStartType{Customer: "alice", Group: group,
				StartType: startType})
			return group.String()
		}
		for startType, refused := range features {
			if startType == allowed {
				refused = ""
			}
			other := "NONE"
			if startType == other {
				other = "MANUAL"
			}
			const put = "PUT /api/scraper/group"
			body := `{"%s": %q, "startType": %q}`
			name := plan + " " + startType + " "
			gated(t, s, name+"changed", put, fmt.Sprintf(body, "id", of(other), startType), plan,
				refused)
			gated(t, s, name+"set", put+"/"+of(other)+"/start-type/"+startType, "", plan, refused)
			gated(t, s, name+"kept", put, fmt.Sprintf(body, "id", of(startType), startType), plan,
				"")
			if startType == "MANUAL" {
				refused = ""
			}
			gated(t, s, name+"new", put, fmt.Sprintf(body, "name", "g", startType), plan, refused)
		}
	}
}

// TestPlansGateSchedules: a scraper's own schedule needs the feature of daily starts. A scraper
// keeps the one that it has.
func TestPlansGateSchedules(t *testing.T) {
	const had, other = "5 5 * * *", "6 6 * * *"
	for plan, allowed := range startsOf {
		s := apitest.Start(t, withPlansOfStarts)
		subscribe(t, s, "alice", plan)
		group := s.NewGroup(t, "alice", "g")
		refused := "DAILY_SCHEDULER"
		if allowed == "DAILY" {
			refused = ""
		}
		for _, do := range []string{"PUT /api/scraper", "PUT /api/scraper/v2"} {
			put := func(what, before, schedule, refused string) {
				t.Helper()
				id, name := "", s.IDs.New().String()
				if what != "new" {
					made := s.IDs.New()
					id = fmt.Sprintf(`"id": %q,`, made)
					s.Client.Must(t, client.PutScraper{Create: true, ID: made, Customer: "alice",
						Group: group, Spec: model.Scraper{Name: name, Schedule: before,
							Type: model.SingleProduct}})
				}
				gated(t, s, plan+" "+do+" "+what, do, fmt.Sprintf(`{%s "name": %q, "groupRef": %q,
					"type": "SINGLE_PRODUCT", "sourceConfig": {"url": "https://shop.test/"},
					"itemsConfig": [{"name": "t", "selector": "h1", "kind": "TEXT"}],
					"schedule": %q}`, id, name, group, schedule), plan, refused)
			}
			put("new", "", had, refused)
			put("added", "", had, refused)
			put("changed", had, other, refused)
			put("kept", had, had, "")
			put("taken away", had, "", "")
		}
	}
}

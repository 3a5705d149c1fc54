package runs_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// A customer with neither money nor free requests can launch nothing while billing is on, and
// everything while it is off. Estimates are 0 then.
func TestLaunchesWhileBillingIsOff(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	spent := r.newScraper(t, "spent", "https://shop.test/spent")
	launch := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: spent, List: r.IDs.New(), Links: 5, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, launch)
	for seq := range uint32(5) { // use up the free requests
		r.Client.Dispatch(t, launch.Job, seq)
		if err := r.Client.Settle(t.Context(), []model.Receipt{{Job: launch.Job,
			Unit: model.Unit{Seq: seq}, Outcome: model.Delivered, PriceRow: "tier:plain",
			Quantity: 1, Items: 1, Last: true}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	estimates := func(affordable bool) {
		t.Helper()
		for _, path := range []string{id, "group/" + r.group.String()} {
			has := map[string]any{"affordable": affordable}
			if affordable {
				has["minMicros"], has["maxMicros"] = 0, 0
			}
			r.Run(t, apitest.Scenario{Name: path, As: apitest.Reader, Status: 200, Has: has,
				Do: "POST /api/scraper/" + path + "/estimate"})
		}
	}
	bill := func(on bool) {
		off := !on
		r.Client.Must(t, client.PutSettings{BillingOff: &off})
	}
	run := apitest.Scenario{Name: "run", As: apitest.User, Do: "POST /api/scraper/" + id + "/run",
		Status: 402, Code: "WALLET_INSUFFICIENT_BALANCE"}
	group := apitest.Scenario{Name: "group", As: apitest.User, Status: 200,
		Do:  "POST /api/scraper/group/" + r.group.String() + "/run",
		Has: map[string]any{"skippedTotal": 2, "jobs": []any{}}}
	list := func(name, status string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.LLM, Status: 200, Header: key(name),
			Do: "POST /api/scraper/url-list-run", Has: map[string]any{"status": status},
			Body: `{"groupId": "` + r.group.String() + `", "name": "` + name + `",
				"urls": ["https://shop.test/"], "endpointTag": "websitecontacts"}`}
	}
	r.Run(t, run, group, list("billing is on", "FAILED"))
	estimates(false)

	bill(false)
	estimates(true)
	run.Status, run.Code, group.Has = 200, "", nil
	r.Run(t, run, group, list("billing is off", "PENDING"))
}

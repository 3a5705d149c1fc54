package runs_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

func TestEstimate(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	path := "POST /api/scraper/" + id + "/estimate"
	r.Run(t,
		apitest.Scenario{Name: "unknown", As: apitest.User, Status: 404, Code: "scraper_not_found",
			Do: "POST /api/scraper/0123456789abcdef01234567/estimate"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "no links", As: apitest.User, Do: path + "?links=0", Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "too many", As: apitest.User, Do: path + "?links=5000001",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "without history, free requests pay", As: apitest.Reader, Do: path,
			Status: 200, Has: map[string]any{"": map[string]any{"links": 1, "pages": 1,
				"minMicros": 0, "maxMicros": 0, "balanceMicros": 0, "affordable": true,
				"runsConsidered": 0}}},
		apitest.Scenario{Name: "without history, 100 links by tier plain", As: apitest.User,
			Do: path + "?links=100", Status: 200, Has: map[string]any{"pages": 100,
				"minMicros": 95 * 150, "maxMicros": 95 * 150, "affordable": false}},
	)
}

func TestEstimateOfAList(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	urls := `"https://shop.test/0","https://shop.test/1","https://shop.test/2","https://shop.test/3"`
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: fmt.Sprintf(`{"groupId":%q,"name":"list","urls":[%s],
		"itemsConfig":[{"name":"title","selector":"h1","kind":"TEXT"}]}`, r.group, urls)})
	path := "POST /api/scraper/" + run.Text("scraperId") + "/estimate"
	again := func(body string) {
		next := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
			Body: fmt.Sprintf(`{"scraperId":%q,%s}`, run.Text("scraperId"), body)})
		if next.Status != 200 {
			t.Fatalf("%s: %s", body, next.Body)
		}
		run = next
	}
	r.Run(t, apitest.Scenario{Name: "a run under way is no history", As: apitest.User, Do: path,
		Status: 200, Has: map[string]any{"links": 4, "runsConsidered": 0}})
	// Three of four links are delivered. They count although free requests pay for them.
	r.finish(t, run.Text("jobId"), 4, 0, 1, 2)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1})
	r.Run(t, apitest.Scenario{Name: "by one run", As: apitest.User, Do: path + "?links=1000",
		Status: 200, Has: map[string]any{"pages": 750, "runsConsidered": 1,
			"minMicros": 78_750 - 300, "maxMicros": 146_250 - 300, "affordable": true}})
	again(`"rerun":true`)
	r.finish(t, run.Text("jobId"), 1)
	r.Run(t, apitest.Scenario{Name: "what others left is no list", As: apitest.User, Do: path,
		Status: 200, Has: map[string]any{"links": 4, "runsConsidered": 1}})
	again(`"force":true`)
	r.finish(t, run.Text("jobId"), 4, 0, 1, 2, 3)
	r.Run(t, apitest.Scenario{Name: "by two runs", As: apitest.User, Do: path + "?links=1000",
		Status: 200, Has: map[string]any{"pages": 1000, "runsConsidered": 2,
			"minMicros": 90_000, "maxMicros": 180_000}})
}

// A run that cannot be launched, because its tier is disabled, is not estimated as free.
func TestEstimateOfWhatIsDisabled(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.RegisterNode{Name: "f", Boot: r.IDs.New(), Capacity: 1,
		Tiers: model.TiersOf(model.Plain, model.Render)})
	r.newScraper(t, "plain", "https://shop.test/")
	rendered := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "rendered", Type: model.SingleProduct, ItemsConfig: fields,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
			Config:       &model.ScraperConfig{Tiers: []string{"render"}}}}
	r.Client.Must(t, rendered)
	plugin := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Tag: model.ProductPageTag,
		Spec: model.Scraper{Name: "plugin", Type: model.Marketplace,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"}}}
	r.Client.Must(t, plugin)
	current := r.Client.View().CurrentPrices()
	rows := append(price.List{}, current.Rows...)
	for i := range rows {
		rows[i].Off = rows[i].RowKey == "tier:render" ||
			rows[i].RowKey == model.EndpointRow(model.ProductPageTag)
	}
	all := apitest.Scenario{Name: "a group", As: apitest.User, Status: 200,
		Do:  "POST /api/scraper/group/" + r.group.String() + "/estimate",
		Has: map[string]any{"scrapers": 3}}
	r.Run(t, all)
	r.Client.Must(t, client.SetPrices{By: "root", Version: current.Version, Rows: rows})
	all.Has = map[string]any{"scrapers": 1, "links": 1}
	r.Run(t, all)
	for name, id := range map[string]string{"a tier": rendered.ID.String(),
		"a plugin": plugin.ID.String()} {
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Status: 400,
			Do:   "POST /api/scraper/" + id + "/estimate?links=1000",
			Code: "type_not_runnable"})
	}
}

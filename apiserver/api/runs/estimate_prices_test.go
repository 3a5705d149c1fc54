package runs_test

import (
	"fmt"
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// setPrices changes the prices of future runs.
func (r *rig) setPrices(t *testing.T, change func(price.List) price.List) {
	t.Helper()
	current := r.Client.View().CurrentPrices()
	r.Client.Must(t, client.SetPrices{By: "root", Version: current.Version,
		Rows: change(slices.Clone(current.Rows))})
}

// priceDomain sets the price of a domain, or removes it if micros is below 0.
func (r *rig) priceDomain(t *testing.T, domain string, micros int64) {
	t.Helper()
	key := price.DomainKey(domain)
	r.setPrices(t, func(rows price.List) price.List {
		rows = slices.DeleteFunc(rows, func(row price.Row) bool { return row.RowKey == key })
		if micros >= 0 {
			rows = append(rows, price.Row{RowKey: key, Kind: price.Domain, Label: domain,
				Micros: micros})
		}
		return rows
	})
}

// An estimate uses the prices of the domains of the addresses.
func TestEstimateOfDomains(t *testing.T) {
	r := start(t)
	dear := r.newScraper(t, "dear", "https://www.dear.test/").String()
	other := r.newScraper(t, "other", "https://dear.test.example/").String()
	wants := func(name, scraper string, least, most int64) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Status: 200,
			Do:  "POST /api/scraper/" + scraper + "/estimate?links=100",
			Has: map[string]any{"minMicros": least, "maxMicros": most}})
	}
	wants("before there is a price", dear, 95*150, 95*150)
	r.priceDomain(t, "dear.test", 1000)
	wants("a subdomain", dear, 95*1000, 95*1000)
	wants("another domain", other, 95*150, 95*150)
	r.priceDomain(t, "dear.test", 0)
	wants("a free domain", dear, 0, 0)
	r.priceDomain(t, "dear.test", -1)
	wants("a price that is gone", dear, 95*150, 95*150)
}

// A list over several domains costs what its past runs would today, as far as known.
func TestEstimateOfAListOverDomains(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: fmt.Sprintf(`{"groupId":%q,"name":"list","urls":["https://a.dear.test/0",
		"https://dear.test/1","https://shop.test/2","https://shop.test/3"],
		"itemsConfig":[{"name":"title","selector":"h1","kind":"TEXT"}]}`, r.group)})
	scraper := run.Text("scraperId")
	free := int64(5)
	wants := func(name string, runs int, least, most float64, dear, cheap int64) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Status: 200,
			Do: "POST /api/scraper/" + scraper + "/estimate?links=1000",
			Has: map[string]any{"pages": 1000, "runsConsidered": runs,
				"minMicros": int64(least) - free*dear, "maxMicros": int64(most) - free*cheap}})
	}
	r.priceDomain(t, "dear.test", 1000)
	r.priceDomain(t, "elsewhere.test", 5000)
	wants("without history", 0, 150_000, 1_000_000, 1000, 150)
	r.priceDomain(t, "dear.test", -1)
	r.finish(t, run.Text("jobId"), 4, 0, 1, 2, 3) // launched before the domain had a price
	free = 1
	wants("by a run by tiers", 1, 150_000*0.7, 150_000*1.3, 150, 150)
	r.priceDomain(t, "dear.test", 1000)
	wants("which of its pages have a price now is not known", 1, 150_000*0.7, 1_000_000*1.3,
		1000, 150)
	again := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: fmt.Sprintf(`{"scraperId":%q,"force":true}`, scraper)})
	r.finish(t, again.Text("jobId"), 4, 0, 1, 2, 3)
	free = 0
	// 1,150 for two links each way, and the margin of two runs.
	wants("by a run of that price, too", 2, 150_000*0.8, 1_000_000*1.2, 1000, 150)
	r.priceDomain(t, "dear.test", -1)
	wants("without the price", 2, 150_000*0.8, 150_000*1.2, 150, 150)
}

// After a run at the domain's price the estimate is certain.
func TestEstimateByARunOverDomains(t *testing.T) {
	r := start(t)
	r.priceDomain(t, "dear.test", 1550)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: fmt.Sprintf(`{"groupId":%q,"name":"list","urls":["https://dear.test/0",
		"https://a.shop.test/1","https://shop.test/2","https://shop.test/3"],
		"itemsConfig":[{"name":"title","selector":"h1","kind":"TEXT"}]}`, r.group)})
	r.finish(t, run.Text("jobId"), 4, 0, 1, 2, 3)
	estimate := apitest.Scenario{Name: "at that price", As: apitest.User, Status: 200,
		Do: "POST /api/scraper/" + run.Text("scraperId") + "/estimate?links=4000",
		Has: map[string]any{"minMicros": 2_000_000*7/10 - 1550, // one free request is left
			"maxMicros": 2_000_000*13/10 - 150}}
	r.Run(t, estimate)
	r.priceDomain(t, "dear.test", 550)
	estimate.Name, estimate.Has = "at another", map[string]any{
		"minMicros": 1_000_000*7/10 - 550, "maxMicros": 1_000_000*13/10 - 150}
	r.Run(t, estimate)
}

// Pages of a list that no longer exists may be of any domain.
func TestEstimateOfAListThatIsGone(t *testing.T) {
	r := start(t)
	r.priceDomain(t, "elsewhere.test", 5000)
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: fmt.Sprintf(`{"groupId":%q,"name":"list","urls":["https://shop.test/0"],
		"itemsConfig":[{"name":"title","selector":"h1","kind":"TEXT"}]}`, r.group)})
	estimate := apitest.Scenario{Name: "kept", As: apitest.User, Status: 200,
		Do:  "POST /api/scraper/" + run.Text("scraperId") + "/estimate?links=1000",
		Has: map[string]any{"minMicros": 995 * 150, "maxMicros": 995 * 150}}
	r.Run(t, estimate)
	id, err := ids.Parse(run.Text("jobId"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.DropList(t.Context(), r.Client.View().Job(id).List); err != nil {
		t.Fatal(err)
	}
	estimate.Name, estimate.Has = "gone", map[string]any{"minMicros": 1000*150 - 5*5000,
		"maxMicros": 1000*5000 - 5*150}
	r.Run(t, estimate)
}

// Pages that a disabled tier fetched are estimated at the prices of the remaining tiers.
func TestEstimateWithoutATier(t *testing.T) {
	r := start(t)
	both := model.TiersOf(model.Plain, model.Render)
	r.Client.Must(t, client.RegisterNode{Name: "f", Boot: r.IDs.New(), Capacity: 1, Tiers: both})
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	id := r.newScraper(t, "shop", "https://shop.test/")
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice", Scraper: id,
		List: r.IDs.New(), Links: 10, Tiers: both}
	r.Client.Must(t, run)
	for seq := range run.Links {
		r.Client.Dispatch(t, run.Job, seq)
		if err := r.Client.Settle(t.Context(), []model.Receipt{{Job: run.Job,
			Unit: model.Unit{Seq: seq}, Outcome: model.Delivered, PriceRow: "tier:render",
			Quantity: 1, Items: 1, Last: true}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Client.CloseRun(t, run.Job)
	wants := func(name string, micros int64) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Status: 200,
			Do: "POST /api/scraper/" + id.String() + "/estimate?links=100",
			Has: map[string]any{"minMicros": micros * 70, "maxMicros": micros * 130,
				"runsConsidered": 1}})
	}
	wants("by a browser", 750)
	r.setPrices(t, func(rows price.List) price.List {
		for i := range rows {
			rows[i].Off = rows[i].RowKey == "tier:render"
		}
		return rows
	})
	wants("without one", 150)
}

// Whatever a run may cost, every client can read the answer exactly.
func TestEstimateIsExact(t *testing.T) {
	r := start(t)
	r.setPrices(t, func(rows price.List) price.List {
		rows[0].Micros = 1_000_000_000
		return rows
	})
	pages := 100
	scraper := func(name string) ids.ID {
		put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
			Spec: model.Scraper{Name: name, Type: model.MultipleProducts, ItemsConfig: fields,
				SourceConfig: model.SourceConfig{URL: "https://shop.test/",
					Pagination: &model.Pagination{Type: model.NextLink, Selector: "a.next",
						Max: &pages}}}}
		r.Client.Must(t, put)
		return put.ID
	}
	const most = 1<<53 - 1
	r.Run(t, apitest.Scenario{Name: "a scraper", As: apitest.User, Status: 200,
		Do: "POST /api/scraper/" + scraper("chains").String() + "/estimate?links=5000000",
		Has: map[string]any{"minMicros": int64((5_000_000 - 5) * 1_000_000_000),
			"maxMicros": int64(most), "affordable": false}})
}

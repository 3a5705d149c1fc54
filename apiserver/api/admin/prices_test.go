package admin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

const pricesRoute = "/api/admin/prices"

// table reads the price table as an admin.
func table(t *testing.T, s *apitest.Server) map[string]any {
	t.Helper()
	answer := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "GET " + pricesRoute})
	read, ok := answer.JSON.(map[string]any)
	if !ok || answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return read
}

func row(table map[string]any, n int) map[string]any {
	return table["rows"].([]any)[n].(map[string]any)
}

// putTable is a PUT of the current table after a change.
func putTable(t *testing.T, s *apitest.Server, name string,
	change func(map[string]any)) apitest.Scenario {
	t.Helper()
	read := table(t, s)
	change(read)
	body, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Scenario{Name: name, As: apitest.Admin, Do: "PUT " + pricesRoute,
		Body: string(body), Status: 200}
}

func TestPrices(t *testing.T) {
	s := apitest.Start(t)
	for _, do := range []string{"GET ", "PUT "} {
		s.Run(t, apitest.Scenario{Name: do + "by a key", As: apitest.User, Do: do + pricesRoute,
			Body: map[string]string{"PUT ": "{}"}[do], Status: 401, Code: "unauthorized"})
	}
	s.Run(t, apitest.Scenario{Name: "as shipped", As: apitest.Admin, Do: "GET " + pricesRoute,
		Status: 200, Has: map[string]any{"version": 1, "changedAt": nil, "changedBy": "",
			"rows.0": map[string]any{"rowKey": "tier:plain", "kind": "TIER", "label": "Plain",
				"sellingPriceMicros": 150, "enabled": true}}})
	nothing := putTable(t, s, "nothing", func(map[string]any) {})
	nothing.Has = map[string]any{"version": 1, "changedBy": ""}
	s.Run(t, nothing)
	put := putTable(t, s, "some", func(read map[string]any) {
		row(read, 0)["sellingPriceMicros"], row(read, 1)["enabled"] = 160, false
		row(read, 0)["label"] = "Plain pages"
		read["changedBy"] = "eve"
	})
	put.Has = map[string]any{"version": 2, "changedBy": "root",
		"changedAt": "2026-01-02T03:04:05.000Z", "rows.0.sellingPriceMicros": 160,
		"rows.0.label": "Plain pages", "rows.1.enabled": false}
	put.Header = map[string]string{"Idempotency-Key": "k"}
	again := put
	again.Name, again.Headers = "again by its key",
		map[string]string{"Idempotency-Replayed": "true"}
	late := put
	late.Name, late.Header, late.Status, late.Code = "of a table that is old", nil, 409,
		"prices_changed"
	late.Has = map[string]any{"errors.0.field": "version"}
	s.Run(t, put, again, late, apitest.Scenario{Name: "what customers see", As: apitest.Reader,
		Do: "GET /api/wallet/prices", Status: 200, Lacks: []string{"5"},
		Has: map[string]any{"0": map[string]any{"rowKey": "tier:plain", "kind": "TIER",
			"label": "Plain pages", "sellingPriceMicros": 160},
			"1.rowKey": "plugin:/plugin/marketplace/pdp"}})
}

// A refused table changes nothing, and the refusal names the field.
func TestBadPrices(t *testing.T) {
	s := apitest.Start(t)
	for _, c := range []struct {
		name, field string
		change      func(read map[string]any)
	}{
		{"without a version", "version", func(read map[string]any) { delete(read, "version") }},
		{"without rows", "rows", func(read map[string]any) { delete(read, "rows") }},
		{"with fewer", "rows", func(read map[string]any) {
			read["rows"] = read["rows"].([]any)[1:]
		}},
		{"with one twice", "rows[1].rowKey", func(read map[string]any) {
			read["rows"] = slices.Insert(read["rows"].([]any), 0, any(row(read, 0)))
		}},
		{"a label of spaces", "rows[1].label", func(read map[string]any) {
			row(read, 1)["label"] = "   "
		}},
		{"a label of two lines", "rows[1].label", func(read map[string]any) {
			row(read, 1)["label"] = "Render\n(browser)"
		}},
		{"a negative price", "rows[1].sellingPriceMicros", func(read map[string]any) {
			row(read, 1)["sellingPriceMicros"] = -1
		}},
		{"a huge price", "rows[1].sellingPriceMicros", func(read map[string]any) {
			row(read, 1)["sellingPriceMicros"] = 1_000_000_001
		}},
		{"half a micro", "rows[1].sellingPriceMicros", func(read map[string]any) {
			row(read, 1)["sellingPriceMicros"] = 0.5
		}},
		{"no price", "rows[1].sellingPriceMicros", func(read map[string]any) {
			delete(row(read, 1), "sellingPriceMicros")
		}},
		{"no word of enabled", "rows[1].enabled", func(read map[string]any) {
			delete(row(read, 1), "enabled")
		}},
		{"no label", "rows[1].label", func(read map[string]any) { row(read, 1)["label"] = "" }},
		{"a tier nobody has", "rows[1].rowKey", func(read map[string]any) {
			row(read, 1)["rowKey"] = "tier:best"
		}},
		{"a plugin as a tier", "rows[2].kind", func(read map[string]any) {
			row(read, 2)["kind"] = "TIER"
		}},
		{"without plain", "rows[0].enabled", func(read map[string]any) {
			row(read, 0)["enabled"] = false
		}},
		{"a site in capitals", "rows[6].rowKey", withDomains("domain:Shop.example")},
		{"a subdomain", "rows[6].rowKey", withDomains("domain:www.shop.example")},
		{"a public suffix", "rows[6].rowKey", withDomains("domain:co.uk")},
		{"a number", "rows[6].rowKey", withDomains("domain:10.0.0.1")},
		{"a port", "rows[6].rowKey", withDomains("domain:shop.example:81")},
		{"a page", "rows[6].rowKey", withDomains("domain:shop.example/x")},
		{"no domain", "rows[6].rowKey", withDomains("domain:")},
		{"no key of a domain", "rows[6].rowKey", withDomains("shop.example")},
		{"a domain twice", "rows[7].rowKey", withDomains("domain:shop.example",
			"domain:shop.example")},
		{"101 domains", "rows", func(read map[string]any) {
			var keys []string
			for n := range 101 {
				keys = append(keys, fmt.Sprintf("domain:shop-%d.example", n))
			}
			withDomains(keys...)(read)
		}},
		{"a domain as a tier", "rows[6].kind", func(read map[string]any) {
			withDomains("domain:shop.example")(read)
			row(read, 6)["kind"] = "TIER"
		}},
		{"a domain that pays", "rows[6].sellingPriceMicros", func(read map[string]any) {
			withDomains("domain:shop.example")(read)
			row(read, 6)["sellingPriceMicros"] = -1
		}},
		{"misspelt", "row", func(read map[string]any) { read["row"] = 1 }},
	} {
		bad := putTable(t, s, c.name, c.change)
		bad.Status, bad.Has = 400, map[string]any{"errors.0.field": c.field}
		s.Run(t, bad)
	}
	if now := s.Client.View().CurrentPrices(); now.Version != 1 {
		t.Errorf("what was refused was done: %+v", now)
	}
}

// withDomains replaces the rows of domains, after all other rows.
func withDomains(keys ...string) func(read map[string]any) {
	return func(read map[string]any) {
		rows := slices.DeleteFunc(read["rows"].([]any),
			func(row any) bool { return row.(map[string]any)["kind"] == "DOMAIN" })
		for _, key := range keys {
			rows = append(rows, map[string]any{"rowKey": key, "kind": "DOMAIN", "label": "One site",
				"sellingPriceMicros": 7, "enabled": true})
		}
		read["rows"] = rows
	}
}

// Domain prices can be added and removed, and customers see the enabled ones.
func TestPricesOfDomains(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, putTable(t, s, "two", withDomains("domain:shop.example", "domain:shop.co.uk")))
	off := putTable(t, s, "one is disabled", func(read map[string]any) {
		row(read, 6)["enabled"], row(read, 7)["sellingPriceMicros"] = false, 9
	})
	off.Has = map[string]any{"version": 3, "rows.6": map[string]any{"rowKey": "domain:shop.example",
		"kind": "DOMAIN", "label": "One site", "sellingPriceMicros": 7, "enabled": false}}
	s.Run(t, off, apitest.Scenario{Name: "what customers see", As: apitest.Reader,
		Do: "GET /api/wallet/prices", Status: 200, Lacks: []string{"7"},
		Has: map[string]any{"6": map[string]any{"rowKey": "domain:shop.co.uk", "kind": "DOMAIN",
			"label": "One site", "sellingPriceMicros": 9}}})
	gone := putTable(t, s, "none is left", withDomains())
	gone.Lacks = []string{"rows.6"}
	s.Run(t, gone)
}

// A domain stays in the table even if a newer list of public suffixes no longer knows it.
func TestKnownDomainsAreNotChecked(t *testing.T) {
	s := apitest.Start(t)
	current := s.Client.View().CurrentPrices()
	s.Client.Must(t, client.SetPrices{Version: current.Version, Rows: append(
		slices.Clone(current.Rows), price.Row{RowKey: "domain:co.uk", Kind: price.Domain,
			Label: "Was a domain"})})
	s.Run(t, putTable(t, s, "written as read", func(read map[string]any) {
		row(read, 0)["sellingPriceMicros"] = 160
	}))
}

// A run keeps the prices of its launch. Later runs do not get disabled rows.
func TestPricesAreFrozenAtLaunch(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: 1_000_000})
	group := s.NewGroup(t, "alice", "g")
	launch := func(url string, tiers model.TierSet) (client.LaunchRun, error) {
		scraper := s.IDs.New()
		s.Client.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "alice",
			Group: group, Spec: model.Scraper{Name: url, Type: model.SingleProduct,
				SourceConfig: model.SourceConfig{URL: url}}})
		run := client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice",
			Scraper: scraper, List: s.IDs.New(), Links: 12, Tiers: tiers}
		_, err := client.Do(t.Context(), s.Client, run, nil)
		return run, err
	}
	deliver := func(run client.LaunchRun, from, to uint32, row string) {
		t.Helper()
		for seq := from; seq < to; seq++ {
			s.Client.Dispatch(t, run.Job, seq)
			if err := s.Client.Settle(t.Context(), []model.Receipt{{Job: run.Job,
				Unit: model.Unit{Seq: seq}, Outcome: model.Delivered, PriceRow: row, Quantity: 1,
				Items: 1, Last: true}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	charged := func(run client.LaunchRun, want int64) {
		t.Helper()
		if job := s.Client.View().Job(run.Job); job.Charged != want {
			t.Errorf("run %s of version %d is charged %d, want %d", run.Job, job.Prices,
				job.Charged, want)
		}
	}
	both := model.TiersOf(model.Plain, model.Render)
	before, err := launch("https://a.test/", both)
	if err != nil {
		t.Fatal(err)
	}
	deliver(before, 0, 7, "tier:render") // five of them are free
	charged(before, 2*750)
	s.Run(t, putTable(t, s, "dearer", func(read map[string]any) {
		row(read, 0)["sellingPriceMicros"], row(read, 1)["enabled"] = 200, false
	}))
	deliver(before, 7, 9, "tier:render")
	deliver(before, 9, 12, "tier:plain")
	charged(before, 4*750+3*150)
	after, err := launch("https://b.test/", both)
	if err != nil {
		t.Fatal(err)
	}
	if job := s.Client.View().Job(after.Job); job.Tiers != model.TiersOf(model.Plain) {
		t.Errorf("a run may use %s", job.Tiers)
	}
	deliver(after, 0, 12, "tier:plain")
	charged(after, 12*200)
	if _, err := launch("https://c.test/", model.TiersOf(model.Render)); fault.CodeOf(err) !=
		fault.TypeNotRunnable {
		t.Errorf("a run by what is disabled alone: %v", err)
	}
	if balance := s.Client.View().Wallet("alice").Balance(); balance !=
		1_000_000-(4*750+3*150)-12*200 {
		t.Errorf("the balance is %d", balance)
	}
	s.Run(t, putTable(t, s, "cheaper", func(read map[string]any) {
		row(read, 0)["sellingPriceMicros"], row(read, 1)["enabled"] = 1, true
	}))
	charged(before, 4*750+3*150)
	charged(after, 12*200)
}

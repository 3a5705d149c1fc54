package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
)

// priced is the price of a host's pages.
type priced struct {
	row    string
	micros int64
}

// setDomains sets the prices of domains, and removes all others.
func setDomains(t *testing.T, admin suite.Client, micros map[string]int64) {
	t.Helper()
	var table struct {
		Version int64            `json:"version"`
		Rows    []map[string]any `json:"rows"`
	}
	if err := admin.Call(t.Context(), "GET", "/api/admin/prices", nil, nil, &table); err != nil {
		t.Fatal(err)
	}
	rows := table.Rows[:0]
	for _, row := range table.Rows {
		if row["kind"] != "DOMAIN" {
			rows = append(rows, row)
		}
	}
	for domain, price := range micros {
		rows = append(rows, map[string]any{"rowKey": "domain:" + domain, "kind": "DOMAIN",
			"label": "Pages of " + domain, "sellingPriceMicros": price, "enabled": true})
	}
	err := admin.Call(t.Context(), "PUT", "/api/admin/prices", nil,
		map[string]any{"version": table.Version, "rows": rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// TestPricesOfDomains runs a list over domains with different prices. In the middle the process is
// killed and prices change. Each page costs its domain's price at the launch, and receipts, ledger,
// balance and the product's own recount agree.
func TestPricesOfDomains(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<h1>%s%s</h1>", r.Host, r.URL.Path)
	}))
	t.Cleanup(site.Close)
	s := newServiceOfSite(t, site.Listener.Addr().String())
	s.Fill(s.Client, suite.Plenty)
	want := map[string]priced{"dear.example": {"domain:dear.example", 4321},
		"www.dear.example": {"domain:dear.example", 4321},
		"a.cheap.example":  {"domain:cheap.example", 7},
		"plain.example":    {"tier:plain", suite.PlainPrice}}
	setDomains(t, s.Admin(), map[string]int64{"dear.example": 4321, "cheap.example": 7,
		"elsewhere.example": 9})
	var urls []string
	const pages = 15
	for n := range pages {
		for host := range want {
			urls = append(urls, fmt.Sprintf("http://%s/%d", host, n))
		}
	}
	before := suite.Must(s.Wallet(t.Context()))(t)
	order := suite.Order{Order: api.Order{Who: s.Client, URLs: urls, Kind: model.SingleProduct,
		Fields: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}}
	run := order.Launch(t)
	setDomains(t, s.Admin(), map[string]int64{"dear.example": 1, "plain.example": 99_999})
	for _, some := range []int64{8, 30} {
		suite.Begun(t, s.Client, run, some)
		s.p.Kill()
		s.Restart()
	}
	over := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	if over.Job.State != string(model.Completed) {
		t.Fatalf("job is %+v", over.Job)
	}
	cost, free := int64(0), int64(0)
	for _, line := range over.Entry.Lines {
		label, delivered := "Plain", int64(pages)
		switch line.UnitPriceMicros {
		case 4321:
			label, delivered = "Pages of dear.example", 2*pages
		case 7:
			label = "Pages of cheap.example"
		case suite.PlainPrice:
		default:
			t.Errorf("line %+v", line)
		}
		if line.Label != label || line.Pages+line.FreePages != delivered ||
			line.AmountMicros != -line.Pages*line.UnitPriceMicros {
			t.Errorf("line %+v, want %d pages", line, delivered)
		}
		cost, free = cost-line.AmountMicros, free+line.FreePages
	}
	after := suite.Must(s.Wallet(t.Context()))(t)
	if len(over.Entry.Lines) != 3 || free != suite.FreeGrant ||
		over.Entry.AmountMicros != -cost || after.BalanceMicros != before.BalanceMicros-cost {
		t.Errorf("entry %+v took the balance from %d to %d", over.Entry, before.BalanceMicros,
			after.BalanceMicros)
	}
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	s.checkReceipts(run, want, len(urls))
}

// newServiceOfSite is a product for which all hosts below example are one server.
func newServiceOfSite(t *testing.T, address string) *service {
	t.Helper()
	args := []string{"--no-rate-limits", "--host-rate", "2", "--max-host-rate", "2",
		"--egress-origin", "*.example=" + address}
	s := &service{single: newSingle(t, args)}
	s.Service = &suite.Service{T: t, Product: s.single, Args: args}
	s.start()
	return s
}

// checkReceipts requests the receipt of every row, and then reads the page records.
func (s *service) checkReceipts(run suite.Launched, want map[string]priced, pages int) {
	s.T.Helper()
	rows := suite.Must(s.Rows(s.T.Context(), run.JobID))(s.T)
	for _, row := range rows {
		var receipt struct {
			URL   string
			Price struct {
				RowKey                                  string
				Quantity, UnitPriceMicros, AmountMicros int64
			}
		}
		err := s.Call(s.T.Context(), "GET",
			fmt.Sprintf("/api/scraper/data/%s/receipt", row["_rowId"]), nil, nil, &receipt)
		if err != nil {
			s.T.Fatal(err)
		}
		price := want[address.HostOf(receipt.URL)]
		if got := receipt.Price; got.RowKey != price.row || got.Quantity != 1 ||
			got.UnitPriceMicros != price.micros || got.AmountMicros != price.micros {
			s.T.Errorf("receipt %+v, want %+v", receipt, price)
		}
	}
	s.Down(s.T)
	records := suite.Must(s.Records(s.T.Context(), run.JobID))(s.T)
	for _, r := range records {
		if r.PriceRow != want[address.HostOf(r.URL)].row || r.Quantity != 1 {
			s.T.Errorf("%s cost %d x %q", r.URL, r.Quantity, r.PriceRow)
		}
	}
	if len(rows) != pages || len(records) != pages {
		s.T.Errorf("%d rows and %d records of %d pages", len(rows), len(records), pages)
	}
}

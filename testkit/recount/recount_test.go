package recount

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/synthweb"
)

const price = 150

// product is a stand-in for the product that does everything right. It takes rows from the truth
// and makes the requests of a correct run.
type product struct {
	t      *testing.T
	run    Run
	report Reported
	client *http.Client
	free   int64
}

func newProduct(t *testing.T, config synthweb.Config, pagination model.Pagination) *product {
	t.Helper()
	web, err := synthweb.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", web.Addr())
	}
	p := &product{t: t, client: &http.Client{Transport: &http.Transport{DialContext: dial,
		DisableKeepAlives: true}}}
	p.run = Run{Web: web, URLs: slices.Collect(web.URLs(60)), Pagination: pagination, Price: price,
		Free: 5}
	p.free = 5
	return p
}

// crawl makes the requests and the report.
func (p *product) crawl() {
	job := &p.report.Job
	job.ID, job.State, job.TotalLinks = strings.Repeat("ab", 12), "COMPLETED",
		int64(len(p.run.URLs))
	line := Line{Label: "Plain", UnitPriceMicros: price}
	for seq, address := range p.run.URLs {
		truth, err := p.run.Web.Truth(address)
		if err != nil {
			p.t.Fatal(err)
		}
		made := (&check{run: p.run}).chainOf(truth)
		errored := false
		for n, page := range made.pages {
			errored = page.truth.Outcome == model.Errored
			p.page(model.Unit{Seq: uint32(seq), Page: uint32(n)}, page, &line)
		}
		if errored {
			job.ErrorLinks++
		} else {
			job.SuccessLinks++
		}
		if made.extra != "" {
			p.get(made.extra)
			p.report.Records = append(p.report.Records,
				rowstore.Record{URL: made.extra, Outcome: model.Empty,
					Unit: model.Unit{Seq: uint32(seq), Page: uint32(len(made.pages))},
					At:   time.Now().UnixMicro()})
		}
	}
	line.AmountMicros = -line.Pages * price
	balance := 1_000_000 + line.AmountMicros
	p.report.Entry = Transaction{Type: "CHARGE", Status: "SETTLED", Source: "RUN", JobID: job.ID,
		Lines:        []Line{line},
		AmountMicros: line.AmountMicros, FreeRequestsDelta: -line.FreePages,
		BalanceAfterMicros: &balance}
}

func (p *product) page(unit model.Unit, page *page, line *Line) {
	if page.class != synthweb.Private || page.truth.Outcome == model.Delivered {
		for range page.truth.Fails + 1 {
			p.get(page.truth.URL)
		}
	}
	record := rowstore.Record{Unit: unit, Outcome: page.truth.Outcome, URL: page.truth.URL,
		At: time.Now().UnixMicro()}
	p.report.Job.TotalRequests++
	if page.truth.Outcome == model.Errored {
		code := page.truth.Codes[0]
		e := LinkError{URL: page.truth.URL, Error: fault.Lookup(code).Title}
		if page.truth.Status != 0 {
			e.Status = &page.truth.Status
		}
		record.Code, record.Status = string(code), uint16(page.truth.Status)
		p.report.Errors = append(p.report.Errors, e)
		p.report.Records = append(p.report.Records, record)
		return
	}
	for _, row := range page.truth.Rows {
		doc := map[string]any(maps.Clone(row))
		doc["_sourceUrl"], doc["_scrapedAt"] = page.truth.URL, "2026-01-02T03:04:05.000Z"
		doc["_jobId"], doc["_scraperJobStatusId"] = p.report.Job.ID, p.report.Job.ID
		if len(page.truth.Hops) > 0 {
			doc["_finalUrl"] = page.truth.FinalURL()
		}
		p.report.Rows = append(p.report.Rows, doc)
	}
	p.report.Job.ItemsQuantity += int64(len(page.truth.Rows))
	record.Items = uint32(len(page.truth.Rows))
	switch free := p.run.Uncharged != nil && p.run.Uncharged(page.truth.Rows); {
	case free:
	case p.run.Charge.Row != "": // of website contacts
		record.PriceRow, record.Quantity = "plugin:websitecontacts", 2
		line.Pages += 2
	case p.free > 0:
		record.PriceRow, record.Quantity = "tier:plain", 1
		p.free--
		line.FreePages++
	default:
		record.PriceRow, record.Quantity = "tier:plain", 1
		line.Pages++
	}
	p.report.Records = append(p.report.Records, record)
}

// get requests a page and ignores the result.
func (p *product) get(address string) {
	answer, err := p.client.Get(address)
	if err == nil {
		_ = answer.Body.Close()
	}
}

func rough() synthweb.Config {
	mix := synthweb.Rough()
	for i := range mix {
		mix[i].Weight = 1
	}
	return synthweb.Config{Seed: 3, Hosts: 6, PagesPerHost: 20, Mix: mix, PageBytes: []int{4000},
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsDisallow}}
}

func listings() synthweb.Config {
	return synthweb.Config{Seed: 4, Hosts: 4, PagesPerHost: 15, ChainPages: 5, ItemsPerPage: 4,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 2},
			{Class: synthweb.ChangingListing, Weight: 1},
			{Class: synthweb.BrokenListing, Weight: 1}}}
}

func TestACorrectRunPasses(t *testing.T) {
	three := 3
	for name, test := range map[string]struct {
		web        synthweb.Config
		pagination model.Pagination
	}{
		"rough": {rough(), model.Pagination{}},
		"next link": {listings(),
			model.Pagination{Type: model.NextLink, Selector: synthweb.NextSelector}},
		"page param": {listings(), model.Pagination{Type: model.URLPageParam, Param: "page"}},
		"at most 3": {listings(),
			model.Pagination{Type: model.URLPageParam, Param: "page", Max: &three}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProduct(t, test.web, test.pagination)
			p.crawl()
			sum, err := Check(p.run, p.report)
			if err != nil {
				t.Error(err)
			}
			if sum.Links != 60 || sum.Delivered == 0 || sum.Rows != len(p.report.Rows) ||
				sum.Refetched != 0 {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// TestCharges uses the charges of website contacts: two of another row per website, none for some,
// and no free requests.
func TestCharges(t *testing.T) {
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	contacts := func() *product {
		p := newProduct(t, synthweb.Config{Seed: 9, Hosts: 6, PagesPerHost: 10,
			PageBytes: []int{4000}}, model.Pagination{})
		p.run.Charge, p.run.Ignore = endpoint.Charge, []string{"sku"}
		p.run.Uncharged = func(rows []synthweb.Row) bool { return rows[0]["offer"] == true }
		p.run.Truth = func(address string) (synthweb.Truth, error) {
			truth, err := p.run.Web.Truth(address)
			for i := range truth.Pages {
				delete(truth.Pages[i].Rows[0], "sku")
			}
			return truth, err
		}
		p.crawl()
		return p
	}
	p := contacts()
	sum, err := Check(p.run, p.report)
	if err != nil || sum.Uncharged == 0 ||
		sum.Charged != int64(sum.Delivered-sum.Uncharged)*2*price {
		t.Errorf("%+v, %v", sum, err)
	}
	uncharged := slices.IndexFunc(p.report.Records,
		func(r rowstore.Record) bool { return r.Quantity == 0 })
	for name, slip := range map[string]func(p *product){
		"price row":       func(p *product) { p.report.Records[0].PriceRow = "tier:plain" },
		"charged once":    func(p *product) { p.report.Records[0].Quantity = 1 },
		"charged at all":  func(p *product) { p.report.Records[uncharged].Quantity = 2 },
		"one more in all": func(p *product) { p.report.Entry.Lines[0].Pages += 2 },
		"half of all":     func(p *product) { p.run.Charge.Quantity = 1 },
		"free": func(p *product) {
			e := &p.report.Entry
			e.Lines[0].FreePages, e.FreeRequestsDelta = 1, -1
			e.Lines[0].Pages -= 2
			e.Lines[0].AmountMicros += 2 * price
			e.AmountMicros += 2 * price
		},
	} {
		t.Run(name, func(t *testing.T) {
			slipped := *p
			slipped.report = clone(p.report)
			slip(&slipped)
			if _, err := Check(slipped.run, slipped.report); err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

// TestEverySlipIsFound changes one thing at a time in a correct report.
func TestEverySlipIsFound(t *testing.T) {
	whole := newProduct(t, rough(), model.Pagination{})
	whole.crawl()
	for name, slip := range map[string]func(p *product){
		"row lost": func(p *product) { p.report.Rows = p.report.Rows[1:] },
		"row doubled": func(p *product) {
			p.report.Rows = append(p.report.Rows,
				p.report.Rows[0])
		},
		"row changed":   func(p *product) { p.report.Rows[3]["title"] = "something else" },
		"field missing": func(p *product) { delete(p.report.Rows[3], "was") },
		"field added":   func(p *product) { p.report.Rows[3]["more"] = nil },
		"foreign row": func(p *product) {
			p.report.Rows[3]["_sourceUrl"] = "http://shop-00000.example/nowhere"
		},
		"wrong job": func(p *product) { p.report.Rows[3]["_jobId"] = ids.ID{1}.String() },
		"wrong final": func(p *product) {
			p.report.Rows[3]["_finalUrl"] = "http://shop-00000.example/"
		},
		"error lost": func(p *product) { p.report.Errors = p.report.Errors[1:] },
		"error doubled": func(p *product) {
			p.report.Errors = append(p.report.Errors,
				p.report.Errors[0])
		},
		"error changed": func(p *product) { p.report.Errors[0].Error = "dns_failed" },
		"record lost":   func(p *product) { p.report.Records = p.report.Records[1:] },
		"record twice": func(p *product) {
			p.report.Records = append(p.report.Records,
				p.report.Records[0])
		},
		"record code":   func(p *product) { p.report.Records[p.firstError()].Code = "dns_failed" },
		"record status": func(p *product) { p.report.Records[p.firstError()].Status++ },
		"record items":  func(p *product) { p.report.Records[0].Items += 2 },
		"successLinks":  func(p *product) { p.report.Job.SuccessLinks++ },
		"errorLinks":    func(p *product) { p.report.Job.ErrorLinks++ },
		"items":         func(p *product) { p.report.Job.ItemsQuantity++ },
		"requests":      func(p *product) { p.report.Job.TotalRequests++ },
		"links":         func(p *product) { p.report.Job.TotalLinks++ },
		"state":         func(p *product) { p.report.Job.State = "FAILED" },
		"charge":        func(p *product) { p.report.Entry.AmountMicros-- },
		"pages charged": func(p *product) { p.report.Entry.Lines[0].Pages++ },
		"price row":     func(p *product) { p.report.Records[0].PriceRow = "tier:render" },
		"quantity":      func(p *product) { p.report.Records[0].Quantity = 2 },
		"price":         func(p *product) { p.report.Entry.Lines[0].UnitPriceMicros++ },
		"free":          func(p *product) { p.report.Entry.FreeRequestsDelta++ },
		"open entry": func(p *product) {
			p.report.Entry.Status,
				p.report.Entry.BalanceAfterMicros = "OPEN", nil
		},
		"fast":      func(p *product) { p.run.MinGap = time.Hour },
		"not asked": func(p *product) { p.run.Web = untouched(t) },
		"asked again after it was stored": func(p *product) {
			p.run.Deaths = []time.Time{time.UnixMicro(p.report.Records[30].At)}
			for i := range p.report.Records {
				p.report.Records[i].At = p.report.Records[0].At
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := *whole
			p.report = clone(whole.report)
			slip(&p)
			if _, err := Check(p.run, p.report); err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

// firstError is the index of the first page record with an error status.
func (p *product) firstError() int {
	return slices.IndexFunc(p.report.Records, func(r rowstore.Record) bool { return r.Status != 0 })
}

// untouched is the same web as rough's before any request.
func untouched(t *testing.T) *synthweb.Web {
	web, err := synthweb.New(rough())
	if err != nil {
		t.Fatal(err)
	}
	return web
}

func clone(r Reported) Reported {
	r.Rows = slices.Clone(r.Rows)
	for i := range r.Rows {
		r.Rows[i] = maps.Clone(r.Rows[i])
	}
	r.Errors, r.Records = slices.Clone(r.Errors), slices.Clone(r.Records)
	r.Entry.Lines = slices.Clone(r.Entry.Lines)
	return r
}

func TestAFetchTooManyIsFound(t *testing.T) {
	p := newProduct(t, rough(), model.Pagination{})
	p.crawl()
	for _, address := range p.run.URLs {
		truth, err := p.run.Web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		if truth.Class == synthweb.Product {
			p.get(address)
			break
		}
	}
	if _, err := Check(p.run, p.report); err == nil {
		t.Error("a page fetched twice passes")
	}
	p.run.Lossy = true
	sum, err := Check(p.run, p.report)
	if err != nil || sum.Refetched != 1 {
		t.Errorf("with a lossy log: %+v, %v", sum, err)
	}
	p.run.Lossy, p.run.Lost = false, []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	sum, err = Check(p.run, p.report)
	if err != nil || sum.Refetched != 1 {
		t.Errorf("with the fetcher lost that asked: %+v, %v", sum, err)
	}
	p.run.Lost = []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	if _, err := Check(p.run, p.report); err == nil {
		t.Error("a page fetched twice passes although the fetcher that asked was never lost")
	}
}

func TestRowsOfTwoFetchesAreFound(t *testing.T) {
	p := newProduct(t, listings(), model.Pagination{})
	p.crawl()
	changed := 0
	for _, row := range p.report.Rows {
		if row["stock"] == "Fetch 1" && changed == 0 {
			row["stock"] = "Fetch 2"
			changed++
		}
	}
	if changed == 0 {
		t.Fatal("no page changes")
	}
	if _, err := Check(p.run, p.report); err == nil {
		t.Error("a page with rows of two fetches passes")
	}
}

func TestAPartialRunIsExactInWhatItHas(t *testing.T) {
	p := newProduct(t, rough(), model.Pagination{})
	all := p.run.URLs
	p.run.URLs = all[:20]
	p.crawl()
	p.run.URLs = all
	p.report.Job.TotalLinks = int64(len(all))
	if _, err := Check(p.run, p.report); err == nil {
		t.Error("a run that ended early passes as whole")
	}
	p.run.Partial, p.report.Job.State = true, "STOPPED"
	if _, err := Check(p.run, p.report); err != nil {
		t.Error(err)
	}
	p.report.Rows = p.report.Rows[1:]
	if _, err := Check(p.run, p.report); err == nil {
		t.Error("a charged page without rows passes")
	}
}

func TestWallet(t *testing.T) {
	at := func(micros int64) *int64 { return &micros }
	ledger := []Transaction{
		{Type: "CHARGE", AmountMicros: -300, FreeRequestsDelta: -2, BalanceAfterMicros: at(700)},
		{Type: "ADJUSTMENT", AmountMicros: 1000, BalanceAfterMicros: at(1000)},
		{Type: "FREE_GRANT", FreeRequestsDelta: 5, BalanceAfterMicros: at(0)},
	}
	if err := CheckWallet(Wallet{BalanceMicros: 700, FreeRequestsRemaining: 3},
		ledger); err != nil {
		t.Error(err)
	}
	if CheckWallet(Wallet{BalanceMicros: 701, FreeRequestsRemaining: 3}, ledger) == nil {
		t.Error("a wrong balance passes")
	}
	if CheckWallet(Wallet{BalanceMicros: 700, FreeRequestsRemaining: 4}, ledger) == nil {
		t.Error("wrong free requests pass")
	}
	ledger[0].BalanceAfterMicros = at(600)
	if CheckWallet(Wallet{BalanceMicros: 700, FreeRequestsRemaining: 3}, ledger) == nil {
		t.Error("a wrong balance after an entry passes")
	}
}

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// newServiceOn is newService with several webs.
func newServiceOn(t *testing.T, webs []*synthweb.Web, args ...string) *service {
	t.Helper()
	s := &service{single: newSingle(t, append([]string{"--no-rate-limits"}, args...), webs...)}
	s.Service = &suite.Service{T: t, Product: s.single, Web: webs[0], Args: args}
	s.start()
	return s
}

// again returns a customer's client after a kill.
func (s *service) again(who suite.Client) suite.Client {
	who.Server = s.Client.Server
	return who
}

// customer returns a client of a customer with plenty of money.
func (s *service) customer(ref string) suite.Client {
	s.T.Helper()
	who := s.Customer(ref)
	s.Fill(who, suite.Plenty)
	return who
}

// TestEndpointsSurviveKills kills twice in the middle of a list that a plugin reads and of a run of
// searches. Rows, receipts, ledger and recount agree, and each page has its endpoint's price row.
func TestEndpointsSurviveKills(t *testing.T) {
	t.Parallel()
	// At this rate the list takes 8 s and the searches 16 s.
	const rate = "5"
	shops := newWeb(t, suite.ShopWeb(20, 40, 300*time.Millisecond))
	searches, config := suite.NewSearches(40, 150*time.Millisecond)
	engine := newWeb(t, config)
	s := newServiceOn(t, []*synthweb.Web{shops, engine}, "--host-rate", rate, "--max-host-rate",
		rate, "--search-engines", searches.Engines(t))
	shopper, seeker := s.customer("shopper"), s.customer("seeker")
	urls := slices.Collect(shops.URLs(800))
	list, _ := suite.LaunchShops(t, shopper, urls)
	search, scraper := searches.Launch(t, seeker)
	for _, pages := range []int64{20, 70} {
		suite.Begun(t, shopper, list, pages)
		suite.Begun(t, seeker, search, pages/3)
		s.kill()
		s.start()
		shopper, seeker = s.again(shopper), s.again(seeker)
	}
	bought := suite.Must(shopper.Report(suite.Within(t, suite.Patience), list))(t)
	found := suite.Must(seeker.Report(suite.Within(t, suite.Patience), search))(t)

	// A list is rerun under its tag; what was charged is not read again.
	if _, err := shopper.RunAgain(t.Context(), list.ScraperID,
		false); suite.CodeOf(err) != "list_already_run" {
		t.Errorf("a rerun of what was charged: %v", err)
	}
	forced := suite.Must(shopper.RunAgain(t.Context(), list.ScraperID, true))(t)
	if forced.Tag != model.ProductPageTag {
		t.Errorf("the list runs again as %+v", forced)
	}
	again := suite.Must(shopper.Report(suite.Within(t, suite.Patience), forced))(t)

	// A search's sample is charged like its pages.
	var sample []map[string]any
	if err := seeker.Call(t.Context(), "GET", "/api/scraper/"+scraper+"/get-sample-data", nil, nil,
		&sample); err != nil || len(sample) != 3 {
		t.Errorf("the sample is %v, %v", sample, err)
	}
	for _, who := range []suite.Client{shopper, seeker} {
		suite.CheckWallet(t, who)
	}
	s.CheckBooks()
	ledger := suite.Must(seeker.Ledger(t.Context()))(t)
	if first := ledger[0]; first.Source != "SAMPLE" || first.AmountMicros != -suite.SearchPrice ||
		first.Status != "SETTLED" {
		t.Errorf("the newest entry is %+v", first)
	}

	expected := s.Expected(suite.ProductOrder(shopper, urls))
	endpoint, _ := model.EndpointOf(model.ProductPageTag)
	expected.Charge, expected.Shared = endpoint.Charge, true // two runs request the same pages
	bought = s.WithRecords(bought)
	t.Log(suite.Check(t, expected, bought))
	expected.Free = 0
	again.Records = suite.Must(s.Records(t.Context(), again.Job.ID))(t)
	t.Log(suite.Check(t, expected, again))
	searched := searches.Expected(engine)
	searched.Deaths, searched.Shared = s.Deaths, true // the sample requests them, too
	found.Records = suite.Must(s.Records(t.Context(), found.Job.ID))(t)
	t.Log(suite.Check(t, searched, found))
}

// TestTrialsSurviveKills kills while a preview and a sample wait for their page. The call fails,
// and the run continues and is paid once.
func TestTrialsSurviveKills(t *testing.T) {
	t.Parallel()
	shops := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, MinLatency: 2 * time.Second,
		MaxLatency: 2 * time.Second})
	s := newServiceOn(t, []*synthweb.Web{shops}, "--no-rate-limits")
	ctx := suite.Within(t, suite.Patience)
	who := s.customer("trier")
	group := suite.Must(who.PutGroup(ctx, "trials"))(t)
	start := slices.Collect(shops.URLs(1))[0]
	scraper := suite.Must(who.PutScraper(ctx,
		suite.Scraper{GroupRef: group,
			Scraper: model.Scraper{Name: "one", Type: model.SingleProduct,
				ItemsConfig:  synthweb.ProductFields(),
				SourceConfig: model.SourceConfig{URL: start}}}))(t)
	preview := map[string]any{"name": "shelf", "groupId": group, "url": start}
	var rows []map[string]any
	for _, try := range []struct {
		source string
		call   func(out any) error
	}{
		{"PREVIEW_URL", func(out any) error {
			return who.Call(ctx, "POST",
				"/api/scraper-simple/url-based", nil, preview, out)
		}},
		{"SAMPLE", func(out any) error {
			return who.Call(ctx, "GET", "/api/scraper/"+scraper+"/get-sample-data", nil, nil, out)
		}},
	} {
		before := len(suite.Must(who.Ledger(ctx))(t))
		ended := make(chan error, 1)
		go func() { ended <- try.call(&rows) }()
		ledger := s.grown(who, before)
		s.kill()
		if err := <-ended; err == nil {
			t.Errorf("%s: the call of a killed process succeeds", try.source)
		}
		s.start()
		who = s.again(who)
		entry := suite.Sealed(s.T, who, ledger[0].JobID)
		if entry.Source != try.source || entry.FreeRequestsDelta != -1 || entry.AmountMicros != 0 ||
			len(entry.Lines) != 1 {
			t.Errorf("%s is charged as %+v", try.source, entry)
		}
		if err := try.call(&rows); err != nil || len(rows) == 0 {
			t.Errorf("%s again: %v, %v", try.source, rows, err)
		}
	}
	suite.CheckWallet(t, who)
	s.CheckBooks()
	if wallet := suite.Must(who.Wallet(ctx))(t); wallet.FreeRequestsRemaining != suite.FreeGrant-4 {
		t.Errorf("wallet %+v after four trials", wallet)
	}
	if jobs := suite.Must(who.Jobs(ctx, ""))(t); len(jobs) > 0 {
		t.Errorf("the history shows %+v", jobs)
	}
}

// grown waits until a ledger has more entries than before.
func (s *service) grown(who suite.Client, than int) []recount.Transaction {
	s.T.Helper()
	for ctx := suite.Within(s.T, suite.Patience); ; {
		if ledger := suite.Must(who.Ledger(ctx))(s.T); len(ledger) > than {
			return ledger
		}
	}
}

// The daily limits of website contacts (specification 8).
const (
	dailyReads     = 2000
	dailyUncharged = 800
)

// TestContactsAtTheirLimits reads up to the daily limit, and three more websites, with a kill in
// the middle. Exactly the limit is read, even if some were read twice. The rest is neither fetched
// nor charged, and waits for a rerun.
func TestContactsAtTheirLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit  int
		page   string
		status string
		price  int64
	}{
		"reads": {dailyReads, "<html><body><h1>A bakery</h1><p>Bread and cakes since 1950. " +
			"Mail: info@%s</p></body></html>",
			"EMAIL_FOUND", suite.ContactPrice},
		"reads that end uncharged": {dailyUncharged,
			"<html><body>This domain %s is for sale</body></html>", "PAGE_NOT_READABLE", 0},
	} {
		t.Run(name, func(t *testing.T) {
			suite.SameDay(t)
			config := synthweb.Config{PagesPerHost: 1, Texts: map[string]string{},
				MaxLatency: 100 * time.Millisecond}
			var urls []string
			for n := range c.limit + 3 {
				config.Names = append(config.Names, fmt.Sprintf("bakery-%04d", n))
				host := config.Names[n] + ".example"
				config.Texts[host+"/"] = fmt.Sprintf(c.page, host)
				urls = append(urls, "http://"+host+"/")
			}
			web := newWeb(t, config)
			s := newServiceOn(t, []*synthweb.Web{web}, suite.Fast()...)
			s.Fill(s.Client, suite.Plenty)
			who := suite.Must(s.MintKey(t.Context(), "contacts", string(model.ScopeLLMFull)))(t)
			group := suite.Must(who.PutGroup(t.Context(), "bakeries"))(t)
			run := suite.Must(who.Contacts(t.Context(), group, "bakeries", urls))(t)
			suite.Begun(t, who, run, int64(c.limit/3))
			s.kill()
			s.start()
			who = s.again(who)
			reported := suite.Must(who.Report(suite.Within(t, suite.Patience), run))(t)
			s.atTheLimit(reported, urls, c.limit, c.status, c.price)

			rerun := suite.Must(who.RunAgain(t.Context(), run.ScraperID, false))(t)
			if want := 3 + len(urls[3:])*btoi(c.price == 0); rerun.LinksQueued != want {
				t.Errorf("the rerun takes %d websites, want %d", rerun.LinksQueued, want)
			}
			over := suite.Must(who.Report(suite.Within(t, suite.Patience), rerun))(t)
			for _, row := range over.Rows {
				if row["status"] != "DAILY_LIMIT_REACHED" {
					t.Errorf("over the limit %v is read", row)
				}
			}
			if over.Entry.AmountMicros != 0 || len(over.Rows) != rerun.LinksQueued {
				t.Errorf("%d rows over the limit, entry %+v", len(over.Rows), over.Entry)
			}
			suite.CheckWallet(t, who)
			s.CheckBooks()
			asked := map[string]bool{}
			for r := range web.Requests() {
				asked[r.Host] = true
			}
			if len(asked) != c.limit {
				t.Errorf("%d websites were asked, %d may be", len(asked), c.limit)
			}
			s.limitRecords(reported, c.limit, c.price > 0)
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// atTheLimit requires one row per website, limit of them read, and only these charged.
func (s *service) atTheLimit(reported recount.Reported, urls []string, limit int, status string,
	price int64) {
	s.T.Helper()
	seen, statuses := map[any]bool{}, map[any]int{}
	for _, row := range reported.Rows {
		seen[row["website"]] = true
		statuses[row["status"]]++
	}
	if len(seen) != len(urls) || len(reported.Rows) != len(urls) || statuses[status] != limit ||
		statuses["DAILY_LIMIT_REACHED"] != len(urls)-limit {
		s.T.Errorf("%d rows of %d websites end as %v", len(reported.Rows), len(seen), statuses)
	}
	if entry := reported.Entry; entry.AmountMicros != -int64(limit)*price ||
		entry.FreeRequestsDelta != 0 {
		s.T.Errorf("entry %+v", entry)
	}
}

// limitRecords requires a page record per website, and as many charged as were read.
func (s *service) limitRecords(reported recount.Reported, limit int, charged bool) {
	s.T.Helper()
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	row, quantity := endpoint.Charge.Of(model.Plain)
	paid := 0
	for _, r := range s.WithRecords(reported).Records {
		switch {
		case r.PriceRow == row && r.Quantity == quantity:
			paid++
		case r.PriceRow != "" || r.Quantity != 0:
			s.T.Errorf("record %+v", r)
		}
	}
	if paid != limit*btoi(charged) {
		s.T.Errorf("%d records are charged", paid)
	}
}

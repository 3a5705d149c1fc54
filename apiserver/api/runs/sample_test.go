package runs_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// loop fakes the fetch loop for the next trial, with page as the result of its address.
func (r *rig) loop(t *testing.T, page *model.Page) func() *client.Job {
	t.Helper()
	return r.PlayTrial(t, r.store, func(model.Recipe) *model.Page { return page })
}

func delivered(rows ...string) *model.Page {
	p := &model.Page{Outcome: model.Delivered, Status: 200, PriceRow: "tier:plain", Quantity: 1}
	for _, row := range rows {
		p.Rows = append(p.Rows, []byte(row))
	}
	return p
}

func errored(code string, status uint16) *model.Page {
	return &model.Page{Outcome: model.Errored, Code: code, Status: status}
}

func TestSample(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	id := r.newScraper(t, "shop", "https://shop.test/#top")
	path := "GET /api/scraper/" + id.String() + "/get-sample-data"
	sample := func(name string, page *model.Page, sc apitest.Scenario) *client.Job {
		wait := r.loop(t, page)
		sc.Name, sc.As = name, apitest.Reader
		r.Run(t, sc)
		return wait()
	}
	rows := []any{map[string]any{"title": "a", "n": 1, "x": nil, "o": map[string]any{"_k": 1}},
		map[string]any{"title": "b"}}
	job := sample("rows",
		delivered(`{"title":"a","_sourceUrl":"u","n":1, "x" : null,"o":{"_k":1},"_jobId":"j"}`,
			`{"_a":1,"title":"b"}`),
		apitest.Scenario{Do: path + "?useCache=true", Status: 200, Has: map[string]any{"": rows}})
	r.Run(t,
		apitest.Scenario{Name: "cached", As: apitest.Reader, Do: path + "?useCache=true",
			Status: 200, Has: map[string]any{"": rows}},
		apitest.Scenario{Name: "not in the history", As: apitest.User,
			Do: "GET /api/scraper/load-history", Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "not the newest run", As: apitest.User,
			Do: "GET /api/scraper/v2/" + id.String(), Status: 200,
			Has: map[string]any{"lastRunState": nil, "runStats.lastNRuns": 0}},
		apitest.Scenario{Name: "not in the group's data", As: apitest.User,
			Do: "GET /api/scraper/data/group/" + r.group.String(), Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "not in the scraper's data", As: apitest.User,
			Do: "GET /api/scraper/data?scraperId=" + id.String(), Status: 200,
			Has: map[string]any{"items": []any{}}},
		apitest.Scenario{Name: "not in the job's data", As: apitest.User,
			Do: "GET /api/scraper/data?jobId=" + job.ID.String(), Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "not streamed", As: apitest.User,
			Do: "GET /api/scraper-job-status/" + job.ID.String() + "/stream", Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "in the ledger", As: apitest.User,
			Do: "GET /api/wallet/transactions", Status: 200, Has: map[string]any{
				"content.0.source": "SAMPLE", "content.0.scraperId": id,
				"content.0.groupId":           r.group,
				"content.0.freeRequestsDelta": -1}},
	)
	r.Clock.Advance(time.Hour + time.Second)
	sample("not cached any more", delivered(`{"title":"c"}`),
		apitest.Scenario{Do: path + "?useCache=true", Status: 200,
			Has: map[string]any{"0.title": "c"}})
	sample("no row", errored("no_rows", 200),
		apitest.Scenario{Do: path, Status: 200, Has: map[string]any{"": []any{}}})
	r.Clock.Advance(time.Minute)
	sample("no row that fits the schema", errored("row_rejected", 200),
		apitest.Scenario{Do: path, Status: 200, Has: map[string]any{"": []any{}}})
	sample("a model that gives no answer", errored("model_unavailable", 200),
		apitest.Scenario{Do: path, Status: 503, Code: "unavailable"})
	sample("patterns that take too long", errored("too_costly", 200),
		apitest.Scenario{Do: path, Status: 400, Code: "schema_validation_failed"})
	sample("error", errored("http_status", 404),
		apitest.Scenario{Do: path, Status: 502, Code: "source_unreachable"})
	r.Run(t,
		apitest.Scenario{Name: "unknown", As: apitest.Reader,
			Do: "GET /api/scraper/0123456789abcdef01234567/get-sample-data", Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "no such host", As: apitest.User, Status: 502,
			Code: "source_unreachable",
			Do: "GET /api/scraper/" + r.newScraper(t, "gone", "https://shop.invalid/").String() +
				"/get-sample-data"},
		apitest.Scenario{Name: "private", As: apitest.User, Status: 400, Code: "INVALID_URL",
			Do: "GET /api/scraper/" + r.newScraper(t, "private", "http://10.0.0.1/").String() +
				"/get-sample-data"},
	)
	r.nothingLeft(t)
}

func TestSampleOfAList(t *testing.T) {
	r := start(t)
	body := fmt.Sprintf(`{"groupId":%q,"name":"list","urls":["https://shop.test/2","https://shop.test/3"],
		"itemsConfig":[{"name":"title","selector":"h1","kind":"TEXT"}]}`, r.group)
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/url-list-run",
		Body: body})
	path := "GET /api/scraper/" + run.Text("scraperId") + "/get-sample-data"
	wait := r.loop(t, delivered(`{"title":"a"}`))
	r.Run(t, apitest.Scenario{Name: "first address", As: apitest.User, Do: path, Status: 200,
		Has: map[string]any{"0.title": "a"}})
	if urls := r.urls(t, wait().ID.String()); fmt.Sprint(urls) != "[https://shop.test/2]" {
		t.Errorf("the sample is of %v", urls)
	}
}

// TestSampleOfASite: the sample and the run begin with the same page, or not at all.
func TestSampleOfASite(t *testing.T) {
	r := start(t)
	r.site(t, "site", "https://shop.test/1", "https://shop.test/2")
	id := r.Client.View().ScraperByName("alice", "site").ID.String()
	wait := r.loop(t, delivered(`{"title":"a"}`))
	sample := apitest.Scenario{Name: "sample", As: apitest.User, Status: 200,
		Do: "GET /api/scraper/" + id + "/get-sample-data"}
	r.Run(t, sample)
	if urls := r.urls(t, wait().ID.String()); fmt.Sprint(urls) != "[https://shop.test/1]" {
		t.Errorf("the sample is of %v", urls)
	}
	run := apitest.Scenario{Name: "run", As: apitest.User, Status: 200,
		Do: "GET /api/scraper/" + id + "/run"}
	job := r.Call(t, run).Text("jobId")
	if urls := r.urls(t, job); len(urls) != 2 || urls[0] != "https://shop.test/1" {
		t.Errorf("the run is of %v", urls)
	}
	r.finish(t, job, 2, 0, 1)
	r.Run(t, apitest.Scenario{Name: "empty", As: apitest.User, Do: "PUT /api/scraper/site",
		Header: key("empty"), Status: 200,
		Body: fmt.Sprintf(`{"links":[],"name":"site","scraperRef":%q}`, id)})
	for _, refused := range []apitest.Scenario{sample, run} {
		refused.Status, refused.Code = 400, "start_urls_unreachable"
		r.Run(t, refused)
	}
	r.nothingLeft(t)
}

// TestCachedSampleIsOfTheListAsItIs: a new list does not change the scraper, but changes its first
// address.
func TestCachedSampleIsOfTheListAsItIs(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	first := r.list(t, r.body("urls", []string{"https://shop.test/2"}))
	path := "GET /api/scraper/" + first.Text("scraperId") + "/get-sample-data?useCache=true"
	sample := func(page, title string) {
		wait := r.loop(t, delivered(fmt.Sprintf(`{"title":%q}`, title)))
		r.Run(t, apitest.Scenario{Name: title, As: apitest.User, Do: path, Status: 200,
			Has: map[string]any{"0.title": title}})
		if urls := r.urls(t, wait().ID.String()); fmt.Sprint(urls) != "["+page+"]" {
			t.Errorf("the sample is of %v", urls)
		}
	}
	sample("https://shop.test/2", "before")
	r.finish(t, first.Text("jobId"), 1, 0)
	r.Clock.Advance(time.Millisecond) // runs must not have the same time, or neither is newer
	r.list(t, r.body("groupId", nil, "name", nil, "itemsConfig", nil, "scraperId",
		first.Text("scraperId"),
		"urls", []string{"https://shop.test/5"}))
	sample("https://shop.test/5", "after")
}

func TestSampleWithoutMoney(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: -1})
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	for n := range 5 { // use up the free requests
		wait := r.loop(t, delivered(`{"title":"a"}`))
		r.Run(t, apitest.Scenario{Name: fmt.Sprint("free ", n), As: apitest.User,
			Do: "GET /api/scraper/" + id + "/get-sample-data", Status: 200})
		wait()
	}
	r.Run(t, apitest.Scenario{Name: "empty wallet", As: apitest.User,
		Do: "GET /api/scraper/" + id + "/get-sample-data", Status: 402,
		Code: "WALLET_INSUFFICIENT_BALANCE"})
	r.nothingLeft(t)
}

// A cap below the price of a page refuses the call, and nothing is charged.
func TestSampleUnderACap(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	path := "GET /api/scraper/" + r.newScraper(t, "shop", "https://shop.test/").String() +
		"/get-sample-data?maxChargeMicros="
	for range 5 { // free requests cost nothing
		wait := r.loop(t, delivered(`{"title":"a"}`))
		r.Run(t, apitest.Scenario{As: apitest.User, Do: path + "0", Status: 200})
		wait()
	}
	wait := r.loop(t, delivered(`{"title":"a"}`))
	r.Run(t, apitest.Scenario{Name: "enough", As: apitest.User, Do: path + "150", Status: 200})
	wait()
	answer := make(chan apitest.Answer, 1)
	go func() { answer <- r.Call(t, apitest.Scenario{As: apitest.User, Do: path + "149"}) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	job := r.AwaitTrial(ctx)
	if job == nil {
		t.Fatal("no trial was launched")
	}
	r.Client.Dispatch(t, job.ID, 0)
	r.Client.CloseRun(t, job.ID)
	if a := <-answer; a.Status != http.StatusPaymentRequired ||
		a.Text("code") != "MAX_CHARGE_REACHED" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	r.Run(t, apitest.Scenario{Name: "nothing is charged for it", As: apitest.User,
		Do: "GET /api/wallet", Status: 200, Has: map[string]any{"balanceMicros": 1_000_000 - 150}},
		apitest.Scenario{Name: "negative", As: apitest.User, Do: path + "-1", Status: 400,
			Code: "invalid_request"})
	r.nothingLeft(t)
}

// A read key may make twenty billable samples a day.
func TestSamplesOfADay(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	path := "GET /api/scraper/" + r.newScraper(t, "shop", "https://shop.test/").String() +
		"/get-sample-data"
	for range 20 {
		wait := r.loop(t, delivered(`{"title":"a"}`))
		if a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: path}); a.Status != 200 {
			t.Fatalf("%s", a.Body)
		}
		wait()
	}
	r.Run(t, apitest.Scenario{Name: "one more", As: apitest.Reader, Do: path, Status: 429,
		Code:    "trial_limit_reached",
		Headers: map[string]string{"Retry-After": "75355"}}) // 03:04:05 to midnight
	r.nothingLeft(t)
}

// A caller who hangs up, or waits too long, ends the run.
func TestSampleIsGivenUp(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/")
	ended := func(why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		job := r.AwaitTrial(ctx)
		if job == nil {
			t.Fatalf("%s: no trial was launched", why)
		}
		for r.Clock.Advance(time.Second); !job.State.Final(); job = r.Client.View().Job(job.ID) {
			if ctx.Err() != nil {
				t.Fatalf("%s: the run goes on", why)
			}
			r.Clock.Advance(time.Second)
			<-time.After(time.Millisecond)
		}
		r.Client.CloseRun(t, job.ID)
	}
	server, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Host)
	if err != nil {
		t.Fatal(err)
	}
	request := "GET /api/scraper/" + id.String() +
		"/get-sample-data HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
		r.Secrets[apitest.User] + "\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r.AwaitTrial(ctx) == nil {
		t.Fatal("no trial was launched")
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	ended("hung up")

	answer := make(chan apitest.Answer, 1)
	go func() {
		answer <- r.Call(t, apitest.Scenario{As: apitest.User,
			Do: "GET /api/scraper/" + id.String() + "/get-sample-data"})
	}()
	ended("too slow")
	if a := <-answer; a.Status != http.StatusServiceUnavailable ||
		!strings.Contains(a.Text("detail"), "55s") {
		t.Errorf("the answer is %d %s", a.Status, a.Body)
	}
	r.nothingLeft(t)
}

// A caller who waits for another call's sample gives up in time, and starts none of its own.
func TestJoinedSampleEndsInTime(t *testing.T) {
	for begun, wants := range map[bool]string{false: "not asked for within 55s",
		true: "asked for late"} {
		r := start(t)
		path := "GET /api/scraper/" + r.newScraper(t, "shop", "https://shop.test/").String() +
			"/get-sample-data?useCache=true"
		until := r.Clock.Now().Add(model.TrialWait)
		answers := make(chan apitest.Answer, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for n := 1; n <= cap(answers); n++ {
			go func() { answers <- r.Call(t, apitest.Scenario{As: apitest.User, Do: path}) }()
			for r.Clock.Waiting(until) < n {
				if ctx.Err() != nil {
					t.Fatalf("%d wait, want %d", r.Clock.Waiting(until), n)
				}
				<-time.After(time.Millisecond)
			}
		}
		job, before := r.AwaitTrial(ctx), model.TrialWait-model.TrialTime+time.Second
		r.Clock.Advance(before)
		if begun {
			r.Client.Dispatch(t, job.ID, 0)
		}
		r.Clock.Advance(model.TrialWait - before)
		for range cap(answers) {
			select {
			case a := <-answers:
				if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
					!strings.Contains(a.Text("detail"), wants) {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			case <-ctx.Done():
				t.Fatal("a call goes on")
			}
		}
		if n := len(r.Client.View().OpenJobs()); n != 1 {
			t.Errorf("%d runs were launched, want 1", n)
		}
		r.Client.CloseRun(t, job.ID)
		r.nothingLeft(t)
	}
}

// The rows that a trial returns are bounded.
func TestSampleIsBounded(t *testing.T) {
	r := start(t)
	path := "GET /api/scraper/" + r.newScraper(t, "shop", "https://shop.test/").String() +
		"/get-sample-data"
	for _, c := range []struct {
		name             string
		rows, each, want int
	}{{"many", 1_500, 10, 1_000}, {"large", 10, 200_000, 3}} {
		page := delivered()
		for range c.rows {
			page.Rows = append(page.Rows, []byte(`{"title":"`+strings.Repeat("x", c.each)+`"}`))
		}
		wait := r.loop(t, page)
		r.Run(t, apitest.Scenario{Name: c.name, As: apitest.User, Do: path, Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if rows, ok := a.JSON.([]any); !ok || len(rows) != c.want {
					t.Errorf("%d rows", len(rows))
				}
			}})
		wait()
	}
}

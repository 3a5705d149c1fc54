package previews_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	look = "POST /api/scraper-simple/page"
	pick = "POST /api/scraper-simple/page/pick"
)

// looked is the answer to a page preview.
type looked struct {
	Nodes []struct {
		In         int
		Name, Text string
	}
}

// element returns the number of the element around a text.
func (l *looked) element(t *testing.T, text string) int {
	t.Helper()
	for _, n := range l.Nodes {
		if n.Name == "" && strings.TrimSpace(n.Text) == text {
			return n.In
		}
	}
	t.Fatalf("%q is not shown: %+v", text, l.Nodes)
	return 0
}

const address = `{"url":"https://shop.test/list"}`

// look previews a page, after it was fetched.
func (r *rig) look(t *testing.T, body string) looked {
	t.Helper()
	wait := r.page(t, "text/html", body)
	a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: look + "?useCache=false",
		Body: address})
	wait()
	var found looked
	if err := json.Unmarshal(a.Body, &found); a.Status != 200 || err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return found
}

// pickBody is a pick of an element. fields is JSON.
func pickBody(fields string, element int) string {
	return fmt.Sprintf(`{"url":"https://shop.test/list","type":"MULTIPLE_PRODUCTS",`+
		`"itemsConfig":%s,"element":%d}`, fields, element)
}

// larger is a rule that replaces each character by times bytes.
func larger(from, to string, times int) string {
	return `{"kind":"REGEX_CLEAN","sourceField":"` + from + `","outputField":"` + to +
		`","params":{"pattern":".","replacement":"` + strings.Repeat("x", times) + `"}}`
}

// A page is paid once for its preview. Picks on it make rows and cost nothing.
func TestPicksOnAPage(t *testing.T) {
	r := start(t)
	r.Run(t, apitest.Scenario{Name: "before", As: apitest.Reader, Do: pick,
		Body: pickBody("[]", 0), Status: 400, Code: "not_found",
		Has: map[string]any{"errors.0.field": "url"}})
	wait := r.page(t, "text/html", strings.Replace(list, "</ul>",
		`</ul><a rel="next" href="/list?page=2">Next</a><script>alert(1)</script>`, 1))
	var found looked
	r.Run(t, apitest.Scenario{Name: "look", As: apitest.Reader, Do: look, Body: address,
		Status: 200, Has: map[string]any{"url": "https://shop.test/list", "cut": false,
			"candidates.0.type": "MULTIPLE_PRODUCTS", "pagination.type": "NEXT_LINK",
			"candidates.0.sampleData.1.title": "Red one",
			"candidates.0.sourceConfig.url":   "https://shop.test/list"},
		Check: func(t *testing.T, a apitest.Answer) {
			if err := json.Unmarshal(a.Body, &found); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(a.Body), "alert") {
				t.Errorf("a script is shown: %s", a.Body)
			}
		}})
	job := wait()
	title := `[{"name":"title","selector":".good h3","kind":"TEXT"}]`
	r.Run(t,
		apitest.Scenario{Name: "again", As: apitest.Reader, Do: look, Body: address, Status: 200,
			Has: map[string]any{"candidates.0.sampleData.1.title": "Red one"}},
		apitest.Scenario{Name: "one entry", As: apitest.User,
			Do: "GET /api/wallet/transactions?size=1", Status: 200, Has: map[string]any{
				"content.0.source": "PREVIEW_URL", "content.0.jobId": job.ID}},
		apitest.Scenario{Name: "the first", As: apitest.Reader, Do: pick,
			Body: pickBody("[]", found.element(t, "Red one")), Status: 200,
			Has: map[string]any{"itemsConfig.0.name": "title", "rowCount": 3,
				"rows.1.title": "Red one", "choices.0.value": "Red one",
				"matches.0.1": found.element(t, "Red one")}},
		apitest.Scenario{Name: "the second", As: apitest.Reader, Do: pick,
			Body: pickBody(title, found.element(t, "€1.50")), Status: 200,
			Has: map[string]any{"itemsConfig.1.name": "price", "rows.2.price": "€3.50"}},
		apitest.Scenario{Name: "outside", As: apitest.Reader, Do: pick,
			Body: pickBody(title, found.element(t, "Next")), Status: 400,
			Code: "invalid_request",
			Has:  map[string]any{"errors.0.field": "element"}},
		apitest.Scenario{Name: "another customer's", As: apitest.Other, Do: pick,
			Body: pickBody("[]", 1), Status: 400, Code: "not_found",
			Has: map[string]any{"errors.0.field": "url"}},
		apitest.Scenario{Name: "ruled", As: apitest.Reader, Do: pick,
			Body: `{"url":"https://shop.test/list","type":"MULTIPLE_PRODUCTS","itemsConfig":` +
				title + `,"postProcessRules":[{"kind":"REGEX_CLEAN","sourceField":"title",` +
				`"outputField":"color","params":{"pattern":" one","replacement":""}}]}`,
			Status: 200, Has: map[string]any{"rows.0.color": "Blue"}},
		apitest.Scenario{Name: "large rows", As: apitest.Reader, Do: pick,
			Body: `{"url":"https://shop.test/list","type":"MULTIPLE_PRODUCTS","itemsConfig":` +
				title + `,"postProcessRules":[` + larger("title", "a", 100) + `,` +
				larger("a", "b", 100) + `,` + larger("b", "c", 6) + `]}`,
			Status: 200, Has: map[string]any{"rows.2.title": "Green one"},
			Check: func(t *testing.T, a apitest.Answer) {
				if len(a.Body) <= extract.MaxRowBytes {
					t.Errorf("the rows have %d bytes", len(a.Body))
				}
			}},
		apitest.Scenario{Name: "bad selector", As: apitest.Reader, Do: pick,
			Body: `{"url":"https://shop.test/list","type":"SINGLE_PRODUCT","itemsConfig":` +
				`[{"name":"a","selector":"((","kind":"TEXT"}]}`,
			Status: 400, Code: "schema_validation_failed",
			Has: map[string]any{"errors.0.field": "itemsConfig[0].selector"}},
	)
	r.Clock.Advance(10 * time.Minute)
	r.Run(t, apitest.Scenario{Name: "too late", As: apitest.Reader, Do: pick,
		Body: pickBody("[]", 1), Status: 400, Code: "not_found",
		Has: map[string]any{"errors.0.field": "url"}})
}

// Concurrent previews of the same page by one customer share the first one, and only that is paid.
func TestLooksAtOncePayOnce(t *testing.T) {
	r := start(t)
	wait := r.page(t, "text/html", list)
	var calls sync.WaitGroup
	for range 64 {
		calls.Go(func() {
			a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: look, Body: address})
			if a.Status != 200 || a.Text("candidates.0.sampleData.1.title") != "Red one" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	job := wait()
	calls.Wait()
	r.Run(t, apitest.Scenario{Name: "one entry", As: apitest.User,
		Do: "GET /api/wallet/transactions?size=2", Status: 200, Has: map[string]any{
			"content.0.jobId": job.ID, "content.0.source": "PREVIEW_URL"},
		Check: func(t *testing.T, a apitest.Answer) {
			if strings.Count(string(a.Body), "PREVIEW_URL") != 1 {
				t.Errorf("paid more than once: %s", a.Body)
			}
		}})
}

// Two servers that share only the control plane pay once for a page. So does a caller who asks
// another server after the first one was killed.
func TestLooksOnTwoServersPayOnce(t *testing.T) {
	r := start(t)
	other := r.Beside(t, apitest.WithStore(r.store))
	for _, c := range []struct{ do, body, title string }{
		{look, address, "candidates.0.sampleData.1.title"},
		{fromURL + "?useCache=true", r.body(""), "0.sampleData.1.title"},
	} {
		wait := r.page(t, "text/html", list)
		ask := func(server *apitest.Server) {
			a := server.Call(t, apitest.Scenario{As: apitest.User, Do: c.do, Body: c.body})
			if a.Status != 200 || a.Text(c.title) != "Red one" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		}
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { ask(r.Server) })
			calls.Go(func() { ask(other) })
		}
		wait()
		calls.Wait()
		third := r.Beside(t, apitest.WithStore(r.store)) // it has nothing cached
		ask(third)
		r.Clock.Advance(time.Minute)
		wait = r.page(t, "text/html", list)
		ask(r.Beside(t, apitest.WithStore(r.store))) // too late, so it is paid
		wait()
	}
	r.Run(t, apitest.Scenario{As: apitest.User, Do: "GET /api/wallet/transactions?size=20",
		Status: 200, Check: func(t *testing.T, a apitest.Answer) {
			if paid := strings.Count(string(a.Body), "PREVIEW_URL"); paid != 4 {
				t.Errorf("paid %d times, want 4: %s", paid, a.Body)
			}
		}})
}

// If a client hangs up, only its own caller sees that result. A caller who waited for it on another
// server fetches the page itself.
func TestLooksOfOthersThatCameToNothing(t *testing.T) {
	r := start(t)
	other := r.Beside(t, apitest.WithStore(r.store))
	ctx, hangUp := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		request, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/api/scraper-simple/page",
			strings.NewReader(address))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+r.Secrets[apitest.User])
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			t.Errorf("answered %d", answer.StatusCode)
		}
	})
	first := r.AwaitTrial(t.Context())
	waits := make(chan struct{})
	calls.Go(func() {
		close(waits)
		a := other.Call(t, apitest.Scenario{As: apitest.User, Do: look, Body: address})
		if a.Status != 200 || a.Text("candidates.0.sampleData.1.title") != "Red one" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	<-waits
	hangUp()
	for r.Client.View().Job(first.ID).State != model.Stopped {
		r.Clock.Advance(time.Second)         // after a second the server checks on waiting callers
		<-time.After(200 * time.Millisecond) // it must see the hang-up before the calls' 55 s end
	}
	r.Client.CloseRun(t, first.ID)
	r.page(t, "text/html", list)()
	calls.Wait()
}

// halting is a store whose first reads fail.
type halting struct {
	rowstore.Store
	calls atomic.Int32
}

func (h *halting) Horizon(ctx context.Context) (int64, error) {
	if h.calls.Add(1) <= 3 {
		return 0, errors.New("the store does not answer")
	}
	return h.Store.Horizon(ctx)
}

// Another call's trial that exists but cannot be read is not requested over and over.
func TestLooksOfOthersThatCannotBeRead(t *testing.T) {
	r := start(t)
	wait := r.page(t, "text/html", list)
	first := r.Call(t, apitest.Scenario{As: apitest.User, Do: look, Body: address})
	wait()
	if first.Status != 200 {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	store := &halting{Store: r.store}
	other := r.Beside(t, apitest.WithStore(store))
	a := other.Call(t, apitest.Scenario{As: apitest.User, Do: look, Body: address})
	if a.Status != 500 || store.calls.Load() != 1 {
		t.Errorf("%d after %d reads: %s", a.Status, store.calls.Load(), a.Body)
	}
}

// A page of 5 MB is shown as far as it is kept, and can be picked on.
func TestLargePagesAreCut(t *testing.T) {
	r := start(t)
	found := r.look(t, strings.Replace(list, "<ul", "<p>"+strings.Repeat("\"<>& ", 1_000)+"<ul", 1)+
		strings.Repeat("<p>"+strings.Repeat("words and ", 50), 10_000))
	r.Run(t, apitest.Scenario{As: apitest.Reader, Do: pick,
		Body: pickBody("[]", found.element(t, "Red one")), Status: 200,
		Has: map[string]any{"rowCount": 3}})
	if len(found.Nodes) > 20_001 {
		t.Errorf("%d nodes are shown", len(found.Nodes))
	}
}

// TestPicksOfLargeRowsAreBounded: a pick answers the first rows that fit into its bound.
func TestPicksOfLargeRowsAreBounded(t *testing.T) {
	r := start(t)
	found := r.look(t, "<ul>"+strings.Repeat(`<li class="good"><h3>A lamp</h3></li>`, 24)+
		`<li class="good"><h3>Red one</h3></li></ul>`)
	r.Run(t, apitest.Scenario{As: apitest.Reader, Do: pick,
		Body: `{"url":"https://shop.test/list","type":"MULTIPLE_PRODUCTS","itemsConfig":` +
			`[{"name":"title","selector":".good h3","kind":"TEXT"}],"element":` +
			fmt.Sprint(found.element(t, "Red one")) + `,"postProcessRules":[` +
			larger("title", "a", 100) + `,` + larger("a", "b", 100) + `,` +
			larger("b", "c", 9) + `]}`, Status: 200, Has: map[string]any{"rowCount": 25},
		Check: func(t *testing.T, a apitest.Answer) {
			if n := len(a.Body); n <= 3<<20 || n > 5<<20 {
				t.Errorf("the answer has %d bytes", n)
			}
		}})
}

// Selectors of a pick that take too long on its page are to blame.
func TestCostlyPicksAreRefused(t *testing.T) {
	r := start(t)
	found := r.look(t, strings.Repeat("<div class=x>a", 400)+"<p>here")
	r.Run(t, apitest.Scenario{As: apitest.Reader, Do: pick, Body: pickBody(
		`[{"name":"a","selector":":has(:has(:has(:has(.y))))","kind":"TEXT"}]`,
		found.element(t, "here")), Status: 400, Code: "schema_validation_failed",
		Has: map[string]any{"errors.0.field": "itemsConfig"}})
}

func TestPagesThatAreNone(t *testing.T) {
	r := start(t)
	wait := r.PlayTrial(t, r.store, func(model.Recipe) *model.Page {
		return &model.Page{Outcome: model.Errored, Code: "not_html", Status: 200}
	})
	r.Run(t, apitest.Scenario{As: apitest.Reader, Do: look, Body: address, Status: 502,
		Code: "source_unreachable"})
	wait()
}

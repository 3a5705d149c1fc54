package runs_test

import (
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// await waits until wanted accepts the job.
func (r *rig) await(t *testing.T, id ids.ID, wanted func(*client.Job) bool) {
	t.Helper()
	for {
		job, changed := r.Client.View().WatchJob(id)
		if wanted(job) {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("the job does not change")
		}
	}
}

func TestStop(t *testing.T) {
	r := start(t)
	scraper := r.newScraper(t, "shop", "https://shop.test/")
	path := "GET /api/scraper/" + scraper.String() + "/stop"
	stop := apitest.Scenario{Name: "stop", As: apitest.User, Do: path, Header: key("s"),
		Status: 200,
		Check: func(t *testing.T, a apitest.Answer) {
			if len(a.Body) > 0 {
				t.Errorf("the answer has a body: %s", a.Body)
			}
		}}
	idle := stop
	idle.Name, idle.Header = "not running", key("idle")
	r.Run(t, idle,
		apitest.Scenario{Name: "no key", As: apitest.User, Do: path, Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: path, Header: key("r"),
			Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Header: key("f"),
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do: "POST /api/scraper/0123456789abcdef01234567/stop", Header: key("u"),
			Status: 400, Code: "not_found", Has: map[string]any{"errors.0.field": "id"}},
	)
	id := r.launch(t, scraper)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r.Run(t, stop)
		if job := r.Client.View().Job(id); !job.Closed || job.Success != 1 ||
			job.State != model.Stopped {
			t.Errorf("answered before the run was over: %+v", job)
		}
	}()
	r.await(t, id, func(j *client.Job) bool { return j.State == model.Stopped })
	select {
	case <-answered:
		t.Error("answered while a page is out")
	default:
	}
	receipt := model.Receipt{Job: id, Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1,
		Items: 1, Last: true}
	if err := r.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
		t.Fatal(err)
	}
	r.Client.CloseRun(t, id)
	<-answered
	stop.Name, stop.Headers = "replay", map[string]string{"Idempotency-Replayed": "true"}
	r.Run(t, stop)
}

// launch runs a scraper and dispatches its page.
func (r *rig) launch(t *testing.T, scraper ids.ID) ids.ID {
	t.Helper()
	run := r.Call(t, apitest.Scenario{As: apitest.User,
		Do: "POST /api/scraper/" + scraper.String() + "/run"})
	id, err := ids.Parse(run.Text("jobId"))
	if err != nil {
		t.Fatalf("run: %s", run.Body)
	}
	r.Client.Dispatch(t, id, 0)
	return id
}

// TestStopWithoutKeysLeft: customers that have used up their idempotency keys can still stop runs.
func TestStopWithoutKeysLeft(t *testing.T) {
	r := start(t)
	scraper := r.newScraper(t, "shop", "https://shop.test/")
	path := "/api/scraper/" + scraper.String()
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST " + path + "/run"})
	id, err := ids.Parse(run.Text("jobId"))
	if err != nil {
		t.Fatal(err)
	}
	r.Client.Spoil(t, func(tx *clienttest.Tx) {
		c := *tx.Customer("alice")
		c.Claims = 10_000
		tx.PutCustomer(&c)
	})
	r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Do: "POST " + path + "/run",
		Header: key("run"), Status: 429, Code: "idempotency_keys_exhausted"})
	stop := apitest.Scenario{Name: "stop", As: apitest.User, Do: "POST " + path + "/stop",
		Header: key("s"), Status: 200}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r.Run(t, stop)
	}()
	r.await(t, id, func(j *client.Job) bool { return j.State == model.Stopped })
	r.Client.CloseRun(t, id)
	<-answered
	r.Run(t, stop, apitest.Scenario{Name: "stop the group", As: apitest.User,
		Do: "POST /api/scraper/group/" + r.group.String() + "/stop", Header: key("g"),
		Status: 200})
}

// A stop does not wait for a page that takes too long.
func TestStopGivesUpWaiting(t *testing.T) {
	r := start(t)
	scraper := r.newScraper(t, "shop", "https://shop.test/")
	id := r.launch(t, scraper)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r.Run(t, apitest.Scenario{Name: "stop", As: apitest.User,
			Do:     "POST /api/scraper/" + scraper.String() + "/stop",
			Header: key("s"), Status: 200})
	}()
	r.await(t, id, func(j *client.Job) bool { return j.State == model.Stopped })
	for {
		select {
		case <-answered:
			if r.Client.View().Job(id).Closed {
				t.Error("the run is closed")
			}
			return
		case <-time.After(time.Millisecond):
			r.Clock.Advance(time.Second)
		}
	}
}

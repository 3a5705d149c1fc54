package jobs_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// frames reads a stream.
type frames struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (r *rig) open(t *testing.T, path string) *frames {
	t.Helper()
	return r.openAs(t, apitest.Reader, path)
}

func (r *rig) openAs(t *testing.T, who, path string) *frames {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Secrets[who])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	for name, want := range map[string]string{"Content-Type": "text/event-stream",
		"Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
		if got := answer.Header.Get(name); answer.StatusCode != 200 || got != want {
			t.Errorf("%d, %s is %q", answer.StatusCode, name, got)
		}
	}
	f := &frames{t: t, lines: bufio.NewScanner(answer.Body)}
	f.lines.Scan()
	if f.lines.Text() != "retry: 3000" {
		t.Errorf("the stream begins with %q", f.lines.Text())
	}
	return f
}

// next returns the next frame; nil at the end of the stream.
func (f *frames) next() (id string, data map[string]any) {
	f.t.Helper()
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			if value != "status" {
				f.t.Errorf("event %q", value)
			}
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				f.t.Fatal(err)
			}
			return id, data
		}
	}
	return "", nil
}

func (f *frames) expect(want string) {
	f.t.Helper()
	id, data := f.next()
	got, err := json.Marshal(data)
	if err != nil {
		f.t.Fatal(err)
	}
	if string(got) != want || data != nil && id == "" {
		f.t.Errorf("frame %s %s\nwant %s", id, got, want)
	}
}

// tick advances the clock past the time between frames until step returns.
func (r *rig) tick(t *testing.T, step func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			r.Clock.Advance(200 * time.Millisecond)
		}
	}
}

func TestStream(t *testing.T) {
	r := start(t)
	job := r.launch(t, r.scraper, 3)
	f := r.open(t, "/api/scraper-job-status/"+job.String()+"/stream")
	f.expect(`{"chargedMicros":0,"deliveredPages":0,"errorLinks":0,"itemsQuantity":0,"state":"RUNNING","successLinks":0,"totalLinks":3,"totalRequests":0}`)
	r.settleUnit(t, job, 0, 5)
	r.settleUnit(t, job, 1, 0) // both in one frame
	r.tick(t, func() {
		f.expect(`{"chargedMicros":0,"deliveredPages":1,"errorLinks":1,"itemsQuantity":5,"state":"RUNNING","successLinks":1,"totalLinks":3,"totalRequests":2}`)
	})
	r.Client.Must(t, client.StopRun{Customer: "alice", Scraper: r.scraper})
	r.tick(t, func() { // it still drains
		f.expect(`{"chargedMicros":0,"deliveredPages":1,"errorLinks":1,"itemsQuantity":5,"state":"RUNNING","stopReason":"STOPPED_BY_CUSTOMER","successLinks":1,"totalLinks":3,"totalRequests":2}`)
	})
	r.Client.CloseRun(t, job)
	r.tick(t, func() {
		if _, data := f.next(); data["state"] != "CANCELLED" || data["duration"] == nil {
			t.Errorf("last frame %v", data)
		}
		f.expect("null")
	})
	// A late caller gets the last frame at once, under any id of the run.
	for _, path := range []string{"/api/scraper-job-status/" + job.String() + "/stream",
		"/api/scraper/" + job.String() + "/stream-job-status",
		"/api/scraper/" + r.scraper.String() + "/stream-job-status"} {
		f := r.open(t, path)
		if id, data := f.next(); data["state"] != "CANCELLED" || id == "" {
			t.Errorf("%s: %v", path, data)
		}
		f.expect("null")
	}
}

// The streams of a blocked customer end, whatever their runs do. So do those of a revoked key and
// of an expired token.
func TestStreamsEndWithTheirCaller(t *testing.T) {
	const expired = "expired"
	for name, end := range map[string]func(r *rig){
		"blocked": func(r *rig) {
			r.Client.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
		},
		"revoked": func(r *rig) {
			id, err := ids.Parse(r.Call(t, apitest.Scenario{As: apitest.Reader,
				Do: "GET /api/key/whoami"}).Text("id"))
			if err != nil {
				t.Fatal(err)
			}
			r.Client.Must(t, client.RevokeKey{Customer: "alice", ID: id})
		},
		expired: func(r *rig) { r.Clock.Advance(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			job := r.launch(t, r.scraper, 2)
			who := apitest.Reader
			if name == expired {
				who = apitest.SignIn
			}
			f := r.openAs(t, who, "/api/scraper-job-status/"+job.String()+"/stream")
			if _, data := f.next(); data == nil {
				t.Fatal("the stream does not begin")
			}
			end(r)
			r.settleUnit(t, job, 0, 5) // not streamed any more
			r.tick(t, func() { f.expect("null") })
		})
	}
}

// The stream of a run ends when a restore undoes it. If the restored state has its end, that is the
// last frame.
func TestStreamOverARestore(t *testing.T) {
	r := start(t)
	before := r.Client.Backup(t)
	job := r.launch(t, r.scraper, 2)
	running := r.Client.Backup(t)
	r.Client.Must(t, client.StopRun{Customer: "alice", Scraper: r.scraper})
	r.Client.CloseRun(t, job)
	closed := r.Client.Backup(t)
	follow := func() *frames {
		t.Helper()
		f := r.open(t, "/api/scraper-job-status/"+job.String()+"/stream")
		if _, data := f.next(); data["state"] != "RUNNING" {
			t.Fatalf("the stream begins with %v", data)
		}
		return f
	}
	r.Client.Restore(t, running, ids.ID{7})
	f := follow()
	r.settleUnit(t, job, 0, 5) // this frame is newer than what the next backup has
	r.tick(t, func() {
		if _, data := f.next(); data["itemsQuantity"] != 5. {
			t.Errorf("frame %v", data)
		}
	})
	r.Client.Restore(t, closed, ids.ID{8})
	r.tick(t, func() {
		if _, data := f.next(); data["state"] != "CANCELLED" {
			t.Errorf("last frame %v", data)
		}
		f.expect("null")
	})
	r.Client.Restore(t, running, ids.ID{9})
	f = follow()
	r.Client.Restore(t, before, ids.ID{10})
	r.tick(t, func() { f.expect("null") })
}

func TestStreamStates(t *testing.T) {
	r := start(t)
	for rows, state := range map[uint32]string{1: "SUCCESS", 0: "FAILED"} {
		job := r.launch(t, r.scraper, 1)
		r.settleUnit(t, job, 0, rows)
		r.Client.CloseRun(t, job)
		if _, data := r.open(t,
			"/api/scraper/"+r.scraper.String()+
				"/stream-job-status").next(); data["state"] != state ||
			(data["errorMessage"] != nil) != (state == "FAILED") {
			t.Errorf("frame %v, want %s", data, state)
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	r := start(t)
	job, unused := r.launch(t, r.scraper, 1), r.newScraper(t, "unused", r.group)
	refused := func(name, who, path, code string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: who, Do: "GET " + path, Status: 400, Code: code}
	}
	const unknown = "0123456789abcdef01234567"
	alias := func(id ids.ID) string { return "/api/scraper/" + id.String() + "/stream-job-status" }
	r.Run(t,
		refused("unknown", apitest.User, "/api/scraper-job-status/"+unknown+"/stream",
			"job_not_found"),
		refused("a scraper", apitest.User, "/api/scraper-job-status/"+r.scraper.String()+"/stream",
			"job_not_found"),
		refused("foreign", apitest.Other, "/api/scraper-job-status/"+job.String()+"/stream",
			"job_not_found"),
		refused("malformed", apitest.User, "/api/scraper-job-status/x/stream", "invalid_id"),
		refused("foreign job by the alias", apitest.Other, alias(job), "job_not_found"),
		refused("foreign scraper", apitest.Other, alias(r.scraper), "job_not_found"),
		refused("never run", apitest.User, alias(unused), "job_not_found"),
	)
}

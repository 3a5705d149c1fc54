package events_test

import (
	"bufio"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Things of alice's, with ids that tests recognize.
var (
	group   = ids.ID{0xa, 1}
	scraper = ids.ID{0xa, 2}
)

type rig struct {
	*apitest.Server
	store rowstore.Store
}

func start(t *testing.T) *rig {
	t.Helper()
	store := apitest.NewStore(t)
	r := &rig{apitest.Start(t, apitest.WithStore(store)), store}
	r.Client.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "g",
		DataTable: "t", StartType: "MANUAL"})
	r.Client.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "alice", Group: group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}})
	return r
}

// launch launches a run of n links for alice.
func (r *rig) launch(t *testing.T, job ids.ID, n uint32) {
	t.Helper()
	r.Client.Must(t, client.LaunchRun{Job: job, Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(), Links: n, Tiers: model.TiersOf(model.Plain)})
}

// settle ends a link of a run with an error.
func (r *rig) settle(t *testing.T, job ids.ID, seq uint32) {
	t.Helper()
	r.Client.Dispatch(t, job, seq)
	if err := r.Client.Settle(t.Context(), []model.Receipt{{Job: job, Unit: model.Unit{Seq: seq},
		Outcome: model.Errored, Last: true}}, nil); err != nil {
		t.Fatal(err)
	}
}

// stream is an open stream. Reading it advances the clock, so that due events are sent.
type stream struct {
	t      *testing.T
	frames chan frame // closed at its end
	clock  interface{ Advance(d time.Duration) }
}

type frame struct {
	event, data string
	id          uint64 // 0: none
}

func (r *rig) open(t *testing.T, who, query string) *stream {
	t.Helper()
	return r.openWith(t, who, query, nil)
}

func (r *rig) openWith(t *testing.T, who, query string, header map[string]string) *stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		r.URL+"/api/events/stream"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if secret := r.Secrets[who]; secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	for name, want := range map[string]string{"Content-Type": "text/event-stream",
		"Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
		if got := answer.Header.Get(name); answer.StatusCode != 200 || got != want {
			t.Fatalf("%d, %s is %q", answer.StatusCode, name, got)
		}
	}
	s := &stream{t: t, frames: make(chan frame, 1_000), clock: r.Clock}
	go func() {
		defer close(s.frames)
		var f frame
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				f.event = value
			case "data":
				f.data = value
			case "id":
				f.id, _ = strconv.ParseUint(value, 10, 64)
			case "":
				if f != (frame{}) {
					s.frames <- f
				}
				f = frame{}
			}
		}
	}()
	return s
}

// next returns the next frame. ok is false at the end of the stream.
func (s *stream) next() (f frame, ok bool) {
	s.t.Helper()
	for {
		select {
		case f, ok = <-s.frames:
			return f, ok
		case <-time.After(time.Millisecond):
			s.clock.Advance(50 * time.Millisecond)
		}
	}
}

// begin reads the frame that tells where the stream begins.
func (s *stream) begin() (id uint64) {
	s.t.Helper()
	f, _ := s.next()
	if f.event != "" || f.id == 0 {
		s.t.Fatalf("the stream begins with %+v", f)
	}
	return f.id
}

// until reads up to the frame that matches a pattern, and returns all frames.
func (s *stream) until(pattern string) (all []frame) {
	s.t.Helper()
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended; it had %v", all)
		}
		all = append(all, f)
		if regexp.MustCompile(pattern).MatchString(f.event + " " + f.data) {
			return all
		}
	}
}

// A page misses no change between its own making and its stream, whatever others change meanwhile.
// A stream that comes back goes on from what it had, not from the page.
func TestPagesMissNothing(t *testing.T) {
	r := start(t)
	account := ids.ID{0xa, 9}
	secret := auth.NewSessionSecret()
	r.Client.Must(t, client.CreateAccount{ID: account, Customer: "alice",
		Email: "a@x.test", Password: "hash"})
	r.Client.Must(t, client.OpenSession{Account: account, Password: "hash",
		Hash: auth.HashSession(secret)})
	page := r.Call(t, apitest.Scenario{Do: "GET /portal",
		Header: map[string]string{"Cookie": operation.SessionCookie + "=" + secret}})
	index := regexp.MustCompile(`<meta name="index" content="(\d+)">`).FindSubmatch(page.Body)
	if index == nil || string(index[1]) == "0" {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	job := ids.ID{0xa, 3}
	for _, customer := range []string{"bob", "alice"} {
		r.Client.Must(t, client.AdjustWallet{Customer: customer, Entry: r.IDs.New(),
			Amount: 1_000_000})
	}
	r.launch(t, job, 1)
	query := "?lastEventId=" + string(index[1])
	first := r.open(t, apitest.Reader, query).until("job.status")
	if len(first) != 2 || first[0].event != "wallet.updated" || first[1].id == 0 {
		t.Errorf("the page's stream begins with %+v", first)
	}
	again := r.openWith(t, apitest.Reader, query, map[string]string{
		"Last-Event-ID": strconv.FormatUint(first[1].id, 10)})
	if id := again.begin(); id != first[1].id {
		t.Errorf("goes on at %d, want %d", id, first[1].id)
	}
}

// Clients rely on the wire format. testdata/stream.txt has one event of each name.
func TestWhatIsSent(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.Reader, "")
	last := s.begin()
	newest := map[string]string{} // by name; others depend on when the stream looks
	step := func(change func(), until string) {
		t.Helper()
		change()
		for _, f := range s.until(until) {
			newest[f.event] = "event: " + f.event + "\ndata: " + f.data + "\n\n"
			if f.id != 0 && f.id < last {
				t.Errorf("id %d comes after %d", f.id, last)
			}
			last = max(last, f.id)
		}
	}
	job := ids.ID{0xa, 3}
	step(func() {
		r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: ids.ID{0xa, 4},
			Amount: 1_000_000})
	}, "wallet.updated")
	step(func() { r.launch(t, job, 1) }, "job.status")
	step(func() {
		r.Client.Must(t, client.OpenTopUp{Session: "cs_1", URL: "https://pay.test", Amount: 5e6,
			Customer: "alice", Expires: r.Clock.Now().Add(time.Hour).UnixMilli()})
	}, "topup.status")
	step(func() {
		r.settle(t, job, 0)
		r.Client.CloseRun(t, job)
	}, "notification")
	step(func() { r.Client.Replace(t) }, "resync")
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		got.WriteString(newest[name])
	}
	stable := regexp.MustCompile(`"(createdAt|id)":"[^"]*"`).ReplaceAllString(got.String(),
		`"$1":"…"`)
	stable = regexp.MustCompile(`"duration":\d+`).ReplaceAllString(stable, `"duration":0`)
	want, err := os.ReadFile("testdata/stream.txt")
	if err != nil || string(want) != stable {
		t.Errorf("%v; the stream has\n%s", err, stable)
	}
}

// Changes that are faster than the stream are combined into one event with the newest state.
func TestManyChangesAreToldTogether(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.User, "")
	s.begin()
	job := ids.ID{0xa, 3}
	const links = 40
	r.launch(t, job, links)
	for seq := range uint32(links) {
		r.settle(t, job, seq)
	}
	frames := s.until(`"totalRequests":40`)
	if len(frames) > 3 { // the first may come at any time between two settles
		t.Errorf("%d settles are %d events: %v", links, len(frames), frames)
	}
}

// A stream never tells of another customer.
func TestStreamsAreOfOneCustomer(t *testing.T) {
	r := start(t)
	alice, bob := r.open(t, apitest.User, ""), r.open(t, apitest.Other, "")
	alice.begin()
	bob.begin()
	r.launch(t, ids.ID{0xa, 3}, 1)
	r.Client.Must(t, client.AdjustWallet{Customer: "bob", Entry: r.IDs.New(), Amount: 7})
	for _, f := range bob.until(`"balanceMicros":7`) {
		if f.event != "wallet.updated" {
			t.Errorf("bob hears %+v", f)
		}
	}
	for _, f := range alice.until("job.status") {
		if f.event != "job.status" {
			t.Errorf("alice hears %+v", f)
		}
	}
	// an admin who acts for alice gets her events
	admin := r.openWith(t, apitest.Admin, "", map[string]string{"X-Customer-Ref": "alice"})
	admin.begin()
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1})
	admin.until("wallet.updated")
}

// Trials are not told, because their callers wait for them.
func TestTrialsAreNotTold(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.User, "")
	s.begin()
	r.Client.Must(t, client.LaunchRun{Job: ids.ID{0xa, 5}, Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain),
		Trial: &client.Trial{Source: model.SourceSample}})
	r.launch(t, ids.ID{0xa, 3}, 1)
	for _, f := range s.until("job.status") {
		if strings.Contains(f.data, ids.ID{0xa, 5}.String()) {
			t.Errorf("it tells %+v", f)
		}
	}
}

// A client that reconnects gets what it missed, whether a header or the address has its position.
func TestStreamsGoOn(t *testing.T) {
	r := start(t)
	first := r.open(t, apitest.User, "")
	stood := strconv.FormatUint(first.begin(), 10)
	r.launch(t, ids.ID{0xa, 3}, 1)
	first.until("job.status")
	for name, s := range map[string]*stream{
		"header": r.openWith(t, apitest.User, "", map[string]string{"Last-Event-ID": stood}),
		"query":  r.open(t, apitest.User, "?lastEventId="+stood),
	} {
		if f, _ := s.next(); f.event != "job.status" || f.id == 0 {
			t.Errorf("%s: it hears %+v first", name, f)
		}
	}
	// nothing was recorded before the first stream
	if f, _ := r.open(t, apitest.User, "?lastEventId=1").next(); f.event != "resync" ||
		f.data != "{}" || f.id == 0 {
		t.Errorf("it hears %+v first", f)
	}
	r.Run(t, apitest.Scenario{Name: "no id", As: apitest.User, Status: 400,
		Do: "GET /api/events/stream?lastEventId=x", Code: "invalid_request"})
}

// A client that is ahead of this server waits for it, but not forever.
func TestStreamsWaitForTheirServer(t *testing.T) {
	r := start(t)
	stood := r.open(t, apitest.User, "").begin()
	ahead := r.open(t, apitest.User, "?lastEventId="+strconv.FormatUint(stood+2, 10))
	r.launch(t, ids.ID{0xa, 3}, 1)
	for range 3 {
		r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1})
	}
	for _, f := range ahead.until("wallet.updated") {
		if f.event == "resync" || f.event == "job.status" {
			t.Errorf("it hears %+v", f)
		}
	}
	never := r.open(t, apitest.User, "?lastEventId=1000000")
	began := r.Clock.Now()
	if f, _ := never.next(); f.event != "resync" || r.Clock.Now().Sub(began) < 4*time.Second {
		t.Errorf("after %v it hears %+v", r.Clock.Now().Sub(began), f)
	}
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1})
	never.until("wallet.updated")
}

// If the state is replaced, all streams resync and continue.
func TestStreamsOutliveASnapshot(t *testing.T) {
	r := start(t)
	alice, bob := r.open(t, apitest.User, ""), r.open(t, apitest.Other, "")
	alice.begin()
	bob.begin()
	r.Client.Replace(t)
	for _, s := range []*stream{alice, bob} {
		if f, _ := s.next(); f.event != "resync" {
			t.Errorf("it hears %+v", f)
		}
	}
	r.launch(t, ids.ID{0xa, 3}, 1)
	alice.until("job.status")
}

// A stream ends with its key, even while nothing happens.
func TestStreamsEndWithTheirKey(t *testing.T) {
	r := start(t)
	s := r.open(t, apitest.Reader, "")
	s.begin()
	id, err := ids.Parse(r.Call(t, apitest.Scenario{As: apitest.Reader,
		Do: "GET /api/key/whoami"}).Text("id"))
	if err != nil {
		t.Fatal(err)
	}
	r.Client.Must(t, client.RevokeKey{Customer: "alice", ID: id})
	for {
		f, open := s.next()
		if !open {
			return
		}
		if f.event != "" {
			t.Errorf("it still hears %+v", f)
		}
	}
}

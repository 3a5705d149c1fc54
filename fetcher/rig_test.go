package fetcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	jobID     = ids.ID{11: 1}
	endedID   = ids.ID{11: 2}
	scraperID = ids.ID{11: 3}
	errTest   = errors.New("a failure of the test's")
)

// fakeControl is a control plane with one node, which holds all shards unless answer says
// otherwise.
type fakeControl struct {
	shards int

	mu      sync.Mutex
	jobs    map[ids.ID]*client.Job
	entries map[ids.ID]*client.Entry
	recipes map[uint32]*client.Recipe // by revision
	owners  []*client.Shard
	beats   []client.Heartbeat
	answer  func(beat client.Heartbeat) (client.Leases, error)
}

func newControl(shards int, recipe model.Recipe) *fakeControl {
	c := &fakeControl{shards: shards, entries: map[ids.ID]*client.Entry{},
		recipes: map[uint32]*client.Recipe{1: {Recipe: recipe}}, jobs: map[ids.ID]*client.Job{
			jobID:   {ID: jobID, State: model.Running},
			endedID: {ID: endedID, State: model.Stopped},
		}}
	c.answer = func(client.Heartbeat) (client.Leases, error) { return c.holdAll(time.Hour), nil }
	return c
}

func (c *fakeControl) holdAll(lease time.Duration) client.Leases {
	leases := client.Leases{For: lease}
	for n := range c.shards {
		leases.Hold = append(leases.Hold, client.ShardEpoch{Shard: uint16(n), Epoch: 1})
	}
	return leases
}

func (c *fakeControl) View() View                          { return c }
func (c *fakeControl) Fresh(context.Context) (View, error) { return c, nil }
func (c *fakeControl) Cluster() *client.Cluster            { return &client.Cluster{HashSecret: 7} }
func (c *fakeControl) Shards() []*client.Shard             { return c.owners }

func (c *fakeControl) Job(id ids.ID) *client.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jobs[id]
}

func (c *fakeControl) Entry(id ids.ID) *client.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[id]
}

func (c *fakeControl) end(id ids.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[id] = &client.Job{ID: id, State: model.Stopped}
}

func (c *fakeControl) Recipe(_ ids.ID,
	revision uint32) *client.Recipe {
	return c.recipes[revision]
}

func (c *fakeControl) Heartbeat(_ context.Context, beat client.Heartbeat) (client.Leases, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beats = append(c.beats, beat)
	return c.answer(beat)
}

// change runs do between two heartbeats.
func (c *fakeControl) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// count returns the number of heartbeats.
func (c *fakeControl) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.beats)
}

// lastBeat returns the shards held at the newest heartbeat, in order.
func (c *fakeControl) lastBeat() []client.ShardEpoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.beats) == 0 {
		return nil
	}
	held := slices.Clone(c.beats[len(c.beats)-1].Holding)
	slices.SortFunc(held, func(a, b client.ShardEpoch) int { return int(a.Shard) - int(b.Shard) })
	return held
}

// fakeWeb answers by address. By default, it answers with one row that names the path.
type fakeWeb struct {
	latency time.Duration
	robots  map[string]time.Duration // Crawl-delay by host
	forbid  map[string]bool          // by address
	tiers   model.TierSet

	onRobots func() // called while robots.txt is read; nil: nothing

	mu       sync.Mutex
	answers  map[string]func(ctx context.Context, req web.Request) (*web.Page, error)
	known    map[string]bool
	asked    []string           // addresses in order
	starts   map[string][]int64 // by host, in nanoseconds
	released int
}

func newWeb() *fakeWeb {
	return &fakeWeb{answers: map[string]func(context.Context, web.Request) (*web.Page, error){},
		robots: map[string]time.Duration{},
		forbid: map[string]bool{}, tiers: model.TiersOf(model.Plain), known: map[string]bool{},
		starts: map[string][]int64{}}
}

func (w *fakeWeb) Tiers() model.TierSet { return w.tiers }

func (w *fakeWeb) start(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := address.AuthorityOf(url)
	w.asked = append(w.asked, url)
	w.starts[host] = append(w.starts[host], time.Now().UnixNano())
}

func (w *fakeWeb) Fetch(ctx context.Context, req web.Request) (*web.Page, error) {
	w.start(req.URL)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(w.latency):
	}
	w.mu.Lock()
	answer := w.answers[req.URL]
	w.mu.Unlock()
	if answer != nil {
		return answer(ctx, req)
	}
	return w.html(req.URL, fmt.Sprintf("<h1>%s</h1>", req.URL)), nil
}

func (w *fakeWeb) html(final, body string) *web.Page {
	return &web.Page{Final: final, Status: 200, ContentType: "text/html", Body: []byte(body),
		Wire: int64(len(body)), Answer: counted{w}}
}

// counted is an answer whose releases are counted.
type counted struct{ web *fakeWeb }

func (counted) Header(string) string { return "" }

func (c counted) Release() {
	c.web.mu.Lock()
	defer c.web.mu.Unlock()
	c.web.released++
}

// at sets the answer of an address. It may be called during requests.
func (w *fakeWeb) at(url string, answer func(context.Context, web.Request) (*web.Page, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[url] = answer
}

func (w *fakeWeb) page(url, body string) {
	w.at(url, func(context.Context, web.Request) (*web.Page, error) {
		return w.html(url, body),
			nil
	})
}

// fails answers with a failure the given number of times (-1: always), then with a page.
func (w *fakeWeb) fails(url string, times int, failure web.Failure) {
	w.at(url, func(context.Context, web.Request) (*web.Page, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if times == 0 {
			return &web.Page{Final: url, Status: 200, ContentType: "text/html",
				Body: []byte("<h1>x</h1>")}, nil
		}
		times--
		failed := failure
		failed.Final = url
		return nil, &failed
	})
}

func (w *fakeWeb) redirect(from, to string) {
	w.at(from, func(ctx context.Context, req web.Request) (*web.Page, error) {
		if err := req.BeforeHop(ctx, to, req.As.Redirected(302, from, to)); err != nil {
			return nil, err
		}
		req.URL, req.As = to, req.As.Redirected(302, from, to)
		return w.Fetch(ctx, req)
	})
}

// startsAt returns the request starts at a host.
func (w *fakeWeb) startsAt(host string) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.starts[host])
}

func (w *fakeWeb) KnowsRules(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[address.AuthorityOf(url)]
}

func (w *fakeWeb) Leave(string) {}

// CheckRules asks for a host's file once, however many pages check it at one moment.
func (w *fakeWeb) CheckRules(_ context.Context, _, url string) (time.Duration, error) {
	host := address.AuthorityOf(url)
	w.mu.Lock()
	known := w.known[host]
	w.known[host] = true
	w.mu.Unlock()
	if !known {
		w.start("http://" + host + "/robots.txt")
		if w.onRobots != nil {
			w.onRobots()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forbid[url] {
		return w.robots[host], &web.Failure{Code: fault.PageRobots, Final: url}
	}
	return w.robots[host], nil
}

type sequence struct {
	mu sync.Mutex
	ids.Sequence
}

func (s *sequence) New() ids.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Sequence.New()
}

// rig is a fetcher among fakes. It must be used in a synctest bubble, whose time it uses.
type rig struct {
	t       *testing.T
	memory  *stream.Memory
	control *fakeControl
	web     *fakeWeb
	f       *Fetcher
	reader  stream.Reader
	number  uint64
}

var title = model.Recipe{Type: model.SingleProduct,
	Fields: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}

func paged(p model.Pagination) model.Recipe {
	r := title
	r.Type, r.Pagination = model.MultipleProducts, &p
	return r
}

// start runs a fetcher of all shards until stop. change may modify its configuration.
func start(t *testing.T, shards int, recipe model.Recipe, change func(*rig, *Config)) (r *rig,
	stop func()) {
	t.Helper()
	memory, err := stream.NewMemory(stream.Config{Partitions: shards})
	if err != nil {
		t.Fatal(err)
	}
	r = &rig{t: t, memory: memory, control: newControl(shards, recipe), web: newWeb()}
	r.reader, _ = memory.Consume(stream.Pages, "test")
	config := Config{Node: "n", Log: memory, Control: r.control, Web: r.web, IDs: &sequence{},
		ShardOf: func(host string) int { return len(host) % shards }}
	if change != nil {
		change(r, &config)
	}
	r.f = New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.f.Run(ctx) }()
	synctest.Wait() // the shards are open
	return r, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if c := r.f.Counts(); c.Open != 0 || c.Shards != 0 || c.Waiting != 0 || c.HeldBytes != 0 {
			t.Errorf("kept after the end: %+v", c)
		}
		memory.Close()
	}
}

func (r *rig) task(seq int, url string) model.Task {
	r.number++
	return model.Task{Job: jobID, Seq: uint32(seq), Customer: "c", Scraper: scraperID, Revision: 1,
		URL:   url,
		Tiers: model.TiersOf(model.Plain), Budget: 10, Attempt: 1, Number: r.number}
}

func (r *rig) publish(shard int, records ...[]byte) {
	r.t.Helper()
	if err := r.memory.Publish(context.Background(), stream.Tasks, shard, records...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) send(tasks ...model.Task) {
	r.t.Helper()
	for _, task := range tasks {
		r.publish(0, stream.EncodeTask(task))
	}
}

// pages waits for n pages, for an hour at most.
func (r *rig) pages(n int) []*model.Page {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var pages []*model.Page
	for len(pages) < n {
		messages, err := r.reader.Fetch(ctx, 1)
		if err != nil {
			r.t.Fatalf("%d of %d pages came: %v", len(pages), n, err)
		}
		page, _, err := stream.DecodePages(messages[0].Value)
		if err != nil {
			r.t.Fatal(err)
		}
		if page != nil {
			pages = append(pages, page)
		}
		_ = r.reader.Commit(ctx, messages)
	}
	return pages
}

// nothingMore checks that no page comes for an hour.
func (r *rig) nothingMore() {
	r.t.Helper()
	pass(time.Hour)
	synctest.Wait()
	if lag := r.memory.Lag(stream.Pages); lag != 0 {
		r.t.Errorf("%d records too many", lag)
	}
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func shorthand(p *model.Page) string {
	outcome := map[model.Outcome]string{model.Delivered: "delivered", model.Errored: "errored",
		model.Empty:     "empty",
		model.Cancelled: "cancelled"}[p.Outcome]
	text := []string{fmt.Sprint(p.Unit.Page), outcome}
	if p.Code != "" {
		text = append(text, p.Code)
	}
	if p.Last {
		text = append(text, "last")
	}
	if p.Spent {
		text = append(text, "spent")
	}
	return strings.Join(text, " ")
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

func intp(n int) *int { return &n }

package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// Soak runs the service for hours, kills it repeatedly, and recounts every run.
type Soak struct {
	Time  time.Duration `help:"Time in which new runs are started." default:"1h"`
	Runs  int           `help:"Concurrent runs, each with its own customer and web." default:"3"`
	Kills time.Duration `help:"Average time between two kills of the service; 0: no kills." default:"20s"`
	Seed  uint64        `help:"Random seed of webs and kills." default:"1"`
}

// Help returns the help text.
func (*Soak) Help() string {
	return `A 'shoal serve' works on run after run, of single pages and of chains, with every kind of trouble among them. It is killed
(SIGKILL) at random moments and restarted on the same data. When a run ends, its rows, errors, counters and charges are
recounted page by page from the web's own log. A difference ends the soak. At the end the service's own recount must agree
for all runs, and the table shows whether memory or disk use grew.

Example: shoal bench soak --time 8h --kills 1m`
}

const (
	soakHosts    = 20
	soakFree     = 5 // free requests of a new customer
	soakPatience = 10 * time.Minute
	leastKills   = 8 * time.Second
	soakEvery    = 60 // most samples of memory and disk over the whole time
)

// soak is a soak in progress.
type soak struct {
	m       *Soak
	on      *Bench
	config  process.Config
	begun   time.Time
	mu      sync.Mutex
	service *process.Process // nil while none runs
	deaths  []time.Time
	rounds  int // ended and recounted
	sum     recount.Summary
	samples []soakSample
}

type soakSample struct {
	after      time.Duration
	rounds     int
	kills      int
	rss, bytes int64 // memory of the service; size of its data directory
}

// Measure runs the soak.
func (m *Soak) Measure(ctx context.Context, on *Bench, report *Report) (err error) {
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	if err := positive(map[string]int{"runs": m.Runs}); err != nil {
		return err
	}
	if m.Kills != 0 && m.Kills < leastKills {
		return fmt.Errorf("--kills: %w: 0, or %v and more: a page that is lost five "+
			"times is given up", ErrFlags, leastKills)
	}
	s, listeners, err := m.prepare(on)
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() {
		s.service.Kill()
		err = errors.Join(err, os.RemoveAll(s.config.Data))
	}()
	if err := s.work(ctx, listeners); err != nil {
		return err
	}
	return s.tell(ctx, report)
}

// prepare chooses the addresses of service and webs, which stay the same over all restarts.
func (m *Soak) prepare(on *Bench) (*soak, []string, error) {
	data, err := on.directory("data")
	if err != nil {
		return nil, nil, err
	}
	listen, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	args := []string{"--no-rate-limits", "--egress-allow", "127.0.0.0/8", "--host-rate", "4",
		"--host-connections", "2"}
	var places []string
	for i := range m.Runs {
		place, err := freePort()
		if err != nil {
			return nil, nil, err
		}
		places = append(places, place)
		args = append(args, "--egress-origin", fmt.Sprintf("*.%s=%s", soakSuffix(i), place))
	}
	return &soak{m: m, on: on, begun: time.Now(),
			config: process.Config{Binary: on.Program, Data: data, Listen: listen, Args: args}},
		places,
		nil
}

func soakSuffix(lane int) string { return fmt.Sprintf("soak%d", lane) }

// start starts the service and waits until it serves.
func (s *soak) start(ctx context.Context) error {
	p, err := process.Start(s.config)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.service = p
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return p.Ready(ctx)
}

// work keeps all lanes running, with kills and samples, until the time is over and every run has
// ended.
func (s *soak) work(ctx context.Context, places []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beside, over := context.WithCancel(ctx)
	var lanes, others sync.WaitGroup
	for lane, place := range places {
		lanes.Go(func() {
			for n := 0; time.Since(s.begun) < s.m.Time && ctx.Err() == nil; n++ {
				if err := s.round(ctx, lane, n, place); err != nil {
					cancel(fmt.Errorf("run %d of lane %d: %w", n, lane, err))
				}
			}
		})
	}
	others.Go(func() {
		if err := s.kill(beside); err != nil {
			cancel(err)
		}
	})
	others.Go(func() { s.sample(beside) })
	lanes.Wait()
	over()
	others.Wait()
	return context.Cause(ctx)
}

// kill kills the service repeatedly until the context ends; it leaves a serving one.
func (s *soak) kill(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.m.Seed, 2))
	wait := func() time.Duration {
		return time.Duration((0.25 +
			1.5*random.Float64()) * float64(s.m.Kills))
	}
	for s.m.Kills > 0 && pause(ctx, wait()) == nil {
		s.service.Kill()
		s.mu.Lock()
		s.deaths = append(s.deaths, s.service.Died())
		s.mu.Unlock()
		if err := s.start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// sample records from time to time the service's memory and disk use.
func (s *soak) sample(ctx context.Context) {
	for pause(ctx, s.m.Time/soakEvery) == nil {
		s.note()
	}
	s.note()
}

func (s *soak) note() {
	s.mu.Lock()
	p, sample := s.service, soakSample{after: time.Since(s.begun), rounds: s.rounds,
		kills: len(s.deaths)}
	s.mu.Unlock()
	if usage, err := p.Usage(); err == nil { // it may have just been killed
		sample.rss, sample.bytes = usage.Bytes, sizeOf(s.config.Data)
		s.samples = append(s.samples, sample)
	}
}

// sizeOf is the total size of the visible files in a directory.
func sizeOf(dir string) (size int64) {
	// Files may come and go in the meantime.
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// round is one run, from its customer's first call to its recount.
func (s *soak) round(ctx context.Context, lane, n int, place string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, soakPatience)
	defer cancel()
	listener, err := net.Listen("tcp4", place)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	w, links, chains, err := s.web(listener, lane, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r := soakRun{soak: s, name: fmt.Sprintf("soak-%d-%d", lane, n),
		urls: slices.Collect(w.URLs(links)), chains: chains}
	reported, err := r.run(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	deaths := slices.Clone(s.deaths)
	s.mu.Unlock()
	plain, _ := price.Standard().Row(model.Plain.PriceRow())
	expected := recount.Run{Web: w, URLs: r.urls, Price: plain.Micros, Free: soakFree,
		Deaths: deaths}
	if chains {
		expected.Pagination = api.NextLink()
	}
	sum, err := recount.Check(expected, reported)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	s.sum.Links, s.sum.Delivered, s.sum.Errored = s.sum.Links+sum.Links,
		s.sum.Delivered+sum.Delivered, s.sum.Errored+sum.Errored
	s.sum.Rows, s.sum.Charged = s.sum.Rows+sum.Rows, s.sum.Charged+sum.Charged
	s.sum.Requests, s.sum.Refetched = s.sum.Requests+sum.Requests, s.sum.Refetched+sum.Refetched
	s.on.Say("soak: %v: %d runs exact, %d kills; %s", time.Since(s.begun).Round(time.Second),
		s.rounds, len(s.deaths), sum)
	return nil
}

// web makes a run's web: single pages or chains, in turn.
func (s *soak) web(listener net.Listener, lane, n int) (w *synthweb.Web, links int, chains bool,
	err error) {
	config := synthweb.Config{Seed: s.m.Seed<<32 + uint64(lane)<<24 + uint64(n),
		Suffix: soakSuffix(lane), Hosts: soakHosts,
		PageBytes: []int{2500, 10_000}, MaxLatency: 60 * time.Millisecond, PagesPerHost: 25,
		Mix: synthweb.Rough(),
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty,
			synthweb.RobotsDisallow}}
	if chains = (lane+n)%2 == 1; chains {
		config.PagesPerHost, config.ChainPages, config.ItemsPerPage = 3, 12, 4
		config.Mix = synthweb.Mix{{Class: synthweb.Listing, Weight: 5},
			{Class: synthweb.ChangingListing, Weight: 4},
			{Class: synthweb.BrokenListing, Weight: 1}}
	}
	w, err = synthweb.StartOn(listener, config)
	return w, soakHosts * config.PagesPerHost, chains, err
}

// soakRun is one run, whose calls are repeated until they are answered.
type soakRun struct {
	*soak
	name   string
	urls   []string
	chains bool
}

func (r *soakRun) run(ctx context.Context) (recount.Reported, error) {
	var reported recount.Reported
	token, err := process.Run(ctx, r.config, "token", "--customer", r.name)
	if err != nil {
		return reported, err
	}
	owner, err := process.Run(ctx, r.config, "token", "--admin")
	if err != nil {
		return reported, err
	}
	server := "http://" + r.config.Listen
	who, admin, key := api.Client{Server: server, Token: token},
		api.Client{Server: server, Token: owner}, api.NewKey()
	order := api.ProductOrder(who, r.urls)
	if r.chains {
		order = api.ListingOrder(who, r.urls, api.NextLink())
	}
	var run api.Launched
	err = again(ctx, func(ctx context.Context) error {
		ref, err := who.Whoami(ctx)
		if err != nil {
			return err
		}
		if err := admin.Again(key).Adjust(ctx, ref, plenty); err != nil {
			return err
		}
		group, err := who.Again(key).PutGroup(ctx, r.name)
		if err != nil {
			return err
		}
		query, err := order.ListQuery(ctx, who.Again(key), group, r.name)
		if err != nil {
			return err
		}
		run, err = who.Again(key).RunList(ctx, query, strings.NewReader(strings.Join(r.urls, "\n")))
		return err
	})
	if err != nil {
		return reported, fmt.Errorf("launch: %w", err)
	}
	err = again(ctx, func(ctx context.Context) (err error) {
		reported, err = who.Report(ctx, run)
		return err
	})
	return reported, err
}

// again repeats calls until they succeed or fail for good. It repeats calls without an answer, and
// those told to wait.
func again(ctx context.Context, calls func(ctx context.Context) error) error {
	for {
		err := calls(ctx)
		problem := (*api.Problem)(nil)
		refused := errors.As(err, &problem) && problem.Status < http.StatusInternalServerError &&
			problem.Status != http.StatusTooManyRequests && problem.Code != "idempotency_in_flight"
		if err == nil || refused {
			return err
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// tell asks the service for its own recount, and reports.
func (s *soak) tell(ctx context.Context, report *Report) error {
	token, err := process.Run(ctx, s.config, "token", "--admin")
	if err != nil {
		return err
	}
	admin := api.Client{Server: "http://" + s.config.Listen, Token: token}
	runs, differ, err := admin.RecountOfProduct(ctx)
	if err != nil {
		return err
	}
	if runs != s.rounds || differ > 0 {
		return fmt.Errorf("the service's own recount: %d of %d runs differ, %d were made", differ,
			runs, s.rounds)
	}
	table := report.table("Runs until the end, each recounted from the web's log:", "", "number")
	for _, line := range []struct {
		name  string
		value int64
	}{{"runs, all exact", int64(s.rounds)}, {"kills", int64(len(s.deaths))},
		{"addresses", int64(s.sum.Links)},
		{"pages delivered", int64(s.sum.Delivered)}, {"pages errored", int64(s.sum.Errored)},
		{"rows", int64(s.sum.Rows)},
		{"charged, micros", s.sum.Charged}, {"requests to the web", int64(s.sum.Requests)},
		{"of them again after a kill", int64(s.sum.Refetched)}} {
		table.add(line.name, float64(line.value))
	}
	growth := report.table("The service over time:", "after", "runs", "kills", "resident, MB",
		"data, MB", "data a run, MB")
	step := max(len(s.samples)/12, 1)
	for i, sample := range s.samples {
		if i%step == 0 || i == len(s.samples)-1 {
			growth.add(sample.after.Round(time.Second).String(), float64(sample.rounds),
				float64(sample.kills),
				float64(sample.rss)/1e6, float64(sample.bytes)/1e6,
				float64(sample.bytes)/1e6/float64(sample.rounds))
		}
	}
	report.note("the service's own recount agrees for all %d runs", runs)
	return nil
}

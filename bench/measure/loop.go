package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// Loop measures the whole service in one process, from launch to settled.
type Loop struct {
	Pages   int    `help:"Pages of each case in each round." default:"40000"`
	Rounds  int    `help:"Number of rounds. In each round every case runs once." default:"3"`
	Mixed   bool   `help:"Add a case with a realistic web: many kinds of pages, latencies and errors."`
	Profile string `help:"Directory for CPU profiles of the service in the first round." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*Loop) Help() string {
	return `A list run is launched through the API of a 'shoal serve' and ends when every page is stored and charged. Client and web are
separate processes and do not count. In the same round the HTTP client and the extraction alone read the same pages. What
the service takes beyond that is its own work (dispatch, frontier, records, store, settling). The field sums of rows, which
quarantine and profiles need, are also taken alone, of rows of the same web.

Example: shoal bench loop --profile profiles`
}

const (
	loopConcurrency = 64
	loopWarmUp      = 4000
	ownLimit        = 60 // µs of processor time per page for the loop's own work
	sumsLimit       = 3  // percent of a page's processor time for the sums of its fields
)

// loopCase is one kind of web, and what is read from it.
type loopCase struct {
	name   string
	config func(pages int) synthweb.Config
	recipe model.Recipe
	floor  bool // the client and the extraction alone also read it
	late   bool // answers come late, and some are errors
}

func (m *Loop) cases() []loopCase {
	cases := []loopCase{
		{"the page, five fields", page.Web, single(page.Fields(false)), true, false},
		{"the page, and a field is missing", page.Web, single(page.Fields(true)), true, false},
		{"a listing of 24 rows on average", listingWeb, model.Recipe{Type: model.MultipleProducts,
			Fields: synthweb.ItemFields()}, false, false},
	}
	if m.Mixed {
		cases = append(cases, loopCase{"the web as it is", mixedWeb,
			single(synthweb.ProductFields()), false, true})
	}
	return cases
}

// listingWeb has listings of 1 to 47 items.
func listingWeb(pages int) synthweb.Config {
	return synthweb.Config{Seed: 1, Hosts: page.Hosts, PagesPerHost: pages/page.Hosts + 1,
		Mix: synthweb.Listings(), ChainPages: 1, ItemsPerPage: 47, PageBytes: []int{28_000},
		LogLimit: 1}
}

// mixedWeb has pages of all sizes and kinds, with latencies like the real web's.
func mixedWeb(pages int) synthweb.Config {
	return synthweb.Config{Seed: 1, Hosts: 1000, PagesPerHost: pages/1000 + 1,
		Mix:       synthweb.RealWeb(),
		PageBytes: []int{10_000, 28_000, 28_000, 100_000, 300_000}, LogLimit: 1,
		Latencies: []synthweb.LatencyShare{{Weight: 70, Min: 10 * time.Millisecond,
			Max: 80 * time.Millisecond},
			{Weight: 28, Min: 80 * time.Millisecond, Max: 400 * time.Millisecond},
			{Weight: 2, Min: 400 * time.Millisecond, Max: 2 * time.Second}},
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty,
			synthweb.RobotsDisallow}, Sitemaps: true}
}

// looped is the result of a case in one round.
type looped struct {
	pages      int
	used       reading
	peak       int64 // bytes
	web        float64
	floor      time.Duration // processor time of client and extraction alone; 0: not measured
	floorPages int
	sums       time.Duration // processor time of field sums
	summed     int           // pages of these; 0: not measured
}

func (l looped) micros() float64      { return micros(l.used.cpu) / float64(l.pages) }
func (l looped) floorMicros() float64 { return micros(l.floor) / float64(l.floorPages) }
func (l looped) sumsMicros() float64  { return micros(l.sums) / float64(l.summed) }

// Measure measures all rounds.
func (m *Loop) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"pages": m.Pages, "rounds": m.Rounds}); err != nil {
		return err
	}
	found := map[string][]looped{}
	for round := range m.Rounds {
		for _, c := range m.cases() {
			profile := ""
			if m.Profile != "" && round == 0 {
				profile = filepath.Join(m.Profile, Slug(c.name)+".prof")
			}
			l, err := m.measure(ctx, on, c, profile)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
			}
			on.Say("loop: round %d, %s: %.1f µs a page", round+1, c.name, l.micros())
			found[c.name] = append(found[c.name], l)
		}
	}
	m.tell(report, found)
	return nil
}

// tell reports the medians.
func (m *Loop) tell(report *Report, found map[string][]looped) {
	table := report.table(fmt.Sprintf("From launch to settled, one process, %d requests under "+
		"way; medians of %d rounds:",
		loopConcurrency, m.Rounds), "case", "pages per CPU-second", "CPU a page, µs",
		"of it client and extraction, µs",
		"of it the loop's own, µs", "of it field sums, µs", "pages/s", "peak memory, MB",
		"web, cores")
	for _, c := range m.cases() {
		of := func(figure func(looped) float64) float64 { return median(found[c.name], figure) }
		own := of(func(l looped) float64 { return l.micros() - l.floorMicros() })
		table.add(c.name, of(func(l looped) float64 { return 1e6 / l.micros() }), of(looped.micros),
			of(looped.floorMicros), own, of(looped.sumsMicros),
			of(func(l looped) float64 { return float64(l.pages) / l.used.wall.Seconds() }),
			of(func(l looped) float64 { return float64(l.peak) / 1e6 }),
			of(func(l looped) float64 { return l.web }))
		if c.floor {
			report.atMost("the loop's own work, "+c.name, own, ownLimit, "µs of CPU a page")
		}
		if !c.late {
			report.atMost("field sums, "+c.name, of(func(l looped) float64 {
				return percent(l.sumsMicros(), l.micros())
			}), sumsLimit, "% of a page's CPU")
		}
	}
}

// median returns the median of a figure over the rounds.
func median[T any](rounds []T, figure func(T) float64) float64 {
	var values []float64
	for _, round := range rounds {
		values = append(values, figure(round))
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// measure runs one round of a case, on a fresh web and service.
func (m *Loop) measure(ctx context.Context, on *Bench, c loopCase, profile string) (l looped,
	err error) {
	w, err := on.startWeb(ctx, c.config(m.Pages+loopWarmUp))
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	addresses := slices.Collect(w.URLs(m.Pages + loopWarmUp))
	warmUp, measured := addresses[:loopWarmUp], addresses[loopWarmUp:]
	var env []string
	if profile != "" {
		if err := os.MkdirAll(m.Profile, 0o755); err != nil {
			return l, fmt.Errorf("--profile: %w", err)
		}
		env = append(env, "SHOAL_CPUPROFILE="+profile)
	}
	connections := loopConcurrency / len(w.Hosts())
	s, err := on.fresh(ctx, env, []*web{w},
		append(unbounded(connections), "--fetch-workers", strconv.Itoa(m.workers(c)))...)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if l, err = m.crawl(ctx, s, w, c, warmUp, measured); err != nil || c.late {
		return l, err
	}
	r, err := newReader(w, &c.recipe)
	if err != nil {
		return l, err
	}
	defer r.client.Close()
	l.summed = summedPages
	if l.sums, err = r.sumUp(ctx, warmUp[:loopSummed]); err != nil || !c.floor {
		return l, err
	}
	if _, err := r.read(ctx, loopConcurrency, warmUp); err != nil {
		return l, err
	}
	alone, err := r.read(ctx, loopConcurrency, measured)
	l.floor, l.floorPages = alone.cpu, len(measured)
	return l, err
}

// workers is the fetcher's number of requests in flight. With immediate answers it is the same as
// the floor's; with late answers it is the fetcher's default.
func (m *Loop) workers(c loopCase) int {
	if c.late {
		return 0
	}
	return loopConcurrency
}

func (m *Loop) crawl(ctx context.Context, s *service, w *web, c loopCase, warmUp,
	measured []string) (l looped, err error) {
	order := api.Order{Who: s.Client, Kind: c.recipe.Type, Fields: c.recipe.Fields, URLs: warmUp}
	if err := s.crawl(ctx, order); err != nil {
		return l, fmt.Errorf("warm-up: %w", err)
	}
	var before, after process.Usage
	if before, err = s.Usage(); err != nil {
		return l, err
	}
	if err := w.markSpan(); err != nil {
		return l, err
	}
	begun := time.Now()
	order.URLs = measured
	if err := s.crawl(ctx, order); err != nil {
		return l, err
	}
	l.used.wall = time.Since(begun)
	if after, err = s.Usage(); err != nil {
		return l, err
	}
	l.pages, l.used.cpu, l.peak = len(measured), after.CPU-before.CPU, after.PeakBytes
	l.web, err = w.share()
	return l, err
}
